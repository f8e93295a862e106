export { parseRedisUrl, REDIS_URL_FORMS, redisAddress } from './url.js'

import { MemoryStore } from './memory.js'
import type { RateLimiter, RateLimiterOptions } from './result.js'
import { parseRedisUrl } from './url.js'

export { DAY_MS, GRACE_MS, STRIKES_MS } from './bans.js'
export { bindingWindow, refusalMessage, setRateLimitHeaders, waitMessage } from './headers.js'
export type { RateLimiter, RateLimiterOptions, RateLimitResult, Subject, WindowName, WindowState } from './result.js'

/** Counts in this process alone, without bans. */
export const createMemoryRateLimiter = (): Pick<RateLimiter, 'consume'> =>
  new MemoryStore({ banAfter: 0, banSeconds: 1, banCarrySeconds: 0 }, '')

/** Never rejects: without a reachable Redis, counting begins in memory and moves to Redis when it appears. */
export const openRateLimiter = async (options: RateLimiterOptions): Promise<RateLimiter> => {
  const { redisUrl, log, keyPrefix = 'petstore', redisTimeoutMs = 100 } = options
  const rule = { ...options, banCarrySeconds: options.banCarrySeconds ?? 5 }
  const memory = new MemoryStore(rule, keyPrefix)
  // Memory decides immediately: there is nothing to predict.
  if (!redisUrl) return { consume: memory.consume.bind(memory), left: () => 0, state: 'memory', close: async () => {} }
  const target = parseRedisUrl(redisUrl)
  // Loaded with their first use: they are a tenth of a start.
  const [{ openFailover }, { createClient }, { RedisStore }] = await Promise.all([
    import('./failover.js'),
    import('./client.js'),
    import('./redis.js'),
  ])
  const connect = (kind = target.kind) => {
    const client = createClient(target, kind)
    const storeFor = (prefix: string) => new RedisStore(client, rule, prefix, redisTimeoutMs)
    return { client, store: storeFor(keyPrefix), probe: storeFor(`${keyPrefix}:probe`) }
  }
  return openFailover(target, connect, memory, log)
}
