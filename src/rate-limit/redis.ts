import { Cluster, Redis, type RedisOptions, type Result } from 'ioredis'
import { LRUCache } from 'lru-cache'
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { Logger } from '../log.js'
import type { MemoryQuota } from './memory.js'
import { judge } from './redis-script.js'
import { type BanRule, type Client, Judged, type Reply } from './result.js'

type Settle = (result: RateLimiterRes) => void

declare module 'rate-limiter-flexible' {
  /** The steps of `consume` that a store of its own kind replaces; not in the library's types. */
  interface RateLimiterRedis {
    _isRedisReady(key: string, readOnly: boolean): boolean
    _upsert(key: string, points: number, ms: number, force: boolean, options: { client: Client }): Promise<unknown>
    _afterConsume(resolve: Settle, reject: Settle, key: string, points: number, stored: unknown): void
    _handleError(error: unknown, method: string, resolve: Settle, reject: Settle, parameters: [key: string]): void
  }
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** Defined by RateLimiterRedis from `customIncrTtlLuaScript`. */
    rlflxIncr(...keyAndArguments: (string | number)[]): Result<Reply, Context>
  }
}

/** The longest that a request waits for Redis. */
const PATIENCE_MS = 100
const HEARTBEAT_MS = 500
/** Clients of whom a gateway remembers the last verdict: bounds the memory, not the clients. */
const REMEMBERED = 20_000

const AWAY = new Error('Redis is away')

/**
 * Of our own instead of ioredis' commandTimeout, because that one counts against Redis when it was our event loop that
 * was busy, with the answer already in the socket. Counted in parts, a long stall of ours counts as one of them only,
 * and what has arrived meanwhile is read before the next.
 */
const inTime = <T>(answer: Promise<T>) =>
  new Promise<T>((resolve, reject) => {
    let parts = 4
    const wait = () => {
      if (parts-- > 0) timer = setTimeout(wait, PATIENCE_MS / 4 - 1)
      else setImmediate(() => reject(new Error(`Redis did not answer within ${PATIENCE_MS} ms`)))
    }
    let timer: NodeJS.Timeout | undefined
    wait()
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })

const backOff = (attempt: number) => Math.min(50 * 2 ** attempt, 1_000)

/** Several URLs with commas between them are the nodes of a cluster. */
export const connect = (urls: string): Redis | Cluster => {
  const node = {
    // Nothing waits for a connection, and nothing is sent twice: what was not answered may have been counted.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // These bound the handshake, and let a connection go that the network has silently dropped.
    connectTimeout: 1_000,
    socketTimeout: 2_000,
  } satisfies RedisOptions
  const [url = '', ...more] = urls.split(',').map((url) => url.trim())
  if (more.length === 0) {
    return new Redis(url, { ...node, lazyConnect: true, enableOfflineQueue: false, retryStrategy: backOff })
  }
  // ioredis would retry these for longer than a request may wait.
  const noRetries = { retryDelayOnFailover: 0, retryDelayOnClusterDown: 0, retryDelayOnTryAgain: 0, maxRedirections: 4 }
  // The nodes that the cluster names by itself come without these.
  const { protocol, username, password } = new URL(url)
  const login = { username: decodeURIComponent(username), password: decodeURIComponent(password) }
  const redisOptions = { ...node, ...(password && login), ...(protocol === 'rediss:' && { tls: {} }) }
  const cluster = new Cluster([url, ...more], {
    ...noRetries,
    clusterRetryStrategy: backOff,
    lazyConnect: true,
    // A command for a node that is still connecting may wait its 100 ms.
    enableOfflineQueue: true,
    redisOptions,
  })
  // ioredis would connect to a node only with the first command for it.
  return cluster.on('+node', (node: Redis) => node.connect().catch(() => {}))
}

/**
 * The library's Redis limiter with its own steps replaced: the script judges several windows, strikes and bans at once.
 * The library still decides what is a refusal and what a failure, and hands failures to the insurance limiter.
 */
export class RedisQuota extends RateLimiterRedis {
  readonly #redis: Redis | Cluster
  readonly #memory: MemoryQuota
  readonly #log: Logger
  readonly #ban: BanRule
  readonly #lastSaid = new LRUCache<string, Judged>({ max: REMEMBERED })
  #heartbeat?: NodeJS.Timeout
  #closed = false
  #away = false
  /** In the slot that failed last: a cluster may be away in part. */
  #probe: string

