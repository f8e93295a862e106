import { describe, expect, onTestFinished, test } from 'vitest'
import { type Query, readServerUrl } from '../src/engines/postgres/index.js'
import { connect } from '../src/gateway/database/index.js'
import { openTestDatabase } from './support/database.js'
import { useGateway } from './support/gateway.js'
import { hasPgbouncer, startPgbouncer } from './support/pgbouncer.js'
import { asAdmin, databaseUrl, scratchDatabase, testDatabaseUrl } from './support/postgres.js'
import { expectMomentsToHold } from './support/sessions.js'
import { sql } from './support/sql.js'

// A server has the time zone of the machine on which it was made, and a server, a database or a role may set anything else.

const SESSIONS: Record<string, string>[] = [
  { timezone: 'America/New_York', datestyle: 'German' },
  { timezone: 'Europe/Berlin', datestyle: 'SQL, DMY', default_transaction_isolation: 'serializable' },
  { timezone: 'Asia/Kathmandu', datestyle: 'SQL, MDY', default_transaction_isolation: 'repeatable read' },
  {
    timezone: 'Pacific/Kiritimati',
    datestyle: 'Postgres, DMY',
    search_path: '',
    lock_timeout: '1',
    standard_conforming_strings: 'off',
    bytea_output: 'escape',
    intervalstyle: 'sql_standard',
    extra_float_digits: '0',
    client_encoding: 'LATIN1',
  },
  { timezone: 'Australia/Lord_Howe', datestyle: 'ISO, YMD' },
]
const inWords = (settings: object) =>
  Object.entries(settings)
    .map((setting) => setting.join(' = '))
    .join('; ')

/** A database without tables whose sessions begin with these settings. */
async function databaseWith(settings: Record<string, string>) {
  const { pathname } = new URL(await scratchDatabase())
  const database = pathname.slice(1)
  for (const [name, value] of Object.entries(settings))
    await asAdmin(`ALTER DATABASE ${database} SET ${name} = '${value}'`)
  return { database, url: databaseUrl(database), admin: `${databaseUrl(database)}?options=-c%20statement_timeout%3D0` }
}

describe.runIf(testDatabaseUrl)('in a database that sets', () => {
  test.each([...SESSIONS, { statement_timeout: '1' }].map((settings) => [inWords(settings), settings] as const))(
    '%s: keys, bans, dates and usage are what they are elsewhere',
    async (_, settings) => {
      const { url, admin } = await databaseWith(settings)
      await expectMomentsToHold({ DATABASE_URL: url }, admin)
    },
  )

  test.runIf(hasPgbouncer).each(SESSIONS.map((settings) => [inWords(settings), settings] as const))(
    '%s: so they are through PgBouncer in transaction mode',
    async (_, settings) => {
      const { admin, database } = await databaseWith(settings)
      const pooled = await startPgbouncer('transaction', testDatabaseUrl as string)
      await expectMomentsToHold({ DATABASE_URL: pooled(database, '?pgbouncer=true') }, admin)
    },
  )
})

describe.runIf(testDatabaseUrl)('reads that belong together see no row that another one adds between them', () => {
  async function countAround(url: string) {
    const server = connect(readServerUrl('DATABASE_URL', url), { timeoutMs: 30_000 })
    onTestFinished(() => server.close())
    const count = sql('SELECT count(*)::int AS count FROM "public"."Category"')
    const work = async (query: Query) => {
      const before = await query(count, [])
      await server.query(sql(`INSERT INTO "public"."Category" (name) VALUES ('Meanwhile')`), [])
      return [before, await query(count, [])]
    }
    return server.transaction(work, { isAtOneMoment: true })
  }

  test('on a server', async () => {
    const { env, close } = await openTestDatabase()
    onTestFinished(close)
    const [before, after] = await countAround(env.DATABASE_URL as string)
    expect(after).toEqual(before)
  })

  test.runIf(hasPgbouncer)('through PgBouncer in transaction mode', async () => {
    const { env, close } = await openTestDatabase()
    onTestFinished(close)
    const pooled = await startPgbouncer('transaction', testDatabaseUrl as string)
    const { pathname } = new URL(env.DATABASE_URL as string)
    const [before, after] = await countAround(pooled(pathname.slice(1), '?pgbouncer=true'))
    expect(after).toEqual(before)
  })
})

describe('a fact about a key that cannot be read', () => {
  test.each(['revokedAt', 'expiresAt', 'bannedUntil'])('is not taken for "no": %s', async (column) => {
    const gateway = await useGateway({ keyTtlMs: 1 })
    const { prisma } = gateway
    const { key, row } = await gateway.createLimitedKey(1_000)
    const [constraint] = await prisma.$queryRaw<{ name: string; definition: string }[]>`
      SELECT conname AS name, pg_get_constraintdef(oid) AS definition FROM pg_constraint
      WHERE conrelid = '"ApiKey"'::regclass AND pg_get_constraintdef(oid) LIKE ${`%"${column}" >= %`}`
    const set = (value: string) =>
      prisma.$executeRawUnsafe(`UPDATE "ApiKey" SET "${column}" = ${value} WHERE id = ${row.id}`)
    await prisma.$executeRawUnsafe(`ALTER TABLE "ApiKey" DROP CONSTRAINT "${constraint?.name}"`)
    onTestFinished(async () => {
      await set('NULL')
      await prisma.$executeRawUnsafe(
        `ALTER TABLE "ApiKey" ADD CONSTRAINT "${constraint?.name}" ${constraint?.definition}`,
      )
    })
    expect((await gateway.get('/categories', { key })).status).toBe(200)
    await set(`'infinity'`)
    await expect.poll(async () => (await gateway.get('/categories', { key })).status).toBe(503)
    expect((await gateway.get('/categories')).status).toBe(200)
    await set('NULL')
    await expect.poll(async () => (await gateway.get('/categories', { key })).status).toBe(200)
  })

  test('is not taken for "may write": an access of a later version', async () => {
    const gateway = await useGateway({ keyTtlMs: 1 })
    const { key, row } = await gateway.createKey()
    await gateway.prisma.$executeRawUnsafe(`ALTER TYPE "Access" ADD VALUE 'later'`)
    await gateway.prisma.$executeRawUnsafe(`UPDATE "ApiKey" SET access = 'later' WHERE id = ${row.id}`)
    expect((await gateway.get('/categories', { key })).status).toBe(200)
    expect((await gateway.post('/categories', { name: 'Fish' }, { key })).status).toBe(403)
  })

  test.runIf(testDatabaseUrl)(
    'is read over another connection, if somebody has changed the settings of one',
    async () => {
      const gateway = await useGateway({ keyTtlMs: 1 })
      const revoked = await gateway.createLimitedKey(1_000, 1_000, { revokedAt: new Date() })
      await gateway.database.query(sql(`SET DateStyle = 'German'`), [])
      expect((await gateway.get('/categories', revoked)).status).toBe(401)
      expect((await gateway.get('/categories')).status).toBe(200)
    },
  )
})
