import { type Logger, outsideTraces } from '../../engines/observe/index.js'
import type { Query, Statement } from '../../engines/postgres/index.js'

/** How long a change is remembered, and an event awaited whose transaction is still open, in milliseconds. */
export const REMEMBERED_MS = 3_600_000
/** The most changes, and the most missing events, that are remembered. Beyond that, it starts over. */
const MAX_REMEMBERED = 10_000
/** How long after a failure the next look begins, in milliseconds. */
const PAUSE_MS = 30_000

const tables = ['ApiKeyEvent']

/** The last event, and whether a transaction is open that has written some: their ids can be lower. */
const BEGINNING: Statement = {
  kind: 'SELECT',
  tables,
  text: `SELECT id, at, EXISTS (
    SELECT FROM pg_locks WHERE relation = '"public"."ApiKeyEvent"'::regclass AND mode = 'RowExclusiveLock'
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  ) AS "isWritten" FROM (SELECT) AS once
  LEFT JOIN (SELECT id, at FROM "public"."ApiKeyEvent" ORDER BY id DESC LIMIT 1) AS event ON true`,
}

/** A change of a key's id names the one before it; so does a deletion, after which `keyId` is empty. */
const EVENTS: Statement = {
  kind: 'SELECT',
  tables,
  text: `SELECT id, at, coalesce((changes->'id'->>0)::integer, "keyId") AS "keyId" FROM (
    (SELECT * FROM "public"."ApiKeyEvent" WHERE id >= $1 ORDER BY id LIMIT ${MAX_REMEMBERED + 2})
    UNION ALL SELECT * FROM "public"."ApiKeyEvent" WHERE id = ANY($2)
  ) AS event`,
}

interface Event {
  id: number
  /** In milliseconds since 1970. */
  at: number
  keyId: number | null
}

/** The last event that was seen. It has no time if there was none. */
type Last = Pick<Event, 'id'> & { at?: number }

export interface KeyChangesOptions {
  query: Query
  log: Logger
  /** How long after a look began the next one may begin, in milliseconds. */
  everyMs: number
}

/**
 * Which keys have changed, from their history: a trigger writes it for every change. One look at it every few
 * seconds replaces a look at the row of each key in use (docs/decisions/0026-changes-of-keys.md).
 */
export class KeyChanges {
  /** When each key was seen to have changed; all moments are those of `performance.now()`. */
  readonly #changed = new Map<number, number>()
  /** From when on all changes are seen. */
  #since = Number.POSITIVE_INFINITY
  /** When the last look began that succeeded. */
  #lookedAt = Number.NEGATIVE_INFINITY
  #nextAt = Number.NEGATIVE_INFINITY
  #isLooking = false
  #isFailing = false
  #last: Last | undefined
  /** Ids before the last one that were not there, and since when. An event gets its id before its transaction ends. */
  readonly #missing = new Map<number, number>()

  constructor(private readonly options: KeyChangesOptions) {}

  /** Begins a look, if it is time for one. While no request calls this, nothing is read. */
  look(now: number): void {
    if (this.#isLooking || now < this.#nextAt) return
    this.#isLooking = true
    void outsideTraces(() => this.#look(now))
  }

  /** When a key that was read at some moment was seen to have changed since; undefined if it was not. */
  changedAt(keyId: number, readAt: number): number | undefined {
    const changedAt = this.#changed.get(keyId)
    return changedAt !== undefined && readAt <= changedAt ? changedAt : undefined
  }

  /** Until when all changes are known of a key that was read at some moment, and not seen to have changed. */
  knownUntil(readAt: number): number {
    return readAt > this.#since ? Math.max(readAt, this.#lookedAt) : readAt
  }

  async #look(beganAt: number): Promise<void> {
    const { log, everyMs } = this.options
    this.#nextAt = beganAt + everyMs
    try {
      await (this.#last ? this.#read(this.#last, beganAt) : this.#begin())
      if (this.#isFailing) log.info('the history of keys can be read again')
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) log.warn({ err: error }, 'failed to read the history of keys')
      this.#isFailing = true
      this.#nextAt = beganAt + PAUSE_MS
    }
    this.#isLooking = false
  }

  async #begin(): Promise<void> {
    const [row] = await this.options.query(BEGINNING, [])
    if (row?.isWritten) return
    this.#last = { id: Number(row?.id ?? 0), at: (row?.at as Date | null)?.getTime() }
    this.#since = performance.now()
  }

  async #read(last: Last, beganAt: number): Promise<void> {
    const rows = await this.options.query(EVENTS, [last.id, [...this.#missing.keys()]])
    const events = rows.map(
      ({ id, at, keyId }): Event => ({ id: Number(id), at: (at as Date).getTime(), keyId: keyId as number | null }),
    )
    // Otherwise the history has been restored or emptied, or is that of a server that had fallen behind.
    const isSame = last.at === undefined || events.some(({ id, at }) => id === last.id && at === last.at)
    if (isSame && this.#note(last, events)) this.#lookedAt = beganAt
    else this.#forget()
  }

  /** Returns false if that is more than can be remembered, or an event has been missing for too long. */
  #note(last: Last, events: Event[]): boolean {
    const now = performance.now()
    this.#last = last
    for (const event of events.sort((a, b) => a.id - b.id)) {
      const { id, at, keyId } = event
      if (id === last.id && at === last.at) continue
      if (keyId !== null) this.#changed.set(keyId, now)
      this.#missing.delete(id)
      if (id <= this.#last.id) continue
      const step = id - this.#last.id
      if (step > MAX_REMEMBERED) return false
      for (let i = 1; i < step; i++) this.#missing.set(this.#last.id + i, now)
      this.#last = event
    }
    for (const [keyId, changedAt] of this.#changed) if (now - changedAt > REMEMBERED_MS) this.#changed.delete(keyId)
    if (this.#changed.size > MAX_REMEMBERED) {
      this.#changed.clear()
      return false
    }
    const [missingSince = now] = this.#missing.values()
    if (now - missingSince > REMEMBERED_MS) return false
    return this.#missing.size <= MAX_REMEMBERED && events.length <= MAX_REMEMBERED + 1
  }

  /** The next look starts over. Until then, nothing is known of what has changed since rows were read. */
  #forget(): void {
    this.#last = undefined
    this.#since = Number.POSITIVE_INFINITY
    this.#missing.clear()
  }
}
