import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openTestDatabase, type TestDatabase } from '../support/database.js'
import { type Gateway, openGateway } from '../support/gateway.js'
import { RedisServer, redisBinary } from '../support/redis.js'

// The guarantees of limits.test.ts, for whole gateways.

interface Fault {
  fault: string
  before?: (server: RedisServer) => Promise<unknown>
  begin: (server: RedisServer) => Promise<unknown>
  /** Absent if Redis is back before anything can notice. */
  end?: (server: RedisServer) => Promise<unknown>
}

const command = async ({ port }: RedisServer, name: string, ...args: string[]) => {
  const redis = new Redis(port)
  return redis.call(name, ...args).finally(() => redis.disconnect())
}

const start = (server: RedisServer) => server.start()

const faults: Fault[] = [
  {
    fault: 'hangs',
    before: start,
    begin: async (server) => server.signal('SIGSTOP'),
    end: async (server) => server.signal('SIGCONT'),
  },
  { fault: 'dies and comes back empty', before: start, begin: (server) => server.kill(), end: start },
  {
    fault: 'dies and is back immediately, empty',
    before: start,
    begin: async (server) => {
      await server.kill()
      await server.start()
    },
  },
  {
    fault: 'becomes a replica',
    before: start,
    begin: (server) => command(server, 'REPLICAOF', '127.0.0.1', '1'),
    end: (server) => command(server, 'REPLICAOF', 'NO', 'ONE'),
  },
  {
    fault: 'is full',
    before: start,
    begin: async (server) => {
      await command(server, 'CONFIG', 'SET', 'maxmemory', '1mb', 'maxmemory-policy', 'noeviction')
      const fill = 'for i = 1, 1000 do redis.call("SET", "fill" .. i, string.rep("x", 10000)) end'
      await expect(command(server, 'EVAL', fill, '0')).rejects.toThrow('OOM')
    },
    end: (server) => command(server, 'CONFIG', 'SET', 'maxmemory', '0'),
  },
  { fault: 'was never there', begin: async () => {}, end: start },
]

describe.runIf(redisBinary)('a Redis that', () => {
  let database: TestDatabase
  const warnings: string[] = []
  const warned = ({ message }: Error) => void warnings.push(message)
  beforeAll(async () => {
    process.on('warning', warned)
    database = await openTestDatabase()
  })
  afterAll(async () => {
    RedisServer.killAll()
    await database.close()
    process.off('warning', warned)
    expect(warnings).toEqual([])
  })

  test.concurrent.each(faults)(
    '$fault: no request fails, no key gets more than its plan per gateway, bans stay',
    async ({ before, begin, end }) => {
      const server = await RedisServer.reserve()
      await before?.(server)
      const open = () =>
        openGateway({
          database: { ...database, close: async () => {} },
          redisUrl: server.url,
          keyPrefix: 'shared',
          env: { BAN_AFTER: '1', BAN_SECONDS: '600' },
          // A gateway that a busy machine lets read the row late, before the ban is in it, reads it again in time.
          keyTtlMs: 1_000,
        })
      const [one, two] = [await open(), await open()]
      let over = false
      const both = async <T>(work: (gateway: Gateway) => Promise<T>) => [await work(one), await work(two)]
      try {
        const [free, quiet] = [(await one.createKey()).key, (await one.createKey()).key]
        const spend = async (gateway: Gateway, count: number, key = free) => {
          // Unknown paths count but need no database.
          const answers = await Promise.all(Array.from({ length: count }, () => gateway.get('/nowhere', { key })))
          expect(answers.filter(({ status }) => status !== 404 && status !== 429)).toEqual([])
          return answers.filter(({ status }) => status === 404).length
        }
        const tells = async (gateway: Gateway, status: string, degraded: number) => {
          const [ready, metrics] = [await gateway.get('/readyz'), await gateway.get('/metrics')]
          expect([ready.status, ready.body.status]).toEqual([200, status])
          expect(metrics.text).toMatch(new RegExp(`^petstore_limits_degraded ${degraded}$`, 'm'))
        }
        const become = (status: string, degraded: number) =>
          vi.waitFor(() => both((gateway) => tells(gateway, status, degraded)), { timeout: 60_000, interval: 50 })

        // A ban that both gateways know.
        const { key: abuser, row } = await one.createKey({ plan: 'Enterprise', minuteLimit: 1, dayLimit: 9 })
        const abuse = (gateway: Gateway) => gateway.get('/inventory', { key: abuser })
        const known = before !== undefined
        for (let i = 0; i < 2; i++) await abuse(one)
        await sleep(1050)
        await abuse(one)
        const [ban] = await both(async (gateway) => (known ? abuse(gateway) : abuse(one)))
        expect(ban?.body.code).toBe('key_banned')
        // Without Redis, the row is all that carries it.
        const stored = () => database.prisma.apiKey.findUnique({ where: { id: row.id } })
        await vi.waitUntil(async () => (await stored())?.bannedUntil, 60_000)

        expect(await spend(one, 80, quiet)).toBe(60)
        const spent = before ? (await spend(one, 10)) + (await spend(two, 10)) : 0

        // Requests are sent all the time, so that some are in flight whatever happens to Redis. Those sent while Redis
        // hangs must return before it continues.
        const goOn = async (gateway: Gateway) => {
          while (!over) {
            const { status, text } = await gateway.get('/inventory')
            expect(status, text).toBe(200)
            await sleep(20)
          }
        }
        const traffic = Promise.all([one, one, two, two].map(goOn))

        await begin(server)
        const alone = await both((gateway) => spend(gateway, 80))
        await sleep(1500)
        if (end) await become('degraded', 1)
        for (const answer of await both(abuse)) {
          expect(answer.body.code).toBe('key_banned')
          expect(answer.headers.get('x-ratelimit-reset')).toBe(ban?.headers.get('x-ratelimit-reset'))
        }
        await end?.(server)
        await become('ok', 0)

        expect(await spend(one, 80, quiet), 'of a key without requests in between').toBe(0)
        const after = await both((gateway) => spend(gateway, 80))
        over = true
        await traffic
        const admitted = [spent, ...alone, ...after].reduce((sum, count) => sum + count)
        expect(admitted).toBeGreaterThanOrEqual(60)
        expect(admitted).toBeLessThanOrEqual(120)
        for (const { logged } of [one, two])
          for (const line of ['Redis is unreachable', 'Redis is back'])
            expect(logged.filter((entry) => entry.includes(line))).toHaveLength(1)
      } finally {
        over = true
        await Promise.all([one.close(), two.close()])
        await server.kill()
      }
    },
  )
})
