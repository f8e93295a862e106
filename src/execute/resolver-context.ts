import { initContextCache } from '@pothos/core'
import type { Context, Reads } from '../../schema/context.js'
import { createReads, createTables, createWrites, type Database, type Query } from '../database/index.js'
import { type Caller, type QuotaDecision, readQuota, readUsage } from '../keys/index.js'
import { createDeadline } from './request-deadline.js'

/** Creates what the resolvers of one request share; with `query`, all they do is part of one transaction. */
export type CreateResolverContext = (caller: Caller, quota: Promise<QuotaDecision>, query?: Query) => Context

/** Runs the work of a request in one transaction, which is repeated if another one is in its way. */
export type RequestTransaction = <T>(caller: Caller, work: (query: Query) => Promise<T>) => Promise<T>

type Inside = Pick<Context, 'reads' | 'writes'>

/** How requests read and write the database. */
export function createAccess(database: Pick<Database, 'prisma' | 'query' | 'transaction' | 'requestTimeoutMs'>) {
  const tables = createTables(database.prisma)
  const [readsBy, writesBy] = [createReads(tables), createWrites(tables)]

  function insideOf(query: Query): Inside {
    const reads = readsBy(query)
    return { reads, writes: writesBy(query, reads) }
  }
  const reads = readsBy(database.query)

  const createContext: CreateResolverContext = (caller, deciding, query) => {
    const usage = (days: number) => readUsage(database.query, caller, days)
    const quota = async () => readQuota(caller, (await deciding).decision)
    if (query) {
      // A transaction has a deadline of its own.
      const inside = insideOf(query)
      const transaction: Context['transaction'] = (work) => work(inside)
      return Object.assign(initContextCache(), { ...inside, transaction, quota, usage })
    }
    const { endsAt, run, runTransaction } = createDeadline(database.requestTimeoutMs - caller.waitedMs)
    const transaction: Context['transaction'] = (work) =>
      runTransaction(() => database.transaction((query) => work(insideOf(query)), endsAt))
    const ownReads: Reads = {
      row: (...args) => run(() => reads.row(...args)),
      rows: (...args) => run(() => reads.rows(...args)),
      lock: (...args) => run(() => reads.lock(...args)),
      page: (...args) => run(() => reads.page(...args)),
      pages: (...args) => run(() => reads.pages(...args)),
      total: (...args) => run(() => reads.total(...args)),
    }
    const writes = writesBy((text, values) => run(() => database.query(text, values, endsAt)), ownReads)
    return Object.assign(initContextCache(), {
      reads: ownReads,
      writes,
      transaction,
      quota,
      usage: (days: number) => run(() => usage(days)),
    })
  }

  const transaction: RequestTransaction = (caller, work) => {
    const { endsAt, runTransaction } = createDeadline(database.requestTimeoutMs - caller.waitedMs)
    return runTransaction(() => database.transaction(work, endsAt))
  }

  return { reads, createContext, transaction }
}
