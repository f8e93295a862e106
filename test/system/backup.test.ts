import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync, gzipSync } from 'node:zlib'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { openEmbedded } from '../../src/engines/embedded/open.js'
import { backUp, openBackup, restore } from '../../src/gateway/database/backup.js'
import { openDatabase } from '../../src/gateway/database/index.js'
import { diff, readStatus } from '../lab/tools/schema-engine.js'
import { refusal } from '../support/database.js'
import { useGateway } from '../support/gateway.js'
import { asAdmin, databaseUrl, testDatabaseUrl } from '../support/postgres.js'
import { runCommand, type Started, startGateway, temporaryFolder } from '../support/process.js'
import { createKey, keys } from '../support/remote.js'

// `npm run backup` and `npm run restore` on a store with data, keys and gaps in its ids.

const runBackup = (file: string, env: Record<string, string>) => runCommand(['admin/backup', 'create', file], env)
const runRestore = (file: string, env: Record<string, string>) => runCommand(['admin/backup', 'restore', file], env)

/** Everything in the database of a folder: each row and each sequence. */
async function contents(dataDir: string, change?: string) {
  const { url, close } = await openEmbedded({ dataDir, port: 0, join: true })
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const all: Record<string, unknown> = {}
  for (const table of [
    'Category',
    'Pet',
    'InventoryItem',
    'Order',
    'ApiKey',
    'ApiKeyEvent',
    'ApiKeyUsage',
    'ApiKeyUsageHour',
    '_prisma_migrations',
  ])
    all[table] = (await client.query(`SELECT t::text AS row FROM "${table}" t ORDER BY t::text`)).rows
  for (const table of ['Category', 'Pet', 'Order', 'ApiKey', 'ApiKeyEvent'])
    all[`${table}_id_seq`] = (await client.query(`SELECT last_value, is_called FROM "${table}_id_seq"`)).rows
  if (change) await client.query(change)
  await client.end()
  await close()
  return all
}

const call = async ({ url }: Started, key: string, path: string, body?: object) => {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const response = await fetch(`${url}${path}`, { headers, method: body ? 'POST' : 'GET', body: JSON.stringify(body) })
  return { status: response.status, body: await response.json() }
}

