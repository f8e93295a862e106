/** The most connections in use. Those of stalled lanes come on top, up to twice as many in all. */
const MAX_CONNECTIONS = 10
export const MAX_WITH_STALLED = 2 * MAX_CONNECTIONS
/** A stalled lane gets another connection only while the stalled ones have fewer than this. */
const MAX_STALLED = MAX_CONNECTIONS / 2
/** Those that reads, or all others, may have together, so that writes without an answer never keep reads waiting. */
const MAX_OF_KIND = 0.8 * MAX_WITH_STALLED
/** The connections for writes to one row. They wait for each other in PostgreSQL, so more would gain nothing. */
const MAX_SAME_ROW = 2
/** A lane is stalled if it has had no answer for this long, in milliseconds. */
const STALL_MS = 250

/** Called if a stalled lane fails, and, without an error, when it has an answer again. */
export type OnLaneChange = (lane: string, error?: unknown) => void

/** What waits for a connection. */
export interface Waiting {
  /** The rows that it writes or locks, as far as its statements name them. */
  readonly rows: readonly string[]
  readonly isRead: boolean
  start(): void
}

/**
 * Statements with the same verb on the same tables. A lock on a table, or a slow query, delays some lanes; the others
 * must not be delayed.
 */
export class Lane {
  /** The connections that it has. */
  held = 0
  /** Since when its statements run or fail without an answer from PostgreSQL. */
  silentSince: number | undefined
  /** In the order of arrival. */
  readonly waiting: Waiting[] = []
  #failing = false

  constructor(
    readonly name: string,
    readonly onChange: OnLaneChange,
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

/** Shares the connections between the lanes. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>()
  /** The lanes with waiting statements, in the order of their turns. */
  readonly #queue = new Set<Lane>()
  /** The connections with which each row is written. */
  readonly #rows = new Map<string, number>()
  readonly #onChange: OnLaneChange
  /** When PostgreSQL has last answered, and when a connection was last lost or refused, by performance.now(). */
  answeredAt = Number.NEGATIVE_INFINITY
  lostAt = Number.NEGATIVE_INFINITY
  #heldByReads = 0
  #held = 0
  #recheck: NodeJS.Timeout | undefined

  constructor(onChange: OnLaneChange = () => {}) {
    this.#onChange = onChange
  }

  /** Whether any statement has a connection. */
  get isBusy(): boolean {
    return this.#held > 0
  }

  /** The number of statements that wait for a connection. */
  get waiting(): number {
    let waiting = 0
    for (const lane of this.#queue) waiting += lane.waiting.length
    return waiting
  }

  get(name: string): Lane {
    let lane = this.#lanes.get(name)
    if (!lane) {
      lane = new Lane(name, this.#onChange)
      this.#lanes.set(name, lane)
    }
    return lane
  }

  /** Calls `start` as soon as the lane may have another connection. */
  enter(lane: Lane, waiting: Waiting): void {
    lane.waiting.push(waiting)
    this.#queue.add(lane)
    this.#dispatch()
  }

  /** Removes a waiting statement. Returns false if it does not wait. */
  cancel(lane: Lane, waiting: Waiting): boolean {
    const index = lane.waiting.indexOf(waiting)
    if (index >= 0) lane.waiting.splice(index, 1)
    return index >= 0
  }

  /** Returns a connection. A lane whose last statement failed stays silent, and becomes stalled, until it has an answer. */
  leave(lane: Lane, { rows, isRead }: Waiting, failed: boolean): void {
    this.#held--
    if (isRead) this.#heldByReads--
    if (--lane.held === 0 && !failed) lane.silentSince = undefined
    for (const row of rows) {
      const left = this.#heldFor(row) - 1
      if (left > 0) this.#rows.set(row, left)
      else this.#rows.delete(row)
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
    // A lane that gets a connection goes to the end of the queue, which this loop reaches again.
    for (const lane of this.#queue) {
      const next = lane.waiting.findIndex((waiting) => this.#hasRoomFor(waiting))
      if (lane.waiting.length > 0 && (next < 0 || !this.#admits(lane))) continue
      this.#queue.delete(lane)
      const [waiting] = lane.waiting.splice(next, 1)
      if (!waiting) continue
      if (lane.waiting.length > 0) this.#queue.add(lane)
      this.#held++
      if (waiting.isRead) this.#heldByReads++
      lane.held++
      for (const row of waiting.rows) this.#rows.set(row, this.#heldFor(row) + 1)
      lane.silentSince ??= performance.now()
      waiting.start()
    }
    // A lane becomes stalled without an event.
    if (this.#queue.size > 0)
      this.#recheck ??= setTimeout(() => {
        this.#recheck = undefined
        this.#dispatch()
      }, STALL_MS / 2).unref()
  }

  #hasRoomFor({ rows, isRead }: Waiting): boolean {
    const held = isRead ? this.#heldByReads : this.#held - this.#heldByReads
    return held < MAX_OF_KIND && rows.every((row) => this.#heldFor(row) < MAX_SAME_ROW)
  }

  #admits(lane: Lane): boolean {
    if (this.#held < MAX_CONNECTIONS && !lane.stalled) return true
    if (this.#held >= MAX_WITH_STALLED) return false
    let stalled = 0
    for (const other of this.#lanes.values()) if (other.stalled) stalled += other.held
    return lane.stalled ? stalled < MAX_STALLED : this.#held - stalled < MAX_CONNECTIONS
  }
}
