import { performance } from 'node:perf_hooks'
import { ApiError } from '../../../schema/kit/errors.js'
import { getOrCreate } from '../../../schema/kit/get-or-create.js'

export interface QueueLimits {
  /** How many requests may be at work concurrently. */
  concurrent: number
  /** How many of them may belong to one key. */
  share: number
  /** Requests that may wait, of all keys; one key may have half as many. */
  waiting: number
}

/** What the operations inside may cost together that cost more than 1, and those of one key. It bounds their memory. */
const LARGE_LIMIT = 250
export const LARGE_SHARE = 100

/**
 * How long a request may wait, counted in ticks, so that a stall of the event loop counts as one tick. Less than the
 * second after which a refused request is a strike, so that waiting does not turn a burst into abuse.
 */
const TICKS = 4
const TICK_MS = 240

/** How many keys are remembered without a request: most soon send another one. */
const KEPT_KEYS = 1_000

/** A process with a higher load than this takes no more. */
const BUSY = 0.7

/** The requests of one key. */
interface KeyQueue {
  readonly id: string
  inside: number
  /** What its operations inside cost that cost more than 1. */
  units: number
  readonly waiting: Set<Waiting>
}

interface Waiting extends Slot {
  readonly client: { destroyed?: boolean }
  resolve(slot: Slot): void
  reject(error: unknown): void
}

/** What a request at work takes up, until `leave` gets it back. */
export interface Slot {
  readonly queue: KeyQueue
  readonly units: number
  readonly since: number
}

/** One object for all, because creating an error costs more than refusing a request. */
const rejected = new ApiError(
  'unavailable',
  'The service has more requests than it can answer in time. This one was not processed and cost nothing. Retry after the seconds in Retry-After.',
  { 'retry-after': '1' },
)

/**
 * Bounds the requests at work. Further ones wait in the queue of their key, and the queues are served round robin: a key
 * with many requests delays mostly its own. A request that would wait too long is refused.
 */
export class FairQueue {
  readonly #queues = new Map<string, KeyQueue>()
  /** In the order of arrival. */
  readonly #waiting = new Set<Waiting>()
  /** The queues in which a request waits, the next one first. */
  readonly #roundRobin = new Set<KeyQueue>()
  /** In the order of entry. */
  readonly #inside = new Set<Slot>()
  #units = 0
  #rejected = 0
  #tick = 0
  #utilization = performance.eventLoopUtilization()
  /** How many ticks the database has answered nothing, and when the last tick was, by performance.now(). */
  #silentTicks = 0
  #tickedAt = 0
  #clock: NodeJS.Timeout | undefined

  /**
   * @param limitNow how many requests may be inside for the moment
   * @param answersSince whether the database has answered since a moment, or has nothing to answer
   */
  constructor(
    private readonly limits: QueueLimits,
    private readonly limitNow: () => number,
    private readonly answersSince: (moment: number) => boolean,
  ) {}

