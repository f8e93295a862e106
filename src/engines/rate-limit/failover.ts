import { type Cluster, Redis } from 'ioredis'
import type { Logger } from '../observe/index.js'
import { explain, isSelect } from './client.js'
import type { MemoryStore } from './memory.js'
import { isForeign, type RedisStore } from './redis.js'
import type { ObserveCommand, RateLimiter, Subject } from './result.js'
import type { RedisTarget } from './url.js'

const HEARTBEAT_MS = 500
/** How long a slot counts as moving after it has refused a decision, and how long the log is quiet about it. */
const MOVING_MS = 1_000
const QUIET_MS = 60_000

/** Keys of a slot that is half on another node are refused until all of them have moved. Other keys are not affected. */
const isMoving = (error: unknown) => /^Too many Cluster redirections/.test((error as Error).message)

/** Passes over what concerns the keys of one subject alone. */
function unlessLocal(error: unknown): void {
  if (!isMoving(error) && !isForeign(error)) throw error
}

/** What a heartbeat counts. */
const pulse = (id: string): Subject => ({
  id,
  windows: [{ name: 'minute', limit: 1_000_000, seconds: 1 }],
  bannable: true,
})

interface Connection {
  client: Redis | Cluster
  store: RedisStore
  /** With names of its own. */
  probe: RedisStore
}

/**
 * Counts in Redis, and in memory while Redis is unreachable. Memory mirrors the last reply of Redis, so that counting
 * continues from there. Each command to Redis carries the counters in memory, so that Redis learns what was counted
 * alone and what it lost in a restart. A Redis that cannot be reached at first is no error.
 */
export async function openFailover(
  target: RedisTarget,
  connect: (kind?: RedisTarget['kind']) => Connection,
  memory: MemoryStore,
  log: Logger,
): Promise<RateLimiter> {
  let { client, store, probe } = watch(connect())
  let heartbeat: NodeJS.Timeout | undefined
  let closed = false
  /** Once Redis has failed, no request touches it until the heartbeat has reached it again. */
  let away = false
  let wasReached = false
  /** Why the connection must not be used although it works: it leads to another database. */
  let misled: unknown
  /** Whose slot is probed: that which failed last, because a part of a cluster may be unreachable. */
  let probed = 'probe'
  let observe: ObserveCommand | undefined
  let movingUntil = 0
  let quietUntil = 0
  let foreignQuietUntil = 0

  function watch(connection: Connection): Connection {
    const { client: own } = connection
    own.on('connect', () => {
      misled = undefined
    })
    // The first to know, and with the reason. Without a listener the event would end the process.
    own.on('error', (error) => {
      if (own !== client) return
      if (isSelect(error.command)) misled = error
      lose(error)
    })
    for (const store of [connection.store, connection.probe]) store.observe = (...told) => observe?.(...told)
    return connection
  }

  function lose(error: unknown, failed = probed): void {
    if (away) return
    away = true
    probed = failed
    log.warn({ err: explain(error, target, wasReached) }, 'Redis is unreachable: this gateway counts alone')
  }

  function tellMoving(): void {
    const now = Date.now()
    if (now > quietUntil) log.warn('Redis moves a slot: this gateway counts the keys in it alone until it has moved')
    movingUntil = now + MOVING_MS
    quietUntil = now + QUIET_MS
  }

  /** What another program has written there may stay for good. Other keys are not affected. */
  function tellForeign(name: string): void {
    const now = Date.now()
    if (now > foreignQuietUntil)
      log.warn(
        { name },
        'Redis holds something else under a name with these braces: this gateway counts the key alone until it is gone',
      )
    foreignQuietUntil = now + QUIET_MS
  }

  /** One URL may lead to any node of a cluster, such as its configuration endpoint: only the server knows. */
  async function recognize(): Promise<void> {
    if (target.kind !== 'server' || !(client instanceof Redis)) return
    // Not every user may ask.
    const info = await store.inTime(client.info('server')).catch(() => '')
    if (closed || !info.includes('redis_mode:cluster')) return
    client.disconnect()
    ;({ client, store, probe } = watch(connect('cluster')))
    await client.connect().catch(() => {})
  }

  /**
   * A decision, because a replica, a full or a half-loaded Redis, and one that refuses scripts, still answer a ping. Also notices a
   * loss when idle.
   */
  async function beat(): Promise<void> {
    try {
      if (misled) throw misled
      const isNew = away || !wasReached
      if (isNew) await recognize()
      await probe.consume(pulse(probed), 1, undefined).catch(unlessLocal)
      if (isNew) await probe.probeBans(probed).catch(unlessLocal)
      if (away && !closed) log.info('Redis is back: counting in it again')
      away = closed
      wasReached = true
    } catch (error) {
      lose(error)
      // After a failover the old address may lead to the new master. Once a beat, not once for each request in flight.
      if (client instanceof Redis && /READONLY/.test((error as Error).message)) client.disconnect(true)
    }
    if (!closed) heartbeat = setTimeout(beat, HEARTBEAT_MS).unref()
  }

  // Without Sentinels it would never stop trying to connect.
  const failed = new Promise((resolve) => client.once('error', resolve))
  await Promise.race([client.connect().catch(() => {}), failed])
  await beat()

  return {
    get state() {
      return away || Date.now() < movingUntil ? 'degraded' : 'redis'
    },
    async consume(subject, cost) {
      // A Redis that has restarted may have lost a ban that is not in the key's row yet.
      if (away || (await memory.isBanned(subject))) return memory.consume(subject, cost)
      try {
        const result = await store.consume(subject, cost, memory.counters(subject.id))
        memory.adopt(subject, result)
        return result
      } catch (error) {
        if (isMoving(error)) tellMoving()
        else if (isForeign(error)) tellForeign(store.key(subject.id))
        else lose(error, subject.id)
        return memory.consume(subject, cost)
      }
    },
    left: (subject) => (away ? 0 : memory.left(subject)),
    observeCommands(listener) {
      observe = listener
    },
    async close() {
      closed = away = true
      clearTimeout(heartbeat)
      client.disconnect()
    },
  }
}
