import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { StartupError } from '../settings.js'

/** Found from the package's root, so that it is the same folder for src/ and for dist/src/. */
const folder = join(dirname(createRequire(import.meta.url).resolve('#package.json')), 'prisma/migrations')

/** A database that is away is known to be so before anybody gives up on us. */
export const CONNECT_TIMEOUT = 3000

/** The key of Prisma Migrate's own advisory lock: it and the gateways exclude each other. */
const LOCK = 72707369

/** Prisma Migrate's table, so that its command line and the gateways agree about what was applied. */
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

/** Whether a recorded checksum is that of a file, whose line ends a checkout may have changed. */
const matches = ({ sql }: Migration, recorded: string) =>
  [sql, sql.replaceAll('\r\n', '\n'), sql.replaceAll(/\r?\n/g, '\r\n')].some((text) => checksum(text) === recorded)

export function readMigrations(from = folder): Migration[] {
  return readdirSync(from)
    .filter((name) => existsSync(join(from, name, 'migration.sql')))
    .sort()
    .map((name) => ({ name, sql: readFileSync(join(from, name, 'migration.sql'), 'utf8') }))
}

/**
 * What the database lacks.
 *
 * @throws StartupError when its history is not a part of ours: to go on could only make it worse
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
    if (!ours) throw new StartupError(`the database is newer than this gateway: it has the migration ${name}`)
    if (!finished)
      throw new StartupError(`the migration ${name} has failed in the database; see: npx prisma migrate resolve`)
    if (!matches(ours, checksum))
      throw new StartupError(`the migration ${name} was edited after it had been applied to the database`)
  }
  return migrations.filter(({ name }) => !rows.some((row) => row.name === name))
}

/** Applies one migration and records it, or does neither. False when another client was faster. */
async function apply(client: pg.Client, migrations: Migration[], { name, sql }: Migration): Promise<boolean> {
  await client.query('BEGIN')
  try {
    // Looked at again inside the transaction, since the clients of an embedded database share one session, and with
    // it the advisory lock.
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
      throw new StartupError(`the migration ${name} failed, and nothing of it was applied: ${error.message}`)
    throw error
  }
}

/**
 * Brings a database up to date and returns the names of the migrations it lacked. Any number of gateways may do this
 * at once. Where nothing is lacking it reads, and no more: a role that may not create anything is enough.
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
