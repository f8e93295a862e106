import { resolve } from 'node:path'
import { PrismaPg } from '@prisma/adapter-pg'
import { $Enums, PrismaClient } from '../../../prisma/generated/client/client.js'
import { models } from '../../../schema/kit/model.js'
import { type Embedded, hasDatabase, openEmbedded, optimizeWasmLater } from '../../engines/embedded/index.js'
import type { Logger } from '../../engines/observe/index.js'
import {
  ConnectionPool,
  connectionsFor,
  createTables,
  type DataModel,
  databaseError,
  hasTables,
  migrate,
  type OnStatement,
  Probe,
  type Query,
  readServerUrl,
  type ServerUrl,
  SHARED,
  type TransactionOptions,
  type Undo,
} from '../../engines/postgres/index.js'
import type { Settings } from '../../settings.js'
import { StartupError } from '../../startup-error.js'
import { newDatabase } from './new-database.js'

export { backUp, restore, STREAM, type Summary } from './backup.js'
export { installationId } from './installation.js'
export { assertIndexes, type ListIndex, missingIndexes } from './list-indexes.js'
export { purgeRegularly, runRegularly } from './purge.js'

/** A database that is up to date. */
export type Database = Omit<ReturnType<typeof connect>, 'open'>

export interface DatabaseOptions {
  /** How long a statement or a transaction may take, in milliseconds; default: 2,200. Slow test machines need longer. */
  timeoutMs?: number
  /** Puts the first data into an embedded database, however long that takes. */
  prepare?: (database: Pick<Database, 'prisma' | 'query'>) => Promise<unknown>
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

type DatabaseSettings = Pick<Settings, 'DATABASE_URL' | 'DIRECT_URL' | 'DATA_DIR' | 'EMBEDDED_DB_PORT'>

/**
 * Connects to the configured PostgreSQL or opens the embedded database, and applies missing migrations.
 *
 * @throws StartupError with one line that names the database and the problem, but never the password
 */
export async function openDatabase(config: DatabaseSettings, options: DatabaseOptions = {}): Promise<Database> {
  const { DATABASE_URL: url, DIRECT_URL, DATA_DIR: dataDir, EMBEDDED_DB_PORT } = config
  const { mustExist, onLost, onNotice } = options
  optimizeWasmLater()
  if (url) return openServer(url, DIRECT_URL, options)
  if (mustExist && !hasDatabase(dataDir))
    throw new StartupError(
      `DATA_DIR ${dataDir} has no database; set DATA_DIR or DATABASE_URL to the same value as for the service`,
    )
  // A command that opens the database itself must not fail because a gateway uses the port.
  const port = options.join ? 0 : EMBEDDED_DB_PORT
  const embedded = await openEmbedded({ dataDir, port, join: options.join, packed: newDatabase, onNotice, onLost })
  try {
    await migrate(embedded.url, { isEmbedded: true, onNotice })
    const name = `embedded, in ${resolve(dataDir)}`
    const target: Target = { connectionString: embedded.url, name, schema: 'public', embedded }
    if (options.prepare) {
      // Its end is not that of the database.
      const staysOpen = { ...embedded, close: async () => {} }
      const patient = connect({ ...target, embedded: staysOpen }, { timeoutMs: PATIENT_MS })
      await options.prepare(patient).finally(() => patient.close())
    }
    return connect(target, options)
  } catch (error) {
    await embedded.close()
    throw new StartupError(`DATA_DIR ${dataDir}: ${(error as Error).message}`, { cause: error })
  }
}

const UNDEFINED_TABLE = '42P01'
const ELSEWHERE = 'it lacks the tables that DIRECT_URL has; both must lead to the same database'

/** Connects to PostgreSQL. Nothing is served before its pool has answered. */
async function openServer(url: string, directUrl: string | undefined, options: DatabaseOptions): Promise<Database> {
  const { mustExist, onNotice = () => {} } = options
  const server = readServerUrl('DATABASE_URL', url)
  const direct = directUrl ? readServerUrl('DIRECT_URL', directUrl) : server
  if (direct.schema !== server.schema)
    throw new StartupError(
      `DIRECT_URL names the schema ${direct.schema}, and DATABASE_URL ${server.schema}; set ?schema= in both to the same`,
    )
  const urls = directUrl ? { DATABASE_URL: server, DIRECT_URL: direct } : { DATABASE_URL: server }
  for (const [setting, { ignored }] of Object.entries(urls))
    if (ignored.length > 0) onNotice(`${setting} has parameters without effect: ${ignored.join(', ')}`)
  const { connectionString, name, schema } = direct
  try {
    if (mustExist && !(await hasTables(connectionString, schema)))
      throw new Error('it has no pet store; is it the right one?')
    await migrate(connectionString, { schema, onNotice })
  } catch (error) {
    throw databaseError(error, directUrl ? 'DIRECT_URL' : 'DATABASE_URL', name)
  }
  const database = connect({ ...server, own: server.isPooled ? direct : server, url: direct.url }, options)
  try {
    const { isShared } = await database.open()
    if (isShared && server.isPooled === undefined) throw new Error(SHARED)
    return database
  } catch (error) {
    await database.close()
    const isElsewhere = (error as NodeJS.ErrnoException).code === UNDEFINED_TABLE
    const reason = isElsewhere ? new Error(ELSEWHERE) : error
    throw databaseError(reason, 'DATABASE_URL', server.name)
  }
}

/** A request may take three seconds. */
const TIMEOUT_MS = 2_200
/** For work that no client waits for. */
export const PATIENT_MS = 30_000

/** The most connections of Prisma. */
const PRISMA_CONNECTIONS = 2

/** What is connected to: an embedded database, or a server. */
interface Target extends Pick<ServerUrl, 'connectionString' | 'name' | 'schema'> {
  isPooled?: boolean | undefined
  /** Where Prisma connects to. */
  own?: Pick<ServerUrl, 'connectionString' | 'isPooled'>
  /** For programs that need connections of their own. */
  url?: string
  embedded?: Embedded
}

/** Connects to a database that is up to date. */
export function connect(target: Target, { log, timeoutMs = TIMEOUT_MS }: DatabaseOptions) {
  const { connectionString, name, schema, isPooled, own = target, url = connectionString, embedded } = target
  const probe = new Probe(connectionString, (moment) => pool.answersSince(moment), log)
  let observe: OnStatement | undefined
  const pool: ConnectionPool = new ConnectionPool({
    onStatement: (...statement) => observe?.(...statement),
    connectionString,
    timeoutMs,
    kind: embedded ? 'embedded' : isPooled ? 'pooler' : 'server',
    ask: (text, values) => probe.query(text, values),
    // Our own SQL says where the tables usually are. A pooler does not keep a search_path.
    textOf: (sql) => sql.replaceAll('"public".', `"${schema}".`),
    onBulkheadChange(statements, error) {
      if (error) log?.warn({ err: error, statements }, 'the database does not answer these statements')
      else log?.info({ statements }, 'the database answers these statements again')
    },
  })
  const prisma = new PrismaClient({
    adapter: new PrismaPg({ ...connectionsFor(own, timeoutMs), max: PRISMA_CONNECTIONS }, { schema }),
    transactionOptions: { isolationLevel: 'ReadCommitted', maxWait: timeoutMs, timeout: 2 * timeoutMs },
    errorFormat: 'minimal',
    log: [],
  })
  // Only the client knows the names in the database where they differ.
  const { _runtimeDataModel: stored } = prisma as unknown as { _runtimeDataModel: { models: DataModel['mapped'] } }
  const tables = createTables({ models, enums: $Enums, mapped: stored.models })
  let closed: Promise<void> | undefined
  return {
    /** For commands and the first data. It opens its own connections when it is used: requests do not use it. */
    prisma,
    /** What is stored, for statements of our own. */
    tables,
    /** Outside of transactions. */
    query: pool.query,
    /** As in ConnectionPool. */
    transaction: <T>(work: (query: Query, undo: Undo) => Promise<T>, options?: TransactionOptions) =>
      pool.transaction(work, options),
    /** For programs that need connections of their own, such as Studio. */
    url,
    /** Names the database in messages; without the password. */
    name,
    /** Resolves when the pool has its first answer. */
    open: () => pool.open(`"${schema}"."ApiKey"`),
    embedded: embedded !== undefined,
    /** How long a request may wait for the database, however many statements it has, in milliseconds. */
    requestTimeoutMs: timeoutMs + 300,
    /** Connections of the pool, and what waits for one. */
    pool: () => pool.state,
    /** As in ConnectionPool. */
    answersSince: (moment: number) => pool.answersSince(moment),
    /** Calls `given` for each statement from now on. */
    observeStatements(given: OnStatement) {
      observe = given
    },
    /** What requests may expect. Rejects if the database does not answer within two seconds. */
    ping: () => probe.ping(),
    close(): Promise<void> {
      probe.close()
      closed ??= Promise.all([prisma.$disconnect(), pool.end()])
        .finally(() => embedded?.close())
        .then(() => {})
      return closed
    },
  }
}
