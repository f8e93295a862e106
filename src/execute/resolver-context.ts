import { initContextCache } from '@pothos/core'
import type { PrismaClient } from '../../prisma/generated/client/client.js'
import type { Context, Reads } from '../../schema/context.js'
import { type Caller, type QuotaDecision, readQuota } from '../auth/index.js'
import { createDeadline, createRequestClient } from './request-client.js'

/** Creates what the resolvers of one request share; `transaction` is set if all they do is part of one. */
export type CreateResolverContext = (
  caller: Caller,
  quota: Promise<QuotaDecision>,
  transaction?: Context['prisma'],
) => Context

/** @param timeoutMs how long a request may wait for the database, its key included, in milliseconds */
export const resolverContexts =
  (prisma: PrismaClient, reads: Reads, timeoutMs: number): CreateResolverContext =>
  (caller, deciding, transaction) => {
    const quota = async () => readQuota(caller, (await deciding).decision)
    // A transaction has a deadline of its own.
    if (transaction)
      return Object.assign(initContextCache(), { prisma: transaction, reads: reads.inside(transaction), quota })
    const run = createDeadline(timeoutMs - caller.waitedMs)
    const ownReads: Reads = {
      row: (...args) => run(() => reads.row(...args)),
      rows: (...args) => run(() => reads.rows(...args)),
      lock: (...args) => run(() => reads.lock(...args)),
      page: (...args) => run(() => reads.page(...args)),
      pages: (...args) => run(() => reads.pages(...args)),
      total: (...args) => run(() => reads.total(...args)),
      inside: reads.inside,
    }
    return Object.assign(initContextCache(), { prisma: createRequestClient(prisma, run), reads: ownReads, quota })
  }
