import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '../../prisma/generated/client/client.js'
import { type Settings, StartupError } from '../settings.js'
import { type Embedded, openEmbedded } from './embedded.js'
import { CONNECT_TIMEOUT, migrate } from './migrations.js'
import { PipelinedPool } from './pool.js'

export interface Database {
  readonly prisma: PrismaClient
  readonly url: string
  readonly embedded: boolean
  /** Rejects when the database does not answer within two seconds. */
  ping(): Promise<void>
  close(): Promise<void>
}

export interface DatabaseOptions {
  /** For commands: use the embedded database of the process that owns DATA_DIR, where there is one. */
  join?: boolean
  /** The embedded database has ended on its own: this process can do nothing useful any more. */
  onLost?: (error: Error) => void
  /** A connection broke while nobody used it. Nobody needs to do anything. */
  onConnectionError?: (error: Error) => void
}

type DatabaseSettings = Pick<Settings, 'DATABASE_URL' | 'DATA_DIR' | 'EMBEDDED_DB_PORT'>

/**
 * Connects to the configured PostgreSQL, or opens the embedded one, and applies the migrations that it lacks.
 *
 * @throws StartupError in one line that names the database and what is wrong, and never the password
 */
export async function openDatabase(config: DatabaseSettings, options: DatabaseOptions = {}): Promise<Database> {
  const { DATABASE_URL: url, DATA_DIR: dataDir, EMBEDDED_DB_PORT } = config
  if (url) {
    await migrate(url).catch((error) => {
      throw explain(error, url)
    })
    return connect(url, options)
  }
  const { join, onLost } = options
  // A command that opens the database itself must not fail because another gateway has the port.
  const embedded = await openEmbedded({ dataDir, port: join ? 0 : EMBEDDED_DB_PORT, join, onLost })
  try {
    await migrate(embedded.url)
    return connect(embedded.url, options, embedded)
  } catch (error) {
    await embedded.close()
    throw new StartupError(`DATA_DIR ${dataDir}: ${(error as Error).message}`, { cause: error })
  }
}

function connect(url: string, { onConnectionError = () => {} }: DatabaseOptions, embedded?: Embedded): Database {
  const config = {
    connectionString: url,
    max: 10,
    // A request never hangs because the database is unreachable or slow. The second timeout is for an answer that never
    // arrives, from a server that could not report the first.
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    statement_timeout: 10_000,
    query_timeout: 11_000,
    keepAlive: true,
  }
  // The clients of the embedded database share one session, in which the names of statements would collide.
  const adapter = embedded
    ? new PrismaPg(config, { onPoolError: onConnectionError, onConnectionError })
    : new PrismaPg(new PipelinedPool(config), {
        onPoolError: onConnectionError,
        onConnectionError,
        disposeExternalPool: true,
        statementNameGenerator: ({ sql }) => statementName(sql),
      })
  const prisma = new PrismaClient({ adapter, errorFormat: 'minimal', log: [] })
  let closed: Promise<void> | undefined
  return {
    prisma,
    url,
    embedded: embedded !== undefined,
    async ping() {
      const patience = new AbortController()
      const late = sleep(2000, undefined, { signal: patience.signal }).then(() => {
        throw new Error('the database did not answer within 2 seconds')
      })
      await Promise.race([prisma.$queryRaw`SELECT 1`, late]).finally(() => patience.abort())
    },
    close() {
      closed ??= prisma.$disconnect().finally(() => embedded?.close())
      return closed
    },
  }
}

const names = new Map<string, string>()

/**
 * PostgreSQL keeps the plan of a named statement for as long as the connection lives. So only the first thousand get a
 * name: lists of ids make a statement of each length.
 */
function statementName(sql: string): string {
  let name = names.get(sql)
  if (name === undefined && names.size < 1000) {
    name = createHash('sha256').update(sql).digest('hex').slice(0, 32)
    names.set(sql, name)
  }
  return name ?? ''
}

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name cannot be looked up',
  ETIMEDOUT: 'it does not answer',
}

/** One line for whoever starts the gateway. */
function explain(error: unknown, url: string): StartupError {
  const { hostname, port, pathname, username, searchParams } = new URL(url)
  const host = searchParams.get('host') ?? decodeURIComponent(hostname)
  const database = decodeURIComponent(pathname.slice(1) || username)
  const { code = '', message } = error as NodeJS.ErrnoException
  const reason = REASONS[code] ?? (/timeout/i.test(message) ? REASONS.ETIMEDOUT : message.replaceAll(/\s+/g, ' '))
  return new StartupError(
    `DATABASE_URL: the database ${JSON.stringify(database)} at ${host}:${port || 5432} cannot be used: ${reason}`,
    { cause: error },
  )
}
