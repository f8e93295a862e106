import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { createLog } from '../src/log.js'
import {
  type Client,
  openRateLimiter,
  type RateLimiter,
  type RateLimiterOptions,
  type Verdict,
} from '../src/rate-limit/index.js'

const silent = createLog('silent')
const opened: RateLimiter[] = []
const open = async (options: Partial<RateLimiterOptions> = {}) => {
  const limits = await openRateLimiter({
    banAfter: 10,
    banSeconds: 300,
    log: silent,
    keyPrefix: randomUUID(),
    ...options,
  })
  opened.push(limits)
  return limits
}
afterAll(() => Promise.all(opened.map((limits) => limits.close())))

const key = (minute = 60, day = 1000, seconds = 60): Client => ({
  id: `key:${randomUUID()}`,
  windows: [
    { name: 'minute', limit: minute, seconds },
    { name: 'day', limit: day, seconds: 86_400 },
  ],
  bannable: true,
})
const remaining = (verdict: Verdict) => verdict.windows.map((window) => window.remaining)
const times = async <T>(count: number, work: () => Promise<T>) => {
  const results: T[] = []
  for (let i = 0; i < count; i++) results.push(await work())
  return results
}
const admitted = (verdicts: Verdict[]) => verdicts.filter(({ outcome }) => outcome === 'allowed').length

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
    open({ redisUrl, keyPrefix: `${prefix}-${randomUUID()}`, ...options })

  it.concurrent('says which store it counts in', async () => {
    expect((await gateway()).state).toBe(store)
  })

  it.concurrent('a request takes its cost from every window', async () => {
    const limits = await gateway()
    const client = key(10, 100)
    expect(remaining(await limits.take(client, 3))).toEqual([7, 97])
    expect(remaining(await limits.take(client, 7))).toEqual([0, 90])
  })

  it.concurrent('a request that one window refuses takes from none', async () => {
    const limits = await gateway()
    const client = key(10, 8)
    await limits.take(client, 6)
    expect(await limits.take(client, 3)).toMatchObject({ outcome: 'limited', refusedBy: ['day'] })
    expect(await limits.take(client, 5)).toMatchObject({ outcome: 'limited', refusedBy: ['minute', 'day'] })
    const verdict = await limits.take(client, 2)
    expect(verdict.outcome).toBe('allowed')
    expect(remaining(verdict)).toEqual([2, 0])
  })

  it.concurrent('of 300 requests at once exactly the limit is admitted, and the burst brings no ban', async () => {
    const limits = await gateway()
    const client = key(60, 1000)
    const verdicts = await Promise.all(Array.from({ length: 300 }, () => limits.take(client, 1)))
    expect(admitted(verdicts)).toBe(60)
    expect(verdicts.filter(({ outcome }) => outcome === 'limited')).toHaveLength(240)
    expect(remaining(await limits.take(client, 0))).toEqual([0, 940])
  })

  it.concurrent('cost 0 looks, takes nothing, begins no window, and is never limited', async () => {
    const limits = await gateway()
    const client = key(1, 10)
    const before = Date.now()
    const first = await limits.take(client, 0)
    expect(first.outcome).toBe('allowed')
    expect(remaining(first)).toEqual([1, 10])
    expect(first.windows[0]?.resetAt).toBeGreaterThanOrEqual(before + 60_000 - 5)
    await wait(20)
    const later = await limits.take(client, 0)
    expect(later.windows[0]?.resetAt).toBeGreaterThan(first.windows[0]?.resetAt ?? 0)
    await limits.take(client, 1)
    expect(await limits.take(client, 0)).toMatchObject({ outcome: 'allowed', windows: [{ remaining: 0 }, {}] })
  })

  it.concurrent('a window begins with its first request, keeps its end to the millisecond, and then begins anew', async () => {
    const limits = await gateway()
    const client = key(500, 10_000, 1)
    const before = Date.now()
    const ends = new Set<number>()
    while (Date.now() < before + 700) {
      const { windows } = await limits.take(client, 1)
      ends.add(windows[0]?.resetAt ?? 0)
      await wait(1)
    }
    expect(ends.size).toBe(1)
    const [end = 0] = ends
    expect(end - before).toBeGreaterThanOrEqual(995)
    expect(end - before).toBeLessThan(1300)
    await wait(end - Date.now() + 20)
    const anew = await limits.take(client, 1)
    expect(anew.windows[0]).toMatchObject({ remaining: 499 })
    expect(anew.windows[0]?.resetAt).toBeGreaterThanOrEqual(end + 1000)
    expect(anew.windows[1]?.remaining).toBeLessThan(9_999)
  })

  it.concurrent('a limit lowered below what is used shows 0 remaining, and refuses', async () => {
    const limits = await gateway()
    const client = key(10, 100)
    await limits.take(client, 8)
    const lowered = { ...key(5, 100), id: client.id }
    expect(remaining(await limits.take(lowered, 0))).toEqual([0, 92])
    expect(await limits.take(lowered, 1)).toMatchObject({ outcome: 'limited', refusedBy: ['minute'] })
  })

  it.concurrent('what costs more than a whole window is refused, leaves nothing behind, and is no strike', async () => {
    const limits = await gateway({ banAfter: 1 })
    const client = key(5, 100)
    expect(await limits.take(client, 6)).toMatchObject({ outcome: 'limited', refusedBy: ['minute'] })
    await wait(1050)
    const verdict = await limits.take(client, 6)
    expect(verdict).not.toHaveProperty('bannedUntil')
    expect(remaining(verdict)).toEqual([5, 100])
  })

  it.concurrent('clients do not share their windows', async () => {
    const limits = await gateway()
    const [one, other] = [key(1), key(1)]
    await limits.take(one, 1)
    expect((await limits.take(other, 1)).outcome).toBe('allowed')
  })

  describe('bans', () => {
    const exhausted = async (options: Partial<RateLimiterOptions>, client = key(1)) => {
      const limits = await gateway(options)
      await limits.take(client, 1)
      const refuse = () => limits.take(client, 1)
      await refuse()
      return { limits, refuse, client }
    }

    it.concurrent('a refusal within a second of the first one is no strike, however many there are', async () => {
      const { refuse } = await exhausted({ banAfter: 2 })
      const early = await times(50, refuse)
      expect(early.filter((verdict) => 'bannedUntil' in verdict || verdict.outcome === 'banned')).toEqual([])
    })

    it.concurrent('exactly the last strike brings the ban, and is itself limited', async () => {
      const { refuse } = await exhausted({ banAfter: 3, banSeconds: 300 })
      await wait(1050)
      const [one, two, three, four] = await times(4, refuse)
      expect(one).toMatchObject({ outcome: 'limited' })
      expect(one).not.toHaveProperty('bannedUntil')
      expect(two).toMatchObject({ outcome: 'limited' })
      expect(two).not.toHaveProperty('bannedUntil')
      expect(three).toMatchObject({ outcome: 'limited', refusedBy: ['minute'] })
      const until = three?.outcome === 'limited' ? three.bannedUntil : 0
      expect(Math.abs((until ?? 0) - Date.now() - 300_000)).toBeLessThan(1000)
      expect(four).toMatchObject({ outcome: 'banned', until })
    })

    it.concurrent('a ban says so to cost 0, takes nothing, is not prolonged, and clears the strikes', async () => {
      const { limits, refuse, client } = await exhausted({ banAfter: 2, banSeconds: 1 })
      await wait(1050)
      const [, last] = await times(2, refuse)
      const until = last?.outcome === 'limited' ? (last.bannedUntil ?? 0) : 0
      while (Date.now() < until - 50) {
        expect(await limits.take(client, 0)).toMatchObject({ outcome: 'banned', until })
        const verdict = await refuse()
        expect(verdict).toMatchObject({ outcome: 'banned', until })
        expect(remaining(verdict)).toEqual([0, 999])
        await wait(30)
      }
      await wait(until - Date.now() + 20)
      expect(await limits.take(client, 0)).toMatchObject({ outcome: 'allowed' })
      const again = await refuse()
      expect(again).toMatchObject({ outcome: 'limited' })
      expect(again).not.toHaveProperty('bannedUntil')
    })

    it.concurrent('each further ban doubles, up to a day; the store carries it only until gateways have read it', async () => {
      const { refuse } = await exhausted({ banAfter: 1, banSeconds: 30_000, banCarrySeconds: 0.3 })
      await wait(1050)
      const lengths: number[] = []
      for (let i = 0; i < 4; i++) {
        const verdict = await refuse()
        expect(verdict.outcome).toBe('limited')
        if (verdict.outcome === 'limited') lengths.push(Math.round(((verdict.bannedUntil ?? 0) - Date.now()) / 1000))
        expect((await refuse()).outcome).toBe('banned')
        await wait(330)
      }
      expect(lengths).toEqual([30_000, 60_000, 86_400, 86_400])
    })

    it.concurrent('a new window forgets its first refusal', async () => {
      const { limits, refuse, client } = await exhausted({ banAfter: 1 }, key(1, 1000, 1))
      await wait(1050)
      await limits.take(client, 1)
      expect(await refuse()).not.toHaveProperty('bannedUntil')
      expect(await refuse()).toMatchObject({ outcome: 'limited' })
    })

    it.concurrent('strikes outlive the window that they came in', async () => {
      const minute = { name: 'minute' as const, limit: 1, seconds: 2 }
      const { refuse } = await exhausted({ banAfter: 2 }, { ...key(), windows: [minute] })
      await wait(1050)
      const first = await refuse()
      expect(first).not.toHaveProperty('bannedUntil')
      await wait((first.windows[0]?.resetAt ?? 0) - Date.now() + 20)
      expect((await refuse()).outcome).toBe('allowed')
      expect(await refuse()).not.toHaveProperty('bannedUntil')
      await wait(1050)
      expect(await refuse()).toHaveProperty('bannedUntil')
    })

    it.concurrent('who is not bannable is limited for ever', async () => {
      const { refuse } = await exhausted({ banAfter: 1 }, { ...key(1), bannable: false })
      await wait(1050)
      expect((await times(5, refuse)).every((verdict) => verdict.outcome === 'limited')).toBe(true)
      expect(await refuse()).not.toHaveProperty('bannedUntil')
    })
  })

  it('whatever comes, in order or at once, no window gives more than its limit, and none gives less than it could', async () => {
    const limits = await gateway()
    const cost = fc.integer({ min: 0, max: 6 })
    const limit = fc.integer({ min: 1, max: 25 })
    const batches = fc.array(fc.array(cost, { maxLength: 8 }), { maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(limit, limit, batches, async (minute, day, batches) => {
        const client = key(minute, day)
        let used = 0
        for (const batch of batches) {
          const verdicts = await Promise.all(batch.map((cost) => limits.take(client, cost)))
          // Requests are judged in the order in which they were sent.
          for (const [i, cost] of batch.entries()) {
            const fits = cost === 0 || used + cost <= Math.min(minute, day)
            if (fits) used += cost
            expect(verdicts[i]?.outcome).toBe(fits ? 'allowed' : 'limited')
            expect(verdicts[i]?.windows.map(({ remaining }) => remaining)).toEqual([minute - used, day - used])
          }
        }
      }),
      { numRuns: 100 },
    )
  })
})

