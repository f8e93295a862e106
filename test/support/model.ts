import type { WindowName } from '../../src/engines/rate-limit/index.js'

// A simple model of quotas, strikes and bans that every store is compared with. A test knows only that a request was decided
// between sending it and receiving the response, so every time is a span. There is no other tolerance: if a span leaves the
// result open, the model throws Undecided.

/** Epoch milliseconds, from the earliest to the latest that it can be. */
export type Span = readonly [from: number, to: number]

const NEVER: Span = [0, 0]
const SECOND = 1_000
const MINUTE = 60_000
const DAY = 86_400_000

const plus = ([from, to]: Span, ms: number): Span => [from + ms, to + ms]
export const exactly = (ms: number): Span => [ms, ms]

export class Undecided extends Error {}

/** Whether `a` is later than `b`; undecided if the spans overlap. */
function later(a: Span, b: Span): boolean {
  if (a[0] > b[1]) return true
  if (a[1] <= b[0]) return false
  throw new Undecided()
}

/** Whether something that ends at `end` still lasts. */
const lasts = (end: Span, now: Span) => !later(now, plus(end, -1))

export interface Expected {
  outcome: 'allowed' | 'limited' | 'banned'
  windows: { name: WindowName; limit: number; seconds: number; remaining: number; end: Span }[]
  /** Each window that may be the binding one: two if their ends cannot be distinguished. */
  binding: Expected['windows']
  /** The end of the ban, if the subject is banned or this refusal bans it. */
  bannedUntil?: Span
}

interface Held {
  used: number
  end: Span
  refused?: Span
}

export class SubjectModel {
  /** The limits, which an admin may change. */
  limits: { name: WindowName; limit: number; seconds: number }[]
  readonly #ban: { after: number; seconds: number; carrySeconds?: number } | undefined
  readonly #held = new Map<WindowName, Held>()
  #strikes = { count: 0, end: NEVER }
  #bans = { count: 0, end: NEVER }
  #bannedUntil = NEVER
  #carriedUntil = NEVER

  /** Without `ban` the subject is never banned. */
  constructor(limits: SubjectModel['limits'], ban?: { after: number; seconds: number; carrySeconds?: number }) {
    this.limits = limits
    this.#ban = ban
  }

  get bannedUntil() {
    return this.#bannedUntil
  }

  ban(until: Span, carriedUntil = until) {
    this.#bannedUntil = until
    this.#carriedUntil = carriedUntil
  }

  /** The expected result of a request with this cost. */
  consume(cost: number, now: Span): Expected {
    const held = (name: WindowName) => {
      const window = this.#held.get(name)
      return window && lasts(window.end, now) ? window : undefined
    }
    const banned = lasts(this.#carriedUntil, now)
    const effectiveCost = banned ? 0 : cost
    const full = this.limits.filter(
      ({ name, limit }) => effectiveCost > 0 && (held(name)?.used ?? 0) + effectiveCost > limit,
    )
    const refusing = full.flatMap(({ name }) => held(name) ?? [])
    const bans = full.length > 0 && this.#refuse(refusing, now)
    if (full.length === 0 && effectiveCost > 0)
      for (const { name, seconds } of this.limits) {
        const window = held(name) ?? { used: 0, end: plus(now, seconds * SECOND) }
        this.#held.set(name, { ...window, used: window.used + effectiveCost })
      }

    const windows = this.limits.map(({ name, limit, seconds }) => {
      const { used = 0, end = plus(now, seconds * SECOND) } = held(name) ?? {}
      return { name, limit, seconds, remaining: Math.max(0, limit - used), end }
    })
    const refused = windows.filter(({ name }) => full.some((window) => window.name === name))
    const fewest = Math.min(...windows.map(({ remaining }) => remaining))
    const tied = refused.length > 0 ? refused : windows.filter(({ remaining }) => remaining === fewest)
    const last = Math.max(...tied.map(({ end }) => end[0]))
    const binding = tied.filter(({ end }) => end[1] >= last)
    const bannedUntil = banned || bans ? this.#bannedUntil : undefined
    return { outcome: banned ? 'banned' : full.length > 0 ? 'limited' : 'allowed', windows, binding, bannedUntil }
  }

  /** Whether nothing is left in a window. */
  isUsedUp(now: Span): boolean {
    return this.limits.some(({ name, limit }) => {
      const window = this.#held.get(name)
      return window && lasts(window.end, now) && window.used >= limit
    })
  }

  /** How long to wait, so that nothing is effectiveCost on the very edge of a window, a strike or a ban. */
  edge(now: number, margin = 40): number {
    const edges = [...this.#held.values()].flatMap(({ end, refused = NEVER }) => [end, plus(refused, SECOND)])
    const near = [...edges, this.#carriedUntil].filter(([from, to]) => from - margin < now && now <= to + 1)
    return Math.max(0, ...near.map(([, to]) => to + 2 - now))
  }

  /** A window or a ban keeps its end, so the end in one response narrows it for all later ones. */
  saw(name: WindowName | undefined, reset: number) {
    const narrowed = ([from, to]: Span): Span => [Math.max(from, reset * 1000 - 999), Math.min(to, reset * 1000)]
    const window = name && this.#held.get(name)
    if (window) window.end = narrowed(window.end)
    else if (!name) this.ban(narrowed(this.#bannedUntil))
  }

  /** A refusal is a strike if it comes more than a second after the first in its window. Returns true if it starts a ban. */
  #refuse(windows: Held[], now: Span): boolean {
    const strike = windows.some(({ refused }) => refused && later(now, plus(refused, SECOND)))
    for (const window of windows) window.refused ??= now
    if (!strike || !this.#ban) return false
    if (!lasts(this.#strikes.end, now)) this.#strikes = { count: 0, end: plus(now, MINUTE) }
    if (++this.#strikes.count < this.#ban.after) return false
    const previous = lasts(this.#bans.end, now) ? this.#bans.count : 0
    const length = Math.min(this.#ban.seconds * SECOND * 2 ** previous, DAY)
    const { carrySeconds = Number.POSITIVE_INFINITY } = this.#ban
    this.ban(plus(now, length), plus(now, Math.min(length, carrySeconds * SECOND)))
    this.#strikes = { count: 0, end: NEVER }
    this.#bans = { count: previous + 1, end: plus(this.#bannedUntil, DAY) }
    return true
  }
}
