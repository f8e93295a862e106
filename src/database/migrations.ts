import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { StartupError } from '../settings.js'
import { withSession } from './session.js'

/** Resolved from the package's root, so that src/ and dist/src/ use the same folder. */
const folder = join(dirname(createRequire(import.meta.url).resolve('#package.json')), 'prisma/migrations')

/** How long a server may take to say which migrations it has. */
const READ_TIMEOUT = 10_000

/** How long a start waits for another migration, and for tables in use. */
const WAIT_MS = 60_000

const LOCK_NOT_AVAILABLE = '55P03'

/** How long a migration itself waits for a table: other statements on that table wait behind it. */
const TABLE_WAIT_MS = 2_000

/** The key of Prisma Migrate's advisory lock, so that it and the gateways exclude each other. */
const LOCK = 72707369

/** Prisma Migrate's table, so that its command line and the gateways agree on what was applied. */
const TABLE = `CREATE TABLE IF NOT EXISTS "_prisma_migrations" (
    "id" VARCHAR(36) PRIMARY KEY NOT NULL,
    "checksum" VARCHAR(64) NOT NULL,
    "finished_at" TIMESTAMPTZ,
    "migration_name" VARCHAR(255) NOT NULL,
    "logs" TEXT,
    "rolled_back_at" TIMESTAMPTZ,
    "started_at" TIMESTAMPTZ NOT NULL DEFAULT now(),
    "applied_steps_count" INTEGER NOT NULL DEFAULT 0
)`

const sessionOf = (connectionString: string): pg.ClientConfig => ({
  connectionString,
  // Shorter than the timeouts of usual clients and load balancers, so that they get the gateway's error.
  connectionTimeoutMillis: 3_000,
  application_name: 'petstore migrations',
})

interface Migration {
  name: string
  sql: string
}

const checksum = (sql: string) => createHash('sha256').update(sql).digest('hex')

/** Whether a recorded checksum matches a file. A checkout may have changed its line endings. */
const matches = ({ sql }: Migration, recorded: string) =>
  [sql, sql.replaceAll('\r\n', '\n'), sql.replaceAll(/\r?\n/g, '\r\n')].some((text) => checksum(text) === recorded)

export function readMigrations(from = folder): Migration[] {
  return readdirSync(from)
    .filter((name) => existsSync(join(from, name, 'migration.sql')))
    .sort()
    .map((name) => ({ name, sql: readFileSync(join(from, name, 'migration.sql'), 'utf8') }))
}

interface Applied {
  name: string
  checksum: string
  finished: boolean
}

async function readHistory(client: pg.Client): Promise<Applied[]> {
  const text = `SELECT "migration_name" AS "name", "checksum", "finished_at" IS NOT NULL AS "finished"
    FROM "_prisma_migrations" WHERE "rolled_back_at" IS NULL`
  const query: pg.QueryConfig & { query_timeout: number } = { text, query_timeout: READ_TIMEOUT }
  const { rows } = await client.query<Applied>(query).catch((error) => {
    if (error.code === '42P01') return { rows: [] }
    throw error
  })
  return rows
}

/**
 * The migrations that the database lacks or has not finished. It may have others: migrations only add, so that the
 * version before them can serve the database too.
 *
 * @throws StartupError if a migration file was edited after it was applied
 */
function pending(history: Applied[], migrations: Migration[]): Migration[] {
  return migrations.filter((ours) => {
    const row = history.find(({ name }) => name === ours.name)
    if (row && !matches(ours, row.checksum))
      throw new StartupError(
        `the migration ${ours.name} was edited after it was applied to the database; restore the original file`,
      )
    return !row?.finished
  })
}

/**
 * Applies and records one migration, or does neither. Returns false if another client was faster, and undefined if a
 * table is in use.
 */
async function apply(client: pg.Client, { name, sql }: Migration): Promise<boolean | undefined> {
  await client.query('BEGIN')
  try {
    // Checked again inside the transaction: clients of the embedded database share one session, so the advisory lock
    // does not exclude them.
    const row = (await readHistory(client)).find((row) => row.name === name)
    if (row && !row.finished)
      throw new StartupError(
        `the migration ${name} failed in the database; resolve it with: npx prisma migrate resolve`,
      )
    if (!row) {
      await client.query(`SET LOCAL lock_timeout = ${TABLE_WAIT_MS}`)
      await client.query(sql)
      await client.query(
        `INSERT INTO "_prisma_migrations" ("id", "checksum", "migration_name", "finished_at", "applied_steps_count")
         VALUES ($1, $2, $3, clock_timestamp(), 1)`,
        [randomUUID(), checksum(sql), name],
      )
    }
    await client.query('COMMIT')
    return !row
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    if (!(error instanceof pg.DatabaseError)) throw error
    if (error.code === LOCK_NOT_AVAILABLE) return undefined
    throw new StartupError(`the migration ${name} failed and was rolled back: ${error.message}`)
  }
}

