import { performance } from 'node:perf_hooks'
import { LRUCache } from 'lru-cache'
import { ApiError } from '../../schema/errors.js'
import type { RequestContext } from './context.js'

/** How many requests may be at work concurrently. */
interface AdmissionLimits {
  room: number
  /** How many of them may belong to one key. */
  share: number
  /** Requests that may wait, of all keys; one key may have half as many. */
  waiting: number
  /** Whether a request gives up its place after about a second in which the process had little to do. */
  stuckLeave?: boolean
}

/** Of a gateway. More requests at work are not served faster, but make each turn of the event loop longer. */
export const ADMISSION_LIMITS: Record<'work' | 'refused', AdmissionLimits> = {
  work: { room: 128, share: 32, waiting: 10_000, stuckLeave: true },
  refused: { room: 32, share: 1, waiting: 10_000 },
}

/** What the operations inside may cost together that cost more than 1, and those of one key. It bounds their memory. */
const LARGE_ROOM = 250
export const LARGE_SHARE = 100

/**
 * How long a request may wait, counted in parts, so that a stall of the event loop counts as one part. Less than the
 * second after which a refused request is a strike, so that waiting does not turn a burst into abuse.
 */
const PARTS = 4
const PART_MS = 240

/** How many queues are kept although they are empty: most keys soon send another request. */
const KEPT_LINES = 1_000

/** A process with a higher load than this has no room for more. */
const BUSY = 0.7

/**
 * How many requests may be inside while connections wait to be accepted. Node accepts one in each turn of the event loop,
 * so turns have to be short.
 */
const CROWDED_ROOM = 8
/** The latest turns that count, and by how many those that accepted a connection must outnumber the others. */
const LATEST_TURNS = 16
const CROWDED_TURNS = 4

/** The requests of one key. */
interface Line {
  readonly id: string
  inside: number
  /** What its operations inside cost that cost more than 1. */
  units: number
  readonly waiting: Set<Waiting>
}

interface Waiting {
  readonly context: RequestContext
  readonly line: Line
  readonly units: number
  readonly since: number
  resolve(): void
  reject(error: unknown): void
}

/** What a request inside takes up. */
export interface Place {
  readonly admission: Admission
  readonly line: Line
  readonly units: number
  readonly since: number
}

/** One object for all, because creating an error costs more than refusing a request. */
const shed = new ApiError(
  'unavailable',
  'The service has more requests than it can answer in time. This one was not processed and cost nothing. Retry after the seconds in Retry-After.',
  { 'retry-after': '1' },
)

/**
 * Bounds the requests at work. Further ones wait in the queue of their key, and the queues take turns: a key with many
 * requests delays mostly its own. A request that would wait too long is refused.
 */
export class Admission {
  readonly #limits: AdmissionLimits
  readonly #lines = new Map<string, Line>()
  /** In the order of arrival. */
  readonly #waiting = new Set<Waiting>()
  /** The queues in which a request waits, the next one first. */
  readonly #turns = new Set<Line>()
  /** In the order of entry. */
  readonly #inside = new Set<Place>()
  #units = 0
  #shed = 0
  #part = 0
  #utilization = performance.eventLoopUtilization()
  #clock: NodeJS.Timeout | undefined
  #accepted = false
  #acceptingTurns = 0

  constructor(limits: AdmissionLimits) {
    this.#limits = limits
  }