describe('a backup', () => {
  let folder: string
  let DATA_DIR: string
  let key: string
  let running: string
  let lastPet: number
  let stored: object
  let cleanUp: () => Promise<void> = async () => {}
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'petstore-backup-'))
    DATA_DIR = join(folder, 'store')
    await cp(inject('folder'), DATA_DIR, { recursive: true })
    const gateway = await startGateway({ DATA_DIR }, (end) => {
      cleanUp = end
    })
    key = gateway.demoKey
    await call(gateway, key, '/categories', { name: 'Ünïcödé "quoted" \\ 🐕', description: 'Lines\nand\ttabs\u2028' })
    await call(gateway, key, '/store/orders', { petId: 1, quantity: 2147483647, shipDate: '9999-12-31T23:59:59.999Z' })
    lastPet = (await call(gateway, key, '/pets', { name: 'Last', categoryId: 1 })).body.id
    await fetch(`${gateway.url}/pets/${lastPet}`, { method: 'DELETE', headers: { 'x-api-key': key } })
    await createKey({ DATA_DIR }, 'Ann')
    running = join(folder, 'running.gz')
    const { code, stdout, stderr } = await runBackup(running, { DATA_DIR })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('Category: 6, IdempotentAnswer: 0, InventoryItem: 12, Order: 6, Pet: 12')
    expect((await call(gateway, key, '/pets')).status).toBe(200)
    expect(await gateway.stop()).toBe(0)
    stored = await contents(DATA_DIR, 'CREATE TABLE notes (text text)')
  })
  afterAll(async () => {
    await cleanUp()
    await rm(folder, { recursive: true, force: true })
  })

  const bash = (script: string, env: Record<string, string>) =>
    promisify(execFile)('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
      env: { PATH: process.env.PATH, ...env },
    })

  test('of a stopped service, through pipes, restores every row, sequence, key and migration into a new folder; nothing else is on standard output', async () => {
    const target = join(folder, 'from-pipe/new')
    const file = join(folder, 'piped.gz.gz')
    const written = await bash('npm run --silent backup -- - | gzip > "$file"', { DATA_DIR, file })
    expect(written.stderr).toMatch(
      /^the table "notes" is not in the backup, because no migration creates it\nWrote a backup from .*store \(ApiKey: 5,.*\)\. Keep it as safe/,
    )
    const restored = await bash('gunzip < "$file" | npm run --silent restore -- -', { DATA_DIR: target, file })
    expect(restored.stderr).toMatch(
      /^Restored what was backed up at 2\S+ \(ApiKey: 5, ApiKeyEvent: 5, ApiKeyUsage: 0, ApiKeyUsageHour: 1, Category: 6,.*\)\. Start the service with DATA_DIR=.*new\.\n$/,
    )
    expect([written.stdout, restored.stdout]).toEqual(['', ''])
    expect(existsSync('-')).toBe(false)
    expect(await contents(target)).toEqual(stored)
    expect(await contents(DATA_DIR)).toEqual(stored)
    expect(readdirSync(target).sort()).toEqual(['db', 'demo-keys.json'])
    const keysOf = (dataDir: string) => readFileSync(join(dataDir, 'demo-keys.json'), 'utf8')
    expect(keysOf(target)).toBe(keysOf(DATA_DIR))
    for (const path of [running, join(target, 'demo-keys.json')]) expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  test('of a running service restores into one that serves, also after a restore that was killed: keys are valid, and ids go on', async () => {
    const target = join(folder, 'from-running')
    await mkdir(target)
    const child = spawn(process.execPath, ['dist/src/admin/backup.js', 'restore', running], {
      env: { PATH: process.env.PATH, DATA_DIR: target },
      stdio: 'ignore',
    })
    await expect.poll(() => existsSync(join(target, 'db.incomplete')), { interval: 5 }).toBe(true)
    child.kill('SIGKILL')
    await once(child, 'exit')
    const { code, stdout, stderr } = await runRestore(running, { DATA_DIR: target })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^Restored what was backed up at 2\S+ \(ApiKey: 5, ApiKeyEvent: 5,/)
    const gateway = await startGateway({ DATA_DIR: target })
    expect(gateway.demoKey).toBe(key)
    expect((await call(gateway, key, '/pets?limit=100')).body).toHaveLength(12)
    expect((await call(gateway, key, '/categories?limit=100')).body.at(-1)).toEqual({
      id: 6,
      name: 'Ünïcödé "quoted" \\ 🐕',
      description: 'Lines\nand\ttabs\u2028',
    })
    expect((await call(gateway, key, '/pets', { name: 'Next', categoryId: 6 })).body.id).toBe(lastPet + 1)
    expect(await keys({ DATA_DIR: target }, 'list')).toContainEqual(expect.objectContaining({ name: 'Ann' }))
    // A folder in use is no target.
    expect(await refusal(restore(running, target))).toContain(`in use by process ${gateway.child.pid}`)
    // A reader that ends early, and a file that cannot be made.
    await expect(bash('npm run --silent backup -- - | head -c 10', { DATA_DIR: target })).rejects.toThrow(
      /standard output cannot be written: write EPIPE/,
    )
    expect(await refusal(backUp(target, join(folder, 'no/folder.gz'), () => {}))).toContain('cannot be written: ENOENT')
    expect((await call(gateway, key, '/pets')).status).toBe(200)
  })

  const lines = () => gunzipSync(readFileSync(running)).toString().split('\n')
  const edited = (edit: (lines: string[]) => string[]) => gzipSync(edit(lines()).join('\n'))
  const newer = () =>
    edited(([header = '', ...rest]) => [header.replace('"migrations":[', '"migrations":["2099_new",'), ...rest])

  test('that does not arrive whole is refused, and the folder is as it was', async () => {
    const inputs: [Buffer, RegExp][] = [
      [Buffer.alloc(0), /^standard input is not a backup, or is damaged: (it is incomplete|unexpected end of file)\n$/],
      [
        readFileSync(running).subarray(0, -20),
        /^standard input is not a backup, or is damaged: unexpected end of file\n$/,
      ],
      [
        newer(),
        /^standard input is from a newer version, with the migrations 2099_new; restore it with that version\n$/,
      ],
    ]
    for (const [input, message] of inputs) {
      const place = await temporaryFolder()
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        ['--liftoff-only', 'dist/src/admin/backup.js', 'restore', '-'],
        { input, encoding: 'utf8', env: { PATH: process.env.PATH, DATA_DIR: join(place, 'new/store') } },
      )
      expect([status, stdout, stderr]).toEqual([1, '', expect.stringMatching(message)])
      expect(readdirSync(place)).toEqual([])
    }
  })

  test('is not restored into a folder that is not empty, which stays as it is', async () => {
    const list = () => readdirSync(DATA_DIR, { recursive: true }).sort()
    const before = list()
    expect(await refusal(restore(running, DATA_DIR))).toMatch(/is not empty: it has db, demo-keys\.json; set DATA_DIR/)
    expect(list()).toEqual(before)
    const other = await temporaryFolder()
    writeFileSync(join(other, 'photo.jpg'), 'precious')
    expect(await refusal(restore(running, other))).toContain('is not empty: it has photo.jpg')
    // The header of a backup is judged first, before anything is made in a folder.
    const bad = join(folder, 'bad.gz')
    writeFileSync(bad, gzipSync('{}\n'))
    await expect(restore(bad, other)).rejects.toThrow(/bad\.gz is not a backup, or is damaged: it has no header/)
    await expect(restore(join(folder, 'none.gz'), other)).rejects.toThrow(/none\.gz cannot be read: ENOENT/)
    expect(readdirSync(other)).toEqual(['photo.jpg'])
  })

  /** A file with these bytes, or none, in a folder. */
  function fileIn(place: string, data: Buffer | undefined) {
    const file = join(place, 'backup.gz')
    if (data) writeFileSync(file, data)
    return file
  }

  test.each([
    ['does not exist', () => undefined, /ENOENT/],
    ['is empty', () => Buffer.alloc(0), /not a backup, or is damaged: it is incomplete|unexpected end/],
    ['is no backup', () => Buffer.from('precious'), /not a backup, or is damaged: incorrect header check/],
    ['is another gzip file', () => gzipSync('precious\n'), /not a backup, or is damaged/],
    ['is of a newer version', newer, /is from a newer version, with the migrations 2099_new/],
    [
      'has a row that PostgreSQL refuses, after others that it took',
      () => edited((all) => all.map((line) => line.replace(/^\["Pet",\{"id":12,/, '["Pet",{"id":"twelve",'))),
      /invalid input syntax for type bigint/,
    ],
  ])('that %s is refused, and the folder is as it was', async (_, make, message) => {
    const place = await temporaryFolder()
    const file = fileIn(place, make())
    const before = readdirSync(place)
    expect(await refusal(restore(file, join(place, 'new/store')))).toMatch(message)
    expect(readdirSync(place)).toEqual(before)
  })

  // Read only: what becomes of the folder does not depend on the damage.
  test.each([
    ['was cut off', () => readFileSync(running).subarray(0, -20), /unexpected end of file/],
    ['has a changed byte', () => flipped(readFileSync(running)), /not a backup, or is damaged/],
    [
      'lacks a row',
      () => edited((all) => all.filter((line) => !line.startsWith('["Pet",{"id":1,'))),
      /it is incomplete/,
    ],
    ['lacks its end', () => edited((all) => all.slice(0, 5).concat('')), /it is incomplete/],
  ])('that %s is damaged', async (_, make, message) => {
    const file = fileIn(await temporaryFolder(), make())
    expect(await refusal(openBackup(file).then(({ rows }) => rows(() => {})))).toMatch(message)
  })

  test('does not overwrite a file, and needs an embedded database', async () => {
    const precious = join(folder, 'precious')
    writeFileSync(precious, 'precious')
    expect(await refusal(backUp(DATA_DIR, precious, () => {}))).toContain('precious exists; choose another name')
    expect(readFileSync(precious, 'utf8')).toBe('precious')
    const nothing = join(folder, 'nothing')
    expect(await refusal(backUp(nothing, join(folder, 'nothing.gz'), () => {}))).toContain('nothing holds no database')
    expect(existsSync(nothing)).toBe(false)
    const refused = await runBackup('x', { DATA_DIR, DATABASE_URL: 'postgresql://127.0.0.1/x' })
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/DATABASE_URL is set.* use pg_dump/)])
  })
})

