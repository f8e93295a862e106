/** The most connections in use. Those of stalled lanes come on top, up to twice as many in all. */
const MAX_CONNECTIONS = 10
export const MAX_WITH_STALLED = 2 * MAX_CONNECTIONS
/** A stalled lane gets another connection only while the stalled ones have fewer than this. */
const MAX_STALLED = MAX_CONNECTIONS / 2
/** A lane is stalled if it has had no answer for this long, in milliseconds. */
const STALL_MS = 250

/** Called if a stalled lane fails, and, without an error, when it has an answer again. */
export type OnLaneChange = (lane: string, error?: unknown) => void

/**
 * Statements with the same verb on the same tables. A lock on a table, or a slow query, delays some lanes; the others
 * must not be delayed.
 */
export class Lane {
  /** The connections that it has. */
  held = 0
  /** Since when its statements run or fail without an answer from PostgreSQL. */
  silentSince: number | undefined
  /** What waits for a connection, in the order of arrival. */
  readonly waiting: (() => void)[] = []
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
  readonly #onChange: OnLaneChange
  #held = 0
  #recheck: NodeJS.Timeout | undefined

  constructor(onChange: OnLaneChange = () => {}) {
    this.#onChange = onChange
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
  enter(lane: Lane, start: () => void): void {
    lane.waiting.push(start)
    this.#queue.add(lane)
    this.#dispatch()
  }

  /** Removes a waiting statement. Returns false if it has started. */
  cancel(lane: Lane, start: () => void): boolean {
    const index = lane.waiting.indexOf(start)
    if (index >= 0) lane.waiting.splice(index, 1)
    return index >= 0
  }

  /** Returns a connection. A lane whose last statement failed stays silent, and becomes stalled, until it has an answer. */
  leave(lane: Lane, failed: boolean): void {
    this.#held--
    if (--lane.held === 0 && !failed) lane.silentSince = undefined
    this.#dispatch()
  }

  #dispatch(): void {
    // A lane that gets a connection goes to the end of the queue, which this loop reaches again.
    for (const lane of this.#queue) {
      if (lane.waiting.length > 0 && !this.#admits(lane)) continue
      this.#queue.delete(lane)
      const start = lane.waiting.shift()
      if (!start) continue
      if (lane.waiting.length > 0) this.#queue.add(lane)
      this.#held++
      lane.held++
      lane.silentSince ??= performance.now()
      start()
    }
    // A lane becomes stalled without an event.
    if (this.#queue.size > 0)
      this.#recheck ??= setTimeout(() => {
        this.#recheck = undefined
        this.#dispatch()
      }, STALL_MS / 2).unref()
  }

  #admits(lane: Lane): boolean {
    if (this.#held < MAX_CONNECTIONS && !lane.stalled) return true
    if (this.#held >= MAX_WITH_STALLED) return false
    let stalled = 0
    for (const other of this.#lanes.values()) if (other.stalled) stalled += other.held
    return lane.stalled ? stalled < MAX_STALLED : this.#held - stalled < MAX_CONNECTIONS
  }
}

const TABLES = /\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:"\w+"\.)?"(\w+)"/g

/** The name of the lane of a statement: `SELECT Category Pet`. */
export function laneOf(sql: string): string {
  const tables = new Set(Array.from(sql.matchAll(TABLES), ([, table]) => table))
  return [/\w+/.exec(sql)?.[0], ...[...tables].sort()].join(' ')
}
