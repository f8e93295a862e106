import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { ApiKey } from '../prisma/generated/client/client.js'
import type { ErrorCode } from '../schema/kit/errors.js'
import { createLog } from '../src/engines/observe/log.js'
import { readServerUrl } from '../src/engines/postgres/server-url.js'
import { connect } from '../src/gateway/database/index.js'
import { KeyUsage, readUsed } from '../src/gateway/keys/index.js'
import { times } from './support/calls.js'
import { openTestDatabase } from './support/database.js'
import { openGateway, sharedGateway } from './support/gateway.js'
import { TcpProxy } from './support/proxy.js'
import { sql } from './support/sql.js'
import { watched } from './support/statements.js'

// What each key uses on each day: counted by gateways, added up in the database.

const database = await openTestDatabase()
const gateway = await sharedGateway({ database })

const usageOf = async (keyId: number) =>
  (await readUsed(database.query, 'day', 0, keyId)).map(({ begins, requests, refusals, cost }) => [
    new Date(begins).toISOString().slice(0, 10),
    requests,
    refusals,
    cost,
  ])
const today = () => new Date().toISOString().slice(0, 10)

/** A counter of its own, as a gateway has one. */
function open(options: Partial<ConstructorParameters<typeof KeyUsage>[0]> = {}) {
  const logged: string[] = []
  const log = createLog('debug', { write: (line) => void logged.push(line) })
  const usage = new KeyUsage({ query: database.query, log, ...options })
  onTestFinished(() => usage.close())
  const count = (id: number, cost = 1, refusal?: ErrorCode) => usage.count({ key: { id } as ApiKey }, cost, refusal)
  return { usage, count, logged }
}

/** Keys with ids from `first` on. */
async function createKeys(first: number, length: number) {
  const end = first + length
  // On a busy machine, a statement for all of them takes longer than one may.
  for (let next = first; next < end; next += 1_000)
    await database.prisma.$executeRaw`
      INSERT INTO "ApiKey" (id, name, prefix, hash)
      SELECT id, 'many', 'petstore_' || lpad(id::text, 8, '0'), lpad(id::text, 64, '0')
        FROM generate_series(${next}::int, ${Math.min(next + 1_000, end) - 1}::int) AS id`
  return times(length, (i) => first + i)
}

