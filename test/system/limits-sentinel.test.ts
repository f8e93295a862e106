import { afterAll, describe, expect, it } from 'vitest'
import { createLog } from '../../src/engines/observe/log.js'
import { openRateLimiter, type Subject } from '../../src/engines/rate-limit/index.js'
import { failOver } from '../support/fail-over.js'
import { RedisServer, redisBinary } from '../support/redis.js'
import { startSentinels } from '../support/redis-groups.js'

const subject = (limit: number): Subject => ({
  id: 'key:1',
  windows: [{ name: 'minute', limit, seconds: 60 }],
  bannable: true,
})

describe.runIf(redisBinary || process.env.TEST_REDIS_URL)('quotas in a Redis behind Sentinels', () => {
  afterAll(() => RedisServer.killAll())

  it('are exact over two gateways, in the database and with the passwords that the URL names', async () => {
    const login = { password: 'p@s/s,1', sentinelPassword: 'q' }
    const { hosts, master, close } = await startSentinels(login)
    const redisUrl = `redis+sentinel://:${encodeURIComponent(login.password)}@${hosts}/pets/3?sentinelPassword=q`
    const options = { redisUrl, banAfter: 10, banSeconds: 300, redisTimeoutMs: 1_000, log: createLog('silent') }
    const gateways = await Promise.all([openRateLimiter(options), openRateLimiter(options)])
    expect(gateways.map(({ state }) => state)).toEqual(['redis', 'redis'])
    const all = Array.from({ length: 100 }, (_, i) => gateways[i % 2]?.consume(subject(40), 1))
    expect((await Promise.all(all)).filter((result) => result?.outcome === 'allowed')).toHaveLength(40)
    expect(await master.cli('-a', login.password, '-n', 3, 'exists', 'petstore:{key:1}')).toBe('1')
    for (const gateway of gateways) await gateway.close()
    await close()
  })

  it('follow them to the new master when the old one is killed, and at most twice the limit is admitted', async () => {
    const { hosts, master, close } = await startSentinels()
    await failOver({ redisUrl: `redis+sentinel://${hosts}/pets`, subject: subject(300), kill: () => master.kill() })
    await close()
  })
})
