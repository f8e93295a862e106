import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/gateway/database/index.js'
import { readSettings } from '../../src/settings.js'
import { refusal } from '../support/database.js'
import { everyOperation } from '../support/every-operation.js'
import { hasPgbouncer, startPgbouncer } from '../support/pgbouncer.js'
import { freePort } from '../support/ports.js'
import { asAdmin, databaseUrl, queryOnce, scratchDatabase, testDatabaseUrl } from '../support/postgres.js'
import { spawnGateway, startStudio } from '../support/process.js'
import { keys, openLocal } from '../support/remote.js'

const READY = [200, { status: 'ok', database: 'ok', limits: 'memory' }]
const MODES = ['session', 'transaction'] as const
/** As a PgBouncer that is told to drop what it cannot pass on. */
const IGNORE = ['ignore_startup_parameters = statement_timeout,idle_in_transaction_session_timeout']

const createDatabase = async () => new URL(await scratchDatabase()).pathname.slice(1)
const ask = (database: string, text: string) => queryOnce(databaseUrl(database), text)
const tables = async (name: string, schema: string) =>
  (await ask(name, `SELECT tablename FROM pg_tables WHERE schemaname = '${schema}' ORDER BY 1`)).map(
    ({ tablename }) => tablename,
  )
const locks = async (name: string) =>
  (
    await ask(
      name,
      `SELECT FROM pg_locks JOIN pg_database ON oid = database WHERE locktype = 'advisory' AND datname = '${name}'`,
    )
  ).length
const migrated = async (name: string) =>
  (await ask(name, `SELECT to_regclass('"ApiKey"') IS NOT NULL AS migrated`))[0].migrated

describe.runIf(testDatabaseUrl && hasPgbouncer).each(MODES)('PgBouncer in %s mode with ?pgbouncer=true', (mode) => {
  test('has every operation, 30 at a time, keyed requests, If-Match and the commands, without a failure', async () => {
    const name = await createDatabase()
    const pooled = await startPgbouncer(mode, testDatabaseUrl as string, ['default_pool_size = 15'])
    const env = { DATABASE_URL: pooled(name, '?pgbouncer=true') }
    const { call, errors, readiness } = await openLocal(env)
    expect((await Promise.all(Array.from({ length: 10 }, (_, i) => everyOperation(call, i)))).flat()).toEqual([])
    const { id } = (await call('POST', '/categories', { name: 'Many' })).body
    const pet = (await call('POST', '/pets', { name: 'One', categoryId: id })).body
    const paths = [`/pets/${pet.id}`, '/pets?limit=20', `/inventory/${pet.id}`, '/store/orders?complete=false']
    const order = (headers = {}) => call('POST', '/store/orders', { petId: pet.id }, headers)
    // A key may have 32 at work. Others would wait, and on a slow machine be refused.
    for (let round = 0; round < 7; round++) {
      const together = await Promise.all(
        Array.from({ length: 30 }, (_, i) =>
          i % 5
            ? call('GET', paths[i % 4] as string)
            : order(i % 2 ? {} : { 'idempotency-key': `order ${round} ${i}` }),
        ),
      )
      expect(together.filter(({ status }) => status > 201).map(({ body }) => body)).toEqual([])
    }
    expect(await keys(env, 'list')).toContainEqual(expect.objectContaining({ name: 'test' }))
    expect(await readiness()).toEqual(READY)
    expect(errors()).toBe('')
  })

  test('three first starts at the same time apply every migration once and leave no lock', async () => {
    const name = await createDatabase()
    const pooled = await startPgbouncer(mode, testDatabaseUrl as string)
    const settings = readSettings({ DATABASE_URL: pooled(name, '?pgbouncer=true') })
    const databases = await Promise.all([1, 2, 3].map(() => openDatabase(settings)))
    for (const database of databases) expect(await database.ping().finally(database.close)).toBe('ok')
    expect(await locks(name)).toBe(0)
  })

  test.each([
    ['as it is', []],
    ['told to ignore startup parameters', IGNORE],
  ])('without the parameter, %s, fails the start with the line that names the fix', async (_, more) => {
    const name = await createDatabase()
    const pooled = await startPgbouncer(mode, testDatabaseUrl as string, more)
    expect(await refusal(openDatabase(readSettings({ DATABASE_URL: pooled(name) })))).toMatch(
      /^DATABASE_URL: the database "\w+" at 127\.0\.0\.1:\d+ cannot be used: .*: add \?pgbouncer=true to it, and set DIRECT_URL/,
    )
  })
})

