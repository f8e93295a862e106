import { hash, randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { projectPath } from '../../../project.js'
import { StartupError } from '../../../startup-error.js'
import { SET_TRANSACTION } from '../pool/session.js'

/** How long a server may take to say which migrations it has. */
const READ_TIMEOUT = 10_000

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

export interface Migration {
  name: string
  sql: string
}

const checksum = (sql: string) => hash('sha256', sql, 'hex')

/** Whether a recorded checksum matches a file. A checkout may have changed its line endings. */
const matches = ({ sql }: Migration, recorded: string) =>
  [sql, sql.replaceAll('\r\n', '\n'), sql.replaceAll(/\r?\n/g, '\r\n')].some((text) => checksum(text) === recorded)

export function readMigrations(): Migration[] {
  const folder = projectPath('prisma/migrations')
  return readdirSync(folder)
    .filter((name) => existsSync(join(folder, name, 'migration.sql')))
    .sort()
    .map((name) => ({ name, sql: readFileSync(join(folder, name, 'migration.sql'), 'utf8') }))
}

export interface Applied {
  name: string
  checksum: string
  finished: boolean
}

/** What was applied to a schema. */
export async function readHistory(client: pg.Client, schema: string): Promise<Applied[]> {
  const text = `SELECT "migration_name" AS "name", "checksum", "finished_at" IS NOT NULL AS "finished"
    FROM ${pg.escapeIdentifier(schema)}."_prisma_migrations" WHERE "rolled_back_at" IS NULL`
  const query: pg.QueryConfig & { query_timeout: number } = { text, query_timeout: READ_TIMEOUT }
  const { rows } = await client.query<Applied>(query).catch((error) => {
    if (error.code === '42P01') return { rows: [] }
    throw error
  })
  return rows
}

/** Makes what follows in a transaction happen in a schema, which may be new, however long that takes. */
export async function useSchema(client: pg.Client, schema: string): Promise<void> {
  const name = pg.escapeIdentifier(schema)
  const { rowCount } = await client.query('SELECT FROM pg_namespace WHERE nspname = $1', [schema])
  if (!rowCount) await client.query(`CREATE SCHEMA ${name}`)
  await client.query(`SET LOCAL search_path = ${name}; ${SET_TRANSACTION};
    SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; ${TABLE}`)
}

/** Triggers find their tables whatever the search_path of a session is: a pooler does not keep it. */
export const PIN_TRIGGERS = `DO $$ DECLARE trigger regprocedure; BEGIN
  FOR trigger IN SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
    AND prorettype = 'trigger'::regtype AND pg_has_role(proowner, 'USAGE')
    AND coalesce(array_to_string(proconfig, ','), '') NOT LIKE '%search_path%'
  LOOP EXECUTE format('ALTER FUNCTION %s SET search_path FROM CURRENT', trigger); END LOOP;
END $$`

export const record = (client: pg.Client, { name, sql }: Migration) =>
  client.query(
    `INSERT INTO "_prisma_migrations" ("id", "checksum", "migration_name", "finished_at", "applied_steps_count")
     VALUES ($1, $2, $3, clock_timestamp(), 1)`,
    [randomUUID(), checksum(sql), name],
  )

/**
 * The migrations that the database lacks or has not finished. It may have others: migrations only add, so that the
 * version before them can serve the database too.
 *
 * @throws StartupError if a migration file was edited after it was applied
 */
export function pending(history: Applied[], migrations: Migration[]): Migration[] {
  return migrations.filter((ours) => {
    const row = history.find(({ name }) => name === ours.name)
    if (row && !matches(ours, row.checksum))
      throw new StartupError(
        `the migration ${ours.name} was edited after it was applied to the database; restore the original file`,
      )
    return !row?.finished
  })
}
