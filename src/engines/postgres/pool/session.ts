import { Socket } from 'node:net'
import type pg from 'pg'
import { OutOfTime } from './errors.js'

// A server, a database and a role have settings with which sessions begin: a server's time zone, for example, is that of the
// machine on which it was made. What is relied on is set here.

/** A pooler such as PgBouncer keeps these for each of its clients. */
const KEPT = {
  // Prisma writes a moment without its offset, as the session's time zone has it.
  TimeZone: 'UTC',
  // What PostgreSQL sends in another style cannot be read.
  DateStyle: 'ISO, MDY',
  standard_conforming_strings: 'on',
}

const SETTINGS = {
  ...KEPT,
  IntervalStyle: 'postgres',
  bytea_output: 'hex',
  default_transaction_isolation: 'read committed',
  // The pool sets its own. Without it, a start waits as long as it must.
  statement_timeout: '0',
  lock_timeout: '0',
}

const assignments = (settings: Record<string, string>, prefix: string) =>
  Object.entries(settings).map(([name, value]) => `${prefix} ${name} = '${value}'`)

/** For the startup parameter `options`, where the last one counts. Spaces in it are escaped. */
export const SESSION_OPTIONS = Object.entries(SETTINGS)
  .map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
  .join(' ')

/** Startup parameters that a pooler takes. */
export const SESSION_PARAMETERS: Record<string, string> = KEPT

/** For a session through a pooler. */
export const SET_SESSION = assignments(KEPT, 'SET').join('; ')

/** For a transaction through a pooler, whose sessions are shared. */
export const SET_TRANSACTION = assignments({ ...KEPT, lock_timeout: SETTINGS.lock_timeout }, 'SET LOCAL').join('; ')

/** A socket that closes if nothing has passed it for a time. */
function patientSocket(ms: number): Socket {
  const socket = new Socket()
  return socket.setTimeout(ms, () => socket.destroy(new OutOfTime()))
}

/** How much later than PostgreSQL a client gives up, in milliseconds. */
const LATER_MS = 1_000

/** Connections for another pool, such as Prisma's. A statement that takes longer fails. */
export const connectionsFor = (
  { connectionString, isPooled }: { connectionString: string; isPooled?: boolean | undefined },
  timeoutMs: number,
): pg.PoolConfig => ({
  connectionString,
  keepAlive: true,
  connectionTimeoutMillis: timeoutMs,
  stream: () => patientSocket(timeoutMs + LATER_MS),
  ...(isPooled ? { onConnect: (client) => client.query(SET_SESSION) } : { statement_timeout: timeoutMs }),
})

// Said for each transaction, because a pooler's sessions may begin with another isolation.
export const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED'
/** All its statements see the same rows, whatever others change. */
export const BEGIN_AT_ONE_MOMENT = 'BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY'
