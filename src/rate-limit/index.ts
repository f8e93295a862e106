import type { Logger } from '../log.js'
import { FailoverRateLimiter } from './failover.js'
import { MemoryStore } from './memory.js'
import { createClient, RedisStore } from './redis.js'
import type { RateLimiter } from './result.js'

export { DAY_MS, GRACE_MS, STRIKES_MS } from './bans.js'
export { bindingWindow, rateLimitHeaders } from './headers.js'
export { quotaOf } from './quota.js'
export type { RateLimiter, RateLimitResult, Subject, WindowName, WindowState } from './result.js'

export interface RateLimiterOptions {
  /** Without it counters live in memory. Several URLs, with commas between them, are the nodes of a cluster. */
  redisUrl?: string
  /** Strikes within a minute that ban a subject, and the length of its first ban. */
  banAfter: number
  banSeconds: number
  log: Logger
  /** Seconds for which a new ban is carried to the other gateways: at least the time they take to read it from its row. */
  banCarrySeconds?: number
  keyPrefix?: string
}

/** Never rejects: without a reachable Redis, counting begins in memory and moves to Redis when it appears. */
export const openRateLimiter = async (options: RateLimiterOptions): Promise<RateLimiter> => {
  const { redisUrl, banAfter, banSeconds, log, banCarrySeconds = 5, keyPrefix = 'petstore' } = options
  const rule = { after: banAfter, seconds: banSeconds, carrySeconds: banCarrySeconds }
  const memory = new MemoryStore(rule, keyPrefix)
  if (!redisUrl) {
    return {
      consume: (subject, cost) => memory.consume(subject, cost),
      state: 'memory',
      close: async () => memory.clear(),
    }
  }
  const client = createClient(redisUrl)
  const limiter = new FailoverRateLimiter(client, new RedisStore(client, rule, keyPrefix), memory, log)
  await limiter.open()
  return limiter
}