describe('requests, refusals and cost of a key', () => {
  test('are counted over both surfaces, and written when the gateway closes', async () => {
    const other = await openGateway({ database: { ...database, close: async () => {} } })
    const { key, row } = await gateway.createLimitedKey(4, 100)
    const day = today()
    await other.get('/pets', { key })
    await other.get('/pets/999', { key })
    await other.graphql('{ pets { id } categories { id } }', {}, { key })
    await other.get('/pets', { key })
    await other.get('/quota', { key })
    await other.close()
    // 404 and 429 are refusals; only the last of these costs nothing, and so does the quota.
    expect(await usageOf(row.id)).toEqual([[day, 5, 2, 4]])
  })

  test('are added up by many gateways that write to the same rows at the same time', async () => {
    const keys = await Promise.all(times(20, () => gateway.createKey()))
    const counters = times(8, () => open())
    for (const [i, { count }] of counters.entries())
      for (const { row } of i % 2 ? keys : [...keys].reverse()) for (let n = 0; n < 3; n++) count(row.id, 2)
    await Promise.all(counters.map(({ usage }) => usage.close()))
    for (const { row } of keys) expect(await usageOf(row.id)).toEqual([[today(), 24, 0, 48]])
  })

  test('are written with one statement for all keys', async () => {
    const keys = await Promise.all(times(3, () => gateway.createKey()))
    const { query, statements } = watched(database)
    const { usage, count } = open({ query })
    for (const { row } of keys) count(row.id)
    await usage.flush()
    expect(statements).toHaveLength(1)
    await usage.flush()
    expect(statements).toHaveLength(1)
  })

  test('of some keys are written without reading the rows of others', async () => {
    await createKeys(100_000, 20_000)
    const ids = await createKeys(150_000, 10)
    // As autovacuum does. Plans are made again, for the keys that there are now.
    await database.prisma.$executeRaw`ANALYZE "ApiKey"`
    const ROWS_READ = sql(
      `SELECT (seq_tup_read + idx_tup_fetch)::int AS rows FROM pg_stat_xact_user_tables WHERE relname = 'ApiKey'`,
    )
    const read = await database.transaction(async (query) => {
      const { usage, count } = open({ query })
      const rowsRead = async () => {
        const [row] = await query(ROWS_READ, [])
        return Number(row?.rows)
      }
      for (const id of ids) count(id)
      const before = await rowsRead()
      await usage.flush()
      return (await rowsRead()) - before
    })
    expect(await Promise.all(ids.map(usageOf))).toEqual(ids.map(() => [[today(), 1, 0, 1]]))
    // Four times each (its name, the lock, the update, the foreign key), and a few by the one session of the embedded database.
    expect(read).toBeGreaterThanOrEqual(30)
    expect(read).toBeLessThan(100)
  })

  test('of a deleted key are dropped, and keep back those of no other', async () => {
    const [kept, deleted] = [await gateway.createKey(), await gateway.createKey()]
    const { usage, count } = open()
    count(kept.row.id)
    count(deleted.row.id)
    await database.prisma.apiKey.delete({ where: { id: deleted.row.id } })
    await usage.flush()
    expect([await usageOf(kept.row.id), await usageOf(deleted.row.id)]).toEqual([[[today(), 1, 0, 1]], []])
  })

  test('go with a key whose id changes', async () => {
    const { row } = await gateway.createKey()
    const { usage, count } = open()
    count(row.id)
    await usage.flush()
    await database.prisma.apiKey.update({ where: { id: row.id }, data: { id: row.id + 5000 } })
    expect(await usageOf(row.id + 5000)).toEqual([[today(), 1, 0, 1]])
    const where = { keyId: row.id + 5000 }
    expect(await database.prisma.apiKeyUsageHour.findFirst({ where })).toMatchObject({ name: 'test' })
  })

  test('of more keys than one statement takes are written once, also if the database takes only a part at first', async () => {
    const ids = await createKeys(200_000, 2_500)
    const { usage, count } = open()
    for (const id of ids) count(id, 2)
    const refused = ids[1_700]
    await database.prisma.$executeRawUnsafe(
      `ALTER TABLE "ApiKeyUsageHour" ADD CONSTRAINT away CHECK ("keyId" <> ${refused}) NOT VALID`,
    )
    const restore = () => database.prisma.$executeRaw`ALTER TABLE "ApiKeyUsageHour" DROP CONSTRAINT IF EXISTS away`
    onTestFinished(async () => void (await restore()))
    const total = async () => {
      const where = { keyId: { in: ids } }
      const { _sum, _count } = await database.prisma.apiKeyUsageHour.aggregate({
        where,
        _sum: { requests: true, cost: true },
        _count: true,
      })
      return [_count, Number(_sum.requests), Number(_sum.cost)]
    }
    await usage.flush()
    const [first] = await total()
    expect(first).toBeGreaterThan(0)
    expect(first).toBeLessThan(2_500)
    for (const id of ids) count(id, 2)
    await restore()
    await usage.flush()
    expect(await total()).toEqual([2_500, 5_000, 10_000])
  })
})

