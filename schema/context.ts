import type { Prisma } from '../prisma/generated/client/client.js'
import type PrismaTypes from '../prisma/generated/pothos.js'
import type { Plan } from './plans.js'

/** `reset` is in Unix seconds. */
export type Quota = { plan: Plan } & Record<'minute' | 'day', { limit: number; remaining: number; reset: number }>

export type Model = keyof PrismaTypes & string

type RowOf<M extends Model> = PrismaTypes[M]['Shape']

export type Operator = '=' | '= ANY' | '>=' | '<=' | '<' | 'begins with'

/** What a list is filtered by. Text is compared and searched as it is sorted: see `order`. */
export type Condition = readonly [column: string, operator: Operator, value: unknown]

/** What a list has, and in which order. */
export interface ListRead {
  conditions: readonly Condition[]
  /**
   * The columns that it is ordered by. The last one is unique. Text is ordered in lower case, then by its code points. A
   * moment that is missing comes after all others.
   */
  order: readonly string[]
  direction: 'asc' | 'desc'
  /**
   * The columns with which the index begins before those of the order. Each one is equal to a condition, or has few values
   * (an enum or Boolean), each of which is read apart.
   */
  within?: readonly string[]
}

/** A page of a list. */
export interface PageRead extends ListRead {
  /** The values of the columns of `order` in the row that the page comes after; `inclusive` begins with that row itself. */
  after?: { values: readonly unknown[]; inclusive?: boolean }
  limit: number
}

/** Reads all columns of rows. What is read in one turn of the event loop shares statements. */
export interface Reads {
  /** The row with this value in a unique column. */
  row<M extends Model>(model: M, column: keyof RowOf<M> & string, value: unknown): Promise<RowOf<M> | null>
  /** The row of each value. Rows with equal values are the same object. */
  rows<M extends Model>(
    model: M,
    column: keyof RowOf<M> & string,
    values: readonly unknown[],
  ): Promise<(RowOf<M> | null)[]>
  /** As `row`. Locks the row until the transaction ends. */
  lock<M extends Model>(model: M, column: keyof RowOf<M> & string, value: unknown): Promise<RowOf<M> | null>
  page<M extends Model>(model: M, page: PageRead): Promise<RowOf<M>[]>
  /** The same page below each parent: a value for the first of its conditions. */
  pages<M extends Model>(model: M, page: PageRead, parents: readonly unknown[]): Promise<RowOf<M>[][]>
  /** How many rows a list has; null if more than MAX_TOTAL. */
  total(model: Model, list: ListRead): Promise<number | null>
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
  /** If a list has another page: the parameters that lead to it, and those that do not (undefined). REST sends a Link. */
  next?: Record<string, string | undefined>
  /** The total of a list, if REST asked for it and it is known. */
  total?: number
}
