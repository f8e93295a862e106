import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import type { RateLimiter, RateLimiterOptions } from '../src/engines/rate-limit/index.js'
import { MemoryStore } from '../src/engines/rate-limit/memory.js'
import { admitted, closeLimits, subjectOf as key, openLimits, remaining } from './support/limits.js'
import { limitsCases } from './support/limits-cases.js'
import { exactly, SubjectModel } from './support/model.js'
import { TcpProxy } from './support/proxy.js'

afterAll(closeLimits)

const prefix = `test-${randomUUID()}`
const testRedis = process.env.TEST_REDIS_URL
afterAll(async () => {
  if (!testRedis) return
  const redis = new Redis(testRedis)
  for await (const keys of redis.scanStream({ match: `${prefix}*`, count: 1000 }))
    if (keys.length > 0) await redis.unlink(keys)
  redis.disconnect()
})

const stores: { store: string; redisUrl?: string }[] = [{ store: 'memory' }]
if (testRedis) stores.push({ store: 'redis', redisUrl: testRedis })

describe.each(stores)('quotas in $store', ({ store, redisUrl }) => {
  const gateway = (options: Partial<RateLimiterOptions> = {}) =>
    openLimits({ redisUrl, keyPrefix: `${prefix}-${randomUUID()}`, ...options })

  it.concurrent('reports its store', async () => {
    expect((await gateway()).state).toBe(store)
  })

  it.concurrent('cost 0 reads the windows, consumes nothing, starts no window, and is never limited', async () => {
    const limits = await gateway()
    const subject = key(1, 10)
    const before = Date.now()
    const first = await limits.consume(subject, 0)
    expect(first.outcome).toBe('allowed')
    expect(remaining(first)).toEqual([1, 10])
    expect(first.windows[0]?.resetAt).toBeGreaterThanOrEqual(before + 60_000 - 5)
    await wait(20)
    const later = await limits.consume(subject, 0)
    expect(later.windows[0]?.resetAt).toBeGreaterThan(first.windows[0]?.resetAt ?? 0)
    await limits.consume(subject, 1)
    expect(await limits.consume(subject, 0)).toMatchObject({ outcome: 'allowed', windows: [{ remaining: 0 }, {}] })
  })

  it.concurrent('a window starts with its first request, keeps its exact end, and then starts at zero again', async () => {
    const limits = await gateway()
    const subject = key(100_000, 1_000_000, 1)
    const first = await limits.consume(subject, 1)
    const end = first.at + 1_000
    let result = first
    for (let count = 1; result.at < end; count++) {
      expect(result.windows).toMatchObject([
        { remaining: 100_000 - count, resetAt: end },
        { remaining: 1_000_000 - count },
      ])
      await wait(1)
      result = await limits.consume(subject, 1)
    }
    expect(result.windows[0]).toMatchObject({ remaining: 99_999, resetAt: result.at + 1_000 })
    expect(result.windows[1]?.remaining).toBeLessThan(999_999)
  })

  it.concurrent('a limit lowered below its use has 0 remaining, and the next request is limited', async () => {
    const limits = await gateway()
    const subject = key(10, 100)
    await limits.consume(subject, 8)
    const lowered = { ...key(5, 100), id: subject.id }
    expect(remaining(await limits.consume(lowered, 0))).toEqual([0, 92])
    expect(await limits.consume(lowered, 1)).toMatchObject({ outcome: 'limited', refusedBy: ['minute'] })
  })

  it.concurrent('subjects do not share their windows', async () => {
    const limits = await gateway()
    const [one, other] = [key(1), key(1)]
    await limits.consume(one, 1)
    expect((await limits.consume(other, 1)).outcome).toBe('allowed')
  })

  // The time of a decision is known only after it, so the model says what it has to be. The model has the same cases.
  it.concurrent.each(limitsCases)('$guarantee', async ({ ban, windows, bannable = true, steps }) => {
    const { after: banAfter, seconds: banSeconds, carrySeconds: banCarrySeconds = 5 } = ban
    const limits = await gateway({ banAfter, banSeconds, banCarrySeconds })
    const subject = { id: `key:${randomUUID()}`, windows, bannable }
    const model = new SubjectModel(
      windows,
      bannable && banAfter > 0 ? { carrySeconds: banCarrySeconds, ...ban } : undefined,
    )
    const start = Date.now()
    for (const [at, cost] of steps) {
      await wait(Math.max(0, start + at - Date.now()))
      const result = await limits.consume(subject, cost)
      const expected = model.consume(cost, exactly(result.at))
      expect([result.outcome, ...remaining(result)], `at ${at}`).toEqual([
        expected.outcome,
        ...expected.windows.map((window) => window.remaining),
      ])
      expect(result.bannedUntil, `at ${at}`).toBe(expected.bannedUntil?.[0])
      expect(result.refusedBy.length > 0).toBe(result.outcome === 'limited')
    }
  })

  it.concurrent('exactly one of many concurrent late refusals starts a ban', async () => {
    const options = { keyPrefix: `${prefix}-${randomUUID()}`, banAfter: 1, banSeconds: 300 }
    const shared = await Promise.all(Array.from({ length: redisUrl ? 4 : 1 }, () => gateway(options)))
    const subject = key(1)
    const refuse = (i: number) => shared[i % shared.length]?.consume(subject, 1)
    for (let i = 0; i < 2; i++) await refuse(0)
    await wait(1050)
    const results = await Promise.all(Array.from({ length: 200 }, (_, i) => refuse(i)))
    expect(results.filter((result) => result?.outcome === 'limited' && result.bannedUntil)).toHaveLength(1)
    for (const i of shared.keys()) expect((await refuse(i))?.outcome).toBe('banned')
  })

  it('no sequence and no concurrency makes a window admit more than its limit, or refuse a request that fits', async () => {
    const limits = await gateway()
    const cost = fc.integer({ min: 0, max: 6 })
    const limit = fc.integer({ min: 1, max: 25 })
    const batches = fc.array(fc.array(cost, { maxLength: 8 }), { maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(limit, limit, batches, async (minute, day, batches) => {
        const subject = key(minute, day)
        let used = 0
        for (const batch of batches) {
          const results = await Promise.all(batch.map((cost) => limits.consume(subject, cost)))
          // Requests are decided in the order in which they were sent.
          for (const [i, cost] of batch.entries()) {
            const fits = cost === 0 || used + cost <= Math.min(minute, day)
            if (fits) used += cost
            expect(results[i]?.outcome).toBe(fits ? 'allowed' : 'limited')
            expect(results[i]?.windows.map(({ remaining }) => remaining)).toEqual([minute - used, day - used])
          }
        }
      }),
      { numRuns: 100 },
    )
  })
})

describe('the model', () => {
  it.each(limitsCases)('$guarantee', ({ ban, windows, bannable = true, steps }) => {
    const model = new SubjectModel(windows, bannable && ban.after > 0 ? ban : undefined)
    const start = 1e12
    let bannedUntil: number | undefined
    for (const [at, cost, outcome, left, banned] of steps) {
      const result = model.consume(cost, exactly(start + at))
      expect([result.outcome, ...result.windows.map(({ remaining }) => remaining)], `at ${at}`).toEqual([
        outcome,
        ...left,
      ])
      if (banned) bannedUntil = start + at + banned * 1000
      expect(result.bannedUntil?.[0]).toBe(banned || outcome === 'banned' ? bannedUntil : undefined)
    }
  })
})

describe('quotas in memory, over time', () => {
  afterEach(() => void vi.useRealTimers())

  it('end a window no later than its length from now, also if the clock has been set back since it began', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1e12 })
    const limits = await openLimits()
    const subject = key(5)
    await limits.consume(subject, 5)
    vi.setSystemTime(1e12 - 3_600_000)
    expect(await limits.consume(subject, 1)).toMatchObject({
      outcome: 'limited',
      windows: [{ resetAt: 1e12 - 3_540_000 }, { resetAt: 1e12 - 3_600_000 + 86_400_000 }],
    })
    vi.setSystemTime(1e12 - 3_540_000)
    expect((await limits.consume(subject, 5)).outcome).toBe('allowed')
  })

  it('every decision follows the model, for any costs and any times between requests', async () => {
    const subject = { ...key(4, 30), id: 'key:1' }
    const step = fc.record({
      cost: fc.integer({ min: 0, max: 3 }),
      pause: fc.oneof(
        fc.constant(0),
        fc.integer({ min: 1, max: 1100 }),
        fc.constantFrom(1000, 1001, 20_000, 60_000, 9e7),
      ),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 120, size: 'max' }), async (steps) => {
        vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], now: 1e12 })
        const limits = await openLimits({ banAfter: 3, banSeconds: 20, banCarrySeconds: 86_400 })
        const model = new SubjectModel(subject.windows, { after: 3, seconds: 20 })
        for (const { cost, pause } of steps) {
          vi.advanceTimersByTime(pause)
          const expected = model.consume(cost, exactly(Date.now()))
          const { outcome, windows, bannedUntil } = await limits.consume(subject, cost)
          expect(outcome).toBe(expected.outcome)
          expect(bannedUntil).toBe(expected.bannedUntil?.[0])
          expect(windows.map(({ remaining, resetAt }) => [remaining, resetAt])).toEqual(
            expected.windows.map(({ remaining, end }) => [remaining, end[0]]),
          )
        }
        await limits.close()
        vi.useRealTimers()
      }),
      { numRuns: 200 },
    )
  })

  it('ended windows are deleted, for any number of addresses, without timers', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] })
    const store = new MemoryStore({ banAfter: 10, banSeconds: 300, banCarrySeconds: 5 }, 'test')
    const windows = [{ name: 'address' as const, limit: 60, seconds: 60 }]
    for (let i = 0; i < 100_000; i++) {
      if (i % 100 === 0) vi.advanceTimersByTime(1_000)
      await store.consume({ id: `address:${i}`, windows, bannable: false }, 1)
    }
    // A hundred new addresses a second: 6,000 windows are open.
    expect(store.size).toBeLessThanOrEqual(2 * 6_000 + 100)
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe.runIf(testRedis)('gateways that share a Redis', () => {
  const gateways = (options: Partial<RateLimiterOptions> = {}) => {
    const keyPrefix = `${prefix}-${randomUUID()}`
    return Promise.all(Array.from({ length: 4 }, () => openLimits({ redisUrl: testRedis, keyPrefix, ...options })))
  }

  it('together never admit more than the limit, and report the same end of a window', async () => {
    const shared = await gateways()
    const subject = key(100, 1000)
    const all = Array.from({ length: 400 }, (_, i) => shared[i % 4]?.consume(subject, 1))
    const results = (await Promise.all(all)).filter((result) => result !== undefined)
    expect(admitted(results)).toBe(100)
    expect(new Set(results.map(({ windows }) => windows.map(({ resetAt }) => resetAt).join())).size).toBe(1)
  })

  it('admit no mix of costs over the limit, and refuse none that fits', async () => {
    const shared = await gateways()
    const subject = key(200, 1000)
    const results = await Promise.all(
      Array.from({ length: 200 }, async (_, i) => {
        const cost = 1 + ((i * 7) % 9)
        // Delayed by some turns of the event loop, so that they are in different batches.
        for (let turn = i % 13; turn > 0; turn--) await new Promise((resolve) => setImmediate(resolve))
        return { cost, result: await (shared[i % 4] as RateLimiter).consume(subject, cost) }
      }),
    )
    const taken = results.reduce((sum, { cost, result }) => sum + (result.outcome === 'allowed' ? cost : 0), 0)
    expect(taken).toBeLessThanOrEqual(200)
    for (const { cost, result } of results)
      if (result.outcome === 'limited') expect(result.windows[0]?.remaining).toBeLessThan(cost)
    for (const limits of shared)
      expect(remaining(await limits.consume(subject, 0))).toEqual([200 - taken, 1000 - taken])
  })

  it('keep the day over the minutes that begin in it, also for a gateway that has not counted before', async () => {
    const [one, ...others] = (await gateways()) as [RateLimiter, ...RateLimiter[]]
    const subject = key(10, 100, 1)
    for (const [i, other] of others.entries()) {
      const result = await one.consume(subject, 3)
      await wait((result.windows[0]?.resetAt ?? 0) - Date.now() + 50)
      expect(remaining(await other.consume(subject, 0))).toEqual([10, 97 - 3 * i])
    }
  })

  it('share a ban, also one that Redis has lost', async () => {
    const [one, other] = await gateways({ banAfter: 1 })
    const subject = key(1)
    for (let i = 0; i < 2; i++) await one?.consume(subject, 1)
    await wait(1050)
    const bannedUntil = (await one?.consume(subject, 1))?.bannedUntil
    expect(bannedUntil).toBeGreaterThan(0)
    expect(await other?.consume(subject, 1)).toMatchObject({ outcome: 'banned', bannedUntil })
    // Redis comes back empty before a heartbeat notices.
    const redis = new Redis(testRedis ?? '')
    await redis.del(await redis.keys(`*{${subject.id}}*`))
    redis.disconnect()
    for (const limits of [one, other])
      expect(await limits?.consume(subject, 1)).toMatchObject({ outcome: 'banned', bannedUntil })
  })

  it('load the script again after Redis has lost it', async () => {
    const [one] = await gateways()
    const redis = new Redis(testRedis ?? '')
    await one?.consume(key(), 1)
    await redis.script('FLUSH')
    const results = await Promise.all(Array.from({ length: 50 }, () => one?.consume(key(), 1)))
    expect(results.every((result) => result?.outcome === 'allowed')).toBe(true)
    expect(one?.state).toBe('redis')
    redis.disconnect()
  })

  it('do not wait longer for Redis when a refusal is a strike', async () => {
    const proxy = await TcpProxy.open(testRedis ?? '')
    const [one] = await gateways({ redisUrl: proxy.url, redisTimeoutMs: 100 })
    const subject = key(1)
    for (let i = 0; i < 2; i++) await one?.consume(subject, 1)
    await wait(1_100)
    proxy.holdNext(`strikes:{${subject.id}}`)
    // A connection without an answer ends only after two seconds.
    const late = wait(1_800, 'late')
    expect(await Promise.race([one?.consume(subject, 1), late])).toMatchObject({ outcome: 'limited' })
    await proxy.cut()
  })

  it('do not count alone because their own event loop was busy', async () => {
    const [one] = await gateways({ redisTimeoutMs: 1_000 })
    const answer = one?.consume(key(), 1)
    await new Promise((resolve) => setImmediate(resolve))
    // Blocks this thread, which takes no processor from others.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500)
    await answer
    expect(one?.state).toBe('redis')
  })

  it('end a window no later than its length from now, also if the clock of Redis has been set back since it began', async () => {
    const keyPrefix = `${prefix}-${randomUUID()}`
    const [one, two] = await Promise.all([1, 2].map(() => openLimits({ redisUrl: testRedis, keyPrefix })))
    const redis = new Redis(testRedis ?? '')
    const subject = key(5, 1_000, 2)
    const name = `${keyPrefix}:{${subject.id}}`
    await one?.consume(subject, 5)
    // So it looks to Redis whose clock has been set back by an hour.
    for (const field of ['minuteEnd', 'dayEnd']) await redis.hincrby(name, field, 3_600_000)
    const refused = await two?.consume(subject, 1)
    expect(refused?.outcome).toBe('limited')
    for (const { resetAt, seconds } of refused?.windows ?? [])
      expect(resetAt).toBeLessThanOrEqual((refused?.at ?? 0) + seconds * 1000)
    await wait(2_050)
    for (const limits of [one, two]) expect((await limits?.consume(subject, 1))?.outcome).toBe('allowed')
    redis.disconnect()
  })

  it('store only keys that expire in Redis; the mark of a ban expires after it is carried', async () => {
    const keyPrefix = `${prefix}-${randomUUID()}`
    const limits = await openLimits({ redisUrl: testRedis, keyPrefix, banAfter: 1, banSeconds: 7 })
    const redis = new Redis(testRedis ?? '')
    const subject = key(1)
    for (const cost of [0, 2, 1, 1]) await limits.consume(subject, cost)
    await wait(1050)
    expect(await limits.consume(subject, 1)).toHaveProperty('bannedUntil')
    await limits.consume(key(1), 0)
    await limits.consume(key(1), 2)
    const keys = (await redis.keys(`${keyPrefix}*`)).filter((name) => !name.endsWith('{probe}'))
    const lasts = await Promise.all(keys.map(async (name) => [name, Math.ceil((await redis.pttl(name)) / 10_000)]))
    expect(Object.fromEntries(lasts)).toEqual({
      [`${keyPrefix}:{${subject.id}}`]: 8_640,
      [`${keyPrefix}:ban:{${subject.id}}`]: 1,
      [`${keyPrefix}:bans:{${subject.id}}`]: 8_641,
      [`${keyPrefix}:strikes:{${subject.id}}:0`]: 6,
    })
    redis.disconnect()
  })
  it.each<[string, (name: (kind: string) => string) => (string | number)[]]>([
    ['a text instead of its windows', (name) => ['set', name(''), 'x']],
    ['a window that is no number', (name) => ['hset', name(''), 'minute', 'many', 'minuteEnd', Date.now() + 60_000]],
    ['a list instead of the mark of its ban', (name) => ['rpush', name('ban:'), 'x']],
    ['a set instead of its number of bans', (name) => ['sadd', name('bans:'), 'x']],
    ['a list instead of its strikes', (name) => ['rpush', name('strikes:').concat(':0'), 'x']],
    ['a text instead of its strikes', (name) => ['set', name('strikes:').concat(':0'), 'x']],
  ])('a key for which another program has written %s is counted alone, and no other key is', async (_, write) => {
    const keyPrefix = `${prefix}-${randomUUID()}`
    const redis = new Redis(testRedis ?? '')
    const [one, two] = await Promise.all([1, 2].map(() => openLimits({ redisUrl: testRedis, keyPrefix, banAfter: 1 })))
    const others = Array.from({ length: 20 }, () => key(1))
    const wrong = key(2)
    const [command, ...args] = write((kind) => `${keyPrefix}:${kind}{${wrong.id}}`)
    await redis.call(command as string, args)
    const ask = (limits = one, cost = 1) =>
      Promise.all([...others.slice(0, 10), wrong, ...others.slice(10)].map((subject) => limits?.consume(subject, cost)))
    const counts: number[] = []
    for (const limits of [one, two, one, two]) {
      const results = (await ask(limits)).flatMap((result) => result ?? [])
      results.splice(10, 1)
      counts.push(admitted(results))
    }
    expect(counts).toEqual([20, 0, 0, 0])
    await wait(1_100)
    // A refusal that comes late is a strike, and starts a ban.
    for (const limits of [one, two]) {
      const results = await ask(limits)
      for (const result of [...results.slice(0, 10), ...results.slice(11)])
        expect(result).toMatchObject(
          limits === one ? { outcome: 'limited', bannedUntil: expect.any(Number) } : { outcome: 'banned' },
        )
      expect(results[10]?.outcome).not.toBe('allowed')
    }
    expect([one?.state, two?.state]).toEqual(['redis', 'redis'])
    redis.disconnect()
  })
  it.each(['', 'strikes:'])(
    'what another program has written for the heartbeat is no loss of Redis: %s',
    async (kind) => {
      const keyPrefix = `${prefix}-${randomUUID()}`
      const redis = new Redis(testRedis ?? '')
      const name = `${keyPrefix}:probe:${kind}{probe}`
      await redis.rpush(name, 'x')
      await redis.expire(name, 60)
      const limits = await openLimits({ redisUrl: testRedis, keyPrefix })
      for (let i = 0; i < 5; i++) {
        expect(limits.state).toBe('redis')
        await wait(300)
      }
      redis.disconnect()
    },
  )
})
