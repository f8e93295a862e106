import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { type Item, parseList } from 'structured-headers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { plans } from '../schema/kit/plans.js'
import { preflight, times } from './support/calls.js'
import { openTestDatabase, type TestDatabase } from './support/database.js'
import { type Gateway, openGateway, testRedisUrl } from './support/gateway.js'
import { type Expected, exactly, type Span, SubjectModel, Undecided } from './support/model.js'

const seconds = { minute: 2, day: 5, address: 2 }
const ban = { after: 2, seconds: 1 }

interface Sent {
  method?: string
  path: string
  body?: string
  headers?: Record<string, string>
  /** Without a key, it counts by address. */
  keyless?: true
  cost: number
  status: number
  /** Works for a banned key too. */
  quota?: true
  /** Refused before the quota, which is charged if it can be. */
  beforeQuota?: true
}

const json = { 'content-type': 'application/json' }
const graphql = (query: string, cost: number): Sent => ({
  method: 'POST',
  path: '/graphql',
  body: JSON.stringify({ query }),
  headers: json,
  cost,
  status: 200,
})
const post = (path: string, body: string, status: number, headers: Record<string, string> = json): Sent => ({
  method: 'POST',
  path,
  body,
  headers,
  cost: 1,
  status,
})
const fields = (count: number) => `{ ${times(count, (i) => `a${i}: categories { id }`).join(' ')} }`

const requests: Sent[] = [
  { path: '/pets', cost: 1, status: 200 },
  { path: '/pets', method: 'HEAD', cost: 1, status: 200 },
  { path: '/pets?limit=0', cost: 1, status: 400 },
  { path: '/nowhere', cost: 1, status: 404 },
  { path: '/pets', method: 'PUT', cost: 1, status: 405 },
  { path: '/categories/0', method: 'DELETE', cost: 1, status: 204 },
  post('/categories', '{"name":"Cats"}', 201),
  post('/categories', 'x'.repeat(2000), 413),
  post('/categories', 'x', 415, { 'content-type': 'text/plain' }),
  post('/store/orders', '{"petId":999999}', 422),
  { path: '/quota', cost: 0, status: 200, quota: true },
  { ...graphql('{ quota { plan } }', 0), quota: true },
  { ...graphql('{ __typename }', 0), quota: true },
  ...[1, 2, 3, 4, 5].map((count) => graphql(fields(count), count)),
  graphql('{ categories(limit: 100) { pets(limit: 1) { id } } }', 2),
  { ...graphql('{ pets {', 1), headers: { ...json, accept: 'application/graphql-response+json' }, status: 400 },
  { ...post('/graphql', 'x'.repeat(2000), 413), beforeQuota: true },
  { path: '/schema.graphql', keyless: true, cost: 0, status: 200 },
  { path: '/pets', method: 'OPTIONS', headers: preflight, keyless: true, cost: 0, status: 204 },
  { path: '/pets', keyless: true, cost: 1, status: 401 },
  { path: '/graphql', headers: { 'x-api-key': 'petstore_wrong' }, keyless: true, cost: 1, status: 401 },
]

const small = fc.integer({ min: 1, max: 12 })
const row = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom('Free', 'Pro', 'Business').map((plan) => ({ plan: plan as 'Free' })) },
  {
    weight: 6,
    arbitrary: fc.record({
      plan: fc.constant('Enterprise' as const),
      minuteLimit: small,
      dayLimit: fc.integer({ min: 1, max: 30 }),
    }),
  },
)
const request = fc.constantFrom(...requests)
const step = fc.oneof(
  { weight: 12, arbitrary: fc.record({ request, times: fc.constantFrom(1, 1, 1, 2, 6) }) },
  { weight: 1, arbitrary: fc.record({ request: fc.constant(requests.at(-1) as Sent), times: fc.constant(35) }) },
  { weight: 2, arbitrary: fc.record({ pause: fc.constantFrom(30, 400, 1100, 2100) }) },
  { weight: 1, arbitrary: fc.record({ change: row }) },
  { weight: 1, arbitrary: fc.record({ banFor: fc.constantFrom(300, 1500) }) },
)

/** The windows in a structured field (RFC 9651). */
const list = (headers: Headers, name: string) =>
  parseList(headers.get(name) ?? '').map((item) => {
    const [value, parameters] = item as Item
    return { name: value, ...Object.fromEntries(parameters) } as Record<string, string | number>
  })