describe('quotas in memory, over time', () => {
  afterEach(() => void vi.useRealTimers())

  /** The rules once more, as plainly as they can be put. */
  class Model {
    windows = new Map<string, { used: number; end: number; refused?: number }>()
    strikes = { count: 0, end: 0 }
    bans = { count: 0, end: 0, until: 0 }

    take({ windows }: Client, cost: number, now: number): string {
      if (this.bans.until > now) return 'banned'
      const states = windows.map(({ name, limit, seconds }) => {
        const held = this.windows.get(name)
        return { name, limit, begun: held && held.end > now ? held : undefined, end: now + seconds * 1000 }
      })
      const full = states.filter(({ begun, limit }) => cost > 0 && (begun?.used ?? 0) + cost > limit)
      if (full.length === 0) {
        if (cost > 0)
          for (const { name, begun, end } of states)
            this.windows.set(name, { ...(begun ?? { end }), used: (begun?.used ?? 0) + cost })
        return 'allowed'
      }
      const strike = full.some(({ begun }) => begun?.refused !== undefined && now - begun.refused > 1000)
      for (const { begun } of full) if (begun) begun.refused ??= now
      if (!strike) return 'limited'
      if (this.strikes.end <= now) this.strikes = { count: 0, end: now + 60_000 }
      if (++this.strikes.count < 3) return 'limited'
      this.strikes = { count: 0, end: 0 }
      const count = this.bans.end > now ? this.bans.count + 1 : 1
      const until = now + Math.min(20_000 * 2 ** (count - 1), 86_400_000)
      this.bans = { count, until, end: until + 86_400_000 }
      return `limited until ${until}`
    }
  }

  it('every decision is what the rules say, whatever the costs and the times between', async () => {
    const client = { ...key(4, 30), id: 'key:1' }
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
        const limits = await open({ banAfter: 3, banSeconds: 20, banCarrySeconds: 86_400 })
        const model = new Model()
        for (const { cost, pause } of steps) {
          vi.advanceTimersByTime(pause)
          const expected = model.take(client, cost, Date.now())
          const verdict = await limits.take(client, cost)
          const until = verdict.outcome === 'limited' && verdict.bannedUntil
          expect(until ? `limited until ${until}` : verdict.outcome).toBe(expected)
        }
        await limits.close()
        vi.useRealTimers()
      }),
      { numRuns: 300 },
    )
  })

  it('what has ended is forgotten, and no timer keeps the process alive', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] })
    const limits = await open()
    await Promise.all(Array.from({ length: 100 }, () => limits.take(key(), 1)))
    expect(vi.getTimerCount()).toBe(200)
    vi.advanceTimersByTime(60_000)
    expect(vi.getTimerCount()).toBe(100)
    await limits.close()
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe.runIf(testRedis)('gateways that share a Redis', () => {
  const gateways = (options: Partial<RateLimiterOptions> = {}) => {
    const keyPrefix = `${prefix}-${randomUUID()}`
    return Promise.all(Array.from({ length: 4 }, () => open({ redisUrl: testRedis, keyPrefix, ...options })))
  }

  it('never admit more than the limit together, and tell the same end of a window', async () => {
    const shared = await gateways()
    const client = key(100, 1000)
    const all = Array.from({ length: 400 }, (_, i) => shared[i % 4]?.take(client, 1))
    const verdicts = (await Promise.all(all)).filter((verdict) => verdict !== undefined)
    expect(admitted(verdicts)).toBe(100)
    expect(new Set(verdicts.map(({ windows }) => windows.map(({ resetAt }) => resetAt).join())).size).toBe(1)
  })

  it('tell each other of a ban', async () => {
    const [one, other] = await gateways({ banAfter: 1 })
    const client = key(1)
    await one?.take(client, 1)
    await one?.take(client, 1)
    await wait(1050)
    const verdict = await one?.take(client, 1)
    const until = verdict?.outcome === 'limited' ? verdict.bannedUntil : 0
    expect(await other?.take(client, 1)).toMatchObject({ outcome: 'banned', until })
  })

  it('a script that Redis has lost is brought again', async () => {
    const [one] = await gateways()
    const redis = new Redis(testRedis ?? '')
    await one?.take(key(), 1)
    await redis.script('FLUSH')
    const verdicts = await Promise.all(Array.from({ length: 50 }, () => one?.take(key(), 1)))
    expect(verdicts.every((verdict) => verdict?.outcome === 'allowed')).toBe(true)
    expect(one?.state).toBe('redis')
    redis.disconnect()
  })

  it('an event loop that was busy for long does not take Redis for away', async () => {
    const [one] = await gateways()
    const client = key()
    const answer = one?.take(client, 1)
    await new Promise((resolve) => setImmediate(resolve))
    const until = Date.now() + 250
    while (Date.now() < until);
    await answer
    expect(one?.state).toBe('redis')
  })

  it('leave nothing in Redis that does not expire, and the mark of a ban no longer than it is carried', async () => {
    const keyPrefix = `${prefix}-${randomUUID()}`
    const limits = await open({ redisUrl: testRedis, keyPrefix, banAfter: 1, banSeconds: 7 })
    const redis = new Redis(testRedis ?? '')
    const client = key(1, 1000, 2)
    for (const cost of [0, 2, 1, 1]) await limits.take(client, cost)
    const id = `${keyPrefix}:{${client.id}}`
    expect(Math.abs((await redis.pttl(id)) - 86_400_000)).toBeLessThan(1000)
    await wait(1050)
    await limits.take(client, 1)
    expect(Math.abs((await redis.pttl(id)) - 86_407_000)).toBeLessThan(1000)
    expect(Math.abs(Number(await redis.hget(id, 'ban')) - Number(await redis.hget(id, 'banEnd')))).toBe(2000)
    await limits.take(key(1), 0)
    await limits.take(key(1), 2)
    const keys = await redis.keys(`${keyPrefix}*`)
    expect(keys.filter((name) => !name.endsWith('probe'))).toEqual([id])
    redis.disconnect()
  })
})

