import { readFileSync } from 'node:fs'
import { Cluster, Redis, type RedisOptions, type Result } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { inTime } from '../deadline.js'
import { projectPath } from '../project.js'
import { type Ban, type BanRule, type Bans, createBans, GRACE_MS } from './bans.js'
import type { Counters } from './memory.js'
import { type Counter, NOT_BEGUN, type RateLimitResult, type Subject, storeResult } from './result.js'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** See decide.lua. */
    decide(
      numberOfKeys: number,
      keys: string[],
      questions: string,
      graceMs: number,
    ): Result<[at: number, replies: string], Context>
  }
}

const backOff = (attempt: number) => Math.min(50 * 2 ** attempt, 1_000)

/** Several URLs with commas between them are the nodes of a cluster. */
export const createClient = (urls: string): Redis | Cluster => {
  const node = {
    // Nothing waits for a connection, and nothing is sent twice: what was not answered may have been counted.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // These bound the handshake, and drop a connection that the network has silently lost.
    connectTimeout: 1_000,
    socketTimeout: 2_000,
  } satisfies RedisOptions
  const [url = '', ...more] = urls.split(',').map((url) => url.trim())
  if (more.length === 0) {
    return new Redis(url, { ...node, lazyConnect: true, enableOfflineQueue: false, retryStrategy: backOff })
  }
  // ioredis would retry these for longer than a request may wait.
  const noRetries = { retryDelayOnFailover: 0, retryDelayOnClusterDown: 0, retryDelayOnTryAgain: 0, maxRedirections: 4 }
  // The cluster names its other nodes without these.
  const { protocol, username, password } = new URL(url)
  const login = { username: decodeURIComponent(username), password: decodeURIComponent(password) }
  const redisOptions = { ...node, ...(password && login), ...(protocol === 'rediss:' && { tls: {} }) }
  const cluster = new Cluster([url, ...more], {
    ...noRetries,
    clusterRetryStrategy: backOff,
    lazyConnect: true,
    // A command for a node that is still connecting may wait as long as any other.
    enableOfflineQueue: true,
    redisOptions,
  })
  // ioredis would connect to a node only with the first command for it.
  return cluster.on('+node', (node: Redis) => node.connect().catch(() => {}))
}

/** What the script replies to one question. */
interface ScriptReply extends Partial<Ban> {
  outcome: RateLimitResult['outcome']
  windows: Counter[]
  /** Set when a refusal is late: the bans within the last day. */
  previousBans?: number
}

interface Question {
  subject: Subject
  cost: number
  /** What the gateway knows of the subject's windows. */
  known: Counters | undefined
  resolve(result: RateLimitResult): void
  reject(error: unknown): void
}

/** Counts in Redis. `consume` rejects when Redis fails or does not answer in time. */
export class RedisStore {
  readonly #redis: Redis | Cluster
  readonly #bans: Bans
  readonly #keyPrefix: string
  readonly #timeoutMs: number
  readonly #questions: Question[] = []

  constructor(redis: Redis | Cluster, rule: BanRule, keyPrefix: string, timeoutMs: number) {
    this.#redis = redis
    this.#timeoutMs = timeoutMs
    this.#keyPrefix = keyPrefix
    const connection = { storeClient: redis, rejectIfRedisNotReady: true }
    this.#bans = createBans(rule, keyPrefix, (options) => new RateLimiterRedis({ ...options, ...connection }))
    redis.defineCommand('decide', { lua: readFileSync(projectPath('src/rate-limit/decide.lua'), 'utf8') })
  }

  /** Key of a subject's windows. The braces are a hash tag: all keys of a subject live in one slot of a cluster. */
  key(id: string): string {
    return `${this.#keyPrefix}:{${id}}`
  }

  /** What is asked in one turn of the event loop travels in one command, because each command costs. */
  consume(subject: Subject, cost: number, known: Counters | undefined): Promise<RateLimitResult> {
    return new Promise((resolve, reject) => {
      if (this.#questions.push({ subject, cost, known, resolve, reject }) === 1) setImmediate(() => this.#send())
    })
  }

  #send(): void {
    const questions = this.#questions.splice(0)
    // In a cluster the keys of two subjects may live on two nodes.
    const batches = this.#redis instanceof Cluster ? questions.map((question) => [question]) : [questions]
    for (const batch of batches)
      this.inTime(this.#ask(batch)).catch((error) => {
        for (const { reject } of batch) reject(error)
      })
  }

  /** Rejects when Redis does not answer in time. ioredis' commandTimeout would count stalls of our own event loop, too. */
  inTime<T>(answer: Promise<T>): Promise<T> {
    return inTime(answer, this.#timeoutMs, () => new Error(`Redis did not answer within ${this.#timeoutMs} ms`))
  }

  async #ask(batch: Question[]): Promise<void> {
    if (this.#redis.status !== 'ready') throw new Error('Redis is not connected')
    const keys = batch.flatMap(({ subject: { id } }) => [this.key(id), ...this.#bans.keys(`{${id}}`)])
    const questions = batch.map(({ subject, cost, known }) => {
      const windows = subject.windows.map(({ name, limit, seconds }) => {
        const { used, resetAt } = known?.[name] ?? NOT_BEGUN
        return { name, limit, ms: seconds * 1000, used, resetAt }
      })
      return { cost, windows }
    })
    const [at, json] = await this.#redis.decide(keys.length, keys, JSON.stringify(questions), GRACE_MS)
    const replies: ScriptReply[] = JSON.parse(json)
    for (const [i, { subject, cost, resolve, reject }] of batch.entries()) {
      const { outcome, windows, previousBans, ...ban } = replies[i] as ScriptReply
      const result = Object.assign(storeResult(subject, cost, { at, outcome }, windows), ban)
      if (!subject.bannable || previousBans === undefined) resolve(result)
      else {
        const strike = this.#bans.strike(`{${subject.id}}`, at, previousBans)
        strike.then((started) => resolve(Object.assign(result, started)), reject)
      }
    }
  }
}