describe.runIf(testDatabaseUrl && hasPgbouncer)('behind a pooler', () => {
  test.each(['with', 'without'])(
    'Prisma Studio works %s DIRECT_URL, and leaves the pooler out only if it is set',
    async (direct) => {
      const name = await createDatabase()
      await asAdmin(`ALTER DATABASE ${name} SET timezone = 'America/New_York'`)
      const pooled = await startPgbouncer('transaction', testDatabaseUrl as string)
      const env = {
        DATABASE_URL: pooled(name, '?pgbouncer=true'),
        ...(direct === 'with' && { DIRECT_URL: databaseUrl(name) }),
      }
      await keys(env, 'create', '--name', 'test', '--plan', 'Free')
      const { child: studio, ask } = await startStudio(env)
      const named = () => ask(`SELECT name FROM "ApiKey" WHERE plan::text = $1`, ['Free'])
      await expect.poll(named, { interval: 200 }).toEqual([null, [{ name: 'test' }]])
      // What it shows and writes has no offset.
      expect(await ask('SHOW timezone')).toEqual([null, [{ TimeZone: 'UTC' }]])
      await pooled.kill()
      const answer = JSON.stringify(await named())
      expect(answer.includes('"name":"test"')).toBe(direct === 'with')
      // It would leave Studio behind.
      expect(studio.exitCode).toBeNull()
    },
  )

  test.each(['with', 'without'])(
    'commands work %s DIRECT_URL, and leave the pooler out if it is set',
    async (direct) => {
      const name = await createDatabase()
      const pooled = await startPgbouncer('transaction', testDatabaseUrl as string)
      const env = {
        DATABASE_URL: pooled(name, '?pgbouncer=true'),
        ...(direct === 'with' && { DIRECT_URL: `${databaseUrl(name)}?application_name=direct` }),
      }
      await keys(env, 'create', '--name', 'first', '--plan', 'Free')
      await ask(name, `ALTER TABLE "ApiKey" ADD COLUMN "by" text DEFAULT current_setting('application_name')`)
      const { id } = await keys(env, 'create', '--name', 'second', '--plan', 'Free')
      const [row] = await ask(name, `SELECT "by" FROM "ApiKey" WHERE id = ${id}`)
      expect(row.by === 'direct').toBe(direct === 'with')
    },
  )

  test('without the parameter, the start fails before /healthz answers', async () => {
    const name = await createDatabase()
    const pooled = await startPgbouncer('transaction', testDatabaseUrl as string, IGNORE)
    const PORT = String(await freePort())
    const { ended, output } = spawnGateway({ DATABASE_URL: pooled(name), PORT })
    let answers = 0
    const probe = () => fetch(`http://127.0.0.1:${PORT}/healthz`).then(() => answers++)
    const probing = setInterval(() => probe().catch(() => {}), 5)
    expect([await ended, output.stderr]).toEqual([1, expect.stringMatching(/add \?pgbouncer=true to it.*\n$/)])
    clearInterval(probing)
    expect(answers).toBe(0)
  })

  test('/readyz is 200 while requests take every connection of the pooler', async () => {
    const name = await createDatabase()
    const pooled = await startPgbouncer('session', testDatabaseUrl as string, ['default_pool_size = 10'])
    const { call, readiness } = await openLocal({ DATABASE_URL: pooled(name, '?pgbouncer=true') })
    const { id } = (await call('POST', '/categories', { name: 'Dogs' })).body
    let stopped = false
    const statuses: number[] = []
    // A request with a key has a transaction, and so a connection, of its own. Others may share one.
    const load = Array.from({ length: 60 }, async (_, i) => {
      while (!stopped) {
        const path = ['/categories', '/pets', '/inventory', '/store/orders'][(i >> 1) % 4] as string
        const body = { name: `Pet ${i}`, categoryId: id }
        const write = () => call('POST', '/pets', body, { 'idempotency-key': randomUUID() })
        statuses.push((await (i % 2 ? call('GET', path) : write())).status)
      }
    })
    const used = async () => (await ask(name, `SELECT FROM pg_stat_activity WHERE datname = '${name}'`)).length
    // This connection is not of the pooler.
    await expect.poll(used).toBe(11)
    const probes = [await readiness(), await readiness()]
    stopped = true
    await Promise.all(load)
    expect(probes.map(([status]) => status)).toEqual([200, 200])
    expect(statuses.filter((status) => status < 300).length).toBeGreaterThan(statuses.length / 2)
  })

  test('a write that returned 503 because of a lock is not performed later', async () => {
    const name = await createDatabase()
    const pooled = await startPgbouncer('transaction', testDatabaseUrl as string)
    const { call } = await openLocal({ DATABASE_URL: pooled(name, '?pgbouncer=true') })
    const { id } = (await call('POST', '/categories', { name: 'Dogs' })).body
    const pet = (await call('POST', '/pets', { name: 'Rex', categoryId: id })).body
    const holder = new Client({ connectionString: databaseUrl(name) })
    await holder.connect()
    onTestFinished(() => holder.end())
    await holder.query('BEGIN; LOCK TABLE "InventoryItem", "Order" IN EXCLUSIVE MODE')
    const writes = await Promise.all([
      call('PATCH', `/inventory/${pet.id}`, { quantity: 5 }),
      call('POST', '/store/orders', { petId: pet.id }),
      call('POST', '/store/orders', { petId: pet.id }, { 'idempotency-key': 'locked' }),
    ])
    expect(writes.map(({ status }) => status)).toEqual([503, 503, 503])
    const { rows } = await holder.query(
      `SELECT FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'`,
      [name],
    )
    expect(rows).toEqual([])
    await holder.query('COMMIT')
    expect((await call('GET', `/inventory/${pet.id}`)).body.quantity).toBe(0)
    expect((await call('GET', '/store/orders')).body).toEqual([])
  })

  test('migrations use DIRECT_URL, and a line names it if it cannot be used, or leads to another database', async () => {
    const [name, other] = await Promise.all([createDatabase(), createDatabase()])
    const pooled = await startPgbouncer('transaction', testDatabaseUrl as string)
    const open = (DIRECT_URL: string) =>
      openDatabase(readSettings({ DATABASE_URL: pooled(name, '?pgbouncer=true'), DIRECT_URL }))
    expect(await refusal(open(`postgresql://me:secret@127.0.0.1:${await freePort()}/x`))).toMatch(
      /^DIRECT_URL: the database "x" at .* cannot be used: connection refused; is the server running\?$/,
    )
    expect(await refusal(open(databaseUrl(other)))).toMatch(
      /^DATABASE_URL: the database .* both must lead to the same database$/,
    )
    expect(await migrated(other)).toBe(true)
    expect(await migrated(name)).toBe(false)
    const database = await open(databaseUrl(name))
    expect(await database.ping().finally(database.close)).toBe('ok')
  })
})

