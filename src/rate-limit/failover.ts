import { type Cluster, Redis } from 'ioredis'
import type { Logger } from '../log.js'
import type { MemoryStore } from './memory.js'
import type { RedisStore } from './redis.js'
import type { RateLimiter } from './result.js'

const HEARTBEAT_MS = 500

/**
 * Counts in Redis, and in memory while Redis is unreachable. Memory mirrors the last reply of Redis, so that counting
 * continues from there. Each command to Redis carries the counters in memory, so that Redis learns what was counted
 * alone and what it lost in a restart. A Redis that cannot be reached at first is no error.
 */
export async function openFailover(
  client: Redis | Cluster,
  redis: RedisStore,
  memory: MemoryStore,
  log: Logger,
): Promise<RateLimiter> {
  let heartbeat: NodeJS.Timeout | undefined
  let closed = false
  /** Once Redis has failed, no request touches it until the heartbeat has reached it again. */
  let away = false
  /** In the slot that failed last: a part of a cluster may be unreachable. */
  let probe = redis.key('probe')

  function lose(error: unknown, failed = probe): void {
    if (away) return
    away = true
    probe = failed
    log.warn({ err: error }, 'Redis is unreachable: this gateway counts alone')
  }

  /** A write, because a replica, a full or a half-loaded Redis still answers a ping. Also notices a loss when idle. */
  async function beat(): Promise<void> {
    try {
      await redis.inTime(client.set(probe, '', 'PX', HEARTBEAT_MS))
      if (away && !closed) log.info('Redis is back: counting in it again')
      away = closed
    } catch (error) {
      lose(error)
      // After a failover the old address may lead to the new master. Once a beat, not once for each request in flight.
      if (client instanceof Redis && /^READONLY/.test((error as Error).message)) client.disconnect(true)
    }
    if (!closed) heartbeat = setTimeout(beat, HEARTBEAT_MS).unref()
  }

  // The first to know, and with the reason. Without a listener the event would end the process.
  client.on('error', (error) => lose(error))
  await client.connect().catch(() => {})
  await beat()

  return {
    get state() {
      return away ? 'degraded' : 'redis'
    },
    async consume(subject, cost) {
      if (away) return memory.consume(subject, cost)
      try {
        const result = await redis.consume(subject, cost, memory.counters(subject.id))
        memory.adopt(subject, result)
        return result
      } catch (error) {
        lose(error, `${redis.key(subject.id)}:probe`)
        return memory.consume(subject, cost)
      }
    },
    async close() {
      closed = away = true
      clearTimeout(heartbeat)
      client.disconnect()
    },
  }
}
