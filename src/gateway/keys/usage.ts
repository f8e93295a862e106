import { Prisma, type PrismaClient } from '../../../prisma/generated/client/client.js'
import type { UsageOfDay } from '../../../schema/kit/context.js'
import { getOrCreate } from '../../../schema/kit/get-or-create.js'
import { MAX_INT } from '../../../schema/kit/input/rules.js'
import type { Logger } from '../../engines/observe/index.js'
import type { Query } from '../../engines/postgres/index.js'
import { purgeRegularly } from '../database/index.js'
import type { Caller } from './authenticate.js'

/** How many days of usage are kept: a year, and a month to compare it with. */
export const USAGE_DAYS = 400

const DAY_MS = 86_400_000
const PURGE_MS = 3_600_000
/** How often usage is written, in milliseconds, if few keys are in use. `kill -9` loses what was counted since. */
const FLUSH_MS = 5_000
const FEW_KEYS = 100
/** How long that of more keys is gathered, so that the database updates a row once for many requests. */
const GATHER_MS = 40_000
/** A `lastUsedAt` that is this close to the last use is left as it is. All together, it is at most a minute old. */
const CLOSE_MS = 15_000
/** The most rows of one statement. */
const BATCH = 1_000
/** The most rows that wait for the database. While it is away, further ones are dropped: about 22 MB. */
const MAX_WAITING = 200_000

export interface Figures {
  requests: number
  refusals: number
  cost: number
}

interface Use extends Figures {
  /** When the key was last used, in milliseconds since 1970. */
  usedAt: number
}

/** The use of each key on each day (a number of days since 1970). */
type Days = Map<number, Map<number, Use>>

const rowsOf = (days: Days) => [...days.values()].reduce((sum, { size }) => sum + size, 0)

export interface KeyUsageOptions {
  prisma: PrismaClient
  log: Logger
  maxWaiting?: number
  purgeMs?: number
}

/** What each key uses on each day. A request costs an addition in a map, which is written regularly. */
export class KeyUsage {
  #waiting: Days = new Map()
  #dropping = false
  #writing = Promise.resolve()
  #writtenAt = performance.now()
  readonly #maxWaiting: number
  readonly #timer = setInterval(() => this.#isDue() && this.flush(), FLUSH_MS).unref()
  readonly #stopPurging: () => void

  constructor(private readonly options: KeyUsageOptions) {
    const { prisma, log, maxWaiting = MAX_WAITING, purgeMs = PURGE_MS } = options
    this.#maxWaiting = maxWaiting
    const condition = Prisma.sql`day <= (now() AT TIME ZONE 'UTC')::date - ${USAGE_DAYS}::int`
    this.#stopPurging = purgeRegularly({ prisma, log, table: 'ApiKeyUsage', condition, everyMs: purgeMs })
  }

  count({ key }: Pick<Caller, 'key'>, cost: number, isRefused: boolean): void {
    const usedAt = Date.now()
    this.#add(Math.floor(usedAt / DAY_MS), key.id, { requests: 1, refusals: isRefused ? 1 : 0, cost, usedAt })
  }

  #add(day: number, keyId: number, { requests, refusals, cost, usedAt }: Use): void {
    const keys = getOrCreate(this.#waiting, day, () => new Map<number, Use>())
    const figures = keys.get(keyId)
    if (figures) {
      figures.requests += requests
      figures.refusals += refusals
      figures.cost += cost
      figures.usedAt = usedAt
    } else if (rowsOf(this.#waiting) < this.#maxWaiting) {
      keys.set(keyId, { requests, refusals, cost, usedAt })
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
      for (const [day, keys] of unwritten) {
        const rows = [...keys]
        for (let written = 0; written < rows.length; written += BATCH) {
          const batch = rows.slice(written, written + BATCH)
          await this.#insert(day, batch)
          for (const [keyId] of batch) keys.delete(keyId)
        }
      }
      this.#dropping = false
      this.#writtenAt = performance.now()
    } catch (error) {
      const counted = this.#waiting
      this.#waiting = unwritten
      for (const [day, keys] of counted) for (const [keyId, figures] of keys) this.#add(day, keyId, figures)
      this.options.log.debug({ err: error }, 'failed to write the usage of keys')
    }
  }

  /**
   * Adds to what other gateways have written. Keys that are deleted are left out. No two gateways wait for each other: rows
   * of usage are written in one order, and a key whose row is locked gets its time of use later. (Were the batch not
   * materialized, PostgreSQL would read all keys in the order of their index: the pool plans without sorts.)
   */
  async #insert(day: number, batch: [number, Use][]): Promise<void> {
    const now = Date.now()
    const rows = batch.map(([keyId, { usedAt, ...figures }]) => ({ keyId, ...figures, ago: Math.max(0, now - usedAt) }))
    await this.options.prisma.$executeRaw`
      WITH batch AS MATERIALIZED (
        SELECT id, name, "lastUsedAt", requests, refusals, cost, now() - ago * interval '1 millisecond' AS "usedAt"
          FROM json_to_recordset(${JSON.stringify(rows)}::json)
            AS batch("keyId" integer, requests bigint, refusals bigint, cost bigint, ago bigint)
          JOIN "public"."ApiKey" ON id = "keyId"
      ), used AS (
        SELECT key.id, "usedAt" FROM batch JOIN "public"."ApiKey" AS key ON key.id = batch.id
          WHERE coalesce(batch."lastUsedAt" NOT BETWEEN "usedAt" - ${CLOSE_MS} * interval '1 millisecond' AND now(), true)
          FOR NO KEY UPDATE OF key SKIP LOCKED
      ), updated AS (
        UPDATE "public"."ApiKey" AS key SET "lastUsedAt" = "usedAt" FROM used WHERE key.id = used.id
      )
      INSERT INTO "public"."ApiKeyUsage" AS old ("keyId", name, day, requests, refusals, cost)
        SELECT id, name, ${dateOf(day)}::date, requests, refusals, cost FROM batch ORDER BY id
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