describe.each([
  { store: 'memory', redisUrl: '', lanes: 12, numRuns: 1 },
  ...(testRedisUrl ? [{ store: 'redis', redisUrl: testRedisUrl, lanes: 12, numRuns: 1 }] : []),
])('in $store', ({ redisUrl, lanes, numRuns }) => {
  let database: TestDatabase
  let gateway: Gateway
  let url: string
  let category = 0
  let address = 0
  beforeAll(async () => {
    database = await openTestDatabase()
    const env = {
      BAN_AFTER: String(ban.after),
      BAN_SECONDS: String(ban.seconds),
      MAX_BODY_BYTES: '1024',
      // Each client has its own address.
      TRUST_PROXY: '1',
    }
    gateway = await openGateway({ database, redisUrl, seconds, keyTtlMs: 10, env })
    await gateway.prisma.category.createMany({ data: times(5000, () => ({ name: 'Dogs' })) })
    url = (await gateway.listen()).url
  })
  afterAll(() => gateway.close())

  const limitsOf = (data: { plan: string; minuteLimit?: number | null; dayLimit?: number | null }) => {
    const { minute, day } = plans[data.plan as 'Free'] ?? { minute: data.minuteLimit ?? 0, day: data.dayLimit ?? 0 }
    return [
      { name: 'minute' as const, limit: minute, seconds: seconds.minute },
      { name: 'day' as const, limit: day, seconds: seconds.day },
    ]
  }

  /** Compares a response with the model. Each number must be within its span, rounded up. */
  function judge({ status, headers }: Response, sent: Sent, expected: Expected, now: Span) {
    const { outcome, bannedUntil } = expected
    // During a ban, 0 requests remain until its end.
    const shut = outcome === 'banned' && bannedUntil ? { remaining: 0, end: bannedUntil } : {}
    const windows = expected.windows.map((window) => ({ ...window, ...shut }))
    const binding = expected.binding.map((window) => ({ ...window, ...shut }))
    const refused = !sent.beforeQuota && (outcome === 'limited' || (outcome === 'banned' && !sent.quota))
    expect(status).toBe(refused ? 429 : sent.status)

    const number = (name: string) => {
      expect(headers.get(name), name).toMatch(/^\d+$/)
      return Number(headers.get(name))
    }
    expect(number('x-ratelimit-cost')).toBe(outcome === 'allowed' ? sent.cost : 0)
    const shown = {
      limit: number('x-ratelimit-limit'),
      remaining: number('x-ratelimit-remaining'),
      reset: number('x-ratelimit-reset'),
    }
    const possible = binding.filter(
      ({ limit, remaining, end: [from, to] }) =>
        limit === shown.limit &&
        remaining === shown.remaining &&
        shown.reset >= Math.ceil(from / 1000) &&
        shown.reset <= Math.ceil(to / 1000),
    )
    expect(possible, `${JSON.stringify(shown)} is not one of ${JSON.stringify(binding)}`).not.toEqual([])

    expect(list(headers, 'ratelimit-policy')).toEqual(
      windows.map(({ name, limit, seconds }) => ({ name, q: limit, w: seconds })),
    )
    const fields = list(headers, 'ratelimit')
    expect(fields.map(({ name, r }) => ({ name, r }))).toEqual(windows.map(({ name, remaining: r }) => ({ name, r })))
    for (const [i, { end }] of windows.entries()) {
      expect(fields[i]?.t).toBeGreaterThanOrEqual(Math.max(0, Math.ceil((end[0] - now[1]) / 1000)))
      expect(fields[i]?.t).toBeLessThanOrEqual(Math.max(0, Math.ceil((end[1] - now[0]) / 1000)))
    }

    expect(headers.has('retry-after')).toBe(status === 429)
    if (status === 429) {
      // This wait ends after Reset, but less than a second later.
      const wait = number('retry-after')
      expect(wait).toBeGreaterThanOrEqual(Math.max(1, Math.ceil(shown.reset - now[1] / 1000)))
      expect(wait).toBeLessThanOrEqual(Math.max(1, Math.ceil(shown.reset - now[0] / 1000)))
    }
    return { ...shown, binding: possible }
  }

  async function client(first: Parameters<typeof limitsOf>[0]) {
    const { key, row } = await gateway.createKey(first as { plan: 'Free' })
    const own = `10.0.${address >> 8}.${address++ & 255}`
    const byKey = new SubjectModel(limitsOf(row), ban)
    const byAddress = new SubjectModel([{ name: 'address', limit: 60, seconds: seconds.address }])
    const before = new Map<SubjectModel, { policy: string | null; window?: string; remaining: number; reset: number }>()

    const send = async (sent: Sent) => {
      const account = sent.keyless ? byAddress : byKey
      const path = sent.path === '/categories/0' ? `/categories/${++category}` : sent.path
      const narrowest = Math.min(...account.limits.map(({ limit }) => limit))
      await sleep(account.edge(Date.now()))
      const began = Date.now()
      const response = await fetch(url + path, {
        method: sent.method ?? 'GET',
        headers: { 'x-forwarded-for': own, ...(sent.keyless ? {} : { 'x-api-key': key }), ...sent.headers },
        body: sent.body ?? null,
      })
      const now = [began, Date.now()] as const
      await response.arrayBuffer()
      const tooDear = sent.cost > narrowest
      // What is not read because nothing is left is refused as if it cost 1, whichever windows have less than its cost.
      const isUnread = sent.path === '/graphql' && sent.cost > 0 && account.isUsedUp(now)
      const cost = tooDear || isUnread ? 1 : sent.cost
      const expected = account.consume(cost, now)
      const status = tooDear ? 400 : sent.status
      const shown = judge(response, { ...sent, cost, status }, expected, now)

      const banned = expected.outcome === 'banned'
      if (shown.binding.length === 1) account.saw(banned ? undefined : shown.binding[0]?.name, shown.reset)
      const last = before.get(account)
      const policy = response.headers.get('ratelimit-policy')
      // Two windows of a key can have the same limit and end in the same second.
      const window = shown.binding.length === 1 ? shown.binding[0]?.name : undefined
      if (!banned && window && last?.window === window && last.policy === policy && last.reset === shown.reset)
        expect(shown.remaining, 'Remaining rises inside a window').toBeLessThanOrEqual(last.remaining)
      if (banned) before.delete(account)
      else before.set(account, { policy, window, ...shown })
    }

    /** Waits until the gateway has read the key's row again. While the database is slow, it decides by an older one. */
    async function noticed(
      isNoticed: (quota: Record<'minute' | 'day', { limit: number; remaining: number; reset: number }>) => boolean,
    ) {
      const read = () => fetch(`${url}/quota`, { headers: { 'x-api-key': key } })
      while (!isNoticed(await (await read()).json())) await sleep(10)
    }

    return {
      send,
      async change(data: Parameters<typeof limitsOf>[0]) {
        const limits = { minuteLimit: null, dayLimit: null, ...data, plan: data.plan as 'Free' }
        byKey.limits = limitsOf(await database.prisma.apiKey.update({ where: { id: row.id }, data: limits }))
        await noticed(({ minute, day }) =>
          byKey.limits.every(({ name, limit }) => ({ minute, day })[name as 'day'].limit === limit),
        )
      },
      /** A ban by an admin, which replaces any other ban. */
      async ban(ms: number) {
        if (byKey.bannedUntil[1] > Date.now() - 20) return
        const until = Date.now() + ms
        await database.prisma.apiKey.update({ where: { id: row.id }, data: { bannedUntil: new Date(until) } })
        byKey.ban(exactly(until))
        await noticed(
          ({ minute, day }) =>
            [minute, day].every(({ remaining, reset }) => remaining === 0 && reset === Math.ceil(until / 1000)) ||
            Date.now() > until,
        )
      },
    }
  }

  test('every rate limit header of every response matches a simple model', async () => {
    let judged = 0
    const property = fc.asyncProperty(
      row,
      fc.array(step, { minLength: 10, maxLength: 25, size: 'max' }),
      async (row, steps) => {
        let caller = await client(row)
        const take = async (step: (typeof steps)[number]) => {
          if ('pause' in step) return sleep(step.pause)
          if ('change' in step) return caller.change(step.change)
          if ('banFor' in step) return caller.ban(step.banFor)
          for (let i = 0; i < step.times; i++, judged++) await caller.send(step.request)
        }
        for (const step of steps)
          await take(step).catch(async (error) => {
            // On the edge of a window later results are undecided, so continue with another client.
            if (!(error instanceof Undecided)) throw error
            caller = await client(row)
          })
      },
    )
    // Concurrent, because most of the time is waiting. Without shrinking, because time cannot be repeated.
    await Promise.all(times(lanes, () => fc.assert(property, { numRuns, endOnFailure: true })))
    expect(judged).toBeGreaterThan(lanes * numRuns * 10)
  })
})