  get figures() {
    return { inside: this.#inside.size, waiting: this.#waiting.size, rejected: this.#rejected }
  }

  /**
   * Lets a request in: synchronously below the limit, otherwise by a promise.
   *
   * @param id of its key
   * @param client one that has disconnected is refused instead
   * @throws ApiError unavailable
   */
  enter(id: string, cost: number, client: Waiting['client']): Slot | Promise<Slot> {
    const units = cost > 1 ? cost : 0
    const queue = getOrCreate(this.#queues, id, (): KeyQueue => ({ id, inside: 0, units: 0, waiting: new Set() }))
    if (queue.waiting.size === 0 && this.#fits(queue, units)) return this.#letIn(queue, units)
    const { waiting } = this.limits
    if (this.#waiting.size < waiting && queue.waiting.size < waiting / 2) return this.#wait(queue, units, client)
    this.#forgetEmpty(queue)
    this.#rejected++
    throw rejected
  }

  /** Gives a slot to those that wait. */
  leave(slot: Slot): void {
    this.#units -= slot.units
    slot.queue.units -= slot.units
    this.#giveBack(slot)
    this.#forgetEmpty(slot.queue)
    if (this.#waiting.size > 0) this.serve()
  }

  /** Lets in all that wait in a key's queue, because its quota is used up: refusing them is cheap. */
  letAllIn(id: string): void {
    for (const waiting of this.#queues.get(id)?.waiting ?? []) {
      this.#stopWaiting(waiting)
      waiting.resolve(this.#letIn(waiting.queue, waiting.units))
    }
  }

  /** Must be called when more may be at work for another reason than a request that leaves. */
  serve(): void {
    for (const queue of this.#roundRobin) {
      const [first] = queue.waiting
      if (!first || !this.#fits(queue, first.units)) continue
      this.#roundRobin.delete(queue)
      this.#stopWaiting(first)
      // At the end, where this loop meets it again.
      if (queue.waiting.size > 0) this.#roundRobin.add(queue)
      if (!first.client.destroyed) first.resolve(this.#letIn(queue, first.units))
      else {
        this.#forgetEmpty(queue)
        first.reject(rejected)
      }
    }
  }

  #fits(queue: KeyQueue, units: number): boolean {
    if (queue.inside >= this.limits.share || this.#inside.size >= this.limitNow()) return false
    if (units === 0) return true
    // An operation that costs more than the whole limit may be the only one.
    const fitsShare = queue.units === 0 || queue.units + units <= LARGE_SHARE
    return fitsShare && (this.#units === 0 || this.#units + units <= LARGE_LIMIT)
  }

  #letIn(queue: KeyQueue, units: number): Slot {
    const slot = { queue, units, since: this.#tick }
    this.#inside.add(slot)
    this.#units += units
    queue.inside++
    queue.units += units
    return slot
  }

  #wait(queue: KeyQueue, units: number, client: Waiting['client']): Promise<Slot> {
    if (!this.#clock) {
      this.#clock = setInterval(this.#endTick, TICK_MS)
      this.#silentTicks = 0
      this.#tickedAt = performance.now()
      this.#utilization = performance.eventLoopUtilization()
    }
    return new Promise((resolve, reject) => {
      const waiting = { queue, units, since: this.#tick, client, resolve, reject }
      this.#waiting.add(waiting)
      queue.waiting.add(waiting)
      this.#roundRobin.add(queue)
    })
  }

  readonly #endTick = (): void => {
    this.#tick++
    this.#releaseStalled()
    for (const waiting of this.#waiting) {
      if (this.#tick - waiting.since < TICKS) break
      this.#stopWaiting(waiting)
      this.#forgetEmpty(waiting.queue)
      this.#rejected++
      waiting.reject(rejected)
    }
    if (this.#waiting.size > 0) return
    clearInterval(this.#clock)
    this.#clock = undefined
  }

  /**
   * A request that keeps its slot while the process is mostly idle, or the database answers nothing, waits for the database;
   * others may not need it. Where programs share the cores, a process that waits for its core looks busy.
   */
  #releaseStalled(): void {
    const last = this.#utilization
    this.#utilization = performance.eventLoopUtilization()
    this.#silentTicks = this.answersSince(this.#tickedAt) ? 0 : this.#silentTicks + 1
    this.#tickedAt = performance.now()
    const isBusy = performance.eventLoopUtilization(this.#utilization, last).utilization > BUSY
    if (isBusy && this.#silentTicks < TICKS) return
    for (const slot of this.#inside) {
      if (this.#tick - slot.since < TICKS) break
      this.#giveBack(slot)
    }
    this.serve()
  }

  #giveBack(slot: Slot): void {
    if (this.#inside.delete(slot)) slot.queue.inside--
  }

  #stopWaiting(waiting: Waiting): void {
    const { queue } = waiting
    this.#waiting.delete(waiting)
    queue.waiting.delete(waiting)
    if (queue.waiting.size === 0) this.#roundRobin.delete(queue)
  }

  #forgetEmpty(queue: KeyQueue): void {
    if (this.#queues.size > KEPT_KEYS && queue.inside === 0 && queue.units === 0 && queue.waiting.size === 0)
      this.#queues.delete(queue.id)
  }
}
