import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import axios from 'axios'
import axiosRetry from 'axios-retry'
import got from 'got'
import ky from 'ky'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { createLog } from '../../src/engines/observe/log.js'
import { createReads } from '../../src/engines/postgres/reads.js'
import { ApiKeyCache } from '../../src/gateway/keys/index.js'
import { openTestDatabase, type TestDatabase } from '../support/database.js'
import { type Gateway, openGateway } from '../support/gateway.js'

// Real clients with usual configurations, over real connections. A minute lasts 3 seconds here.

const minute = 3
/** The timeout of a test on a busy machine, in milliseconds. */
const SLOW = 120_000
let database: TestDatabase
/** One bans for 2 seconds, the other for ten minutes. */
let gateway: Gateway
let stern: Gateway
beforeAll(async () => {
  database = await openTestDatabase()
  const open = (env: Record<string, string>) =>
    openGateway({
      database: { ...database, close: async () => {} },
      seconds: { minute, day: 600, address: minute },
      keyTtlMs: 50,
      env,
    })
  gateway = await open({ BAN_SECONDS: '2' })
  stern = await open({ BAN_SECONDS: '600' })
})
afterAll(async () => {
  await Promise.all([gateway.close(), stern.close()])
  await database.close()
})

/** A new key; by default of the Free plan (60 requests per window). */
async function client(to = gateway, data: Parameters<Gateway['createKey']>[0] = {}) {
  const { key, row } = await to.createKey(data)
  const { url } = await to.listen()
  const bannedUntil = async () => (await database.prisma.apiKey.findUnique({ where: { id: row.id } }))?.bannedUntil
  const ask = async () => {
    const sent = Date.now()
    const response = await fetch(`${url}/inventory`, { headers: { authorization: `Bearer ${key}` } })
    const body = (await response.json()) as { code?: string }
    const header = (name: string) => Number(response.headers.get(name))
    return { sent, arrived: Date.now(), status: response.status, code: body.code, header }
  }
  /** Sends requests every 20 ms until it is banned; returns the responses. */
  const hammer = async () => {
    const answers = [await ask()]
    while (answers.at(-1)?.code !== 'key_banned') {
      await sleep(20)
      answers.push(await ask())
    }
    return answers
  }
  return { url, row, ask, hammer, bannedUntil, headers: { authorization: `Bearer ${key}` } }
}

/** One request per window, so that it is used up soon. */
const one = { plan: 'Enterprise', minuteLimit: 1, dayLimit: 1000 } as const

type Target = { url: string; headers: Record<string, string>; saw: (status: number | undefined) => void }

const clients = {
  /** Waits for Retry-After or its own backoff, whichever is longer, plus up to a fifth. */
  'axios with axios-retry': ({ url, headers, saw }: Target) => {
    const instance = axios.create({ baseURL: url, headers })
    axiosRetry(instance, {
      retries: 5,
      retryDelay: axiosRetry.exponentialDelay,
      onRetry: (_count, error) => saw(error.response?.status),
    })
    return async () => (await instance.get('/inventory')).status
  },
  /** Waits exactly for Retry-After; without one it uses exponential backoff. */
  got: ({ url, headers, saw }: Target) => {
    const instance = got.extend({
      prefixUrl: url,
      headers,
      retry: { limit: 5 },
      hooks: { beforeRetry: [(error) => saw(error.response?.statusCode)] },
    })
    return async () => (await instance.get('inventory')).statusCode
  },
  /** Waits exactly for Retry-After; without one it would use X-RateLimit-Reset. */
  ky: ({ url, headers, saw }: Target) => {
    const instance = ky.create({
      prefixUrl: url,
      headers,
      retry: { limit: 5 },
      hooks: { beforeRetry: [({ error }) => saw((error as { response?: Response }).response?.status)] },
    })
    return async () => (await instance.get('inventory')).status
  },
}

test.concurrent.each(Object.entries(clients))(
  '%s makes 70 calls with 20 per window, ten at a time, and is never banned',
  { timeout: SLOW },
  async (_, create) => {
    const { url, headers, bannedUntil } = await client(gateway, { plan: 'Enterprise', minuteLimit: 20, dayLimit: 1000 })
    const refusals: (number | undefined)[] = []
    const call = create({ url, headers, saw: (status) => refusals.push(status) })
    let left = 70
    const worker = async () => {
      while (left-- > 0) expect(await call()).toBe(200)
    }
    await Promise.all(Array.from({ length: 10 }, worker))
    // Four windows are needed. A busy machine may also refuse with 503.
    expect(refusals.filter((status) => status === 429).length).toBeGreaterThanOrEqual(3)
    expect(await bannedUntil()).toBeNull()
  },
)