  constructor(redis: Redis | Cluster, memory: MemoryQuota, ban: BanRule, log: Logger) {
    super({
      storeClient: redis,
      insuranceLimiter: memory,
      keyPrefix: memory.keyPrefix,
      customIncrTtlLuaScript: judge,
      rejectIfRedisNotReady: true,
      // Limits and lengths come with each client; the library insists on some of its own.
      points: 1,
      duration: 1,
    })
    this.#redis = redis
    this.#memory = memory
    this.#ban = ban
    this.#log = log
    this.#probe = this.getKey('probe')
    // The first to know, and with the reason. Without a listener the event would end the process.
    redis.on('error', (error) => this.#lose(error))
  }

  get away(): boolean {
    return this.#away
  }

  async open(): Promise<void> {
    await this.#redis.connect().catch(() => {})
    await this.#beat()
  }

  close(): void {
    this.#closed = this.#away = true
    clearTimeout(this.#heartbeat)
    this.#redis.disconnect()
  }

  /** Once Redis has failed, no request touches it until the heartbeat has found it back. */
  override _isRedisReady(key: string, readOnly: boolean): boolean {
    return !this.#away && super._isRedisReady(key, readOnly)
  }

  override async _upsert(key: string, cost: number, _ms: number, _force: boolean, options: { client: Client }) {
    if (!this._isRedisReady(key, false)) throw AWAY
    const { client } = options
    const { after, seconds, carrySeconds } = this.#ban
    const asked = [key, cost, client.bannable ? after : 0, seconds * 1000, carrySeconds * 1000] as (string | number)[]
    const said = this.#lastSaid.get(key)?.verdict.windows
    for (const { name, limit, seconds } of client.windows) {
      // What was taken while Redis was away, else what Redis last said: a restart may have lost it without being noticed.
      const alone = this.#memory.taken(key, name)
      const last = said?.find((window) => window.name === name)
      const used = alone?.value ?? (last ? last.limit - last.remaining : 0)
      asked.push(name, limit, seconds * 1000, used, alone?.expiresAt ?? last?.resetAt ?? 0)
    }
    this.#gather()
    const judged = new Judged(client, cost, await inTime(this.#redis.rlflxIncr(...asked)))
    this.#memory.forget(key, client)
    return judged
  }

  /** Decisions that are asked for in one turn of the event loop leave in one packet: writing is what costs most here. */
  #gather() {
    const stream = this.#redis instanceof Redis ? this.#redis.stream : undefined
    if (!stream || stream.writableCorked > 0) return
    stream.cork()
    setImmediate(() => stream.uncork())
  }

  override _afterConsume(resolve: Settle, reject: Settle, key: string, _cost: number, judged: Judged): void {
    this.#lastSaid.set(key, judged)
    if (judged.verdict.outcome === 'allowed') resolve(judged)
    else reject(judged)
  }

  /** The library's insurance starts from zero; ours goes on from what Redis last said of the client. */
  override _handleError(error: unknown, method: string, resolve: Settle, reject: Settle, parameters: [key: string]) {
    if (!(error instanceof RateLimiterRes)) {
      const [key] = parameters
      this.#lose(error, this.getKey(key))
      const judged = this.#lastSaid.get(this.getKey(key))
      if (judged) this.#memory.recall(key, judged)
    }
    super._handleError(error, method, resolve, reject, parameters)
  }

  #lose(error: unknown, key?: string): void {
    if (this.#away) return
    this.#away = true
    if (key) this.#probe = `${key}:probe`
    this.#log.warn({ err: error }, 'Redis is away: this gateway counts alone until it is back')
  }

  /** A write, because a replica, a full or a half-loaded Redis still answers a ping. Also finds Redis gone when idle. */
  async #beat(): Promise<void> {
    try {
      await inTime(this.#redis.set(this.#probe, '', 'PX', HEARTBEAT_MS))
      if (this.#away && !this.#closed) this.#log.info('Redis is back: counting in it again')
      this.#away = this.#closed
    } catch (error) {
      this.#lose(error)
      // After a failover the old address may lead to the new master. Once a beat, not once for each request in flight.
      if (this.#redis instanceof Redis && /^READONLY/.test((error as Error).message)) this.#redis.disconnect(true)
    }
    if (!this.#closed) this.#heartbeat = setTimeout(() => this.#beat(), HEARTBEAT_MS).unref()
  }
}
