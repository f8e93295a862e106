import { LRUCache } from 'lru-cache'
import type { RateLimitResult } from '../../engines/rate-limit/index.js'
import type { Caller } from '../keys/index.js'
import { FairQueue, type QueueLimits } from './queue.js'

export { LARGE_SHARE } from './queue.js'

/** Of a gateway. More requests at work are not served faster, but make each turn of the event loop longer. */
export const ADMISSION_LIMITS: QueueLimits = { concurrent: 128, share: 32, waiting: 10_000 }

/** How many requests may be at work while connections wait to be accepted. */
const LIMIT_WITH_BACKLOG = 8
/** Connections wait if, of the latest turns of the event loop, those that accepted one outnumber the others by so many. */
const BACKLOG_TURNS = 4
/** The latest turns that count. */
const LATEST_TURNS = 16

/** The policy of a gateway: how many requests are at work, and which ones wait. */
export class Admissions {
  readonly work: FairQueue
  /** By key: the end of its ban or of the window that had nothing left, as of its latest response. */
  readonly #refusedUntil = new LRUCache<number, number>({ max: 10_000 })
  #hasAccepted = false
  #acceptingTurns = 0

  /** @param answersSince as in FairQueue */
  constructor(limits = ADMISSION_LIMITS, answersSince: (moment: number) => boolean) {
    const limitNow = () => (this.#hasBacklog ? LIMIT_WITH_BACKLOG : limits.concurrent)
    this.work = new FairQueue(limits, limitNow, answersSince)
  }

  /** Node accepts one connection in each turn of the event loop, so turns have to be short while connections wait. */
  get #hasBacklog(): boolean {
    return this.#acceptingTurns >= BACKLOG_TURNS
  }

  /** Must be called for each accepted connection. */
  readonly connected = (): void => {
    if (!this.#hasAccepted && this.#acceptingTurns === 0) setImmediate(this.#endTurn)
    this.#hasAccepted = true
  }

  readonly #endTurn = (): void => {
    this.#acceptingTurns = Math.min(this.#acceptingTurns + (this.#hasAccepted ? 1 : -1), LATEST_TURNS)
    this.#hasAccepted = false
    if (this.#acceptingTurns > 0) setImmediate(this.#endTurn)
    if (!this.#hasBacklog) this.work.serve()
  }

  /** Whether a key is banned, as far as this gateway knows, or had nothing left in a window that has not ended. */
  isRefused({ key }: Caller): boolean {
    return Math.max(key.bannedUntil?.getTime() ?? 0, this.#refusedUntil.get(key.id) ?? 0) > Date.now()
  }

  /** Must be called for each response that shows the windows of a key. */
  note({ key, subject }: Caller, { bannedUntil = 0, windows }: RateLimitResult): void {
    // That of free requests says nothing about those of the key.
    if (windows.length < subject.windows.length) return
    let end = bannedUntil
    for (const { remaining, resetAt } of windows) if (remaining === 0) end = Math.max(end, resetAt)
    // The end of a ban or another plan shows in the first response after it.
    if (end === 0) return void this.#refusedUntil.delete(key.id)
    this.#refusedUntil.set(key.id, end)
    // A burst is refused immediately: a request that waited would count as a strike, although it arrived before the
    // first refusal.
    this.work.letAllIn(subject.id)
  }
}