describe('how often usage is written', () => {
  /** A counter whose clock for writing is in the hands of the test. */
  function openOnClock(options: Parameters<typeof open>[0] = {}) {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    return open(options)
  }
  const written = async (ids: number[]) =>
    Number(
      (await database.prisma.apiKeyUsageHour.aggregate({ where: { keyId: { in: ids } }, _sum: { requests: true } }))
        ._sum.requests,
    )

  test('that of up to 100 keys is written every 5 seconds', async () => {
    const ids = await createKeys(300_000, 100)
    const { count } = openOnClock()
    for (const round of [1, 2]) {
      for (const id of ids) count(id)
      vi.advanceTimersByTime(5_000)
      await expect.poll(() => written(ids)).toBe(round * 100)
    }
  })

  test('that of more keys is gathered for 40 seconds', async () => {
    const ids = await createKeys(301_000, 101)
    const { usage, count } = openOnClock()
    for (let seconds = 0; seconds < 35; seconds += 5) {
      for (const id of ids) count(id)
      vi.advanceTimersByTime(5_000)
    }
    // Time for a write that was sent too early.
    await gateway.createKey()
    expect(await written(ids)).toBe(0)
    vi.advanceTimersByTime(5_000)
    await expect.poll(() => written(ids)).toBe(707)
    for (const id of ids) count(id)
    vi.advanceTimersByTime(35_000)
    expect(await written(ids)).toBe(707)
    await usage.flush()
  })

  test('that of very many is written before they are more than may wait', async () => {
    const ids = await createKeys(302_000, 150)
    const { count } = openOnClock({ maxWaiting: 300 })
    for (const id of ids) count(id)
    vi.advanceTimersByTime(5_000)
    await expect.poll(() => written(ids)).toBe(150)
  })
})

describe('when a key was last used', () => {
  const lastUsedAt = async (id: number) =>
    (await database.prisma.apiKey.findUniqueOrThrow({ where: { id } })).lastUsedAt?.getTime()
  const set = (id: number, ago: string) =>
    database.prisma.$executeRaw`UPDATE "ApiKey" SET "lastUsedAt" = now() - ${ago}::interval WHERE id = ${id}`

  test('is written with its usage, and not for other keys', async () => {
    const [used, unused] = [await gateway.createKey(), await gateway.createKey()]
    const { usage, count } = open()
    count(used.row.id)
    await usage.flush()
    expect(Math.abs(Number(await lastUsedAt(used.row.id)) - Date.now())).toBeLessThan(60_000)
    expect(await lastUsedAt(unused.row.id)).toBeUndefined()
  })

  test('is the moment of its last request, however much later that is written', async () => {
    const { row } = await gateway.createKey()
    const { usage, count } = open()
    count(row.id)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 })
    onTestFinished(() => void vi.useRealTimers())
    await usage.flush()
    vi.useRealTimers()
    expect(Math.abs(Number(await lastUsedAt(row.id)) + 3_600_000 - Date.now())).toBeLessThan(60_000)
  })

  test('is now for a request that was counted before the clock was set back', async () => {
    const { row } = await gateway.createKey()
    const { usage, count } = open()
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 })
    onTestFinished(() => void vi.useRealTimers())
    count(row.id)
    vi.useRealTimers()
    await usage.flush()
    expect(Math.abs(Number(await lastUsedAt(row.id)) - Date.now())).toBeLessThan(60_000)
  })

  test.each([
    ['is not written again after 10 seconds', '10 seconds', false],
    ['is written again after 20 seconds', '20 seconds', true],
    ['is written again if it lies in the future', '-1 day', true],
  ])('%s', async (_, ago, isWritten) => {
    const { row } = await gateway.createKey()
    await set(row.id, ago)
    const before = await lastUsedAt(row.id)
    const { usage, count } = open()
    count(row.id)
    await usage.flush()
    expect((await lastUsedAt(row.id)) !== before).toBe(isWritten)
  })

  test('is written later, and its usage at the same time as ever, while somebody else changes the key', async () => {
    const { row } = await gateway.createKey()
    const { usage, count } = open()
    const flushed = async () => {
      count(row.id)
      await usage.flush()
    }
    await database.prisma.$transaction(async (transaction) => {
      await transaction.apiKey.update({ where: { id: row.id }, data: { name: 'changing' } })
      // The embedded database has one connection, so nothing happens beside a transaction.
      if (!database.embedded) await flushed()
    })
    expect(await lastUsedAt(row.id)).toBeUndefined()
    await flushed()
    expect(await lastUsedAt(row.id)).toBeDefined()
    expect(await usageOf(row.id)).toEqual([[today(), database.embedded ? 1 : 2, 0, database.embedded ? 1 : 2]])
  })
})

