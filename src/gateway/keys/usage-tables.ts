import type { Used } from '../../../schema/kit/context.js'
import { MAX_INT, MAX_USAGE_HOURS } from '../../../schema/kit/input/rules.js'
import type { Logger } from '../../engines/observe/index.js'
import { createPrepared, type Query, type Statement } from '../../engines/postgres/index.js'
import { purgeRegularly, runRegularly } from '../database/index.js'

// What keys have used, as it is stored: each of the last hours in ApiKeyUsageHour, each day before in ApiKeyUsage.

export const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
/** How many days of usage are kept: a year, and a month to compare it with. */
export const USAGE_DAYS = 400
/** Of so many keys, at most, hours become days at a time. */
const KEYS = 20
/** A `lastUsedAt` that is this close to the last use is left as it is. All together, it is at most a minute old. */
const CLOSE_MS = 15_000

/** How many requests ended with which error code; `unknown` are those that an older version counted. */
export type Outcomes = Record<string, number>

/** A code of another version may be named as anything, such as `constructor`. */
export const noOutcomes = (): Outcomes => Object.create(null)

/** Adds to outcomes, and returns them. */
export function addOutcomes(to: Outcomes, added: Outcomes): Outcomes {
  for (const [code, requests] of Object.entries(added)) to[code] = (to[code] ?? 0) + requests
  return to
}

const total = (outcomes: Outcomes) => Object.values(outcomes).reduce((sum, requests) => sum + requests, 0)

export interface UsageOptions {
  query: Query
  log: Logger
  tidyMs?: number
}

/** What a conflict adds to a row: `old` is the name of its table. Most rows add no errors, and a call of a function costs. */
const ADDED = `name = excluded.name, requests = old.requests + excluded.requests,
  refusals = old.refusals + excluded.refusals, cost = old.cost + excluded.cost,
  outcomes = CASE excluded.outcomes WHEN '{}' THEN old.outcomes ELSE "public".add_outcomes(old.outcomes, excluded.outcomes) END`

export interface Use {
  keyId: number
  requests: number
  cost: number
  usedAt: number
  outcomes?: Outcomes
}

/**
 * The parameters: rows in JSON, and an hour. No two gateways wait for each other: rows of usage are written in one order, and a key
 * whose row is locked gets its time of use later. (Were the batch not materialized, PostgreSQL would read all keys in the order of
 * their index: the pool plans without sorts.)
 */
const WRITE: Statement = {
  kind: 'INSERT',
  tables: ['ApiKeyUsageHour', 'ApiKey'],
  text: `
  WITH batch AS MATERIALIZED (
    SELECT id, name, "lastUsedAt", requests, refusals, cost, coalesce(outcomes, '{}') AS outcomes, now() - ago * interval '1 millisecond' AS "usedAt"
      FROM json_to_recordset($1::json)
        AS batch("keyId" integer, requests bigint, refusals bigint, cost bigint, outcomes jsonb, ago bigint)
      JOIN "public"."ApiKey" ON id = "keyId"
  ), used AS (
    SELECT key.id, "usedAt" FROM batch JOIN "public"."ApiKey" AS key ON key.id = batch.id
      WHERE coalesce(batch."lastUsedAt" NOT BETWEEN "usedAt" - ${CLOSE_MS} * interval '1 millisecond' AND now(), true)
      FOR NO KEY UPDATE OF key SKIP LOCKED
  ), updated AS (
    UPDATE "public"."ApiKey" AS key SET "lastUsedAt" = "usedAt" FROM used WHERE key.id = used.id
  )
  INSERT INTO "public"."ApiKeyUsageHour" AS old ("keyId", name, hour, requests, refusals, cost, outcomes)
    SELECT id, name, $2::timestamptz, requests, refusals, cost, outcomes FROM batch ORDER BY id
  ON CONFLICT ("keyId", hour) DO UPDATE SET ${ADDED}`,
}

/** Adds to what other gateways have written about an hour (a number of hours since 1970). Keys that are deleted are left out. */
export async function writeUsage(query: Query, hour: number, batch: readonly Use[]): Promise<void> {
  const now = Date.now()
  const rows = batch.map(({ keyId, requests, cost, usedAt, outcomes }) => {
    return { keyId, requests, refusals: total(outcomes ?? {}), cost, outcomes, ago: Math.max(0, now - usedAt) }
  })
  await query(WRITE, [JSON.stringify(rows), new Date(hour * HOUR_MS).toISOString()])
}

/** The first day whose hours are kept apart. */
const FIRST_DAY = `date_trunc('day', now() - interval '${MAX_USAGE_HOURS} hours', 'UTC')`

/**
 * Moves the hours of days that are more than three days ago to these days: those of some keys, in one statement, so that each counts
 * once. It passes by rows that another gateway moves at the same time. Like the deletion of a key, it locks the key first.
 */