describe.runIf(testDatabaseUrl && hasPgbouncer).each([
  ['directly', '', false],
  ['directly, with tables of the same names in public', '', true],
  ['through PgBouncer in transaction mode', '&pgbouncer=true', false],
])('?schema=petstore %s', (_, parameter, hasDecoys) => {
  test('holds everything: the migrations, every operation, what triggers write, and keys', async () => {
    const name = await createDatabase()
    if (hasDecoys)
      await ask(name, 'CREATE TABLE "Pet" (); CREATE TABLE "InventoryItem" (); CREATE TABLE "ApiKeyUsage" ()')
    const before = await tables(name, 'public')
    const urlOf = parameter ? await startPgbouncer('transaction', testDatabaseUrl as string) : databaseUrl
    const env = { DATABASE_URL: `${urlOf(name)}?schema=petstore${parameter}` }
    const { call, readiness, stop, errors } = await openLocal(env)
    expect((await Promise.all(Array.from({ length: 5 }, (_, i) => everyOperation(call, i)))).flat()).toEqual([])
    expect(await readiness()).toEqual(READY)
    await stop()
    expect(errors()).toBe('')
    const [usage] = await keys(env, 'usage', '--days', '1')
    expect(usage.requests).toBeGreaterThan(100)
    expect(await keys(env, 'history')).toContainEqual(
      expect.objectContaining({ event: 'created', source: 'command line' }),
    )
    expect(await tables(name, 'public')).toEqual(before)
    expect(await tables(name, 'petstore')).toContain('Pet')
    expect(await keys(env, 'list')).toContainEqual(expect.objectContaining({ name: 'test' }))
  })
})

test.runIf(testDatabaseUrl)('/readyz is degraded with 200 while PostgreSQL has no connection left', async () => {
  const role = `petstore_role_${randomUUID().slice(0, 8)}`
  await asAdmin(`CREATE ROLE ${role} LOGIN`)
  onTestFinished(async () => void (await asAdmin(`DROP ROLE ${role}`)))
  const name = await createDatabase()
  await asAdmin(`ALTER DATABASE ${name} OWNER TO ${role}`)
  const url = new URL(databaseUrl(name))
  url.username = role
  const { readiness } = await openLocal({ DATABASE_URL: url.href })
  await asAdmin(`ALTER ROLE ${role} CONNECTION LIMIT 0`)
  await asAdmin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`)
  const full = [200, { status: 'degraded', database: 'full', limits: 'memory' }]
  await expect.poll(readiness).toEqual(full)
  await asAdmin(`ALTER ROLE ${role} CONNECTION LIMIT -1`)
  await expect.poll(readiness).toEqual(READY)
})
