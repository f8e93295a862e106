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
  /** Rejects if the database does not respond within two seconds. */
  ping(): Promise<void>
  close(): Promise<void>
}

export interface DatabaseOptions {
  /** How long a request waits for a connection, in milliseconds; default: 3,000. Slow test machines need longer. */
  connectTimeoutMs?: number
  /** For commands: if a process owns DATA_DIR, use its embedded database. */
  join?: boolean
  /** Called if the embedded database ends without `close`: the process cannot continue. */
  onLost?: (error: Error) => void
  /** Called with what a start waits for, and with what it finds that an operator should know. */
  onNotice?: (message: string) => void
  /** Called if an idle connection breaks. The pool replaces it. */
  onConnectionError?: (error: Error) => void
}

type DatabaseSettings = Pick<Settings, 'DATABASE_URL' | 'DATA_DIR' | 'EMBEDDED_DB_PORT'>

/**
 * Connects to the configured PostgreSQL or opens the embedded database, and applies missing migrations.
 *
 * @throws StartupError with one line that names the database and the problem, but never the password
 */
export async function openDatabase(config: DatabaseSettings, options: DatabaseOptions = {}): Promise<Database> {
  const { DATABASE_URL: url, DATA_DIR: dataDir, EMBEDDED_DB_PORT } = config
  const { join, onLost, onNotice } = options
  if (url) {
    await migrate(url, { onNotice }).catch((error) => {
      throw startupError(error, url)
    })
    return connect(url, options)
  }
  // A command that opens the database itself must not fail because a gateway uses the port.
  const embedded = await openEmbedded({ dataDir, port: join ? 0 : EMBEDDED_DB_PORT, join, onLost })
  try {
    await migrate(embedded.url, { onNotice })
    return connect(embedded.url, options, embedded)
  } catch (error) {
    await embedded.close()
    throw new StartupError(`DATA_DIR ${dataDir}: ${(error as Error).message}`, { cause: error })
  }
}

function connect(
  url: string,
  { onConnectionError = () => {}, connectTimeoutMs = CONNECT_TIMEOUT }: DatabaseOptions,
  embedded?: Embedded,
): Database {
  const config = {
    connectionString: url,
    max: 10,
    // A request never hangs because the database is unreachable or slow. query_timeout covers a server that
    // does not respond at all.
    connectionTimeoutMillis: connectTimeoutMs,
    statement_timeout: 10_000,
    query_timeout: 11_000,
    keepAlive: true,
  }
  // The clients of the embedded database share one session, in which names of statements would collide.
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
      const timeout = new AbortController()
      const tooLate = sleep(2000, undefined, { signal: timeout.signal }).then(() => {
        throw new Error('the database did not respond within 2 seconds')
      })
      await Promise.race([prisma.$queryRaw`SELECT 1`, tooLate]).finally(() => timeout.abort())
    },
    close() {
      closed ??= prisma.$disconnect().finally(() => embedded?.close())
      return closed
    },
  }
}

const names = new Map<string, string>()

/**
 * PostgreSQL keeps a named statement until its connection closes. Only the first thousand statements get a name, because
 * lists of ids make a different statement for each length.
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
  ECONNREFUSED: 'connection refused; is the server running?',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name cannot be resolved',
  ETIMEDOUT: 'the server does not respond',
}

/** The error as one line that does not contain the password. */
function startupError(error: unknown, url: string): StartupError {
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
