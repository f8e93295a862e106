import { RateLimiterRes } from 'rate-limiter-flexible'

export type WindowName = 'minute' | 'day' | 'address'

/** Who is counted, in which windows. `id` is `key:12` or `address:203.0.113.7`. One or two windows. */
export interface Client {
  id: string
  windows: { name: WindowName; limit: number; seconds: number }[]
  bannable: boolean
}

/** One window as it stands after the decision. A window not yet begun: its full limit, and now plus its length. */
export interface WindowState {
  name: WindowName
  limit: number
  seconds: number
  remaining: number
  /** Unix epoch in milliseconds; the same for every request and every gateway while the window lasts. */
  resetAt: number
}

/** `at`: when it was decided, by the clock that times the windows, which may not be this machine's. */
export type Verdict = { at: number; windows: WindowState[] } & (
  | { outcome: 'allowed' }
  /** `bannedUntil` is set when this very refusal brought the ban. */
  | { outcome: 'limited'; refusedBy: WindowName[]; bannedUntil?: number }
  | { outcome: 'banned'; until: number }
)

/** What a ban takes and how long it lasts. */
export interface BanRule {
  /** Strikes within a minute that bring a ban; 0 switches bans off. */
  after: number
  /** Length of the first one. */
  seconds: number
  /** How long the store carries a new ban, until every gateway has read it from its row. */
  carrySeconds: number
}

/** A strike is a refusal that comes later than this after its window's first one: what was in flight is no abuse. */
export const GRACE_MS = 1_000
/** Strikes are counted in a window of their own. */
export const STRIKES_MS = 60_000
/** The longest ban, and how long after its end a ban still doubles the next. */
export const DAY_MS = 86_400_000

export const ALLOWED = 0
export const LIMITED = 1
export const BANNED = 2

/**
 * How both stores answer, so that one reading serves both: the outcome, its time, the ban's true end and the end of the
 * mark that carries it (both 0 without a ban), then for each window what is used and when it ends.
 */
export type Reply = number[]

/** The library's result, of several windows at once. Like the library's own it resolves, or rejects as a refusal. */
export class Judged extends RateLimiterRes {
  readonly verdict: Verdict
  /** Until when the store carries the ban that the verdict tells of. */
  readonly carriedUntil: number

  constructor({ windows: asked }: Client, cost: number, [outcome, at = 0, until = 0, carried = 0, ...counts]: Reply) {
    const windows = asked.map(({ name, limit, seconds }, i) => {
      const used = counts[2 * i] ?? 0
      return { name, limit, seconds, remaining: Math.max(0, limit - used), resetAt: counts[2 * i + 1] ?? 0 }
    })
    super(Math.min(...windows.map(({ remaining }) => remaining)))
    this.carriedUntil = carried
    if (outcome === BANNED) this.verdict = { at, outcome: 'banned', windows, until }
    else if (outcome === ALLOWED) this.verdict = { at, outcome: 'allowed', windows }
    else {
      const refusedBy = windows.filter(({ remaining }) => remaining < cost).map(({ name }) => name)
      this.verdict = { at, outcome: 'limited', windows, refusedBy, ...(until && { bannedUntil: until }) }
    }
  }
}
