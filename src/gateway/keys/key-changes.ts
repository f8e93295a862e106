import type { Logger } from '../../engines/observe/index.js'
import type { Query } from '../../engines/postgres/index.js'

/** How long a change is remembered, and an event awaited whose transaction is still open, in milliseconds. */
export const REMEMBERED_MS = 3_600_000
/** How many events before the first look may belong to transactions that are still open. */
const MAY_BE_OPEN = 1_000
/** The most changes, and the most missing events, that are remembered. Beyond that, all begins anew. */
const MAX_REMEMBERED = 10_000

const BEGINNING = `SELECT greatest(coalesce(max(id), 0) - ${MAY_BE_OPEN}, 0) AS id FROM "public"."ApiKeyEvent"`

/** A change of a key's id names the one before it; so does a deletion, after which `keyId` is empty. */
const EVENTS = `SELECT id, at, coalesce((changes->'id'->>0)::integer, "keyId") AS "keyId" FROM (
    (SELECT * FROM "public"."ApiKeyEvent" WHERE id >= $1 ORDER BY id LIMIT ${MAX_REMEMBERED + 1})
    UNION ALL SELECT * FROM "public"."ApiKeyEvent" WHERE id = ANY($2)
  ) AS event`

interface Event {
  id: number
  /** In milliseconds since 1970. */
  at: number
  keyId: number | null
}

/** Where a look begins: with the last event that was seen, or without one. */
type Beginning = Pick<Event, 'id'> & Partial<Event>

export interface KeyChangesOptions {
  query: Query
  log: Logger
  /** How long after a look the next one may begin, in milliseconds. */
  everyMs: number
}

/**
 * Which keys have changed, from their history: a trigger writes it, whoever makes the change. One look at it every few
 * seconds replaces a look at the row of each key in use.
 */
export class KeyChanges {
  /** When each key was seen to have changed; all moments are those of `performance.now()`. */
  readonly #changed = new Map<number, number>()
  /** From when on all changes are seen. */
  #since = Number.POSITIVE_INFINITY
  /** When the last look began that succeeded. */
  #lookedAt = Number.NEGATIVE_INFINITY
  #triedAt = Number.NEGATIVE_INFINITY
  #isLooking = false
  #isFailing = false
  /** The last event that was seen. */
  #last: Beginning | undefined
  /** Ids before it that were not there, and since when. An event gets its id before its transaction ends. */
  readonly #missing = new Map<number, number>()

  constructor(private readonly options: KeyChangesOptions) {}

  /** Begins a look, if it is time for one. While no request calls this, nothing is read. */
  look(now: number): void {
    if (this.#isLooking || now - this.#triedAt < this.options.everyMs) return
    this.#isLooking = true
    this.#triedAt = now
    void this.#tryToRead(now)
  }

  /**
   * Until when a key has stayed as it was read, as far as is known; `-Infinity` if it has changed.
   *
   * @param readAt when the read began
   */
  unchangedUntil(keyId: number, readAt: number): number {
    const changedAt = this.#changed.get(keyId)
    if (changedAt !== undefined && readAt <= changedAt) return Number.NEGATIVE_INFINITY
    return readAt > this.#since ? Math.max(readAt, this.#lookedAt) : readAt
  }

  async #tryToRead(beganAt: number): Promise<void> {
    try {
      await this.#read(beganAt)
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) this.options.log.warn({ err: error }, 'failed to read the history of keys')
      this.#isFailing = true
    } finally {
      this.#isLooking = false
    }
  }

  async #read(beganAt: number): Promise<void> {
    const beginning = this.#last ?? (await this.#beginning())
    const events = await this.#eventsFrom(beginning)
    const isThere =
      beginning.at === undefined || events.some(({ id, at }) => id === beginning.id && at === beginning.at)
    // The history has been restored or emptied, or is that of a server that had fallen behind; or too much has changed.
    if (!isThere || !this.#note(beginning, events)) {
      this.#forget()
      return this.#read(beganAt)
    }
    if (this.#since === Number.POSITIVE_INFINITY) this.#since = performance.now()
    this.#lookedAt = beganAt
  }

  async #beginning(): Promise<Beginning> {
    const [row] = await this.options.query(BEGINNING, [])
    return { id: Number(row?.id) }
  }

  async #eventsFrom({ id }: Beginning): Promise<Event[]> {
    const rows = await this.options.query(EVENTS, [id, [...this.#missing.keys()]])
    const events = rows.map(
      ({ id, at, keyId }): Event => ({ id: Number(id), at: (at as Date).getTime(), keyId: keyId as number | null }),
    )
    return events.sort((a, b) => a.id - b.id)
  }

  /** Returns false if that is more than can be remembered. */
  #note(beginning: Beginning, events: readonly Event[]): boolean {
    const now = performance.now()
    for (const moments of [this.#changed, this.#missing])
      for (const [id, moment] of moments) if (now - moment > REMEMBERED_MS) moments.delete(id)
    this.#last = beginning
    for (const event of events) {
      const { id, at, keyId } = event
      if (id === beginning.id && at === beginning.at) continue
      this.#missing.delete(id)
      // Rows that were read before the first look are not taken for unchanged, nor for changed.
      if (keyId !== null && this.#since < now) this.#changed.set(keyId, now)
      if (id <= this.#last.id) continue
      if (id - this.#last.id > MAX_REMEMBERED) return false
      for (let missing = this.#last.id + 1; missing < id; missing++) this.#missing.set(missing, now)
      this.#last = event
    }
    return (
      events.length <= MAX_REMEMBERED && this.#missing.size <= MAX_REMEMBERED && this.#changed.size <= MAX_REMEMBERED
    )
  }

  #forget(): void {
    this.#last = undefined
    this.#since = Number.POSITIVE_INFINITY
    this.#missing.clear()
    this.#changed.clear()
  }
}
