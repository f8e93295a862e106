import { initContextCache } from '@pothos/core'
import type { Context, Reads, Writes } from '../../schema/context.js'
import { type Caller, type QuotaDecision, readQuota, readUsage } from '../auth/index.js'
import type { Database, Query } from '../database/index.js'
import { createReads } from './reads.js'
import { createDeadline } from './request-deadline.js'
import { createTables } from './tables.js'
import { createWrites } from './writes.js'

/** Creates what the resolvers of one request share; with `query`, all they do is part of one transaction. */
export type CreateResolverContext = (caller: Caller, quota: Promise<QuotaDecision>, query?: Query) => Context

/** Runs the work of a request in one transaction, which is repeated if another one is in its way. */
export type RequestTransaction = <T>(caller: Caller, work: (query: Query) => Promise<T>) => Promise<T>

type Access = Pick<Context, 'reads' | 'writes'>

/** What reads and writes the database. */
export function createAccess(database: Pick<Database, 'prisma' | 'query' | 'transaction' | 'requestTimeoutMs'>) {
  const tables = createTables(database.prisma)
  const [readsBy, writesBy] = [createReads(tables), createWrites(tables)]

  function accessBy(query: Query): Access {
    const reads = readsBy(query)
    return { reads, writes: writesBy(query, reads) }
  }
  const { reads, writes } = accessBy(database.query)

  const createContext: CreateResolverContext = (caller, deciding, query) => {
    const usage = (days: number) => readUsage(database.query, caller, days)
    const quota = async () => readQuota(caller, (await deciding).decision)
    if (query) {
      // A transaction has a deadline of its own.
      const inside = accessBy(query)
      const transaction: Context['transaction'] = (work) => work(inside)
      return Object.assign(initContextCache(), { ...inside, transaction, quota, usage })
    }
    const run = createDeadline(database.requestTimeoutMs - caller.waitedMs)
    const transaction: Context['transaction'] = (work) =>
      run(() => database.transaction((query) => work(accessBy(query))))
    const ownReads: Reads = {
      row: (...args) => run(() => reads.row(...args)),
      rows: (...args) => run(() => reads.rows(...args)),
      lock: (...args) => run(() => reads.lock(...args)),
      page: (...args) => run(() => reads.page(...args)),
      pages: (...args) => run(() => reads.pages(...args)),
      total: (...args) => run(() => reads.total(...args)),
    }
    const ownWrites: Writes = {
      create: (...args) => run(() => writes.create(...args)),
      createMany: (...args) => run(() => writes.createMany(...args)),
      update: (...args) => run(() => writes.update(...args)),
      updateMany: (...args) => run(() => writes.updateMany(...args)),
      delete: (...args) => run(() => writes.delete(...args)),
    }
    return Object.assign(initContextCache(), {
      reads: ownReads,
      writes: ownWrites,
      transaction,
      quota,
      usage: (days: number) => run(() => usage(days)),
    })
  }

  const transaction: RequestTransaction = (caller, work) =>
    createDeadline(database.requestTimeoutMs - caller.waitedMs)(() => database.transaction(work))

  return { reads, createContext, transaction }
}