test.concurrent('a client that continues after 429 is banned for BAN_SECONDS, then twice as long; requests during a ban do not prolong it', {
  timeout: SLOW,
}, async () => {
  const { ask, hammer, bannedUntil } = await client(gateway, one)
  let until = 0
  for (const seconds of [2, 4]) {
    const before = until
    const answers = await hammer()
    const refused = answers.filter(({ code }) => code === 'rate_limited')
    // A refusal within a second of the first one is not a strike. The time of a decision is known only up to its round trip.
    const first = refused.find(({ sent }) => sent > (answers.findLast(({ status }) => status === 200)?.sent ?? 0))
    const surely = refused.filter(({ sent }) => sent > (first?.arrived ?? 0) + 1000)
    const perhaps = refused.filter(({ arrived }) => arrived > (refused[0]?.sent ?? 0) + 1000)
    expect(surely.length).toBeLessThanOrEqual(gateway.config.BAN_AFTER)
    expect(perhaps.length).toBeGreaterThanOrEqual(gateway.config.BAN_AFTER)
    const last = refused.at(-1)
    // The row is written after the response.
    until = await vi.waitUntil(async () => {
      const written = (await bannedUntil())?.getTime() ?? 0
      return written > before && written
    }, SLOW)
    expect(until).toBeGreaterThanOrEqual((last?.sent ?? 0) + seconds * 1000)
    expect(until).toBeLessThanOrEqual((last?.arrived ?? 0) + seconds * 1000)
    let answer = await ask()
    for (; answer.code === 'key_banned'; answer = await ask()) {
      expect(answer.header('x-ratelimit-reset')).toBe(Math.ceil(until / 1000))
      expect(answer.sent).toBeLessThanOrEqual(until)
      await sleep(50)
    }
    expect(Date.now()).toBeGreaterThanOrEqual(until)
    expect((await bannedUntil())?.getTime()).toBe(until)
    // The ban ends after the window in which it started.
    expect(answer.status).toBe(200)
  }
})

test.concurrent('a banned client works again after the ban is cleared from its row', { timeout: SLOW }, async () => {
  const { row, ask, hammer, bannedUntil } = await client(stern, one)
  const banned = (await hammer()).at(-1)
  expect(banned?.header('retry-after')).toBeGreaterThan(300)
  await vi.waitUntil(bannedUntil, SLOW)
  await database.prisma.apiKey.update({ where: { id: row.id }, data: { bannedUntil: null } })
  await vi.waitUntil(async () => (await ask()).status === 200, { timeout: SLOW, interval: 20 })
  expect(await bannedUntil()).toBeNull()
})

test('a client that exceeds the limit with 50 concurrent requests and then waits is never banned', async () => {
  // Its clock stands still during a burst, however slow the machine is. Redis has a clock of its own.
  vi.useFakeTimers({ toFake: ['Date'] })
  const alone = { ...database, close: async () => {} }
  const calm = await openGateway({ database: alone, redisUrl: '', env: { BAN_AFTER: '1' } })
  const agent = { http: new Agent({ keepAlive: true, maxSockets: 50 }) }
  onTestFinished(async () => {
    vi.useRealTimers()
    agent.http.destroy()
    await calm.close()
  })
  const { url, headers, ask, bannedUntil } = await client(calm)
  const call = got.extend({ prefixUrl: url, headers, agent, retry: { limit: 0 }, throwHttpErrors: false })
  const burst = () => Promise.all(Array.from({ length: 80 }, () => call.get('inventory', { responseType: 'json' })))
  for (const _ of [1, 2]) {
    const answers = await burst()
    const refused = answers.filter(({ statusCode }) => statusCode === 429)
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(60)
    expect(new Set(refused.map(({ body }) => (body as { code: string }).code))).toEqual(new Set(['rate_limited']))
    const waits = refused.map((answer) => Number(answer.headers['retry-after']))
    vi.setSystemTime(Date.now() + Math.max(...waits) * 1000)
  }
  expect((await ask()).status).toBe(200)
  expect(await bannedUntil()).toBeNull()
})

test('a key that is read while its ban is written stays in the cache', async () => {
  const { key, row } = await gateway.createKey()
  const ring = new ApiKeyCache({
    ...database,
    reads: createReads(database.tables)(database.query),
    log: createLog('silent'),
    ttlMs: 1,
  })
  for (let i = 0; i < 20; i++) {
    const banning = ring.ban(row, Date.now())
    expect(await ring.find(key)).toMatchObject({ id: row.id })
    await banning
    await sleep(5)
  }
})
