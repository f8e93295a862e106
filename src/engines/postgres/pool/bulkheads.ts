import { getOrCreate } from '../../../../schema/kit/get-or-create.js'

/** The most connections in use. Those of stalled bulkheads come on top, up to twice as many in all. */
const MAX_CONNECTIONS = 10
export const MAX_WITH_STALLED = 2 * MAX_CONNECTIONS
/** A stalled bulkhead gets another connection only while the stalled ones have fewer than this. */
const MAX_STALLED = MAX_CONNECTIONS / 2
/** Those that reads, or all others, may have together, so that writes without an answer never keep reads waiting. */
const MAX_OF_KIND = 0.8 * MAX_WITH_STALLED
/** The connections for writes to one row. They wait for each other in PostgreSQL, so more would gain nothing. */
const MAX_SAME_ROW = 2
/** A bulkhead is stalled if it has had no answer for this long, in milliseconds. */
const STALL_MS = 250

/** Called if a stalled bulkhead fails, and, without an error, when it has an answer again. */
export type OnBulkheadChange = (bulkhead: string, error?: unknown) => void

/** What waits for a connection. */
export interface Waiting {
  /** The rows that it writes or locks, as far as its statements name them. */
  readonly rows: readonly string[]
  /** It locks these rows one after another, so it must not meet another one that does. */
  readonly isWide: boolean
  readonly isRead: boolean
  start(): void
}

/**
 * Statements with the same verb on the same tables. A lock on a table, or a slow query, delays some bulkheads; the others
 * must not be delayed.
 */
export class Bulkhead {
  /** The connections that it has. */
  held = 0
  /** Since when its statements run or fail without an answer from PostgreSQL. */
  silentSince: number | undefined
  /** In the order of arrival. */
  readonly waiting: Waiting[] = []
  #failing = false

  constructor(
    readonly name: string,
    readonly onChange: OnBulkheadChange,
  ) {}

  get stalled(): boolean {
    return this.silentSince !== undefined && performance.now() - this.silentSince > STALL_MS
  }

  /** PostgreSQL has answered. */
  answered(): void {
    this.silentSince = performance.now()
    if (!this.#failing) return
    this.#failing = false
    this.onChange(this.name)
  }

  /** A statement got no answer. */
  failed(error: unknown): void {
    if (this.#failing || !this.stalled) return
    this.#failing = true
    this.onChange(this.name, error)
  }
}

/** Shares the connections between the bulkheads. */
export class Bulkheads {
  readonly #bulkheads = new Map<string, Bulkhead>()
  /** The bulkheads with waiting statements, in the order of their turns. */
  readonly #queue = new Set<Bulkhead>()
  /** The connections with which each row is written. */
  readonly #rows = new Map<string, number>()
  /** The rows that those have which lock several. */
  readonly #wide = new Set<string>()
  /** When PostgreSQL has last answered, and when a connection was last lost or refused, by performance.now(). */
  answeredAt = Number.NEGATIVE_INFINITY
  lostAt = Number.NEGATIVE_INFINITY
  #heldByReads = 0
  #held = 0
  #recheck: NodeJS.Timeout | undefined

  constructor(private readonly onChange: OnBulkheadChange = () => {}) {}

  /** Whether any statement has a connection. */
  get isBusy(): boolean {
    return this.#held > 0
  }

  /** The number of statements that wait for a connection. */
  get waiting(): number {
    let waiting = 0
    for (const bulkhead of this.#queue) waiting += bulkhead.waiting.length
    return waiting
  }

  get(name: string): Bulkhead {
    return getOrCreate(this.#bulkheads, name, () => new Bulkhead(name, this.onChange))
  }

  /** Calls `start` as soon as the bulkhead may have another connection. */
  enter(bulkhead: Bulkhead, waiting: Waiting): void {
    bulkhead.waiting.push(waiting)
    this.#queue.add(bulkhead)
    this.#dispatch()
  }

  /** Removes a waiting statement. Returns false if it does not wait. */
  cancel(bulkhead: Bulkhead, waiting: Waiting): boolean {
    const index = bulkhead.waiting.indexOf(waiting)
    if (index >= 0) bulkhead.waiting.splice(index, 1)
    return index >= 0
  }

  /** Returns a connection. A bulkhead whose last statement failed stays silent, and becomes stalled, until it has an answer. */
  leave(bulkhead: Bulkhead, { rows, isWide, isRead }: Waiting, failed: boolean): void {
    this.#held--
    if (isRead) this.#heldByReads--
    if (--bulkhead.held === 0 && !failed) bulkhead.silentSince = undefined
    for (const row of rows) {
      const left = this.#heldFor(row) - 1
      if (left > 0) this.#rows.set(row, left)
      else this.#rows.delete(row)
      if (isWide) this.#wide.delete(row)
    }
    this.#dispatch()
  }

  #heldFor(row: string): number {
    return this.#rows.get(row) ?? 0
  }

  /** Whether a row is being written. */
  isWritten(row: string): boolean {
    return this.#rows.has(row)
  }

  #dispatch(): void {
    // A bulkhead that gets a connection goes to the end of the queue, which this loop reaches again.
    for (const bulkhead of this.#queue) {
      const next = bulkhead.waiting.findIndex((waiting) => this.#hasRoomFor(waiting))
      if (bulkhead.waiting.length > 0 && (next < 0 || !this.#admits(bulkhead))) continue
      this.#queue.delete(bulkhead)
      const [waiting] = bulkhead.waiting.splice(next, 1)
      if (!waiting) continue
      if (bulkhead.waiting.length > 0) this.#queue.add(bulkhead)
      this.#held++
      if (waiting.isRead) this.#heldByReads++
      bulkhead.held++
      for (const row of waiting.rows) {
        this.#rows.set(row, this.#heldFor(row) + 1)
        if (waiting.isWide) this.#wide.add(row)
      }
      bulkhead.silentSince ??= performance.now()
      waiting.start()
    }
    // A bulkhead becomes stalled without an event.
    if (this.#queue.size > 0)
      this.#recheck ??= setTimeout(() => {
        this.#recheck = undefined
        this.#dispatch()
      }, STALL_MS / 2).unref()
  }

  #hasRoomFor({ rows, isWide, isRead }: Waiting): boolean {
    const held = isRead ? this.#heldByReads : this.#held - this.#heldByReads
    const isFree = (row: string) => this.#heldFor(row) < MAX_SAME_ROW && !(isWide && this.#wide.has(row))
    return held < MAX_OF_KIND && rows.every(isFree)
  }

  #admits(bulkhead: Bulkhead): boolean {
    if (this.#held < MAX_CONNECTIONS && !bulkhead.stalled) return true
    if (this.#held >= MAX_WITH_STALLED) return false
    let stalled = 0
    for (const other of this.#bulkheads.values()) if (other.stalled) stalled += other.held
    return bulkhead.stalled ? stalled < MAX_STALLED : this.#held - stalled < MAX_CONNECTIONS
  }
}
