import type { WindowName } from '../../src/rate-limit/index.js'

// The rules of quotas and bans once more, as plainly as they can be put. When a request was judged is known only as
// "between its sending and its answer", so every moment is a span, and what follows from it too. There is no other
// tolerance: where a span leaves open what must happen, the model says so instead of guessing.

/** Unix milliseconds, from the earliest to the latest that it can be. */
export type Span = readonly [from: number, to: number]

const plus = ([from, to]: Span, ms: number): Span => [from + ms, to + ms]

export class Undecided extends Error {}

/** Whether `a` is later than `b`; undecided where the spans overlap. */
function later(a: Span, b: Span): boolean {
  if (a[0] > b[1]) return true
  if (a[1] <= b[0]) return false
  throw new Undecided()
}

export interface Expected {
  outcome: 'allowed' | 'limited' | 'banned'
  windows: { name: WindowName; limit: number; seconds: number; remaining: number; end: Span }[]
  /** Each window that may be the binding one: two where their ends cannot be told apart. */
  binding: Expected['windows']
}

interface Held {
  used: number
  end: Span
  refused?: Span
}

export class Account {
  /** The limits, which an admin may change. */
  limits: { name: WindowName; limit: number; seconds: number }[]
  readonly #ban: { after: number; seconds: number } | undefined
  readonly #held = new Map<WindowName, Held>()
  #strikes = 0
  #bans = 0
  bannedUntil: Span = [0, 0]

  constructor(limits: Account['limits'], ban?: { after: number; seconds: number }) {
    this.limits = limits
    this.#ban = ban
  }

  /** What a request of that cost must be answered. */
  take(cost: number, now: Span): Expected {
    const held = (name: WindowName) => {
      const window = this.#held.get(name)
      if (!window || later(now, plus(window.end, -1))) return undefined
      return window
    }
    const banned = !later(now, plus(this.bannedUntil, -1))
    const narrowest = Math.min(...this.limits.map(({ limit }) => limit))
    // Dearer than a whole window: refused for what it is, and nobody waits for anything.
    const asked = banned || cost > narrowest ? 0 : cost
    const full = this.limits.filter(({ name, limit }) => asked > 0 && (held(name)?.used ?? 0) + asked > limit)

    if (full.length > 0)
      this.#refuse(
        full.flatMap(({ name }) => held(name) ?? []),
        now,
      )
    else if (asked > 0)
      for (const { name, seconds } of this.limits) {
        const window = held(name) ?? { used: 0, end: plus(now, seconds * 1000) }
        this.#held.set(name, { ...window, used: window.used + asked })
      }

    const windows = this.limits.map(({ name, limit, seconds }) => {
      const { used = 0, end = plus(now, seconds * 1000) } = held(name) ?? {}
      return { name, limit, seconds, remaining: Math.max(0, limit - used), end }
    })
    const refusing = windows.filter(({ name }) => full.some((window) => window.name === name))
    const fewest = Math.min(...windows.map(({ remaining }) => remaining))
    const tied = refusing.length > 0 ? refusing : windows.filter(({ remaining }) => remaining === fewest)
    const last = Math.max(...tied.map(({ end }) => end[0]))
    const binding = tied.filter(({ end }) => end[1] >= last)
    if (!banned) return { outcome: full.length > 0 ? 'limited' : 'allowed', windows, binding }
    const shut = <T extends object>(window: T) => ({ ...window, remaining: 0, end: this.bannedUntil })
    return { outcome: 'banned', windows: windows.map(shut), binding: binding.map(shut) }
  }

  /** How long to wait, so that nothing is asked on the very edge of a window, a strike or a ban. */
  edge(now: number, margin = 40): number {
    const edges = [...this.#held.values()].flatMap(({ end, refused = [0, 0] as const }) => [end, plus(refused, 1000)])
    const near = [...edges, this.bannedUntil].filter(([from, to]) => from - margin < now && now <= to + 1)
    return Math.max(0, ...near.map(([, to]) => to + 2 - now))
  }

  /** A window, or a ban, keeps its end: what one answer has shown of it holds for all that follow. */
  saw(name: WindowName | undefined, reset: number) {
    const narrowed = ([from, to]: Span): Span => [Math.max(from, reset * 1000 - 999), Math.min(to, reset * 1000)]
    const window = name && this.#held.get(name)
    if (window) window.end = narrowed(window.end)
    else if (!name) this.bannedUntil = narrowed(this.bannedUntil)
  }

  /** A refusal is a strike when it comes more than a second after its window's first. */
  #refuse(windows: Held[], now: Span) {
    const strike = windows.some(({ refused }) => refused && later(now, plus(refused, 1000)))
    for (const window of windows) window.refused ??= now
    if (!strike || !this.#ban || ++this.#strikes < this.#ban.after) return
    this.#strikes = 0
    this.bannedUntil = plus(now, this.#ban.seconds * 1000 * 2 ** this.#bans++)
  }
}
