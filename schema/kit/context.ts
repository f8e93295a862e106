import type PrismaTypes from '../../prisma/generated/pothos.js'
import type { Plan } from './plans.js'

/** `reset` is in Unix seconds. */
export type Quota = { plan: Plan; key: Omit<Row<'ApiKey'>, 'email' | 'note'> } & Record<
  'minute' | 'day',
  { limit: number; remaining: number; reset: number }
>

/** What a key has used in a day or an hour. */
export interface Used {
  /** The day in UTC: 2026-12-24. */
  date: string
  /** When it begins. */
  hour: Date
  requests: number
  refused: number
  cost: number
  /** Of those that ended with an error, how many with which code. */
  outcomes: { code: string; requests: number }[]
}

/** What is stored: models by name, each with the values of its columns. */
export type Models = PrismaTypes
export type Stored<S> = { [M in keyof S]: { Shape: object } }

export type Model<S extends Stored<S> = Models> = keyof S & string

export type Row<M extends Model<S>, S extends Stored<S> = Models> = S[M]['Shape']

/** Values of columns, by name. A column that is undefined keeps its value or, in a new row, gets its default. */
type Values<M extends Model<S>, S extends Stored<S>> = { [Column in keyof Row<M, S>]?: Row<M, S>[Column] | null }

export type Operator = '=' | '= ANY' | '>=' | '<=' | '<' | 'begins with'

/** What a list is filtered by. Text is compared and searched as it is sorted: see `order`. */
export type Condition = readonly [column: string, operator: Operator, value: unknown]

/** What a list has, and in which order. */
export interface ListRead {
  conditions: readonly Condition[]
  /**
   * The columns that it is ordered by. The last one is unique. Text is ordered in lower case and without accents, then by its code
   * points. A moment that is missing comes after all others.
   */
  order: readonly string[]
  direction: 'asc' | 'desc'
  /** The column beside each column of text in which a trigger keeps what it is compared by. */
  textKeys?: Readonly<Record<string, string>>
  /**
   * The columns with which the index begins before those of the order. Each one is equal to a condition, or has few values
   * (an enum or Boolean), each of which is read separately.
   */
  within?: readonly string[]
  /** Whether that is an index of the model to whose rows these belong. Each row there has exactly one of these, with the same id. */
  byOwner?: boolean
}

/** A page of a list. */
export interface PageRead extends ListRead {
  /** The values of the columns of `order` in the row that the page comes after; `inclusive` begins with that row itself. */
  after?: { values: readonly unknown[]; inclusive?: boolean }
  limit: number
}

/** The most that a total counts. */
export const MAX_TOTAL = 10_000

/** Reads all columns of rows. What is read in one turn of the event loop shares statements. */
export interface Reads<S extends Stored<S> = Models> {
  /** The row with this value in a unique column. */
  row<M extends Model<S>>(model: M, column: keyof Row<M, S> & string, value: unknown): Promise<Row<M, S> | null>
  /** The row of each value. Rows with equal values are the same object. */
  rows<M extends Model<S>>(
    model: M,
    column: keyof Row<M, S> & string,
    values: readonly unknown[],
  ): Promise<(Row<M, S> | null)[]>
  /** The row with this id, locked until the transaction ends. A row that belongs to another is locked after that one. */
  lock<M extends Model<S>>(model: M, id: unknown): Promise<Row<M, S> | null>
  page<M extends Model<S>>(model: M, page: PageRead): Promise<Row<M, S>[]>
  /** The same page below each parent: a value for the first of its conditions. */
  pages<M extends Model<S>>(model: M, page: PageRead, parents: readonly unknown[]): Promise<Row<M, S>[][]>
  /** How many rows a list has; null if more than MAX_TOTAL. */
  total(model: Model<S>, list: ListRead): Promise<number | null>
}

/**
 * A whole number in the rows of a model to which requests add and from which they take: a stock. It stays within its bounds.
 * The row that it belongs to may keep whether it is at `min`: the database changes that row, too, when this changes.
 */
export interface Counter<M extends Model<S>, S extends Stored<S> = Models> {
  model: M
  column: keyof Row<M, S> & string
  min: number
  max: number
}

/**
 * Why a counter cannot change.
 *
 * @param by what all items up to and including this place would add to it
 * @param place of the item in the batch
 */
type Refuse<M extends Model<S>, S extends Stored<S>> = (row: Row<M, S>, by: number, place: number) => Error

