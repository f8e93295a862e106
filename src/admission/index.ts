import { LRUCache } from 'lru-cache'
import type { Caller } from '../keys/index.js'
import type { RateLimitResult } from '../rate-limit/index.js'
import { AcceptBacklog } from './accept-backlog.js'
import { FairQueue, type QueueLimits } from './queue.js'

export { LARGE_SHARE, type Slot } from './queue.js'

/** Of a gateway. More requests at work are not served faster, but make each turn of the event loop longer. */
export const ADMISSION_LIMITS: QueueLimits = { concurrent: 128, share: 32, waiting: 10_000 }

/** How many requests may be at work while connections wait to be accepted. */
const LIMIT_WITH_BACKLOG = 8

/** The policy of a gateway: how many requests are at work, and which ones wait. */
export class Admissions {
  /** Requests at work. */
  readonly work: FairQueue
  readonly #backlog: AcceptBacklog
  /** By key: the end of its ban or of the window that had nothing left, as of its latest response. */
  readonly #refusedUntil = new LRUCache<number, number>({ max: 10_000 })

  constructor(limits = ADMISSION_LIMITS) {
    this.#backlog = new AcceptBacklog(() => this.work.serve())
    this.work = new FairQueue(limits, () => (this.#backlog.isWaiting ? LIMIT_WITH_BACKLOG : limits.concurrent))
  }

  /** Must be called for each accepted connection. */
  get connected(): () => void {
    return this.#backlog.connected
  }

  /** Whether a key is banned, as far as this gateway knows, or had nothing left in a window that has not ended. */
  isRefused({ key }: Caller): boolean {
    return Math.max(key.bannedUntil?.getTime() ?? 0, this.#refusedUntil.get(key.id) ?? 0) > Date.now()
  }

  /** Must be called for each response that shows the windows of a key. */
  note({ key, subject }: Caller, { bannedUntil = 0, windows }: RateLimitResult): void {
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
