import type { Logger } from '../observe/index.js'

export type WindowName = 'minute' | 'day' | 'address' | 'free'

/** Who is counted, and in which windows. `id` is `key:12` or `address:203.0.113.7`. */
export interface Subject {
  id: string
  windows: Pick<WindowState, 'name' | 'limit' | 'seconds'>[]
  bannable: boolean
}

/** One window right after the decision. A window that has not begun shows its full limit, and now plus its length. */
export interface WindowState {
  name: WindowName
  limit: number
  seconds: number
  remaining: number
  /** Epoch milliseconds; the same on every gateway for as long as the window lasts. */
  resetAt: number
}

export interface Ban {
  /** Its end in epoch milliseconds. */
  bannedUntil: number
  /** How much longer the store carries it. */
  banCarriedMs: number
}

/** With a ban that is in force or, if `limited`, that this very refusal has started. */
export interface RateLimitResult extends Partial<Ban> {
  outcome: 'allowed' | 'limited' | 'banned'
  /** What was taken from every window; 0 after a refusal. */
  cost: number
  /** Time of the decision in epoch milliseconds, by the clock of the store, which may differ from this machine's. */
  at: number
  windows: WindowState[]
  /** The windows that refused; empty unless `outcome` is `limited`. */
  refusedBy: WindowName[]
}

/** What a store holds of one window. `resetAt` is in epoch milliseconds; 0 or in the past: the window has not begun. */
export interface Counter {
  used: number
  resetAt: number
}

export const NOT_BEGUN: Counter = { used: 0, resetAt: 0 }

/** The result, from the counters as they are after the decision. */
export function storeResult(
  { windows }: Subject,
  cost: number,
  { at, outcome }: Pick<RateLimitResult, 'at' | 'outcome'>,
  counters: (Counter | undefined)[],
): RateLimitResult {
  const states = windows.map(({ name, limit, seconds }, i) => {
    const { used, resetAt } = counters[i] ?? NOT_BEGUN
    return { name, limit, seconds, remaining: Math.max(0, limit - used), resetAt: resetAt || at + seconds * 1000 }
  })
  const taken = outcome === 'allowed' ? cost : 0
  const refusing = outcome === 'limited' ? states.filter(({ remaining }) => remaining < cost) : []
  return { outcome, cost: taken, at, windows: states, refusedBy: refusing.map(({ name }) => name) }
}

export interface RateLimiter {
  /**
   * Takes `cost` from every window of the subject, or from none. Cost 0 only reads, and is never limited.
   * Never rejects, and waits for each answer of Redis no longer than `redisTimeoutMs`: one, or two if a refusal is a strike.
   */
  consume(subject: Subject, cost: number): Promise<RateLimitResult>
  /** What a subject is known to have left in each of its windows, as of the latest decision; 0 if nothing is known. */
  left(subject: Subject): number
  /** `degraded`: Redis is configured but unreachable, and this gateway counts alone. */
  readonly state: 'memory' | 'redis' | 'degraded'
  /** Tells how long each command to Redis takes. */
  observeCommands?(observe: ObserveCommand): void
  close(): Promise<void>
}

export type ObserveCommand = (seconds: number, result: 'answered' | 'failed') => void

export interface RateLimiterOptions {
  /** Without it counters live in memory. For its forms see url.ts. */
  redisUrl?: string
  /** Strikes within a minute that ban a subject (0: never), and the length of its first ban. */
  banAfter: number
  banSeconds: number
  log: Logger
  /** Seconds for which a new ban is carried to the other gateways: at least the time they take to read it from its row. */
  banCarrySeconds?: number
  /** The longest that a request waits for Redis, in milliseconds; default: 100. */
  redisTimeoutMs?: number
  keyPrefix?: string
}
