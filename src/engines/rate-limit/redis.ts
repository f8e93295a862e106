import { readFileSync } from 'node:fs'
import { Cluster, type Redis, type Result } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { inTime } from '../../deadline.js'
import { projectPath } from '../../project.js'
import { type BanRule, type Bans, createBans, GRACE_MS } from './bans.js'
import type { Counters } from './memory.js'
import { NOT_BEGUN, type ObserveCommand, type RateLimitResult, type Subject, storeResult } from './result.js'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** See decide.lua. */
    decide(numberOfKeys: number, keys: string[], questions: string, graceMs: number): Result<number[], Context>
  }
}

/** As the script numbers them; the third is a refusal that comes late. */
const OUTCOMES = ['allowed', 'limited', 'limited', 'banned'] as const
const [LATE, BANNED, FOREIGN] = [2, 3, 4]

/** Whether another program has written under the names of a subject. It concerns no other one. */
export const isForeign = (error: unknown) => /^WRONGTYPE|is not an integer/.test((error as Error).message)

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
  observe: ObserveCommand | undefined
  readonly #bans: Bans
  readonly #questions: Question[] = []

  constructor(
    private readonly redis: Redis | Cluster,
    rule: BanRule,
    private readonly keyPrefix: string,
    private readonly timeoutMs: number,
  ) {
    const connection = { storeClient: redis, rejectIfRedisNotReady: true }
    this.#bans = createBans(rule, keyPrefix, (options) => new RateLimiterRedis({ ...options, ...connection }))
    redis.defineCommand('decide', { lua: readFileSync(projectPath('src/engines/rate-limit/decide.lua'), 'utf8') })
  }

  /** Key of a subject's windows. The braces are a hash tag: all keys of a subject live in one slot of a cluster. */
  key(id: string): string {
    return `${this.keyPrefix}:{${id}}`
  }

  /** What is asked in one turn of the event loop travels in one command, because each command costs. */
  consume(subject: Subject, cost: number, known: Counters | undefined): Promise<RateLimitResult> {
    return new Promise((resolve, reject) => {
      if (this.#questions.push({ subject, cost, known, resolve, reject }) === 1) setImmediate(() => this.#send())
    })
  }

  /** Fails where a strike would. */
  probeBans = (id: string) => this.inTime(this.#bans.probe(`{${id}}`))

  #send(): void {
    const questions = this.#questions.splice(0)
    // In a cluster the keys of two subjects may live on two nodes.
    const batches = this.redis instanceof Cluster ? questions.map((question) => [question]) : [questions]
    for (const batch of batches)
      this.inTime(this.#ask(batch)).catch((error) => {
        for (const { reject } of batch) reject(error)
      })
  }

  /** Rejects when Redis does not answer in time. ioredis' commandTimeout would count stalls of our own event loop, too. */
  inTime<T>(answer: Promise<T>): Promise<T> {
    const began = performance.now()
    const told = inTime(answer, this.timeoutMs, () => new Error(`Redis did not answer within ${this.timeoutMs} ms`))
    const ended = (result: 'answered' | 'failed') => () => this.observe?.((performance.now() - began) / 1000, result)
    told.then(ended('answered'), ended('failed'))
    return told
  }

  async #ask(batch: Question[]): Promise<void> {
    if (this.redis.status !== 'ready') throw new Error('Redis is not connected')
    const keys: string[] = []
    const questions: (string | number)[] = []
    for (const { subject, cost, known } of batch) {
      keys.push(this.key(subject.id), ...this.#bans.keys(`{${subject.id}}`))
      questions.push(cost, subject.windows.length)
      for (const { name, limit, seconds } of subject.windows) {
        const { used, resetAt } = known?.[name] ?? NOT_BEGUN
        questions.push(name, limit, seconds * 1000, used, resetAt)
      }
    }
    const replies = await this.redis.decide(keys.length, keys, JSON.stringify(questions), GRACE_MS)
    let read = 0
    const next = () => replies[read++] as number
    const at = next()
    for (const { subject, cost, resolve, reject } of batch) {
      const code = next()
      if (code === FOREIGN) {
        reject(new Error('WRONGTYPE'))
        continue
      }
      const outcome = OUTCOMES[code] as RateLimitResult['outcome']
      const previousBans = code === LATE ? next() : undefined
      const ban = code === BANNED && { bannedUntil: next(), banCarriedMs: next() }
      const windows = subject.windows.map(() => ({ used: next(), resetAt: next() }))
      const result = Object.assign(storeResult(subject, cost, { at, outcome }, windows), ban)
      if (!subject.bannable || previousBans === undefined) resolve(result)
      else {
        const strike = this.inTime(this.#bans.strike(`{${subject.id}}`, at, previousBans))
        strike.then((started) => resolve(Object.assign(result, started)), reject)
      }
    }
  }
}
