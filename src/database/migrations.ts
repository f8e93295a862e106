import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { StartupError } from '../settings.js'

/** Resolved from the package's root, so that src/ and dist/src/ use the same folder. */
const folder = join(dirname(createRequire(import.meta.url).resolve('#package.json')), 'prisma/migrations')

/** Shorter than the timeouts of usual clients and load balancers, so that they get our error. */
const CONNECT_TIMEOUT = 3000

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

/**
 * The migrations that the database lacks.
 *
 * @throws StartupError if its history contains a migration that is unknown, failed or edited
 */
async function pending(client: pg.Client, migrations: Migration[]): Promise<Migration[]> {
  const { rows } = await client
    .query<{ name: string; checksum: string; finished: boolean }>(
      `SELECT "migration_name" AS "name", "checksum", "finished_at" IS NOT NULL AS "finished"
       FROM "_prisma_migrations" WHERE "rolled_back_at" IS NULL`,
    )
    .catch((error) => {
      if (error.code === '42P01') return { rows: [] }
      throw error
    })
  for (const { name, checksum, finished } of rows) {
    const ours = migrations.find((migration) => migration.name === name)
    if (!ours)
      throw new StartupError(
        `the database is newer than this gateway: it has the migration ${name}; update the gateway`,
      )
    if (!finished)
      throw new StartupError(
        `the migration ${name} failed in the database; resolve it with: npx prisma migrate resolve`,
      )
    if (!matches(ours, checksum))
      throw new StartupError(
        `the migration ${name} was edited after it was applied to the database; restore the original file`,
      )
  }
  return migrations.filter(({ name }) => !rows.some((row) => row.name === name))
}

/** Applies and records one migration, or does neither. Returns false if another client was faster. */
async function apply(client: pg.Client, migrations: Migration[], { name, sql }: Migration): Promise<boolean> {
  await client.query('BEGIN')
  try {
    // Checked again inside the transaction: clients of the embedded database share one session, so the advisory lock
    // does not exclude them.
    const needed = (await pending(client, migrations)).some((migration) => migration.name === name)
    if (needed) {
      await client.query(sql)
      await client.query(
        `INSERT INTO "_prisma_migrations" ("id", "checksum", "migration_name", "finished_at", "applied_steps_count")
         VALUES ($1, $2, $3, clock_timestamp(), 1)`,
        [randomUUID(), checksum(sql), name],
      )
    }
    await client.query('COMMIT')
    return needed
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    if (error instanceof pg.DatabaseError)
      throw new StartupError(`the migration ${name} failed and was rolled back: ${error.message}`)
    throw error
  }
}

/**
 * Applies missing migrations and returns their names. Any number of gateways may do this at once. If none is missing, it
 * only reads, so the role needs no right to create anything.
 */
export async function migrate(url: string, migrations = readMigrations()): Promise<string[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT })
  client.on('error', () => {})
  try {
    await client.connect()
    if ((await pending(client, migrations)).length === 0) return []
    await client.query('SELECT pg_advisory_lock($1)', [LOCK])
    try {
      await client.query(TABLE)
      const applied: string[] = []
      for (const migration of await pending(client, migrations)) {
        if (await apply(client, migrations, migration)) applied.push(migration.name)
      }
      return applied
    } finally {
      await client.query('SELECT pg_advisory_unlock($1)', [LOCK]).catch(() => {})
    }
  } finally {
    await client.end().catch(() => {})
  }
}

/** Whether a gateway has ever used the database. */
export async function hasTables(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query(`SELECT to_regclass('"ApiKey"') IS NOT NULL AS "exists"`)
    return rows[0].exists
  } finally {
    await client.end().catch(() => {})
  }
}
