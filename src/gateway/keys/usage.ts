import type { ErrorCode } from '../../../schema/kit/errors.js'
import { getOrCreate } from '../../../schema/kit/get-or-create.js'
import type { Caller } from './authenticate.js'
import { addOutcomes, HOUR_MS, type Outcomes, tidyRegularly, type UsageOptions, writeUsage } from './usage-tables.js'

/** How often usage is written, in milliseconds, if few keys are in use. `kill -9` loses what was counted since. */
const FLUSH_MS = 5_000
const FEW_KEYS = 100
/** How long that of more keys is gathered, so that the database updates a row once for many requests. */
const GATHER_MS = 40_000
/** The most rows of one statement. */
const BATCH = 1_000
/** The most rows that wait for the database. While it is away, further ones are dropped: about 22 MB. */
const MAX_WAITING = 200_000

interface Use {
  requests: number
  cost: number
  /** When the key was last used, in milliseconds since 1970. */
  usedAt: number
  /** How many requests ended with which error. */
  outcomes?: Outcomes
}

/** The use of each key in each hour (a number of hours since 1970). */
type Hours = Map<number, Map<number, Use>>

const rowsOf = (hours: Hours) => [...hours.values()].reduce((sum, { size }) => sum + size, 0)

export interface KeyUsageOptions extends UsageOptions {
  maxWaiting?: number
}

/** What each key uses in each hour. A request costs an addition in a map, which is written regularly. */
export class KeyUsage {
  #waiting: Hours = new Map()
  #dropping = false
  #writing = Promise.resolve()
  #writtenAt = performance.now()
  readonly #maxWaiting: number
  readonly #timer = setInterval(() => this.#isDue() && this.flush(), FLUSH_MS).unref()
  readonly #stopTidying: () => void

  constructor(private readonly options: KeyUsageOptions) {
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING
    this.#stopTidying = tidyRegularly(options)
  }

  /** Counts a request, and the error that it ended with. */
  count({ key }: Pick<Caller, 'key'>, cost: number, refusal?: ErrorCode): void {
    const usedAt = Date.now()
    const outcomes = refusal && { [refusal]: 1 }
    this.#add(Math.floor(usedAt / HOUR_MS), key.id, { requests: 1, cost, usedAt, outcomes })
  }

  #add(hour: number, keyId: number, added: Use): void {
    const keys = getOrCreate(this.#waiting, hour, () => new Map<number, Use>())
    const use = keys.get(keyId)
    if (use) {
      use.requests += added.requests
      use.cost += added.cost
      use.usedAt = added.usedAt
      if (added.outcomes) use.outcomes = addOutcomes(use.outcomes ?? {}, added.outcomes)
    } else if (rowsOf(this.#waiting) < this.#maxWaiting) {
      keys.set(keyId, added)
    } else if (!this.#dropping) {
      this.#dropping = true
      this.options.log.warn('the usage of further keys is not counted until the database answers')
    }
  }

  #isDue(): boolean {
    const rows = rowsOf(this.#waiting)
    return rows <= FEW_KEYS || rows >= this.#maxWaiting / 2 || performance.now() - this.#writtenAt >= GATHER_MS
  }

  /**
   * Writes what was counted. What the database does not take waits for the next time; what it took without saying so,
   * because the connection was lost, counts twice.
   */
  flush(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write())
    return this.#writing
  }

  async #write(): Promise<void> {
    const unwritten = this.#waiting
    this.#waiting = new Map()
    try {
      for (const [hour, keys] of unwritten) {
        const rows = [...keys].map(([keyId, use]) => ({ keyId, ...use }))
        for (let written = 0; written < rows.length; written += BATCH) {
          const batch = rows.slice(written, written + BATCH)
          await writeUsage(this.options.query, hour, batch)
          for (const { keyId } of batch) keys.delete(keyId)
        }
      }
      this.#dropping = false
      this.#writtenAt = performance.now()
    } catch (error) {
      const counted = this.#waiting
      this.#waiting = unwritten
      for (const [hour, keys] of counted) for (const [keyId, use] of keys) this.#add(hour, keyId, use)
      this.options.log.debug({ err: error }, 'failed to write the usage of keys')
    }
  }

  /** Writes the rest. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#stopTidying()
    await this.flush()
  }
}
