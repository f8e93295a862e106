import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ConnectionPool } from '../src/engines/postgres/pool/pool.js'
import { MAX_PREPARED } from '../src/engines/postgres/pool/shapes.js'
import { openTestDatabase, type TestDatabase } from './support/database.js'
import { testDatabaseUrl, useClient, waitingForLocks } from './support/postgres.js'

// The embedded database has one session, and no use for a pool.
describe.skipIf(!testDatabaseUrl)('the pool of connections to PostgreSQL', () => {
  let database: TestDatabase
  let pool: ConnectionPool
  let other: pg.Client
  beforeAll(async () => {
    database = await openTestDatabase()
    const connectionString = database.url
    other = new pg.Client({ connectionString })
    const ask = async (text: string, values: unknown[]) => (await other.query(text, values)).rows
    pool = new ConnectionPool({ connectionString, timeoutMs: 60_000, kind: 'server', ask })
    pool.on('error', () => {})
    await other.connect()
  })
  afterAll(async () => {
    await other.end()
    await pool.end()
    await database.close()
  })

  const query = (text: string, values: unknown[] = [], name?: string): Promise<pg.QueryResult> =>
    pool.query({ text, values, name })
  /** A pool that ends with the test. */
  function openPool(
    timeoutMs: number,
    ask = async (text: string, values: unknown[]) => (await other.query(text, values)).rows,
  ) {
    const opened = new ConnectionPool({ connectionString: database.url, timeoutMs, kind: 'server', ask })
    opened.on('error', () => {})
    onTestFinished(() => opened.end())
    return opened
  }
  /** A transaction of another client that has taken a lock. */
  async function lock(text: string) {
    const client = await useClient(database.url)
    await client.query('BEGIN')
    await client.query(text)
    return client
  }
  const pids = async (texts: string[]) => {
    const results = await Promise.all(texts.map((text) => query(text)))
    return results.map(({ rows }) => rows[0].pid)
  }
  const waiting = () => waitingForLocks(other)
  /** Ends the backends of so many statements that begin like this, when they are sent. */
  async function terminate(begin: string, count = 1) {
    for (let ended = 0; ended < count; await sleep(20)) {
      const { rowCount } = await other.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND starts_with(query, $1)',
        [begin],
      )
      ended += rowCount ?? 0
    }
  }

  test('sends reads of the same tables that arrive together over one connection, sixteen at a time', async () => {
    const reads = ['SELECT pg_backend_pid() AS pid', '\n  SELECT pg_backend_pid() AS pid, 2']
    const found = await pids(new Array(16).fill(reads).flat())
    expect(new Set(found.slice(0, 16)).size).toBe(1)
    expect(new Set(found.slice(16)).size).toBe(1)
    expect(new Set(found).size).toBe(2)
  })

  test('sends reads of different tables over different connections', async () => {
    const texts = ['"Pet"', '"Order"'].map((table) => `SELECT count(*), pg_backend_pid() AS pid FROM ${table}`)
    expect(new Set(await pids(texts)).size).toBe(2)
  })

  test('sends equal writes that arrive together over one connection, eight at a time, and other writes over another', async () => {
    const write = `INSERT INTO "Category" (name) VALUES (gen_random_uuid()) RETURNING pg_backend_pid() AS pid`
    const found = await pids([...new Array(9).fill(write), `${write}, id`])
    expect(new Set(found.slice(0, 8)).size).toBe(1)
    expect(new Set(found).size).toBe(3)
  })

  test('sends writes to one row, and reads that lock it, over connections of their own', async () => {
    const update = `UPDATE "Category" SET name = 'a' WHERE "id" = $1 RETURNING pg_backend_pid() AS pid`
    const lock = `SELECT pg_backend_pid() AS pid FROM "Category" WHERE "id" = $1 FOR UPDATE`
    for (const text of [update, lock]) {
      const results = await Promise.all([1, 1, 2].map((id) => query(text, [id])))
      // Their leases end.
      await sleep(0)
      expect(new Set(results.map(({ rows }) => rows[0].pid)).size).toBe(2)
    }
  })

  test('sends a write that waits for a lock again, alone, so that those behind it do not wait', async () => {
    await other.query('BEGIN; SELECT 1 FROM "Category" WHERE id = 1 FOR UPDATE')
    const update = (id: number) => query(`UPDATE "Category" SET name = 'b' WHERE "id" = $1 RETURNING id`, [id])
    let unlocked = false
    const stuck = update(1).then(({ rows }) => [unlocked, rows])
    const behind = await update(2)
    expect(behind.rows).toEqual([{ id: '2' }])
    await other.query('SELECT pg_sleep(1)')
    unlocked = true
    await other.query('COMMIT')
    expect(await stuck).toEqual([true, [{ id: '1' }]])
  })

  test('has an application name of its own, so that an operator sees which connections are whose', async () => {
    const connectionString = `${database.url}?application_name=shop`
    const named = new ConnectionPool({ connectionString, timeoutMs: 2_500, kind: 'server', ask: async () => [] })
    const nameOf = async (pool: pg.Pool) => (await pool.query('SHOW application_name')).rows[0].application_name
    expect(await nameOf(pool)).toMatch(/^petstore [\da-f]{8}$/)
    expect(await nameOf(named)).toMatch(/^shop [\da-f]{8}$/)
    await named.end()
  })

  test('keeps the connection and the neighbors of a statement that PostgreSQL refuses', async () => {
    const before = pool.totalCount
    const settled = await Promise.allSettled([1, 0, 1].map((n) => query('SELECT 1 / $1::int AS n', [n])))
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(settled[1]).toMatchObject({ reason: { code: '22012' } })
    expect(pool.totalCount).toBe(before)
  })

  test('answers statements on other tables while a table is locked', async () => {
    await other.query('BEGIN')
    await other.query('LOCK TABLE "Order"')
    let unlocked = false
    const stuck = Promise.all([1, 2].map(() => query('SELECT count(*) FROM "Order"')))
    const settled = stuck.then(() => expect(unlocked).toBe(true))
    await query('SELECT count(*) FROM "Pet"')
    unlocked = true
    await other.query('ROLLBACK')
    await settled
  })

  test('fails what was sent over a connection that is lost, and opens another for the next statement', async () => {
    let settled = false
    const lost = Promise.allSettled([1, 2].map(() => query('SELECT pg_sleep(60)'))).finally(() => {
      settled = true
    })
    // The second one waits behind the first one, and may have been sent over another connection meanwhile.
    for (; !settled; await sleep(20))
      await other.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND datname = current_database()",
      )
    expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect((await query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  })

  test('sends reads of one row that arrive together over one connection', async () => {
    const read = 'SELECT pg_backend_pid() AS pid, count(*) FROM "Category" WHERE "id" = $1'
    const results = await Promise.all([1, 1, 1, 2].map((id) => query(read, [id])))
    expect(new Set(results.map(({ rows }) => rows[0].pid)).size).toBe(1)
  })

  test('gives a statement its full time on a connection that equal writes have shared', async () => {
    const write = `INSERT INTO "Category" (name) VALUES (gen_random_uuid()) RETURNING pg_backend_pid() AS pid`
    const [shared] = await pids([write, write])
    const slow = await query('SELECT pg_backend_pid() AS pid, pg_sleep(1)')
    expect(slow.rows[0].pid).toBe(shared)
  })

  describe('the time of a statement', () => {
    const timeout = async (of: ConnectionPool, endsAt?: number) => {
      const { rows } = await of.send({ text: `SELECT current_setting('statement_timeout') AS timeout` }, endsAt)
      return rows[0].timeout
    }

    test('is long enough to be changed again, however late it is', async () => {
      const fresh = openPool(60_000)
      // On a busy machine it may be too late.
      await expect.poll(() => timeout(fresh, performance.now() + 450).catch(() => 'none')).toBe('200ms')
      expect(await timeout(fresh)).toBe('59600ms')
    })

    test('is set again if PostgreSQL did not take it', async () => {
      const fresh = openPool(60_000)
      expect(await timeout(fresh, performance.now() + 30_000)).not.toBe('59600ms')
      const { query } = pg.Client.prototype
      const sent = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, text: unknown) {
        sent.mockRestore()
        return (query as (text: string) => Promise<unknown>).call(this, `${text} years`)
      } as typeof query)
      expect(await timeout(fresh)).not.toBe('59600ms')
      expect(await timeout(fresh)).toBe('59600ms')
    })
  })

  test('keeps the statements of a connection prepared that it was sent last, and prepares the others again', async () => {
    const fresh = openPool(60_000)
    const send = async (n: number) => {
      const text = `SELECT ${n} AS n`
      const { rows }: pg.QueryResult = await fresh.query({ text, name: fresh.statementName(text) })
      expect(rows).toEqual([{ n }])
    }
    const kept = async () => {
      const { rows }: pg.QueryResult = await fresh.query(`SELECT statement FROM pg_prepared_statements`)
      return rows.map(({ statement }) => Number(/\d+/.exec(statement))).sort((a, b) => a - b)
    }
    const upTo = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i)
    for (const n of upTo(1, MAX_PREPARED)) await send(n)
    expect(await kept()).toEqual(upTo(1, MAX_PREPARED))
    await send(1)
    await send(MAX_PREPARED + 1)
    expect(await kept()).toEqual([1, ...upTo(3, MAX_PREPARED + 1)])
    // Many at once, and one that was closed.
    await Promise.all(upTo(1_000, 1_000 + 2 * MAX_PREPARED).map(send))
    await send(2)
    expect((await kept()).length).toBeLessThanOrEqual(MAX_PREPARED)
  })

  test('prepares no other statement again because a locked table kept one from being prepared', async () => {
    const fresh = openPool(4_000)
    const text = 'INSERT INTO "Category" (name) VALUES ($1)'
    const usual = fresh.statementName('SELECT 1')
    const locker = await lock('LOCK TABLE "Category"')
    const insert = (value: string) => fresh.query({ text, values: [value], name: fresh.statementName(text) })
    const stuck = ['one', 'two', 'three'].map(insert)
    // PostgreSQL has canceled the first one, which was to prepare the statement for all.
    await expect.poll(waiting).toBeGreaterThan(1)
    await locker.query('COMMIT')
    await Promise.all(stuck)
    expect(fresh.statementName('SELECT 1')).toBe(usual)
    await insert('four')
  })

  test('prepares a statement again that PostgreSQL has lost', async () => {
    const fresh = openPool(60_000)
    const text = 'SELECT 1 AS one'
    const read = async () => (await fresh.query({ text, name: fresh.statementName(text) })).rows
    expect(await read()).toEqual([{ one: 1 }])
    await fresh.query('DEALLOCATE ALL')
    expect(await read()).toEqual([{ one: 1 }])
  })

  test('closes a statement also in a transaction that has failed', async () => {
    const fresh = openPool(60_000)
    const name = (text: string) => ({ text, name: fresh.statementName(text) })
    for (let n = 0; n < MAX_PREPARED; n++) await fresh.query(name(`SELECT ${n} AS n`))
    const transaction = await fresh.connect()
    await transaction.query({ text: 'BEGIN' })
    await transaction.query(name(`SELECT 'x' AS n`))
    await expect(transaction.query(name('SELECT 1 / 0'))).rejects.toThrow('division by zero')
    await expect(transaction.query(name(`SELECT 'y' AS n`))).rejects.toThrow()
    await transaction.query({ text: 'ROLLBACK' })
    transaction.release()
    for (let n = 0; n < MAX_PREPARED; n++) {
      const { rows }: pg.QueryResult = await fresh.query(name(`SELECT ${n} AS n`))
      expect(rows).toEqual([{ n }])
    }
  })

  test('lets two writes to one row wait in PostgreSQL, however many were made before', async () => {
    const fresh = openPool(60_000)
    const { rows } = await query(`INSERT INTO "Category" (name) VALUES ('one'), ('other') RETURNING id`)
    const [one, another] = rows.map(({ id }) => id)
    const update = (id: string) =>
      fresh.query({ text: `UPDATE "Category" SET name = 'c' WHERE "id" = $1`, values: [id] }) as Promise<unknown>
    for (let i = 0; i < 3; i++) await Promise.all([update(one), update(one)])
    const locker = await lock(`SELECT 1 FROM "Category" WHERE id = ${one} FOR UPDATE`)
    const stuck = [one, one, one, one].map(update)
    const settled = Promise.allSettled(stuck)
    await expect.poll(waiting).toBe(2)
    // Whatever would wait as well has been sent before this one.
    await update(another)
    expect(await waiting()).toBe(2)
    // One of them ends, so one of the others takes its turn.
    await other.query(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' LIMIT 1`)
    await expect(Promise.race(stuck)).rejects.toMatchObject({ code: '57014' })
    await sleep(200)
    expect(await waiting()).toBe(2)
    await locker.query('COMMIT')
    const statuses = (await settled).map(({ status }) => status)
    expect(statuses.sort()).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected'])
  })

  test('lets ten statements wait for one table at once that was used before, some time ago', async () => {
    const fresh = openPool(60_000)
    const text = 'INSERT INTO "Category" (name) VALUES ($1)'
    await fresh.query({ text, values: ['first'] })
    // Longer than a bulkhead may be silent.
    await sleep(400)
    const locker = await lock('LOCK TABLE "Category"')
    const stuck = Array.from({ length: 10 }, (_, i) => fresh.query({ text: `${text} -- ${i}`, values: ['x'] }))
    await expect.poll(waiting).toBe(10)
    await locker.query('COMMIT')
    await Promise.all(stuck)
  })

  test('answers reads, however many different writes wait without an answer', async () => {
    const fresh = openPool(60_000)
    const tables = Array.from({ length: 24 }, (_, i) => `stuck_${i}`)
    await other.query(tables.map((name) => `CREATE TABLE "${name}" (id int)`).join(';'))
    const locker = await lock(`LOCK TABLE ${tables.join(', ')} IN SHARE MODE`)
    const stuck = tables.map((name) => fresh.query({ text: `INSERT INTO "${name}" VALUES (1)` }))
    await expect.poll(waiting).toBe(16)
    expect(((await fresh.query('SELECT count(*)::int FROM "Category"')) as pg.QueryResult).rowCount).toBe(1)
    await locker.query('COMMIT')
    await Promise.all(stuck)
    await other.query(tables.map((name) => `DROP TABLE "${name}"`).join(';'))
  })

  test('asks one question at a time about the writes it has lost, none after their end, and then performs others', async () => {
    let asked = 0
    let open = () => {}
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    const fresh = openPool(60_000, async (text, values) => {
      asked++
      await opened
      return (await other.query(text, values)).rows
    })
    const text = `INSERT INTO "Category" (name) SELECT 'lost' FROM pg_sleep(60)`
    const lost = [1, 2, 3].map((n) => fresh.query({ text: `${text} -- ${n}` }) as Promise<unknown>)
    const settled = Promise.allSettled(lost)
    await terminate(text, 3)
    expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    let isMade = false
    const insert = fresh.query({ text: `INSERT INTO "Category" (name) VALUES ('later')` }) as Promise<unknown>
    const later = insert.then(() => {
      isMade = true
    })
    await sleep(200)
    expect([asked, isMade]).toEqual([1, false])
    open()
    await later
    const total = asked
    await sleep(300)
    expect(asked).toBe(total)
  })

  test('gives up a write in time that waits for the end of one that was lost', async () => {
    const fresh = openPool(1_500, () => new Promise(() => {}))
    const text = `INSERT INTO "Category" (name) SELECT 'lost too' FROM pg_sleep(60)`
    const lost = expect(fresh.query({ text })).rejects.toBeDefined()
    await terminate(text)
    await lost
    const later = fresh.query({ text: `INSERT INTO "Category" (name) VALUES ('never')` })
    await expect(later).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    const { rows } = await query(`SELECT count(*)::int AS n FROM "Category" WHERE name = 'never'`)
    expect(rows).toEqual([{ n: 0 }])
  })
})
