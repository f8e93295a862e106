import { initContextCache } from '@pothos/core'
import type { Context, NamedRow, Reads } from '../../../schema/kit/context.js'
import { inTime } from '../../deadline.js'
import { createReads, createWrites, type Query, repeating, rowName, type Undo } from '../../engines/postgres/index.js'
import type { Database } from '../database/index.js'
import { unavailable } from '../http/index.js'
import { type Caller, type QuotaDecision, readQuota, readUsage } from '../keys/index.js'

export { rowsOf } from './rows.js'
export type { NamedRow }

/** How long a request may still wait for the database, `ms` from now on. */
export function createDeadline(ms: number) {
  const endsAt = performance.now() + ms

  /** Rejects with `unavailable` if the operation is not done in time. GraphQL keeps the fields that were answered before. */
  function run<T>(operation: () => Promise<T>): Promise<T> {
    const left = endsAt - performance.now()
    return left > 0 ? inTime(operation(), left, unavailable) : Promise.reject(unavailable())
  }

  return {
    /** By performance.now(). What is sent to the database must end before. */
    endsAt,
    run,
    /** Repeats a transaction that PostgreSQL rolls back because of a conflict. The pool repeats single statements. */
    runTransaction: <T>(attempt: () => Promise<T>) => run(() => repeating(attempt, endsAt)),
  }
}

/** Creates what the resolvers of one request share; with `query`, all they do is part of one transaction. */
export type CreateResolverContext = (caller: Caller, quota: Promise<QuotaDecision>, query?: Query) => Context

/**
 * Runs work of a request in a transaction, which is repeated if another one is in its way.
 *
 * @param options.rows what it will change, as far as that is known: transactions that change the same rows wait for each other here
 * @param options.bulkhead what it waits with, if its first statement does not tell
 * @param options.isAtOneMoment it only reads, and all its reads see the same rows
 */
type Transact = <T>(
  work: (query: Query, undo: Undo) => Promise<T>,
  options?: { rows?: readonly NamedRow[]; bulkhead?: string; isAtOneMoment?: boolean },
) => Promise<T>

/** For all transactions of a request, whose time begins now. */
export type CreateTransact = (caller: Caller) => Transact

type Inside = Pick<Context, 'reads' | 'writes'>

/** How requests read and write the database. */
export function createAccess(database: Pick<Database, 'tables' | 'query' | 'transaction' | 'requestTimeoutMs'>) {
  const [readsBy, writesBy] = [createReads(database.tables), createWrites(database.tables)]

  function insideOf(query: Query): Inside {
    const reads = readsBy(query)
    return { reads, writes: writesBy(query, reads, 'in a transaction') }
  }
  const reads = readsBy(database.query)
  const namesOf = (rows: readonly NamedRow[] = []) =>
    rows.map(([model, id]) => rowName(database.tables.nameOf(model), id))

  const createContext: CreateResolverContext = (caller, deciding, query) => {
    const usage: Context['usage'] = (unit, count) => readUsage(database.query, caller.key.id, unit, count)
    const quota = async () => readQuota(caller, (await deciding).decision)
    if (query) {
      // A transaction has a deadline of its own.
      const inside = insideOf(query)
      const transaction: Context['transaction'] = (work) => work(inside)
      return Object.assign(initContextCache(), { ...inside, transaction, quota, usage })
    }
    const { endsAt, run, runTransaction } = createDeadline(database.requestTimeoutMs - caller.waitedMs)
    const transaction: Context['transaction'] = (work, rows) =>
      runTransaction(() => database.transaction((query) => work(insideOf(query)), { endsAt, rows: namesOf(rows) }))
    const ownReads: Reads = {
      row: (...args) => run(() => reads.row(...args)),
      rows: (...args) => run(() => reads.rows(...args)),
      lock: (...args) => run(() => reads.lock(...args)),
      page: (...args) => run(() => reads.page(...args)),
      pages: (...args) => run(() => reads.pages(...args)),
      total: (...args) => run(() => reads.total(...args)),
    }
    const writes = writesBy((statement, values) => run(() => database.query(statement, values, endsAt)), ownReads)
    return Object.assign(initContextCache(), {
      reads: ownReads,
      writes,
      transaction,
      quota,
      usage: (...args: Parameters<typeof usage>) => run(() => usage(...args)),
    })
  }

  const createTransact: CreateTransact = (caller) => {
    const { endsAt, runTransaction } = createDeadline(database.requestTimeoutMs - caller.waitedMs)
    return (work, { rows, ...options } = {}) =>
      runTransaction(() => database.transaction(work, { ...options, endsAt, rows: namesOf(rows) }))
  }

  return { reads, createContext, createTransact }
}
