import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { StartupError } from '../../../startup-error.js'
import {
  BUILDERS,
  buildIndex,
  commitsBatches,
  concurrentBuilds,
  inOneTransaction,
  withSchema,
} from './concurrent-migration.js'
import { type Migration, PIN_TRIGGERS, pending, readHistory, readMigrations, record, useSchema } from './history.js'

/** Calls `work` with a connection that is not of the pool, and closes it. */
export async function withSession<T>(config: pg.ClientConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(config)
  client.on('error', () => {})
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}

/** How long a start waits for another migration, and for tables in use. */
const WAIT_MS = 60_000

const LOCK_NOT_AVAILABLE = '55P03'
const DEADLOCK = '40P01'

/** After this, a migration that takes long is announced. */
const NOTICE_MS = 2_000

/** How long a migration itself waits for a table: other statements on that table wait behind it. */
const TABLE_WAIT_MS = 2_000

/** The key of Prisma Migrate's advisory lock, so that it and the gateways exclude each other. */
const LOCK = 72707369

const sessionOf = (connectionString: string): pg.ClientConfig => ({
  connectionString,
  // Shorter than the timeouts of usual clients and load balancers, so that they get the gateway's error.
  connectionTimeoutMillis: 3_000,
  application_name: 'petstore migrations',
  keepAlive: true,
})

/** What a migration has to wait for, and a condition on pg_stat_activity for the sessions that hold it. */
class Busy {
  constructor(
    readonly what: string,
    readonly holders: string,
  ) {}
}

const lockHolders = `pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = ${LOCK} AND granted)`
const openTransactions = `xact_start < now() - interval '${TABLE_WAIT_MS} milliseconds'`

/** Carries a migration out, unless it has to wait. */
type Perform = (migration: Migration) => Promise<Busy | undefined>

/**
 * Applies and records one migration, or does neither: in a transaction that ends with the lock, so that a pooler cannot
 * keep it. Returns false if another client was faster.
 *
 * The lock is never waited for in the database: a session that waits has a snapshot, for which concurrent builds of
 * indexes wait.
 */
async function apply(client: pg.Client, schema: string, migration: Migration, perform: Perform) {
  const { name } = migration
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
  try {
    const { rows } = await client.query('SELECT pg_try_advisory_xact_lock($1) AS locked', [LOCK])
    if (!rows[0].locked) {
      await client.query('ROLLBACK')
      return new Busy('the migration lock', lockHolders)
    }
    await useSchema(client, schema)
    const row = (await readHistory(client, schema)).find((row) => row.name === name)
    if (row && !row.finished)
      throw new StartupError(
        `the migration ${name} failed in the database; resolve it with: npx prisma migrate resolve`,
      )
    const busy = row ? undefined : await perform(migration)
    if (!row && !busy) await record(client, migration)
    await client.query('COMMIT')
    return busy ?? !row
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    if (!(error instanceof pg.DatabaseError)) throw error
    if (error.code === LOCK_NOT_AVAILABLE || error.code === DEADLOCK)
      return new Busy(`a table that the migration ${name} changes`, openTransactions)
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
  schema?: string
  /** The database has one session for all: it cannot build an index beside a transaction. */
  isEmbedded?: boolean
  /** Called with what an operator should know: what a start waits for, and migrations of a newer version. */
  onNotice?: (message: string) => void
  /** How long to wait for another migration, and for tables in use. An index that is being built is always waited for. */
  waitMs?: number
}

/**
 * Applies missing migrations and returns their names. Any number of gateways may do this concurrently, also through a
 * pooler. If no migration is missing, it only reads, so the role needs no right to create anything.
 *
 * @throws StartupError if a migration failed or was edited, or if the wait is over
 */
export function migrate(url: string, options: MigrateOptions = {}): Promise<string[]> {
  const { migrations = readMigrations(), schema = 'public' } = options
  const { isEmbedded, onNotice = () => {}, waitMs = WAIT_MS } = options
  let deadline = Date.now() + waitMs
  return withSession(sessionOf(url), async (client) => {
    const missing = async () => pending(await readHistory(client, schema), migrations)
    const said = new Set<string>()

    /** Runs in the transaction of the lock. Builds that are concurrent with it have a session of their own. */
    async function perform(migration: Migration): Promise<Busy | undefined> {
      const { name, sql } = migration
      const builds = concurrentBuilds(migration)
      if (isEmbedded || !(builds || commitsBatches(sql))) {
        await client.query(`SET LOCAL lock_timeout = ${TABLE_WAIT_MS}`)
        await client.query(isEmbedded ? inOneTransaction(sql) : sql)
        await client.query(PIN_TRIGGERS)
        return
      }
      const notice = `the migration ${name} can take minutes; nothing is blocked meanwhile`
      const slow = setTimeout(onNotice, NOTICE_MS, notice)
      return withSession(sessionOf(url), async (builder) => {
        if (!builds) await builder.query(withSchema(sql, schema))
        for (const statement of builds ?? [])
          if (!(await buildIndex(builder, schema, statement)))
            return new Busy(`an index of the migration ${name}`, `pid IN (${BUILDERS})`)
      }).finally(() => clearTimeout(slow))
    }

    async function wait({ what, holders }: Busy): Promise<void> {
      const { rowCount } = await client.query(BUILDERS)
      if (rowCount) deadline = Date.now() + waitMs
      const holder = await sessions(client, holders)
      if (Date.now() > deadline)
        throw new StartupError(
          `after ${waitMs / 1000} seconds, ${what} is still held by ${holder}; if that is no running migration, end it: SELECT pg_terminate_backend(<process>)`,
        )
      if (!said.has(what)) onNotice(`waiting up to ${waitMs / 1000} seconds for ${what}, held by ${holder}`)
      said.add(what)
      await sleep(250)
    }

    await assertUtf8(client)
    const unknown = (await readHistory(client, schema)).filter(
      ({ name }) => !migrations.some((ours) => ours.name === name),
    )
    if (unknown.length > 0)
      onNotice(
        `the database has migrations of a newer version, which it can be served without: ${unknown.map(({ name }) => name).join(', ')}`,
      )
    const applied: string[] = []
    for (let next = await missing(); next[0]; next = await missing()) {
      const done = await apply(client, schema, next[0], perform)
      if (done instanceof Busy) await wait(done)
      else if (done) applied.push(next[0].name)
    }
    return applied
  })
}

/** Whether a gateway has ever used the schema. */
export const hasTables = (url: string, schema: string): Promise<boolean> =>
  withSession(sessionOf(url), async (client) => {
    const { rows } = await client.query(`SELECT to_regclass($1) IS NOT NULL AS "exists"`, [`"${schema}"."ApiKey"`])
    return rows[0].exists
  })
