import type { Logger } from '../../engines/observe/index.js'
import type { Query, Statement } from '../../engines/postgres/index.js'

const ROWS = 500

export interface RegularOptions {
  query: Query
  log: Logger
  /** Changes a small batch of rows, so that it delays other requests little. It runs until it returns no row. */
  statement: Statement
  /** What is in the log if it fails: "failed to …". */
  aim: string
  everyMs: number
}

/** Runs a statement regularly. Returns the function that ends it. */
export function runRegularly({ query, log, statement, aim, everyMs }: RegularOptions): () => void {
  let isStopped = false
  async function run() {
    try {
      while (!isStopped && (await query(statement, [])).length > 0);
    } catch (error) {
      log.warn({ err: error }, `failed to ${aim}`)
    }
  }
  const timer = setInterval(run, everyMs).unref()
  return () => {
    isStopped = true
    clearInterval(timer)
  }
}

export interface PurgeOptions extends Omit<RegularOptions, 'statement' | 'aim'> {
  table: 'IdempotentAnswer' | 'ApiKeyUsage'
  /** Which rows are old. */
  condition: string
}

/** Deletes old rows regularly. Returns the function that ends it. */
export function purgeRegularly({ table, condition, ...options }: PurgeOptions): () => void {
  const name = `"public"."${table}"`
  const text = `
    DELETE FROM ${name} WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM ${name} WHERE ${condition} LIMIT ${ROWS} FOR UPDATE SKIP LOCKED)) RETURNING 1`
  const statement: Statement = { kind: 'DELETE', tables: [table], text }
  return runRegularly({ ...options, statement, aim: `delete old rows of ${table}` })
}
