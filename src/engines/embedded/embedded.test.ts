import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { serialize } from 'node:v8'
import { gzipSync } from 'node:zlib'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openEmbedded, packDatabase, readPacked } from './index.js'

test('the embedded database does not start what waits for a client that gave up while a long statement ran', async () => {
  const { url, close } = await openEmbedded({ dataDir: '', port: 0, inMemory: true })
  onTestFinished(close)
  const connect = async () => {
    const client = new pg.Client({ connectionString: url, pipeline: true } as pg.ClientConfig)
    client.on('error', () => {})
    await client.connect()
    return client
  }
  const [owner, impatient, patient] = [await connect(), await connect(), await connect()]
  await owner.query('CREATE TABLE "Written" ("by" text)')
  // While a transaction is open, the others wait.
  await owner.query('BEGIN')
  const given = impatient.query(`INSERT INTO "Written" VALUES ('impatient')`)
  const kept = patient.query(`INSERT INTO "Written" VALUES ('patient')`)
  given.catch(() => {})
  await sleep(200)
  const work = Promise.all([owner.query('SELECT count(*) FROM generate_series(1, 3000000)'), owner.query('COMMIT')])
  await sleep(100)
  ;(impatient.connection.stream as Socket).resetAndDestroy()
  await Promise.all([work, kept])
  await expect(given).rejects.toThrow()
  expect((await owner.query('SELECT * FROM "Written"')).rows).toEqual([{ by: 'patient' }])
  await Promise.all([owner.end(), patient.end()])
})

test('does what its README shows', async () => {
  const database = await openEmbedded({ dataDir: '', port: 0, inMemory: true })
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  const { rows } = await client.query('SELECT 6 * 7 AS answer') // [{ answer: 42 }]
  await client.end()
  await database.close()

  expect(rows).toEqual([{ answer: 42 }])
})

describe('a new database', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'petstore-packed-'))
  afterAll(() => rmSync(scratch, { recursive: true, force: true }))
  const packed = { file: join(scratch, 'packed.gz'), contents: 'one table' }

  /** Opens a folder, sends a statement, and returns the rows and what was said. */
  async function run(name: string, file: string | undefined, sql: string) {
    const notices: string[] = []
    const database = await openEmbedded({
      dataDir: join(scratch, name),
      port: 0,
      packed: file ? () => ({ ...packed, file }) : undefined,
      onNotice: (message) => notices.push(message),
    })
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    const { rows } = await client.query(sql).finally(() => client.end().then(database.close))
    return { rows, notices }
  }
  const HAS_PETS = `SELECT to_regclass('"Pet"') IS NOT NULL AS "hasPets"`

  beforeAll(async () => {
    await run('original', undefined, 'CREATE TABLE "Pet" ("id" serial, "name" text)')
    packDatabase(join(scratch, 'original'), packed)
  })

  test('begins with what was packed, and keeps what is written', async () => {
    expect(await run('packed', packed.file, HAS_PETS)).toEqual({ rows: [{ hasPets: true }], notices: [] })
    await run('packed', packed.file, `INSERT INTO "Pet" ("name") VALUES ('Kept')`)
    // The file is for new ones only.
    const kept = await run('packed', 'nowhere', 'SELECT * FROM "Pet"')
    expect(kept).toEqual({ rows: [{ id: 1, name: 'Kept' }], notices: [] })
  })

  test('begins again with what was packed if its first start was killed', async () => {
    await run('killed', packed.file, 'DROP TABLE "Pet"')
    writeFileSync(join(scratch, 'killed/db.incomplete'), '')
    expect(await run('killed', packed.file, HAS_PETS)).toEqual({ rows: [{ hasPets: true }], notices: [] })
    expect(existsSync(join(scratch, 'killed/db.incomplete'))).toBe(false)
  })

  const bytes = () => readFileSync(packed.file)
  const flipped = (at: number) => {
    const damaged = bytes()
    damaged[at] = (damaged[at] ?? 0) ^ 1
    return damaged
  }

  test.each([
    ['lost its end', () => bytes().subarray(0, -1), /unexpected end of file/],
    ['is empty', () => Buffer.alloc(0), /unexpected end of file/],
    ['is something else', () => Buffer.from('precious'), /incorrect header check/],
    ['has a changed byte in its middle', () => flipped(bytes().length >> 1), /incorrect|invalid/],
    ['has a changed byte in its checksum', () => flipped(bytes().length - 6), /incorrect data check/],
  ])('is not made from a file that %s', (_, damaged, reason) => {
    const file = join(scratch, 'damaged.gz')
    writeFileSync(file, damaged())
    expect(() => readPacked({ ...packed, file })).toThrow(reason)
  })

  test('is not made from what another version packed', () => {
    expect(() => readPacked({ ...packed, contents: 'two tables' })).toThrow('it is of another version')
    const file = join(scratch, 'other.gz')
    for (const other of [null, 1, 'text', {}, { ...packed, version: '0' }]) {
      writeFileSync(file, gzipSync(serialize(other)))
      expect(() => readPacked({ ...packed, file })).toThrow('it is of another version')
    }
    expect(readPacked(packed).get('PG_VERSION')).toEqual(Buffer.from('18\n'))
  })

  test('is made by PostgreSQL, which one line announces, if what was packed cannot be used', async () => {
    const file = join(scratch, 'cut.gz')
    writeFileSync(file, bytes().subarray(0, 1000))
    expect(await run('made', file, HAS_PETS)).toEqual({
      rows: [{ hasPets: false }],
      notices: [`${file} cannot be used, so this first start takes longer: unexpected end of file; run npm run build`],
    })
  })
})