describe('while the database is away', () => {
  async function behindProxy() {
    const proxy = await TcpProxy.open(database.url)
    const embedded = database.embedded ? { url: database.url, port: 0, close: async () => {} } : undefined
    const behind = connect({ ...readServerUrl('DATABASE_URL', proxy.url), embedded }, {})
    const opened = open({ query: behind.query, maxWaiting: 2 })
    onTestFinished(async () => {
      await opened.usage.close()
      await behind.close()
      await proxy.cut().catch(() => {})
    })
    return { proxy, ...opened }
  }

  test('figures wait, up to a bound, and are written once when it answers', async () => {
    const [one, two, three] = await Promise.all(times(3, () => gateway.createKey()))
    const { proxy, usage, count, logged } = await behindProxy()
    const ids = [one?.row.id, two?.row.id, three?.row.id] as [number, number, number]
    await proxy.cut()
    count(ids[0])
    count(ids[1])
    await usage.flush()
    expect(logged.join()).not.toContain('not counted')
    // One key too many. Those that wait are still added to.
    count(ids[2])
    count(ids[0], 5, 'not_found')
    await usage.flush()
    expect(logged.filter((line) => line.includes('the usage of further keys is not counted'))).toHaveLength(1)
    expect(await usageOf(ids[0])).toEqual([])
    await proxy.restore()
    await usage.flush()
    await usage.flush()
    expect(await Promise.all(ids.map(usageOf))).toEqual([[[today(), 2, 1, 6]], [[today(), 1, 0, 1]], []])
    count(ids[2])
    await usage.flush()
    expect(await usageOf(ids[2])).toEqual([[today(), 1, 0, 1]])
  })
})

