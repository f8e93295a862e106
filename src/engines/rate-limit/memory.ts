import { RateLimiterMemory } from 'rate-limiter-flexible'
import { type BanRule, type Bans, createBans, GRACE_MS } from './bans.js'
import { type Counter, type RateLimitResult, type Subject, storeResult, type WindowName } from './result.js'

/** By window; `refusedAt` is the time of the first refusal. */
export type Counters = { [name in WindowName]?: Counter & { refusedAt?: number } }

/**
 * Counts in this process. A decision is one synchronous step over all windows, which makes it atomic. Windows live in a
 * Map without timers, because RateLimiterMemory answers through promises and with remaining time instead of exact ends.
 */
export class MemoryStore {
  readonly #bans: Bans
  readonly #subjects = new Map<string, Counters>()
  #purgeAt = 1_000

  constructor(rule: BanRule, keyPrefix: string) {
    this.#bans = createBans(rule, keyPrefix, (options) => new RateLimiterMemory(options))
  }

  /** Subjects held, those with ended windows included: at most twice as many as have lately been live. */
  get size(): number {
    return this.#subjects.size
  }

  async consume(subject: Subject, cost: number): Promise<RateLimitResult> {
    const { id, windows, bannable } = subject
    const ban = bannable ? await this.#bans.find(id) : undefined
    const at = Date.now()
    const known = this.#subjects.get(id)
    const counters = windows.map(({ name, seconds }) => {
      const counter = known?.[name]
      if (!counter || counter.resetAt <= at) return undefined
      // The clock may have been set back.
      counter.resetAt = Math.min(counter.resetAt, at + seconds * 1000)
      return counter
    })
    const units = ban ? 0 : cost
    let refused = false
    let late = false
    for (const [i, { limit }] of windows.entries()) {
      const counter = counters[i]
      if (units === 0 || (counter?.used ?? 0) + units <= limit) continue
      refused = true
      // A window that has not begun has refused nothing before: the cost alone exceeds it.
      if (!counter) continue
      counter.refusedAt ??= at
      if (at - counter.refusedAt > GRACE_MS) late = true
    }
    if (units > 0 && !refused)
      for (const [i, { name, seconds }] of windows.entries()) {
        counters[i] ??= this.#begin(id, name, at + seconds * 1000)
        counters[i].used += units
      }
    const outcome = ban ? 'banned' : refused ? 'limited' : 'allowed'
    const result = storeResult(subject, cost, { at, outcome }, counters)
    const started = bannable && late ? await this.#bans.strike(id, at, await this.#bans.count(id)) : undefined
    return Object.assign(result, ban ?? started)
  }

  async isBanned({ id, bannable }: Subject): Promise<boolean> {
    return bannable && (await this.#bans.find(id)) !== undefined
  }

  /** The windows of a subject, including ended ones. */
  counters(id: string): Counters | undefined {
    return this.#subjects.get(id)
  }

  left({ id, windows }: Subject): number {
    const [counters, now] = [this.#subjects.get(id), Date.now()]
    let left = Number.POSITIVE_INFINITY
    for (const { name, limit } of windows) {
      const counter = counters?.[name]
      left = Math.min(left, counter && counter.resetAt > now ? limit - counter.used : 0)
    }
    return left
  }

  /** Copies the decision of another store, to continue from there if that store fails. */
  adopt({ id }: Subject, { at, windows, bannedUntil, banCarriedMs }: RateLimitResult): void {
    const counters = this.#subjects.get(id)
    for (const { name, limit, seconds, remaining, resetAt } of windows) {
      const used = limit - remaining
      const counter = counters?.[name]
      // A later window is known already, unless the clock of the store has been set back since.
      if (used === 0 || (counter && counter.resetAt > resetAt && counter.resetAt <= at + seconds * 1000)) continue
      if (counter?.resetAt === resetAt) counter.used = Math.max(counter.used, used)
      else this.#begin(id, name, resetAt).used = used
    }
    if (bannedUntil && banCarriedMs && banCarriedMs > 0) void this.#bans.carry(id, { bannedUntil, banCarriedMs })
  }

  #begin(id: string, name: WindowName, resetAt: number): Counter & { refusedAt?: number } {
    let counters = this.#subjects.get(id)
    if (!counters) {
      if (this.#subjects.size >= this.#purgeAt) this.#purge()
      counters = {}
      this.#subjects.set(id, counters)
    }
    const counter = { used: 0, resetAt }
    counters[name] = counter
    return counter
  }

  /** Drops what has ended. Waiting until the live subjects have doubled keeps the cost per new subject constant. */
  #purge(): void {
    const now = Date.now()
    for (const [id, counters] of this.#subjects)
      if (Object.values(counters).every(({ resetAt }) => resetAt <= now)) this.#subjects.delete(id)
    this.#purgeAt = Math.max(1_000, 2 * this.#subjects.size)
  }
}
