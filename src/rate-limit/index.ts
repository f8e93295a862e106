import { endOfTurn } from '../execute/turn.js'
import type { Logger } from '../log.js'
import { MemoryQuota } from './memory.js'
import { connect, RedisQuota } from './redis.js'
import { type Client, Judged, type Verdict } from './result.js'

export type { Client, Verdict, WindowName, WindowState } from './result.js'

export interface Limits {
  /** Judges a request of `cost` (0 looks and takes nothing, and is never limited). Never rejects, never waits longer than 100 ms for Redis. */
  take(client: Client, cost: number): Promise<Verdict>
  /** `degraded`: Redis is configured but away, and this gateway counts alone. */
  readonly state: 'memory' | 'redis' | 'degraded'
  close(): Promise<void>
}

export interface LimitsOptions {
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
export const openLimits = async (options: LimitsOptions): Promise<Limits> => {
  const { redisUrl, banAfter, banSeconds, log, banCarrySeconds = 5, keyPrefix = 'petstore' } = options
  const ban = { after: banAfter, seconds: banSeconds, carrySeconds: banCarrySeconds }
  const memory = new MemoryQuota(keyPrefix, ban)
  const redis = redisUrl ? new RedisQuota(connect(redisUrl), memory, ban, log) : undefined
  await redis?.open()

  return {
    async take(client, cost) {
      // The braces are a hash tag: whatever belongs to a client stays in one slot of a cluster.
      const key = `{${client.id}}`
      const result: unknown = redis
        ? await redis.consume(key, cost, { client }).catch((refusal) => refusal)
        : memory.decide(key, cost, client)
      // The answers of Redis come together by themselves.
      if (!redis || redis.away) await endOfTurn()
      if (result instanceof Judged) return result.verdict
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