/** New rows take from a counter. */
export interface Taking<M extends Model<S>, C extends Model<S>, S extends Stored<S> = Models> {
  counter: Counter<C, S>
  /** The columns of the new row that say from which row it takes, and how much. Each row has a value in both. */
  from: keyof Row<M, S> & string
  amount: keyof Row<M, S> & string
  /** The columns beside them in which both are kept, whatever becomes of the row. Other reads and writes do not know them. */
  kept: { from: string; amount: string }
  refuse: Refuse<C, S>
}

/** What a row took when it was created. */
export interface Taken {
  from: bigint
  amount: number
  /** Otherwise its counter is gone, or would leave its bounds. */
  isReturned: boolean
}

/** Changes rows, by one statement each time. */
export interface Writes<S extends Stored<S> = Models> {
  /**
   * @param taking what the row takes from a counter. If there is not enough, the row is not created.
   * @throws ApiError unknown_reference, conflict (another row has a value that must be unique); what `refuse` returns
   */
  create<M extends Model<S>, C extends Model<S>>(
    model: M,
    values: Values<M, S>,
    taking?: Taking<M, C, S>,
  ): Promise<Row<M, S>>
  /**
   * Creates all rows or none, and returns them in the same order. What only some of them have is null in the others.
   *
   * @param taking as for `create`. Rows that take from the same counter add up.
   * @throws ApiError unknown_reference, conflict, with the place of the row; what `refuse` returns
   */
  createMany<M extends Model<S>, C extends Model<S>>(
    model: M,
    rows: readonly Values<M, S>[],
    taking?: Taking<M, C, S>,
  ): Promise<Row<M, S>[]>
  /**
   * Changes the row that has the id among the values. Returns null if there is none.
   *
   * @throws ApiError unknown_reference, conflict
   */
  update<M extends Model<S>>(model: M, values: Values<M, S>): Promise<Row<M, S> | null>
  /**
   * Changes all rows or, if there is one that is null in the result, none of them. No two have the same id.
   *
   * @throws ApiError unknown_reference, conflict, with the place of the row
   */
  updateMany<M extends Model<S>>(model: M, rows: readonly Values<M, S>[]): Promise<(Row<M, S> | null)[]>
  /** Sets the counter of the row with this id. Returns null if there is none. */
  set<C extends Model<S>>(counter: Counter<C, S>, id: bigint, value: number): Promise<Row<C, S> | null>
  /**
   * Adds to the counters of all rows. If a row does not exist, it is null in the result, and no counter changes. No two have
   * the same id.
   *
   * @throws what `refuse` returns, for the first counter that would leave its bounds
   */
  addMany<C extends Model<S>>(
    counter: Counter<C, S>,
    changes: readonly { id: bigint; by: number }[],
    refuse: Refuse<C, S>,
  ): Promise<(Row<C, S> | null)[]>
  /** Gives back what the row with this id took. Returns null if it took nothing. */
  giveBack<M extends Model<S>, C extends Model<S>>(model: M, id: bigint, taking: Taking<M, C, S>): Promise<Taken | null>
  /**
   * Deletes the row that has these values, and returns it. Returns null if there is none.
   *
   * @param refusal thrown if other rows refer to it
   */
  delete<M extends Model<S>>(model: M, values: Values<M, S>, refusal?: Error): Promise<Row<M, S> | null>
}

/** A row as a request names it. */
export type NamedRow = readonly [model: string, id: number | bigint]

/** The context of resolvers: one for each request. */
export interface Context {
  reads: Reads
  writes: Writes
  /**
   * Calls `work` with reads and writes that belong to one transaction. Inside of a transaction that is the same one.
   *
   * @param rows what it will change beside what its first statement names: those that change the same rows wait for each
   * other before they take a connection
   */
  transaction<T>(
    work: (inside: Pick<Context, 'reads' | 'writes'>) => Promise<T>,
    rows?: readonly NamedRow[],
  ): Promise<T>
  /** The quota of the calling key, after this request. */
  quota(): Promise<Quota>
  /** What the calling key has used in each of the last days or hours, this one first. */
  usage(unit: 'day' | 'hour', count: number): Promise<Used[]>
  /** If a list has another page: the parameters that lead to it, and those that do not (undefined). REST sends a Link. */
  next?: Record<string, string | undefined>
  /** The total of a list, if REST asked for it and it is known. */
  total?: number
}