/** Sessions that keep a migration waiting, for a message: those that match a condition on pg_stat_activity. */
async function sessions(client: pg.Client, condition: string): Promise<string> {
  const { rows } = await client.query<{ session: string }>(
    `SELECT format('process %s of the database server (%s%s, %s for %s seconds)', pid,
       coalesce(nullif(application_name, ''), 'unnamed'), ' from ' || host(client_addr), coalesce(state, 'active'),
       greatest(0, round(extract(epoch FROM clock_timestamp() - state_change)))) AS session
     FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND ${condition} ORDER BY pid LIMIT 3`,
  )
  return rows.map(({ session }) => session).join(' and ') || 'another session'
}

const lockHolders = `pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = ${LOCK} AND granted)`
const openTransactions = `xact_start < now() - interval '${TABLE_WAIT_MS} milliseconds'`

async function assertUtf8(client: pg.Client): Promise<void> {
  const { rows } = await client.query('SHOW server_encoding')
  const encoding = rows[0].server_encoding
  if (encoding !== 'UTF8')
    throw new StartupError(
      `its encoding is ${encoding}, which cannot store every text; create it again: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`,
    )
}

export interface MigrateOptions {
  migrations?: Migration[]
  /** Called with what an operator should know: what a start waits for, and migrations of a newer version. */
  onNotice?: (message: string) => void
  /** How long to wait for another migration, and for tables in use. */
  waitMs?: number
}

/**
 * Applies missing migrations and returns their names. Any number of gateways may do this concurrently. If no migration
 * is missing, it only reads, so the role needs no right to create anything.
 *
 * @throws StartupError if a migration failed or was edited, or if the wait is over
 */
export function migrate(url: string, options: MigrateOptions = {}): Promise<string[]> {
  const { migrations = readMigrations(), onNotice = () => {}, waitMs = WAIT_MS } = options
  const deadline = Date.now() + waitMs
  return withSession(sessionOf(url), async (client) => {
    const missing = async () => pending(await readHistory(client), migrations)
    /** Repeats an attempt until it returns a value, and says once what it waits for. */
    async function until<T>(what: string, holders: string, attempt: () => Promise<T | undefined>): Promise<T> {
      for (let said = false; ; said = true) {
        const result = await attempt()
        if (result !== undefined) return result
        const holder = await sessions(client, holders)
        if (Date.now() > deadline)
          throw new StartupError(
            `after ${waitMs / 1000} seconds, ${what} is still held by ${holder}; if that is no running migration, end it: SELECT pg_terminate_backend(<process>)`,
          )
        if (!said) onNotice(`waiting up to ${waitMs / 1000} seconds for ${what}, held by ${holder}`)
        await sleep(250)
      }
    }
    await assertUtf8(client)
    const unknown = (await readHistory(client)).filter(({ name }) => !migrations.some((ours) => ours.name === name))
    if (unknown.length > 0)
      onNotice(
        `the database has migrations of a newer version, which it can be served without: ${unknown.map(({ name }) => name).join(', ')}`,
      )
    const lock = await until('the migration lock', lockHolders, async () => {
      if ((await missing()).length === 0) return 'not needed'
      const { rows } = await client.query('SELECT pg_try_advisory_lock($1) AS locked', [LOCK])
      return rows[0].locked ? 'locked' : undefined
    })
    if (lock === 'not needed') return []
    try {
      await client.query(TABLE)
      const applied: string[] = []
      for (const migration of await missing()) {
        const attempt = () => apply(client, migration)
        const done = await until(`a table that the migration ${migration.name} changes`, openTransactions, attempt)
        if (done) applied.push(migration.name)
      }
      return applied
    } finally {
      await client.query('SELECT pg_advisory_unlock($1)', [LOCK]).catch(() => {})
    }
  })
}

/** Whether a gateway has ever used the database. */
export const hasTables = (url: string): Promise<boolean> =>
  withSession(sessionOf(url), async (client) => {
    const { rows } = await client.query(`SELECT to_regclass('"ApiKey"') IS NOT NULL AS "exists"`)
    return rows[0].exists
  })