const MOVE: Statement = {
  kind: 'INSERT',
  tables: ['ApiKeyUsage', 'ApiKeyUsageHour', 'ApiKey'],
  text: `
  WITH moved AS (
    DELETE FROM "public"."ApiKeyUsageHour" WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM "public"."ApiKeyUsageHour" WHERE hour < ${FIRST_DAY}
        AND "keyId" = ANY (ARRAY(
          SELECT id FROM "public"."ApiKey" WHERE id = ANY (ARRAY(
            SELECT "keyId" FROM "public"."ApiKeyUsageHour"
              WHERE hour < ${FIRST_DAY} ORDER BY hour LIMIT ${KEYS}))
            FOR KEY SHARE SKIP LOCKED))
        FOR UPDATE SKIP LOCKED))
    RETURNING *, (hour AT TIME ZONE 'UTC')::date AS day
  )
  INSERT INTO "public"."ApiKeyUsage" AS old ("keyId", name, day, requests, refusals, cost, outcomes)
    SELECT "keyId", (array_agg(name ORDER BY hour DESC))[1], day, sum(requests), sum(refusals), sum(cost),
        "public".sum_outcomes(outcomes)
      FROM moved GROUP BY "keyId", day ORDER BY "keyId", day
  ON CONFLICT ("keyId", day) DO UPDATE SET ${ADDED} RETURNING 1`,
}

/** Adds old hours up to days, and deletes old days, regularly. Returns the function that ends it. */
export function tidyRegularly({ query, log, tidyMs = HOUR_MS }: UsageOptions): () => void {
  const options = { query, log, everyMs: tidyMs }
  const condition = `day <= (now() AT TIME ZONE 'UTC')::date - ${USAGE_DAYS}`
  const ends = [
    runRegularly({ ...options, statement: MOVE, aim: 'add the usage of hours up to days' }),
    purgeRegularly({ ...options, table: 'ApiKeyUsage', condition }),
  ]
  return () => {
    for (const end of ends) end()
  }
}

/** A day or an hour in UTC. */
export type Unit = 'day' | 'hour'
export const UNIT_MS: Record<Unit, number> = { day: DAY_MS, hour: HOUR_MS }

/** What a key has used in a day or hour, which begins at a moment (milliseconds since 1970). */
export interface UsedByKey {
  keyId: number
  begins: number
  requests: number
  /** The sum of the outcomes. */
  refusals: number
  cost: number
  outcomes: Outcomes
}

/** The rows of hours, or of days, from a moment on. */
const HOURS = `SELECT "keyId", hour AS at, requests, refusals, cost, outcomes FROM "public"."ApiKeyUsageHour" WHERE hour >= $1::timestamptz`
const DAYS = `SELECT "keyId", day::timestamp AT TIME ZONE 'UTC' AS at, requests, refusals, cost, outcomes
  FROM "public"."ApiKeyUsage" WHERE day >= ($1::timestamptz AT TIME ZONE 'UTC')::date`

const prepared = createPrepared<Statement>()

/** The parameters: the beginning of the first day or hour, and the key, if it is one. */
const reading = (unit: Unit, ofOne: boolean) =>
  prepared(`${unit} ${ofOne}`, () => {
    const rows = (unit === 'hour' ? [HOURS] : [HOURS, DAYS]).map((rows) => (ofOne ? `${rows} AND "keyId" = $2` : rows))
    return {
      kind: 'SELECT',
      tables: ['ApiKeyUsageHour', ...(unit === 'day' ? ['ApiKeyUsage'] : [])],
      text: `SELECT "keyId", extract(epoch FROM date_trunc('${unit}', at, 'UTC'))::float8 AS seconds, sum(requests)::float8 AS requests,
        sum(refusals)::float8 AS refusals, sum(cost)::float8 AS cost, jsonb_agg(outcomes) FILTER (WHERE outcomes <> '{}')::text AS all
      FROM (${rows.join(' UNION ALL ')}) AS used GROUP BY 1, 2 ORDER BY 2, 1`,
    }
  })

/** What keys, or one of them, have used in each day or hour since the beginning of one. It has no entry where they used nothing. */
export async function readUsed(query: Query, unit: Unit, since: number, keyId?: number): Promise<UsedByKey[]> {
  const values = [new Date(since).toISOString(), ...(keyId === undefined ? [] : [keyId])]
  const rows = await query(reading(unit, keyId !== undefined), values)
  return rows.map((row) => {
    const outcomes = noOutcomes()
    for (const some of JSON.parse(String(row.all)) ?? []) addOutcomes(outcomes, some)
    const unknown = Number(row.refusals) - total(outcomes)
    if (unknown > 0) outcomes.unknown = unknown
    return {
      keyId: Number(row.keyId),
      begins: Number(row.seconds) * 1000,
      requests: Number(row.requests),
      refusals: total(outcomes),
      cost: Number(row.cost),
      outcomes,
    }
  })
}

/** An Int of GraphQL has 32 bits: a greater figure is shown as the greatest Int. */
const shown = (figure: number) => Math.min(figure, MAX_INT)

/** What a key has used in each of the last days or hours, this one first. */
export async function readUsage(query: Query, keyId: number, unit: Unit, count: number): Promise<Used[]> {
  const last = Math.floor(Date.now() / UNIT_MS[unit]) * UNIT_MS[unit]
  const rows = await readUsed(query, unit, last - (count - 1) * UNIT_MS[unit], keyId)
  const used = new Map(rows.map((row) => [row.begins, row]))
  return Array.from({ length: count }, (_, i) => {
    const begins = new Date(last - i * UNIT_MS[unit])
    const { requests = 0, refusals = 0, cost = 0, outcomes = {} } = used.get(begins.getTime()) ?? {}
    return {
      date: begins.toISOString().slice(0, 10),
      hour: begins,
      requests: shown(requests),
      refused: shown(refusals),
      cost: shown(cost),
      outcomes: Object.entries(outcomes)
        .map(([code, requests]) => ({ code, requests: shown(requests) }))
        .sort((a, b) => (a.code < b.code ? -1 : 1)),
    }
  })
}
