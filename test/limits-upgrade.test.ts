import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { afterAll, describe, expect, it } from 'vitest'
import { createLog } from '../src/engines/observe/log.js'
import { createBans } from '../src/engines/rate-limit/bans.js'
import { openRateLimiter, type RateLimiter, type RateLimitResult } from '../src/engines/rate-limit/index.js'
import { MemoryStore } from '../src/engines/rate-limit/memory.js'
import { NOT_BEGUN, storeResult } from '../src/engines/rate-limit/result.js'
import { subjectOf } from './support/limits.js'
import { exactly, SubjectModel } from './support/model.js'

const testRedis = process.env.TEST_REDIS_URL
const keyPrefix = `test-${randomUUID()}`
const ban = { banAfter: 2, banSeconds: 1, banCarrySeconds: 5 }

/** A gateway of the version before: the script that it sent, and what it sent and read. */
function openBefore(redis: Redis): Pick<RateLimiter, 'consume'> {
  const script = readFileSync(new URL('fixtures/decide-json.lua', import.meta.url), 'utf8')
  const memory = new MemoryStore(ban, keyPrefix)
  const bans = createBans(ban, keyPrefix, (options) => new RateLimiterRedis({ ...options, storeClient: redis }))
  return {
    async consume(subject, cost) {
      const id = `{${subject.id}}`
      const windows = subject.windows.map(({ name, limit, seconds }) => {
        const { used, resetAt } = memory.counters(subject.id)?.[name] ?? NOT_BEGUN
        return { name, limit, ms: seconds * 1000, used, resetAt }
      })
      const keys = [`${keyPrefix}:${id}`, ...bans.keys(id)]
      const reply = await redis.eval(script, keys.length, ...keys, JSON.stringify([{ cost, windows }]), 1_000)
      const [at, json] = reply as [number, string]
      const { outcome, windows: counters, previousBans, ...banned } = JSON.parse(json)[0]
      const result: RateLimitResult = { ...storeResult(subject, cost, { at, outcome }, counters), ...banned }
      if (previousBans !== undefined) Object.assign(result, await bans.strike(id, at, previousBans))
      memory.adopt(subject, result)
      return result
    },
  }
}

describe.runIf(testRedis)('a gateway of the version before and one of this version, over one Redis', async () => {
  const redis = new Redis(testRedis ?? '', { lazyConnect: true })
  const before = openBefore(redis)
  const now = await openRateLimiter({
    ...ban,
    redisUrl: testRedis,
    keyPrefix,
    log: createLog('silent'),
    redisTimeoutMs: 2_000,
  })
  afterAll(async () => {
    await now.close()
    for await (const keys of redis.scanStream({ match: `${keyPrefix}*`, count: 1000 }))
      if (keys.length > 0) await redis.unlink(keys)
    redis.disconnect()
  })

  it('together admit exactly the limit, and report the same end of a window', async () => {
    const subject = subjectOf(100, 1000)
    const results = await Promise.all(
      Array.from({ length: 400 }, async (_, i) => {
        for (let turn = i % 13; turn > 0; turn--) await new Promise((resolve) => setImmediate(resolve))
        return (i % 2 ? now : before).consume(subject, 1)
      }),
    )
    expect(results.filter(({ outcome }) => outcome === 'allowed')).toHaveLength(100)
    expect(new Set(results.map(({ windows }) => windows.map(({ resetAt }) => resetAt).join())).size).toBe(1)
    expect(now.state).toBe('redis')
  })

  it.each([
    ['before', 'this version', before, now],
    ['this version', 'before', now, before],
  ])('windows, refusals and bans that began in %s go on in %s', async (_, _to, from, to) => {
    const subject = subjectOf(4, 10, 60)
    const began = await from.consume(subject, 3)
    expect(await to.consume(subject, 0)).toMatchObject({
      windows: began.windows.map(({ name, remaining, resetAt }) => ({ name, remaining, resetAt })),
    })
    expect((await from.consume(subject, 2)).outcome).toBe('limited')
    await wait(1050)
    expect(await to.consume(subject, 2)).not.toHaveProperty('bannedUntil')
    const { bannedUntil } = await from.consume(subject, 2)
    expect(bannedUntil).toBeGreaterThan(0)
    expect(await to.consume(subject, 1)).toMatchObject({ outcome: 'banned', bannedUntil })
  })

  it('decide every request as one gateway would, for any costs, in any order, at any time', async () => {
    const step = fc.record({
      gateway: fc.constantFrom(before, now),
      cost: fc.integer({ min: 0, max: 3 }),
      pause: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 400 })),
    })
    const sequences = fc.sample(fc.array(step, { minLength: 40, maxLength: 40, size: 'max' }), 30)
    const seen = new Set<string>()
    await Promise.all(
      sequences.map(async (steps) => {
        const subject = subjectOf(6, 25, 2)
        const model = new SubjectModel(subject.windows, { after: ban.banAfter, seconds: ban.banSeconds })
        for (const { gateway, cost, pause } of steps) {
          await wait(pause)
          const result = await gateway.consume(subject, cost)
          const expected = model.consume(cost, exactly(result.at))
          expect(result).toMatchObject({ outcome: expected.outcome })
          expect(result.bannedUntil).toBe(expected.bannedUntil?.[0])
          expect(result.windows.map(({ remaining, resetAt }) => [remaining, resetAt])).toEqual(
            expected.windows.map(({ remaining, end }) => [remaining, end[0]]),
          )
          seen.add(`${gateway === now ? 'now' : 'before'} ${result.outcome}`)
        }
      }),
    )
    expect(seen.size, 'both have allowed, limited and banned').toBe(6)
    expect(now.state).toBe('redis')
  })
})