  get figures() {
    return { inside: this.#inside.size, waiting: this.#waiting.size, shed: this.#shed }
  }

  /**
   * Lets the request in, unless it already has a place here or elsewhere: synchronously if there is room, otherwise by
   * a promise.
   *
   * @throws ApiError unavailable
   */
  enter(context: RequestContext, cost = 1): Promise<void> | undefined {
    if (context.place) return undefined
    const id = context.subject?.id ?? context.address
    const units = cost > 1 ? cost : 0
    let line = this.#lines.get(id)
    if (!line) {
      line = { id, inside: 0, units: 0, waiting: new Set() }
      this.#lines.set(id, line)
    }
    if (line.waiting.size === 0 && this.#fits(line, units)) return this.#letIn(context, line, units)
    const { waiting } = this.#limits
    if (this.#waiting.size < waiting && line.waiting.size < waiting / 2) return this.#wait(context, line, units)
    this.#forgetEmpty(line)
    this.#shed++
    throw shed
  }

  /** Gives the place of a request to those that wait. */
  leave(place: Place): void {
    this.#units -= place.units
    place.line.units -= place.units
    this.#giveBack(place)
    this.#forgetEmpty(place.line)
    if (this.#waiting.size > 0) this.#serve()
  }

  /** Lets in all that wait in a key's queue, because its quota is used up: refusing them is cheap. */
  letAllIn(id: string): void {
    const line = this.#lines.get(id)
    for (const waiting of line?.waiting ?? []) {
      this.#stopWaiting(waiting)
      this.#letIn(waiting.context, waiting.line, waiting.units)
      waiting.resolve()
    }
  }

  /** Must be called for each accepted connection. */
  connected = (): void => {
    if (!this.#accepted && this.#acceptingTurns === 0) setImmediate(this.#endTurn)
    this.#accepted = true
  }

  readonly #endTurn = (): void => {
    this.#acceptingTurns = Math.min(this.#acceptingTurns + (this.#accepted ? 1 : -1), LATEST_TURNS)
    this.#accepted = false
    if (this.#acceptingTurns > 0) setImmediate(this.#endTurn)
    if (this.#acceptingTurns < CROWDED_TURNS) this.#serve()
  }

  #fits(line: Line, units: number): boolean {
    const { room, share } = this.#limits
    if (this.#inside.size >= (this.#acceptingTurns < CROWDED_TURNS ? room : CROWDED_ROOM) || line.inside >= share)
      return false
    // An operation that costs more than the whole room may be the only one.
    return (
      units === 0 ||
      ((line.units === 0 || line.units + units <= LARGE_SHARE) &&
        (this.#units === 0 || this.#units + units <= LARGE_ROOM))
    )
  }

  #letIn(context: RequestContext, line: Line, units: number): undefined {
    context.place = { admission: this, line, units, since: this.#part }
    this.#inside.add(context.place)
    this.#units += units
    line.inside++
    line.units += units
  }

  #wait(context: RequestContext, line: Line, units: number): Promise<void> {
    if (!this.#clock) {
      this.#clock = setInterval(this.#endPart, PART_MS)
      this.#utilization = performance.eventLoopUtilization()
    }
    return new Promise((resolve, reject) => {
      const waiting = { context, line, units, since: this.#part, resolve, reject }
      this.#waiting.add(waiting)
      line.waiting.add(waiting)
      this.#turns.add(line)
    })
  }

  #serve(): void {
    for (const line of this.#turns) {
      const [first] = line.waiting
      if (!first || !this.#fits(line, first.units)) continue
      this.#turns.delete(line)
      this.#stopWaiting(first)
      // At the end, where this loop meets it again.
      if (line.waiting.size > 0) this.#turns.add(line)
      // Its client has disconnected.
      if (first.context.head.socket.destroyed) {
        this.#forgetEmpty(line)
        first.reject(shed)
        continue
      }
      this.#letIn(first.context, line, first.units)
      first.resolve()
    }
  }

  readonly #endPart = (): void => {
    this.#part++
    if (this.#limits.stuckLeave) this.#releaseStuck()
    for (const waiting of this.#waiting) {
      if (this.#part - waiting.since < PARTS) break
      this.#stopWaiting(waiting)
      this.#forgetEmpty(waiting.line)
      this.#shed++
      waiting.reject(shed)
    }
    if (this.#waiting.size > 0) return
    clearInterval(this.#clock)
    this.#clock = undefined
  }

  /** A request that keeps its place while the process is mostly idle waits for the database; others may not need it. */
  #releaseStuck(): void {
    const last = this.#utilization
    this.#utilization = performance.eventLoopUtilization()
    if (performance.eventLoopUtilization(this.#utilization, last).utilization > BUSY) return
    for (const place of this.#inside) {
      if (this.#part - place.since < PARTS) break
      this.#giveBack(place)
    }
    this.#serve()
  }

  #giveBack(place: Place): void {
    if (this.#inside.delete(place)) place.line.inside--
  }

  #stopWaiting(waiting: Waiting): void {
    const { line } = waiting
    this.#waiting.delete(waiting)
    line.waiting.delete(waiting)
    if (line.waiting.size === 0) this.#turns.delete(line)
  }

  #forgetEmpty(line: Line): void {
    if (this.#lines.size > KEPT_LINES && line.inside === 0 && line.units === 0 && line.waiting.size === 0)
      this.#lines.delete(line.id)
  }
}

/** Gives up the place of a request, if it has one. */
export function leavePlace(context: RequestContext): void {
  const { place } = context
  context.place = undefined
  place?.admission.leave(place)
}

/** The admissions of a gateway. */
export class Admissions {
  /** Requests at work. */
  readonly work: Admission
  /** GraphQL requests of keys that are refused anyway, one at a time: a document is parsed before it is refused. */
  readonly refused: Admission
  /** By key: the end of its ban or of the window that had nothing left, as of its latest response. */
  readonly #refusedUntil = new LRUCache<number, number>({ max: 10_000 })

  constructor(limits: typeof ADMISSION_LIMITS) {
    this.work = new Admission(limits.work)
    this.refused = new Admission(limits.refused)
  }

  isRefused({ key }: RequestContext): boolean {
    return (
      key !== undefined && Math.max(key.bannedUntil?.getTime() ?? 0, this.#refusedUntil.get(key.id) ?? 0) > Date.now()
    )
  }

  /** Must be called for each response that shows the windows of a key. */
  note({ key, subject, rateLimit }: RequestContext): void {
    if (!key || !subject || !rateLimit) return
    const { bannedUntil: until = 0, windows } = rateLimit
    const end = windows.reduce((end, { remaining, resetAt }) => (remaining > 0 ? end : Math.max(end, resetAt)), until)
    // The end of a ban or another plan shows in the first response after it.
    if (end === 0) return void this.#refusedUntil.delete(key.id)
    this.#refusedUntil.set(key.id, end)
    // A burst is refused immediately: a request that waited would count as a strike, although it arrived before the
    // first refusal.
    this.work.letAllIn(subject.id)
  }
}
