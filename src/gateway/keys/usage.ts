import { Prisma, type PrismaClient } from '../../../prisma/generated/client/client.js'
import type { UsageOfDay } from '../../../schema/kit/context.js'
import { MAX_INT } from '../../../schema/kit/input/rules.js'
import type { Logger } from '../../engines/observe/index.js'
import type { Query } from '../../engines/postgres/index.js'
import { purgeRegularly } from '../database/index.js'
import type { Caller } from './authenticate.js'

/** How many days of usage are kept: a year, and a month to compare it with. */
export const USAGE_DAYS = 400

const DAY_MS = 86_400_000
const PURGE_MS = 3_600_000
/** How often usage is written, in milliseconds. `kill -9` loses no more than this. */
const FLUSH_MS = 5_000
/** The most rows of one statement. */
const BATCH = 1_000
/** The most rows that wait for the database. While it is away, further ones are dropped: about 20 MB. */
const MAX_WAITING = 100_000
/** Above all ids. A row's number is its day times this, plus the id of the key. */
const IDS = 2 ** 31

export interface Figures {
  requests: number
  refusals: number
  cost: number
}

export interface KeyUsageOptions {
  prisma: PrismaClient
  log: Logger
  maxWaiting?: number
  purgeMs?: number
}

/** What each key uses on each day. A request costs an addition in a map; all of it is written every five seconds. */
export class KeyUsage {
  #waiting = new Map<number, Figures>()
  #dropping = false
  #writing = Promise.resolve()
  readonly #timer = setInterval(() => this.flush(), FLUSH_MS).unref()
  readonly #stopPurging: () => void

  constructor(private readonly options: KeyUsageOptions) {
    const { prisma, log, purgeMs = PURGE_MS } = options
    const condition = Prisma.sql`day <= (now() AT TIME ZONE 'UTC')::date - ${USAGE_DAYS}::int`
    this.#stopPurging = purgeRegularly({ prisma, log, table: 'ApiKeyUsage', condition, everyMs: purgeMs })
  }

  count({ key }: Pick<Caller, 'key'>, cost: number, isRefused: boolean): void {
    this.#add(Math.floor(Date.now() / DAY_MS) * IDS + key.id, 1, isRefused ? 1 : 0, cost)
  }

  #add(row: number, requests: number, refusals: number, cost: number): void {
    const figures = this.#waiting.get(row)
    if (figures) {
      figures.requests += requests
      figures.refusals += refusals
      figures.cost += cost
    } else if (this.#waiting.size < (this.options.maxWaiting ?? MAX_WAITING)) {
      this.#waiting.set(row, { requests, refusals, cost })
    } else if (!this.#dropping) {
      this.#dropping = true
      this.options.log.warn('the usage of further keys is not counted until the database answers')
    }
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
    // In the same order on every gateway, so that no two wait for each other.
    const rows = [...this.#waiting].sort(([a], [b]) => a - b)
    this.#waiting = new Map()
    let written = 0
    try {
      for (; written < rows.length; written += BATCH) await this.#insert(rows.slice(written, written + BATCH))
      this.#dropping = false
    } catch (error) {
      for (const [row, { requests, refusals, cost }] of rows.slice(written)) this.#add(row, requests, refusals, cost)
      this.options.log.debug({ err: error }, 'failed to write the usage of keys')
    }
  }

  /** Adds to what other gateways have written. Keys that are deleted are left out. */
  async #insert(rows: [number, Figures][]): Promise<void> {
    const batch = rows.map(([row, figures]) => {
      const day = dateOf(Math.floor(row / IDS))
      return { keyId: row % IDS, day, ...figures }
    })
    await this.options.prisma.$executeRaw`
      WITH batch AS (
        SELECT * FROM json_to_recordset(${JSON.stringify(batch)}::json)
          AS batch("keyId" integer, day date, requests bigint, refusals bigint, cost bigint)
      ), used AS (
        UPDATE "public"."ApiKey" SET "lastUsedAt" = now() WHERE id IN (SELECT "keyId" FROM batch) RETURNING id, name
      )
      INSERT INTO "public"."ApiKeyUsage" AS old ("keyId", name, day, requests, refusals, cost)
        SELECT "keyId", name, day, requests, refusals, cost FROM batch JOIN used ON used.id = "keyId" ORDER BY "keyId", day
      ON CONFLICT ("keyId", day) DO UPDATE SET name = excluded.name, requests = old.requests + excluded.requests,
        refusals = old.refusals + excluded.refusals, cost = old.cost + excluded.cost`
  }

  /** Writes the rest. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#stopPurging()
    await this.flush()
  }
}

/** An Int of GraphQL has 32 bits: a greater figure is shown as the greatest Int. */
const USED = `SELECT to_char(day, 'YYYY-MM-DD') AS date, least(requests, $3)::integer AS requests, least(refusals, $3)::integer AS refused,
  least(cost, $3)::integer AS cost FROM "public"."ApiKeyUsage" WHERE "keyId" = $1 AND day >= $2::date`

const dateOf = (day: number) => new Date(day * DAY_MS).toISOString().slice(0, 10)

/** What a key has used on each of the last days, today first. */
export async function readUsage(query: Query, { key }: Caller, days: number): Promise<UsageOfDay[]> {
  const today = Math.floor(Date.now() / DAY_MS)
  const rows = await query(USED, [key.id, dateOf(today - days + 1), MAX_INT])
  const used = new Map(rows.map((row) => [row.date, row as unknown as UsageOfDay]))
  return Array.from({ length: days }, (_, i) => {
    const date = dateOf(today - i)
    return used.get(date) ?? { date, requests: 0, refused: 0, cost: 0 }
  })
}
