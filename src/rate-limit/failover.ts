import { type Cluster, Redis } from 'ioredis'
import type { Logger } from '../log.js'
import type { MemoryStore } from './memory.js'
import type { RedisStore } from './redis.js'
import type { RateLimiter, RateLimitResult, Subject } from './result.js'

const HEARTBEAT_MS = 500

/**
 * Counts in Redis, and in memory while Redis is unreachable. Memory mirrors the last reply of Redis, so that counting
 * continues from there. Each command to Redis carries the counters in memory, so that Redis learns what was counted
 * alone and what it lost in a restart.
 */
export class FailoverRateLimiter implements RateLimiter {
  readonly #client: Redis | Cluster
  readonly #redis: RedisStore
  readonly #memory: MemoryStore
  readonly #log: Logger
  #heartbeat?: NodeJS.Timeout
  #closed = false
  /** Once Redis has failed, no request touches it until the heartbeat has reached it again. */
  #away = false
  /** In the slot that failed last: a part of a cluster may be unreachable. */
  #probe: string

  constructor(client: Redis | Cluster, redis: RedisStore, memory: MemoryStore, log: Logger) {
    this.#client = client
    this.#redis = redis
    this.#memory = memory
    this.#log = log
    this.#probe = redis.key('probe')
    // The first to know, and with the reason. Without a listener the event would end the process.
    client.on('error', (error) => this.#lose(error))
  }

  get state(): RateLimiter['state'] {
    return this.#away ? 'degraded' : 'redis'
  }

  /** A Redis that cannot be reached is no error: counting begins in memory, and moves to Redis when it appears. */
  async open(): Promise<void> {
    await this.#client.connect().catch(() => {})
    await this.#beat()
  }

  async consume(subject: Subject, cost: number): Promise<RateLimitResult> {
    if (!this.#away) {
      try {
        const result = await this.#redis.consume(subject, cost, this.#memory.counters(subject.id))
        this.#memory.adopt(subject, result)
        return result
      } catch (error) {
        this.#lose(error, `${this.#redis.key(subject.id)}:probe`)
      }
    }
    return this.#memory.consume(subject, cost)
  }

  async close(): Promise<void> {
    this.#closed = this.#away = true
    clearTimeout(this.#heartbeat)
    this.#client.disconnect()
  }

  #lose(error: unknown, probe = this.#probe): void {
    if (this.#away) return
    this.#away = true
    this.#probe = probe
    this.#log.warn({ err: error }, 'Redis is unreachable: this gateway counts alone')
  }

  /** A write, because a replica, a full or a half-loaded Redis still answers a ping. Also notices a loss when idle. */
  async #beat(): Promise<void> {
    try {
      await this.#redis.inTime(this.#client.set(this.#probe, '', 'PX', HEARTBEAT_MS))
      if (this.#away && !this.#closed) this.#log.info('Redis is back: counting in it again')
      this.#away = this.#closed
    } catch (error) {
      this.#lose(error)
      // After a failover the old address may lead to the new master. Once a beat, not once for each request in flight.
      if (this.#client instanceof Redis && /^READONLY/.test((error as Error).message)) this.#client.disconnect(true)
    }
    if (!this.#closed) this.#heartbeat = setTimeout(() => this.#beat(), HEARTBEAT_MS).unref()
  }
}