describe('errors of a key, by code', () => {
  const outcomesOf = async (keyId: number, unit: 'day' | 'hour' = 'hour') =>
    (await readUsed(database.query, unit, 0, keyId)).map(({ requests, refusals, outcomes }) => [
      requests,
      refusals,
      outcomes,
    ])

  test('are counted over both surfaces, and written when the gateway closes', async () => {
    const other = await openGateway({ database: { ...database, close: async () => {} } })
    const { key, row } = await gateway.createLimitedKey(5, 100)
    await other.get('/pets', { key })
    await other.get('/pets/999', { key })
    await other.get('/nothing', { key })
    await other.get('/pets?limit=x', { key })
    await other.graphql('{ pets(limit: 101) { id } }', {}, { key })
    for (let i = 0; i < 3; i++) await other.get('/pets', { key })
    await other.close()
    expect(await outcomesOf(row.id)).toEqual([[8, 7, { not_found: 2, invalid_request: 2, rate_limited: 3 }]])
  })

  test('are added up by many gateways that write to the same rows at the same time', async () => {
    const keys = await Promise.all(times(20, () => gateway.createKey()))
    const counters = times(8, () => open())
    for (const [i, { count }] of counters.entries())
      for (const { row } of i % 2 ? keys : [...keys].reverse()) {
        count(row.id, 1, i % 2 ? 'conflict' : 'not_found')
        count(row.id, 1, 'not_found')
        count(row.id)
      }
    await Promise.all(counters.map(({ usage }) => usage.close()))
    for (const { row } of keys) expect(await outcomesOf(row.id)).toEqual([[24, 16, { conflict: 4, not_found: 12 }]])
  })

  test('are those of each hour, and together those of its day', async () => {
    const { row } = await gateway.createKey()
    const { usage, count } = open()
    vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 5, 1, 22, 59, 59, 999) })
    onTestFinished(() => void vi.useRealTimers())
    for (const [ms, code] of [
      [0, 'conflict'],
      [1, 'not_found'],
      [3_600_001, undefined],
      [1, 'not_found'],
    ] as const) {
      vi.setSystemTime(Date.now() + ms)
      count(row.id, 1, code)
    }
    vi.useRealTimers()
    await usage.flush()
    const hours = await readUsed(database.query, 'hour', 0, row.id)
    expect(hours.map(({ begins, outcomes }) => [new Date(begins).toISOString(), outcomes])).toEqual([
      ['2026-06-01T22:00:00.000Z', { conflict: 1 }],
      ['2026-06-01T23:00:00.000Z', { not_found: 1 }],
      ['2026-06-02T00:00:00.000Z', { not_found: 1 }],
    ])
    expect(await outcomesOf(row.id, 'day')).toEqual([
      [2, 2, { conflict: 1, not_found: 1 }],
      [2, 1, { not_found: 1 }],
    ])
  })

  test('may have codes that another version has, whatever they are, and any number', async () => {
    const { row, key } = await gateway.createKey()
    await database.query(
      sql(`INSERT INTO "ApiKeyUsageHour" ("keyId", name, hour, requests, refusals, outcomes)
        VALUES ($1, 'x', date_trunc('hour', now()), 9, 3, $2::text::jsonb)`),
      [row.id, `{"__proto__": 1, "constructor": 2, "${'x'.repeat(64)}": 1e400}`],
    )
    const { usage, count } = open()
    for (let i = 0; i < 2; i++) count(row.id, 1, 'conflict')
    await usage.flush()
    const { status, body } = await gateway.get('/quota/usage/hours?hours=1', { key })
    expect(status).toBe(200)
    expect(body[0].outcomes).toEqual([
      { code: '__proto__', requests: 1 },
      { code: 'conflict', requests: 2 },
      { code: 'constructor', requests: 2 },
      { code: 'x'.repeat(64), requests: 2_147_483_647 },
    ])
  })

  test('that an older version counted are unknown', async () => {
    const { row } = await gateway.createKey()
    const data = { keyId: row.id, name: 'test', day: new Date(today()), requests: 9, refusals: 5, cost: 9 }
    await database.prisma.apiKeyUsage.create({ data })
    const { usage, count } = open()
    count(row.id, 1, 'not_found')
    await usage.flush()
    expect(await outcomesOf(row.id, 'day')).toEqual([[10, 6, { not_found: 1, unknown: 5 }]])
  })

  test.each([
    ...['[]', '1', 'null', '{"not_found": "2"}', '{"not_found": null}', '{"not_found": [1]}'],
    ...[
      '{"not_found": {"a": 1}}',
      '{"not_found": -1}',
      '{"not_found": 1, "conflict": 0.5}',
      '{"Not found": 1}',
      '{"": 1}',
    ],
  ])('an edit of them to %s, to which nothing can be added, is refused by the database', async (outcomes) => {
    const { row } = await gateway.createKey()
    for (const [table, column, value] of [
      ['ApiKeyUsage', 'day', today()],
      ['ApiKeyUsageHour', 'hour', `${today()}T00:00:00Z`],
    ])
      await expect(
        database.query(
          sql(`INSERT INTO "${table}" ("keyId", name, "${column}", outcomes) VALUES ($1, 'x', $2, $3::text::jsonb)`),
          [row.id, value, outcomes],
        ),
      ).rejects.toThrow(/outcomes must be counts by code/)
  })
})

