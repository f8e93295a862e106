import type { Statement } from './statement.js'

type Row = Record<string, unknown>

/**
 * Sends a statement of our own. Its rows have the values that Prisma would return.
 *
 * @param endsAt by performance.now(): until then it has ended, done or not
 */
export interface Query {
  (statement: Statement, values: unknown[], endsAt?: number): Promise<Row[]>
  /** What the first statement of the transaction must ask. A function around this one hides it: then it takes a statement of its own. */
  guard?: Unasked | undefined
}

/** A question that comes before what a transaction does, and may forbid it. */
export interface Guard {
  /** Asks it alone: a SELECT of one row, whose column `"isFree"` says whether to write. No other guard has its tables. */
  question: Statement
  /** The text of the question as a part of another statement. Its parameters are numbered from `first`. */
  select: (first: number) => string
  values: unknown[]
  /** Gets the row. Returns why nothing may be done, which is thrown for every statement. */
  judge(row: Row): Error | undefined
}

/** A guard that has not been asked yet. */
export interface Unasked extends Pick<Guard, 'question' | 'select' | 'values'> {
  /** Sends a statement that asks it, too: each row has the answer in its column `"guard"`. */
  ask(statement: Statement, values: unknown[]): Promise<Row[]>
}

/** Sends a statement. If it is the first one of its transaction, it asks the guard, too. Returns what it has written. */
export async function sendAsking(
  query: Query,
  statementBy: (guard?: Unasked) => Statement,
  values: unknown[],
): Promise<Row[]> {
  const { guard } = query
  if (!guard) return query(statementBy(), values)
  const rows = await guard.ask(statementBy(guard), [...values, ...guard.values])
  // A row of nothing but nulls was not written: those that were have an id.
  return rows.flatMap(({ guard, ...row }) => (Object.values(row).some((value) => value !== null) ? [row] : []))
}

/** The statements of a transaction, of which the first one asks a guard, or waits for its answer. */
export function guarded(query: Query, guard: Guard): Query {
  let answered: Promise<void> | undefined

  function ask(statement: Statement, values: unknown[], answerOf: (row: Row) => unknown): Promise<Row[]> {
    const asked = query(statement, values)
    answered = asked.then(([row = {}]) => {
      const refusal = guard.judge(answerOf(row) as Row)
      if (refusal) throw refusal
    })
    return answered.then(() => asked)
  }
  const unasked: Unasked = {
    ...guard,
    ask: (statement, values) => ask(statement, values, (row) => row.guard),
  }
  const send: Query = async (statement, values, endsAt) => {
    await (answered ?? ask(guard.question, guard.values, (row) => row))
    return query(statement, values, endsAt)
  }
  return Object.defineProperty(send, 'guard', { get: () => (answered ? undefined : unasked) })
}
