import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Embedded, openEmbedded } from '../src/database/embedded.js'
import { migrate, readMigrations } from '../src/database/migrations.js'
import { StartupError } from '../src/settings.js'
import { askPrisma } from './support/schema-engine.js'

const server = process.env.TEST_DATABASE_URL
const ours = readMigrations()
const names = ours.map(({ name }) => name)
let embedded: Embedded | undefined

beforeAll(async () => {
  embedded = await openEmbedded({ dataDir: '', port: 0, inMemory: true })
}, 30_000)
afterAll(() => embedded?.close())

async function client(url: string): Promise<pg.Client> {
  const made = new pg.Client({ connectionString: url })
  await made.connect()
  onTestFinished(() => made.end())
  return made
}

/** The URL of an empty database. */
async function empty(kind: string): Promise<string> {
  if (kind === 'embedded') {
    const url = embedded?.url ?? ''
    await (await client(url)).query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    return url
  }
  const name = `petstore_${randomUUID().slice(0, 8)}`
  const admin = new pg.Client({ connectionString: server })
  await admin.connect()
  await admin.query(`CREATE DATABASE ${name}`)
  onTestFinished(async () => {
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`)
    await admin.end()
  })
  const url = new URL(server ?? '')
  url.pathname = name
  return url.href
}

describe.each(server ? ['embedded', 'PostgreSQL'] : ['embedded'])('migrations (%s)', (kind) => {
  test('are applied to an empty database, and recorded as Prisma Migrate does', async () => {
    const url = await empty(kind)
    expect(await migrate(url)).toEqual(names)
    expect(await migrate(url)).toEqual([])
    const { rows } = await (await client(url)).query('SELECT * FROM "_prisma_migrations"')
    expect(rows).toEqual(
      names.map((migration_name) => ({
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        checksum: expect.stringMatching(/^[0-9a-f]{64}$/),
        finished_at: expect.any(Date),
        migration_name,
        logs: null,
        rolled_back_at: null,
        started_at: expect.any(Date),
        applied_steps_count: 1,
      })),
    )
  })

  test('are applied once each if four gateways start at the same time', async () => {
    const url = await empty(kind)
    const applied = await Promise.all(Array.from({ length: 4 }, () => migrate(url)))
    expect(applied.flat()).toEqual(names)
  })

  test('leave no difference that Prisma Migrate would report', async () => {
    const url = await empty(kind)
    await Promise.all(Array.from({ length: 4 }, () => migrate(url)))
    const { history, drift } = await askPrisma(url)
    expect(history).toMatchObject({
      history: null,
      editedMigrationNames: [],
      failedMigrationNames: [],
      hasMigrationsTable: true,
    })
    expect([drift.exitCode, drift.stdout]).toEqual([0, expect.stringMatching(/empty migration/)])
  })

  test('do not wait for the lock if none is missing', async () => {
    const url = await empty(kind)
    await migrate(url)
    const migrator = await client(url)
    await migrator.query('SELECT pg_advisory_lock(72707369)')
    expect(await migrate(url)).toEqual([])
    await migrator.query('SELECT pg_advisory_unlock(72707369)')
  })

  test('that fail are rolled back, and the next start tries again', async () => {
    const url = await empty(kind)
    const broken = [...ours, { name: '20990101000000_broken', sql: 'CREATE TABLE "Left" (); SELECT nonsense' }]
    const failed = migrate(url, broken)
    await expect(failed).rejects.toThrow(StartupError)
    await expect(failed).rejects.toThrow(/^the migration 20990101000000_broken failed and was rolled back: .*nonsense/)
    const { rows } = await (await client(url)).query(`SELECT to_regclass('"Left"') AS left`)
    expect(rows).toEqual([{ left: null }])
    expect(await migrate(url)).toEqual([])
    expect(await migrate(url, [...ours, { name: '20990101000000_broken', sql: 'SELECT 1' }])).toHaveLength(1)
  })

  test.each([
    ['edited', `UPDATE "_prisma_migrations" SET "checksum" = repeat('0', 64)`, 'was edited after'],
    ['failed', `UPDATE "_prisma_migrations" SET "finished_at" = NULL`, 'failed in the database'],
    ['newer', `UPDATE "_prisma_migrations" SET "migration_name" = '2099_new'`, 'newer than this gateway: it has the'],
  ])('fail if the history has one that is %s', async (_, sql, message) => {
    const url = await empty(kind)
    await migrate(url)
    await (await client(url)).query(sql)
    await expect(migrate(url)).rejects.toThrow(StartupError)
    await expect(migrate(url)).rejects.toThrow(message)
  })

  test('have the same checksum with any line endings', async () => {
    const url = await empty(kind)
    await migrate(
      url,
      ours.map(({ name, sql }) => ({ name, sql: sql.replaceAll('\n', '\r\n') })),
    )
    expect(await migrate(url)).toEqual([])
  })
})

test.runIf(server)('a role without the right to create tables is enough if no migration is missing', async () => {
  const url = await empty('PostgreSQL')
  await migrate(url)
  const role = `petstore_${randomUUID().slice(0, 8)}`
  const admin = await client(url)
  await admin.query(
    `CREATE ROLE ${role}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role}`,
  )
  expect(await migrate(`${url}?options=${encodeURIComponent(`-c role=${role}`)}`)).toEqual([])
  await admin.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
})
