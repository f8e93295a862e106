import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { PrismaPg } from '@prisma/adapter-pg'
import type pg from 'pg'
import { PrismaClient } from '../../prisma/generated/client/client.js'
import type { Logger } from '../log.js'
import { type Settings, StartupError } from '../settings.js'
import { ConnectionPool } from './client/pool.js'
import { Probe } from './client/probe.js'
import { valuesOfPrisma } from './client/values.js'
import { type Embedded, openEmbedded } from './embedded/open.js'
import { hasTables, migrate } from './migrations.js'

export { isDuplicate, isRolledBack } from './client/errors.js'
export { conflictDelay, MAX_REPEATS } from './client/pool.js'
export { LAST_COMMENT, laneComment } from './client/statement.js'
export { sweepRegularly } from './client/sweep.js'
export { backUp, inspect, restore, type Summary } from './embedded/backup.js'

export interface Database {
  readonly prisma: PrismaClient
  /** A statement of our own, outside of transactions. It gets the values and the names of columns that Prisma would return. */
  query(text: string, values: unknown[]): Promise<Record<string, unknown>[]>
  readonly url: string
  /** Names the database in messages; without the password. */
  readonly name: string
  readonly embedded: boolean
  /** How long a request may wait for the database, however many statements it has, in milliseconds. */
  readonly requestTimeoutMs: number
  /** Rejects if the database does not answer within two seconds, over a connection of its own. */
  ping(): Promise<void>
  /** Connections of the pool, and what waits for one. */
  pool(): { inUse: number; idle: number; waiting: number }
  close(): Promise<void>
}

export interface DatabaseOptions {
  /** How long a statement or a transaction may take, in milliseconds; default: 2,200. Slow test machines need longer. */
  timeoutMs?: number
  /** Puts the first data into an embedded database, however long that takes. */
  prepare?: (prisma: PrismaClient) => Promise<unknown>
  /** For commands: if a process owns DATA_DIR, use its embedded database. */
  join?: boolean
  /** For commands: refuse a database that no gateway has used, because the settings may name the wrong one. */
  mustExist?: boolean
  /** Called if the embedded database ends without `close`: the process cannot continue. */
  onLost?: (error: Error) => void
  /** Gets a line when the database, or a part of it, stops answering, and when it answers again. */
  log?: Logger
  /** Called with what a start waits for, and with what it finds that an operator should know. */
  onNotice?: (message: string) => void
}

type DatabaseSettings = Pick<Settings, 'DATABASE_URL' | 'DATA_DIR' | 'EMBEDDED_DB_PORT'>

/**
 * Connects to the configured PostgreSQL or opens the embedded database, and applies missing migrations.
 *
 * @throws StartupError with one line that names the database and the problem, but never the password
 */
export async function openDatabase(config: DatabaseSettings, options: DatabaseOptions = {}): Promise<Database> {
  const { DATABASE_URL: url, DATA_DIR: dataDir, EMBEDDED_DB_PORT } = config
  const { mustExist, onLost, onNotice } = options
  if (url) {
    const name = databaseName(url)
    const exists = async () => {
      if (mustExist && !(await hasTables(url))) throw new Error('it has no pet store; is it the right one?')
    }
    await exists()
      .then(() => migrate(url, { onNotice }))
      .catch((error) => {
        throw startupError(error, name)
      })
    return connect(url, name, options)
  }
  if (mustExist && !existsSync(join(dataDir, 'db')))
    throw new StartupError(
      `DATA_DIR ${dataDir} has no database; set DATA_DIR or DATABASE_URL to the same value as for the service`,
    )
  // A command that opens the database itself must not fail because a gateway uses the port.
  const port = options.join ? 0 : EMBEDDED_DB_PORT
  const embedded = await openEmbedded({ dataDir, port, join: options.join, onLost })
  try {
    await migrate(embedded.url, { onNotice })
    const name = `embedded, in ${resolve(dataDir)}`
    if (options.prepare) {
      const { prisma } = connect(embedded.url, name, { timeoutMs: PATIENT_MS }, embedded)
      await options.prepare(prisma).finally(() => prisma.$disconnect())
    }
    return connect(embedded.url, name, options, embedded)
  } catch (error) {
    await embedded.close()
    throw new StartupError(`DATA_DIR ${dataDir}: ${(error as Error).message}`, { cause: error })
  }
}

/** A request may take three seconds. */
const TIMEOUT_MS = 2_200
/** For work that no client waits for. */
export const PATIENT_MS = 30_000

/** Connects to a database that is up to date. */
export function connect(
  url: string,
  name: string,
  { log, timeoutMs = TIMEOUT_MS }: DatabaseOptions,
  embedded?: Embedded,
): Database {
  const probe = new Probe(url, log)
  const pool = new ConnectionPool({
    connectionString: url,
    timeoutMs,
    keepAlive: true,
    ask: embedded ? undefined : (text, values) => probe.query(text, values),
    onLaneChange(statements, error) {
      if (error) log?.warn({ err: error, statements }, 'the database does not answer these statements')
      else log?.info({ statements }, 'the database answers these statements again')
    },
  })
  const adapter = new PrismaPg(pool, {
    disposeExternalPool: true,
    statementNameGenerator: ({ sql }) => pool.statementName(sql) as string,
  })
  // The pool ends a transaction before Prisma would: only the pool knows how long it has waited for a connection.
  const transactionOptions = { timeout: 2 * timeoutMs }
  const prisma = new PrismaClient({ adapter, transactionOptions, errorFormat: 'minimal', log: [] })
  let closed: Promise<void> | undefined
  return {
    prisma,
    async query(text, values) {
      const statement: pg.QueryConfig = { name: pool.statementName(text), text, values, types: valuesOfPrisma }
      const { rows }: pg.QueryResult = await pool.query(statement)
      return rows
    },
    url,
    name,
    embedded: embedded !== undefined,
    requestTimeoutMs: timeoutMs + 300,
    pool: () => pool.state,
    ping: () => probe.ping(),
    close() {
      probe.close()
      // A client that has sent nothing does not end the pool.
      closed ??= prisma
        .$disconnect()
        .then(() => (pool.ending ? undefined : pool.end()))
        .finally(() => embedded?.close())
      return closed
    },
  }
}

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'connection refused; is the server running?',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name cannot be resolved',
  ETIMEDOUT: 'the server does not respond',
}

function databaseName(url: string): string {
  const { hostname, port, pathname, username, searchParams } = new URL(url)
  const host = searchParams.get('host') ?? decodeURIComponent(hostname)
  const database = decodeURIComponent(pathname.slice(1) || username)
  return `${JSON.stringify(database)} at ${host}:${port || 5432}`
}

/** The error as one line that does not contain the password. */
function startupError(error: unknown, name: string): StartupError {
  const { code = '', message } = error as NodeJS.ErrnoException
  const reason = REASONS[code] ?? (/timeout/i.test(message) ? REASONS.ETIMEDOUT : message.replaceAll(/\s+/g, ' '))
  return new StartupError(`DATABASE_URL: the database ${name} cannot be used: ${reason}`, { cause: error })
}