describe('the hours of a key', () => {
  const hoursAgo = (hours: number) => new Date(Math.floor(Date.now() / 3_600_000 - hours) * 3_600_000)
  /** So many hours before now, one request in each; every third ended with an error. */
  const use = (keyIds: number[], hours: number[]) =>
    database.prisma.apiKeyUsageHour.createMany({
      data: keyIds.flatMap((keyId) =>
        hours.map((ago) => ({
          keyId,
          name: `name ${ago}`,
          hour: hoursAgo(ago),
          requests: 1,
          refusals: ago % 3 === 0 ? 1 : 0,
          cost: 2,
          outcomes: ago % 3 === 0 ? { conflict: 1 } : {},
        })),
      ),
    })
  const left = (keyIds: number[]) => database.prisma.apiKeyUsageHour.count({ where: { keyId: { in: keyIds } } })

  test('become days when they are older than three, each once, however many gateways do so', async () => {
    const ids = await createKeys(400_000, 50)
    const ago = times(24 * 6, (i) => i)
    for (let i = 0; i < ids.length; i += 10) await use(ids.slice(i, i + 10), ago)
    const firstKept = Date.parse(today()) - 3 * 86_400_000
    const kept = ago.filter((hours) => hoursAgo(hours).getTime() >= firstKept).length
    expect(kept).toBeGreaterThanOrEqual(73)
    const before = await Promise.all(ids.map((id) => readUsed(database.query, 'day', 0, id)))
    for (let i = 0; i < 4; i++) open({ tidyMs: 10 })
    await expect.poll(() => left(ids), { timeout: 30_000 }).toBe(kept * 50)
    const after = await Promise.all(ids.map((id) => readUsed(database.query, 'day', 0, id)))
    expect(after).toEqual(before)
    const [oldest] = await database.prisma.apiKeyUsage.findMany({ where: { keyId: ids[0] }, orderBy: { day: 'asc' } })
    expect(oldest?.name).toMatch(/^name \d+$/)
  })

  test('do not become days while their key is being deleted: that does not end as a deadlock', async () => {
    // The embedded database has one connection, so nothing happens beside a transaction.
    if (database.embedded) return
    const [deleted, other] = (await createKeys(410_000, 2)) as [number, number]
    await use([deleted, other], [24 * 5, 24 * 5 + 1])
    const gone = database.prisma.$transaction(async (transaction) => {
      await transaction.$executeRaw`SELECT FROM "ApiKey" WHERE id = ${deleted} FOR UPDATE`
      const { usage } = open({ tidyMs: 10 })
      await expect.poll(() => left([other])).toBe(0)
      await usage.close()
      await transaction.apiKey.delete({ where: { id: deleted } })
    })
    await gone
    expect([
      await left([deleted]),
      (await usageOf(other)).reduce((sum, [, requests]) => sum + Number(requests), 0),
    ]).toEqual([0, 2])
  })

  test('are added to a day that has some already', async () => {
    const { row } = await gateway.createKey()
    const day = new Date(
      hoursAgo(24 * 5)
        .toISOString()
        .slice(0, 10),
    )
    const outcomes = { conflict: 2, not_found: 1 }
    const data = { keyId: row.id, name: 'before', day, requests: 7, refusals: 3, cost: 10, outcomes }
    await database.prisma.apiKeyUsage.create({ data })
    // From here on, a mover of the test before may move it, too, if it is still at work.
    await use([row.id], [24 * 5])
    open({ tidyMs: 10 })
    await expect.poll(() => left([row.id])).toBe(0)
    expect(await database.prisma.apiKeyUsage.findMany({ where: { keyId: row.id } })).toEqual([
      { ...data, name: 'name 120', requests: 8n, refusals: 4n, cost: 12n, outcomes: { conflict: 3, not_found: 1 } },
    ])
  })

  test('are deleted with their key, and go with it when its id changes', async () => {
    const { row } = await gateway.createKey()
    await use([row.id], [0, 1])
    await database.prisma.apiKey.update({ where: { id: row.id }, data: { id: row.id + 5000 } })
    expect(await left([row.id + 5000])).toBe(2)
    await database.prisma.apiKey.delete({ where: { id: row.id + 5000 } })
    expect(await left([row.id, row.id + 5000])).toBe(0)
  })
})

test('usage is kept for 400 days; older rows are deleted', async () => {
  const { row } = await gateway.createKey()
  await database.prisma.$executeRaw`
    INSERT INTO "ApiKeyUsage" ("keyId", name, day, requests)
    SELECT ${row.id}::int, 'test', (now() AT TIME ZONE 'UTC')::date - ago, 1 FROM generate_series(0, 1100) AS ago`
  open({ tidyMs: 10 })
  await expect.poll(() => usageOf(row.id)).toHaveLength(400)
  const oldest = new Date(Date.parse(today()) - 399 * 86_400_000).toISOString().slice(0, 10)
  expect((await usageOf(row.id))[0]?.[0]).toBe(oldest)
})
