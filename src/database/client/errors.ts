import pg from 'pg'

// What went wrong with a statement.

/** Whether PostgreSQL has refused a statement and kept the connection. */
export const isRefusal = (error: unknown): error is pg.DatabaseError =>
  error instanceof pg.DatabaseError && error.severity !== 'FATAL'

/** A deadlock or a serialization failure. */
export const isConflict = (error: unknown) => isRefusal(error) && (error.code === '40P01' || error.code === '40001')

interface PrismaError {
  code?: string
  meta?: { driverAdapterError?: PrismaError }
  cause?: { kind?: string }
}

/** What PostgreSQL has refused, as Prisma reports it: of an operation, of a statement of our own, or of COMMIT. */
function kindOf(error: unknown) {
  const { meta, cause } = error as PrismaError
  return (meta?.driverAdapterError?.cause ?? cause)?.kind
}

/** Whether PostgreSQL has rolled a transaction back because of a conflict with another. */
export const isRolledBack = (error: unknown) =>
  error instanceof Error && ((error as PrismaError).code === 'P2034' || kindOf(error) === 'TransactionWriteConflict')

/** Whether a row is there already. */
export const isDuplicate = (error: unknown) => error instanceof Error && kindOf(error) === 'UniqueConstraintViolation'

/** Canceled by a timeout of the server: the connection is good, but the statement has no answer. */
export const isCanceled = ({ code }: pg.DatabaseError) => code === '57014' || code === '55P03'

/** Refusals that a new connection may not have: a prepared statement that is gone, a server that is no longer the primary. */
export const isStale = ({ code }: pg.DatabaseError) => code === '26000' || code === '25006'

/** In the form of a socket's error, which Prisma knows. */
export class OutOfTime extends Error {
  readonly code = 'ETIMEDOUT'
  readonly errno = -110
  readonly syscall = 'read'
  override readonly message = 'the database did not answer in time'
}