test.runIf(testDatabaseUrl && spawnSync('pg_dump', ['--version']).status === 0)(
  'the commands for PostgreSQL in docs/operators.md restore a database that serves, with every row and constraint',
  async () => {
    const gateway = await useGateway()
    const { body: category } = await gateway.post('/categories', { name: 'Dogs' })
    const { body: pet } = await gateway.post('/pets', { name: 'Rex', categoryId: category.id })
    await gateway.patch(`/inventory/${pet.id}`, { quantity: 7 })
    await gateway.post('/store/orders', { petId: pet.id })

    const page = readFileSync('docs/operators.md', 'utf8')
    const name = `petstore_restored_${process.pid}`
    const commands = page
      .split('### PostgreSQL')[1]
      ?.split('```sh')[1]
      ?.split('```')[0]
      ?.replaceAll('petstore_restored', name)
    onTestFinished(async () => void (await asAdmin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)))
    const env = { PATH: process.env.PATH, DATABASE_URL: gateway.database.url }
    await promisify(execFile)('bash', ['-euc', commands ?? ''], { cwd: await temporaryFolder(), env })

    const database = await openDatabase({ DATABASE_URL: databaseUrl(name), DATA_DIR: '', EMBEDDED_DB_PORT: 0 })
    const restored = await useGateway({ database: { ...database, env: {} } })
    for (const path of ['/categories', '/pets', '/inventory', '/store/orders'])
      expect((await restored.get(path, { key: gateway.key })).body).toEqual((await gateway.get(path)).body)
    expect((await restored.post('/pets', { name: 'Next', categoryId: category.id })).body.id).toBe(pet.id + 1)
    await expect(database.prisma.$executeRaw`DELETE FROM "InventoryItem"`).rejects.toThrow(/needs its inventory entry/)
    await expect(database.prisma.$executeRaw`UPDATE "Pet" SET "name" = ' '`).rejects.toThrow(
      /name must not begin or end/,
    )
    const [history, drift] = [await readStatus(databaseUrl(name)), await diff(databaseUrl(name))]
    expect([history.editedMigrationNames, drift.exitCode]).toEqual([[], 0])
  },
)

const flipped = (data: Buffer) => {
  const changed = Buffer.from(data)
  const middle = changed.length >> 1
  changed[middle] = (changed[middle] ?? 0) ^ 0xff
  return changed
}
