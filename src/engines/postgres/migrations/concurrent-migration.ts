import type pg from 'pg'
import { StartupError } from '../../../startup-error.js'

// Migrations that let others write to their tables: indexes are built beside them, and many rows are changed in batches.
// PostgreSQL refuses both inside of a transaction.

/** The index that a statement builds. */
const BUILD = /^CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+(?:IF\s+NOT\s+EXISTS\s+)?("[^"]+")/i

/**
 * What runs outside of the transaction of the lock, with the schema of its tables and functions: a pooler does not keep a
 * search_path.
 */
export const withSchema = (sql: string, schema: string) =>
  sql.replaceAll(/(?<=\b(?:FROM|JOIN|INTO|UPDATE)\s+)"\w+"(?!\.)|"\w+"(?=\s*\()/g, `"${schema}".$&`)

/** The statements of a migration that builds indexes concurrently; undefined if it does not. */
export function concurrentBuilds({ name, sql }: { name: string; sql: string }): string[] | undefined {
  const code = sql.replaceAll(/--.*/g, '')
  if (!/\bINDEX\s+CONCURRENTLY\b/i.test(code)) return undefined
  const statements = code.split(';').flatMap((statement) => statement.trim() || [])
  const other = statements.find((statement) => !BUILD.test(statement))
  // It could be performed, and the migration not recorded.
  if (other)
    throw new StartupError(
      `the migration ${name} builds an index concurrently, so it may have CREATE INDEX CONCURRENTLY "…" statements only; move ${JSON.stringify(other)} to another migration`,
    )
  return statements
}

/** A migration that commits its changes in batches, so that it locks no table for long. It must be repeatable. */
export const commitsBatches = (sql: string) => /^ *COMMIT\\073/m.test(sql)

/** For a database with one session, which nobody else can use during a migration. */
export const inOneTransaction = (sql: string) => sql.replaceAll(/\bCONCURRENTLY\b|^ *COMMIT\\073/gim, '')

/** The sessions that build an index in this database. A gateway that was killed may have left one. */
export const BUILDERS = 'SELECT pid FROM pg_stat_progress_create_index WHERE datname = current_database()'

/**
 * Builds an index that does not exist, and builds one again whose build was interrupted. Returns false if another session
 * is building it.
 */
export async function buildIndex(client: pg.Client, schema: string, statement: string): Promise<boolean> {
  const name = `"${schema}".${BUILD.exec(statement)?.[1]}`
  const { rows } = await client.query<{ valid: boolean; building: boolean }>(
    `SELECT indisvalid AS valid, EXISTS (${BUILDERS} AND index_relid = indexrelid) AS building
     FROM pg_index WHERE indexrelid = to_regclass($1)`,
    [name],
  )
  const [found] = rows
  if (found?.valid) return true
  if (found?.building) return false
  if (found) await client.query(`DROP INDEX CONCURRENTLY ${name}`)
  await client.query(withSchema(statement, schema))
  return true
}
