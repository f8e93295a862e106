import type { RateLimiterAbstract } from 'rate-limiter-flexible'
import type { Ban, RateLimiterOptions } from './result.js'

export type BanRule = Required<Pick<RateLimiterOptions, 'banAfter' | 'banSeconds' | 'banCarrySeconds'>>

/** A refusal is a strike when it comes later than this after the first one in its window: a burst is no abuse. */
export const GRACE_MS = 1_000
export const STRIKES_MS = 60_000
/** The longest ban, and how long after its end a ban still doubles the next one. */
export const DAY_MS = 86_400_000

const DAY_SECONDS = DAY_MS / 1000

export type Bans = ReturnType<typeof createBans>

/** The rule of strikes and bans over three limiters of the library, in whichever store they count. */
export function createBans(
  { banAfter, banSeconds, banCarrySeconds }: BanRule,
  keyPrefix: string,
  createLimiter: (options: { keyPrefix: string; points: number; duration: number }) => RateLimiterAbstract,
) {
  const create = (name: string, seconds: number) =>
    createLimiter({ keyPrefix: `${keyPrefix}:${name}`, points: 0, duration: seconds })
  const strikes = create('strikes', STRIKES_MS / 1000)
  /** Bans within the last day. */
  const counts = create('bans', DAY_SECONDS)
  /** The end of the current ban in epoch milliseconds, for as long as the ban is carried. */
  const marks = create('ban', DAY_SECONDS)

  const carry = (id: string, { bannedUntil, banCarriedMs }: Ban) => marks.set(id, bannedUntil, banCarriedMs / 1000)

  return {
    carry,

    /** The keys of a subject's mark and of its number of bans, for a store that reads them together with its windows. */
    keys: (id: string): [mark: string, count: string] => [marks.getKey(id), counts.getKey(id)],

    async find(id: string): Promise<Ban | undefined> {
      const mark = await marks.get(id)
      if (!mark || mark.msBeforeNext <= 0 || mark.consumedPoints <= Date.now()) return
      return { bannedUntil: mark.consumedPoints, banCarriedMs: mark.msBeforeNext }
    },

    async count(id: string): Promise<number> {
      const count = await counts.get(id)
      return count && count.msBeforeNext > 0 ? count.consumedPoints : 0
    },

    /** Fails where a strike would. */
    probe: (id: string) => Promise.all([strikes.penalty(id), counts.set(id, 0, 1), marks.set(id, 0, 1)]),

    /**
     * Counts a strike that came at `at` after `previousBans`; returns the ban that it starts, if it starts one.
     * Each ban begins a new count of strikes, so that one still on its way when a ban starts cannot start another.
     */
    async strike(id: string, at: number, previousBans: number): Promise<Ban | undefined> {
      const { consumedPoints } = await strikes.penalty(`${id}:${previousBans}`)
      if (consumedPoints !== banAfter) return
      const seconds = Math.min(banSeconds * 2 ** previousBans, DAY_SECONDS)
      // The Redis limiter takes whole seconds, and keeps forever what lasts less than one.
      const carrySeconds = Math.ceil(Math.min(seconds, banCarrySeconds))
      const ban = { bannedUntil: at + seconds * 1000, banCarriedMs: carrySeconds * 1000 }
      await Promise.all([counts.set(id, previousBans + 1, seconds + DAY_SECONDS), carry(id, ban)])
      return ban
    },
  }
}
