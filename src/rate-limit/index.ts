import type { Logger } from '../log.js'
import { MemoryQuota } from './memory.js'
import { connect, RedisQuota } from './redis.js'
import { type Client, Judged, type WindowName, type WindowState } from './result.js'

export { bindingWindow, rateLimitHeaders } from './headers.js'
export type { Client as Subject, WindowName, WindowState } from './result.js'

export interface RateLimitResult {
  outcome: 'allowed' | 'limited' | 'banned'
  at: number
  windows: WindowState[]
  refusedBy: WindowName[]
  bannedUntil?: number
}

export interface RateLimiter {
  /** Judges a request of `cost` (0 looks and takes nothing, and is never limited). Never rejects, never waits longer than 100 ms for Redis. */
  consume(client: Client, cost: number): Promise<RateLimitResult>
  /** `degraded`: Redis is configured but away, and this gateway counts alone. */
  readonly state: 'memory' | 'redis' | 'degraded'
  close(): Promise<void>
}

export interface RateLimiterOptions {
  /** Without it counters live in memory. Several URLs, with commas between them, are the nodes of a cluster. */
  redisUrl?: string
  /** Strikes within a minute that ban a client, and the length of its first ban. */
  banAfter: number
  banSeconds: number
  log: Logger
  /** How long a new ban is carried to the other gateways: at least the time they take to read it from its row. */
  banCarrySeconds?: number
  keyPrefix?: string
}

/** Redis that cannot be reached is no error: counting begins in memory, and moves to Redis when it appears. */
export const openRateLimiter = async (options: RateLimiterOptions): Promise<RateLimiter> => {
  const { redisUrl, banAfter, banSeconds, log, banCarrySeconds = 5, keyPrefix = 'petstore' } = options
  const ban = { after: banAfter, seconds: banSeconds, carrySeconds: banCarrySeconds }
  const memory = new MemoryQuota(keyPrefix, ban)
  const redis = redisUrl ? new RedisQuota(connect(redisUrl), memory, ban, log) : undefined
  await redis?.open()

  return {
    async consume(client, cost) {
      // The braces are a hash tag: whatever belongs to a client stays in one slot of a cluster.
      const key = `{${client.id}}`
      const result: unknown = redis
        ? await redis.consume(key, cost, { client }).catch((refusal) => refusal)
        : memory.decide(key, cost, client)
      if (result instanceof Judged) {
        const { verdict: v } = result
        return {
          outcome: v.outcome,
          at: v.at,
          windows: v.windows,
          refusedBy: v.outcome === 'limited' ? v.refusedBy : [],
          bannedUntil: v.outcome === 'banned' ? v.until : v.outcome === 'limited' ? v.bannedUntil : undefined,
        }
      }
      throw result
    },
    get state() {
      if (!redis) return 'memory'
      return redis.away ? 'degraded' : 'redis'
    },
    async close() {
      redis?.close()
      memory.clear()
    },
  }
}
