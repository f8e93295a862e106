import type { Prisma } from '../prisma/generated/client/client.js'
import type PrismaTypes from '../prisma/generated/pothos.js'
import type { Plan } from './plans.js'

/** `reset` is in Unix seconds. */
export type Quota = { plan: Plan } & Record<'minute' | 'day', { limit: number; remaining: number; reset: number }>

/** A model, by its name or by the type that shows it; then a row has what the type includes, too. */
export type Model = keyof PrismaTypes | { readonly name: string; readonly $inferType: object }

export type RowOf<M extends Model> = (M extends keyof PrismaTypes ? PrismaTypes[M] : M) extends
  | { Shape: infer Row }
  | { $inferType: infer Row }
  ? Row
  : never

/**
 * What a list is filtered by: a column, or one of a row that its type includes (`pet.status`). Without a value, it is no
 * condition.
 */
export type Condition = readonly [column: string, operator: '=' | '= ANY', value: unknown]

/** A page of a list. */
export interface PageRead {
  conditions: readonly Condition[]
  /** The columns that the list is ordered by, ascending. The last one is unique. */
  order: readonly string[]
  /** Their values in the last row of the page before. */
  after?: readonly unknown[]
  limit: number
}

/** Reads all columns of rows, and what their type includes. What is read in one turn of the event loop shares statements. */
export interface Reads {
  /** The row with this value in a unique column. */
  row<M extends Model>(model: M, column: keyof RowOf<M> & string, value: unknown): Promise<RowOf<M> | null>
  /** As `row`. Locks the row and what its type includes until the transaction ends. */
  lock<M extends Model>(model: M, column: keyof RowOf<M> & string, value: unknown): Promise<RowOf<M> | null>
  page<M extends Model>(model: M, page: PageRead): Promise<RowOf<M>[]>
  /** The same reads as a part of a transaction. */
  inside(transaction: Context['prisma']): Reads
}

/** The context of resolvers: one for each request. */
export interface Context {
  /** A transaction, if the request has one. */
  prisma: Prisma.TransactionClient
  /** In the same transaction. */
  reads: Reads
  /** The quota of the calling key, after this request. */
  quota(): Promise<Quota>
  /** The `after` of the next page, if a root list has one. REST sends it as a Link. */
  nextCursor?: bigint
}
