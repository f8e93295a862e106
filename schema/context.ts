import type { Prisma } from '../prisma/generated/client/client.js'
import type { Plan } from './plans.js'

/** `reset` is in Unix seconds. */
export type Quota = { plan: Plan } & Record<'minute' | 'day', { limit: number; remaining: number; reset: number }>

/** The context of resolvers: one for each request. */
export interface Context {
  /** A transaction, if the request has one. */
  prisma: Prisma.TransactionClient
  /** The quota of the calling key, after this request. */
  quota(): Promise<Quota>
  /** The `after` of the next page, if a root list has one. REST sends it as a Link. */
  nextCursor?: bigint
}
