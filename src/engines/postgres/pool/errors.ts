import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

// What went wrong with a statement.

/** Whether PostgreSQL has refused a statement and kept the connection. */
export const isRefusal = (error: unknown): error is pg.DatabaseError =>
  error instanceof pg.DatabaseError && error.severity !== 'FATAL'

/** PostgreSQL does not have a prepared statement of this name. */
export const isMissing = ({ code }: pg.DatabaseError) => code === '26000'

/** A prepared statement that is missing, or that reads a table whose columns a migration has changed. */
export const isOutdated = (error: pg.DatabaseError) => isMissing(error) || error.code === '0A000'

/** A deadlock, a serialization failure, or a statement that has to be prepared again. */
export const isConflict = (error: unknown) =>
  isRefusal(error) && (error.code === '40P01' || error.code === '40001' || isOutdated(error))

/** A transaction that is repeated as a whole, like one that PostgreSQL has rolled back because of a conflict with another. */
export class MustRepeat extends Error {
  readonly code = '40001'
}

/** Whether a row is there already. */
export const isDuplicate = (error: unknown): error is pg.DatabaseError => isRefusal(error) && error.code === '23505'

/** Whether a foreign key does not hold. PostgreSQL 18 has a code of its own for rows that others refer to. */
export const isBrokenReference = (error: unknown): error is pg.DatabaseError =>
  isRefusal(error) && ['23503', '23001'].includes(error.code ?? '')

/**
 * The columns of a constraint that does not hold, and their values as text, from `Key (a, "b")=(1, x) already exists.` There
 * are no other places: a transaction that has failed cannot ask for the columns. Prisma's adapter reads the same.
 */
export function constraintKey({ detail = '' }: pg.DatabaseError): { columns: string[]; values: string } {
  const [, columns = '', values = ''] = /\((.+?)\)=\((.*)\)/s.exec(detail) ?? []
  return { columns: columns.split(', ').map((column) => column.replace(/^"|"$/g, '')), values }
}

/** Canceled by a timeout of the server: the connection is good, but the statement has no answer. */
export const isCanceled = ({ code }: pg.DatabaseError) => code === '57014' || code === '55P03'

/** A refusal that a new connection may not have: the server is no longer the primary. */
export const isStale = ({ code }: pg.DatabaseError) => code === '25006'

/** PostgreSQL or a pooler has no connection left. */
export const isFull = ({ code, message }: { code?: string; message?: string }) =>
  code === '53300' || /no more connections/.test(message ?? '')

/** What can go wrong with a statement, for metrics: few kinds, whatever PostgreSQL says. */
export const ERROR_KINDS = ['unreachable', 'full', 'timeout', 'conflict', 'constraint', 'read_only', 'other'] as const

export function errorKind(error: unknown): (typeof ERROR_KINDS)[number] {
  if (isFull(error as Error)) return 'full'
  if (error instanceof OutOfTime) return 'timeout'
  // 08 and 57P: a connection that ends, also if PostgreSQL says why.
  if (!(error instanceof pg.DatabaseError) || /^(08|57P)/.test(error.code ?? '')) return 'unreachable'
  if (isCanceled(error)) return 'timeout'
  if (isConflict(error)) return 'conflict'
  if (isStale(error)) return 'read_only'
  return error.code?.startsWith('23') ? 'constraint' : 'other'
}

/** A value that PostgreSQL has sent in another form than sessions are set to (../session.ts). */
export class Unreadable extends Error {
  readonly code = 'EBADMSG'
}

export class OutOfTime extends Error {
  readonly code = 'ETIMEDOUT'
  override readonly message = 'the database did not answer in time'
}

// Node's sockets, and values that cannot be read; then PostgreSQL: connection, resources, operator, system; a conflict, a lock, a
// server that only reads, a statement that another server has prepared.
const awayCode =
  /^(?:ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EMFILE|ENFILE|EBADMSG|(?:08|53|57|58)\w{3}|40001|40P01|55P03|25006|26000)$/
// What `pg` and its pool say without a code, in a plain Error. Compared whole: other messages repeat what a client has sent.
const awayMessages = new Set<unknown>([
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'timeout exceeded when trying to connect',
  'timeout expired',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
])

/** Whether the database cannot answer, by an error of `pg` or of Node. */
export function isAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as { code?: unknown }
  if (typeof code === 'string' && awayCode.test(code)) return true
  return error.name === 'Error' && awayMessages.has(error.message)
}

/** How often a statement or a transaction is repeated that PostgreSQL rolled back because of a conflict with another. */
export const MAX_REPEATS = 4

/** Random, so that conflicting statements do not conflict again; in milliseconds. */
export const conflictDelay = (repeats: number) => Math.random() * 20 * 2 ** repeats

/** Repeats a transaction that PostgreSQL rolls back because of a conflict, until a moment by performance.now(). */
export async function repeating<T>(attempt: () => Promise<T>, endsAt: number, repeats = 0): Promise<T> {
  try {
    return await attempt()
  } catch (error) {
    const isRolledBack = error instanceof MustRepeat || isConflict(error)
    if (!isRolledBack || repeats === MAX_REPEATS || performance.now() > endsAt) throw error
    await sleep(conflictDelay(repeats + 1))
    return repeating(attempt, endsAt, repeats + 1)
  }
}