const binary = spawnSync('redis-server', ['--version']).status === 0
describe.runIf(binary || testRedis)('Redis away', () => {
  const servers: ChildProcess[] = []
  const freePort = async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    return port
  }
  const serve = async (port: number) => {
    const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
    const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] })
    servers.push(server)
    for await (const line of server.stdout.iterator({ destroyOnReturn: false })) {
      if (String(line).includes('Ready to accept connections')) break
    }
    server.stdout.resume()
    return server
  }
  afterAll(() => {
    for (const server of servers) server.kill('SIGKILL')
  })

  const watched = async (port: number, options: Partial<RateLimiterOptions> = {}) => {
    const lines: string[] = []
    const log = createLog('info', { write: (line) => void lines.push(JSON.parse(line).msg) })
    const limits = await open({ redisUrl: `redis://127.0.0.1:${port}`, log, ...options })
    const become = (state: RateLimiter['state']) =>
      vi.waitFor(() => expect(limits.state).toBe(state), { timeout: 4000, interval: 20 })
    const timed = async (client: Client, count = 1) => {
      const began = performance.now()
      const verdicts = await Promise.all(Array.from({ length: count }, () => limits.take(client, 1)))
      return { ms: performance.now() - began, verdicts }
    }
    return { limits, lines, become, timed }
  }

  it.concurrent('a Redis that hangs costs only the requests in flight 100 ms, and is back by itself', async () => {
    const port = await freePort()
    const server = await serve(port)
    const { limits, lines, become, timed } = await watched(port)
    const client = key(60)
    expect(admitted((await timed(client, 40)).verdicts)).toBe(40)
    server.kill('SIGSTOP')
    const first = await timed(client, 30)
    expect(first.ms).toBeLessThan(600)
    expect(admitted(first.verdicts), 'goes on from what Redis last said').toBe(20)
    expect(limits.state).toBe('degraded')
    expect((await timed(client, 30)).ms).toBeLessThan(90)
    await wait(1200)
    expect((await timed(client, 30)).ms).toBeLessThan(90)
    server.kill('SIGCONT')
    await become('redis')
    expect(admitted((await timed(client, 5)).verdicts), 'what was taken alone is not given again').toBe(0)
    expect(admitted((await timed(key(60), 100)).verdicts)).toBe(60)
    expect(lines).toEqual([
      'Redis is away: this gateway counts alone until it is back',
      'Redis is back: counting in it again',
    ])
  })

  it.concurrent('a Redis that dies and comes back empty neither fails a request nor begins a window anew', async () => {
    const port = await freePort()
    const server = await serve(port)
    const { limits, lines, become, timed } = await watched(port)
    const client = key(60)
    const [before] = (await timed(client, 20)).verdicts
    server.kill('SIGKILL')
    await once(server, 'exit')
    const alone = await timed(client, 30)
    expect(alone.ms).toBeLessThan(200)
    expect(admitted(alone.verdicts)).toBe(30)
    expect(alone.verdicts[0]?.windows).toMatchObject(before?.windows.map(({ resetAt }) => ({ resetAt })) ?? [])
    expect(limits.state).toBe('degraded')
    await serve(port)
    await become('redis')
    const back = await timed(client, 30)
    expect(admitted(back.verdicts)).toBe(10)
    expect(back.verdicts[0]?.windows).toMatchObject(before?.windows.map(({ resetAt }) => ({ resetAt })) ?? [])
    expect(lines).toHaveLength(2)
  })

  it.concurrent('a ban outlives the Redis that carried it, no longer than it would have been carried', async () => {
    const port = await freePort()
    const server = await serve(port)
    const { limits } = await watched(port, { banAfter: 1, banCarrySeconds: 1 })
    const client = key(1)
    for (let i = 0; i < 2; i++) await limits.take(client, 1)
    await wait(1050)
    const verdict = await limits.take(client, 1)
    const until = verdict.outcome === 'limited' && verdict.bannedUntil
    server.kill('SIGKILL')
    await once(server, 'exit')
    expect(await limits.take(client, 1)).toMatchObject({ outcome: 'banned', until })
    await wait(1000)
    expect((await limits.take(client, 1)).outcome).toBe('limited')
  })

  it.concurrent('an idle gateway notices too, and a replica that cannot write is as good as away', async () => {
    const port = await freePort()
    await serve(port)
    const { become, timed } = await watched(port)
    const redis = new Redis(port)
    redis.on('error', () => {})
    await redis.replicaof('127.0.0.1', '1')
    await become('degraded')
    expect(admitted((await timed(key(60), 100)).verdicts)).toBe(60)
    await redis.replicaof('NO', 'ONE')
    await become('redis')
    redis.disconnect()
  })

  it.concurrent('a Redis that is not there at start is found when it appears', async () => {
    const port = await freePort()
    const began = performance.now()
    const { limits, lines, become, timed } = await watched(port)
    expect(performance.now() - began).toBeLessThan(500)
    expect(limits.state).toBe('degraded')
    expect(admitted((await timed(key(60), 100)).verdicts)).toBe(60)
    await serve(port)
    await become('redis')
    expect(lines).toHaveLength(2)
  })

  it('after closing nothing is left to wait for, whether Redis is there or not', async () => {
    const exits = async (port: number) => {
      const script = `
        const { openRateLimiter } = await import('./src/rate-limit/index.ts')
        const log = { warn() {}, info() {} }
        const limits = await openRateLimiter({ redisUrl: 'redis://127.0.0.1:${port}', banAfter: 1, banSeconds: 1, log })
        await limits.take({ id: 'x', windows: [{ name: 'day', limit: 1, seconds: 1 }], bannable: true }, 1)
        await limits.close()
        console.log((await limits.take({ id: 'x', windows: [], bannable: true }, 1)).outcome)`
      const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], { timeout: 8000 })
      let out = ''
      child.stdout.on('data', (data) => {
        out += data
      })
      expect(await once(child, 'exit')).toEqual([0, null])
      expect(out.trim()).toBe('allowed')
    }
    const there = await freePort()
    await serve(there)
    await Promise.all([exits(await freePort()), exits(there)])
  })
})
