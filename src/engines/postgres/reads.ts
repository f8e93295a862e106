import {
  type ListRead,
  MAX_TOTAL,
  type Models,
  type PageRead,
  type Reads,
  type Stored,
} from '../../../schema/kit/context.js'
import { LinkedSpans } from '../observe/index.js'
import { createPrepared, type Tables } from './model.js'
import type { Query } from './query.js'
import { createStatements, type ReadStatement, type RowStatement } from './read-statements.js'
import type { Statement } from './statement.js'

// Rows and pages are read by statements of our own, without Prisma, which takes several times as long for them. What is
// read in one turn of the event loop shares statements. Collect, then ask: a read may share a statement that begins after
// the read has arrived, never one that is already running. Otherwise a client could miss its own last write.

type Row = Record<string, unknown>

/** The most that is read by one statement. It bounds what one slow statement can delay. */
const MAX_TOGETHER = 100

const queue: (() => void)[] = []

/** Calls `ask` at the end of the event loop's turn, in one callback for all, so that the pool can send them together. */
function atEndOfTurn(ask: () => void): void {
  if (queue.push(ask) > 1) return
  setImmediate(() => {
    for (const each of queue.splice(0)) each()
  })
}

/** Collects what is asked until the end of the event loop's turn. */
function gather<Subject, Question, Answer>(ask: (subject: Subject, questions: Question[]) => Promise<Answer[]>) {
  const open = new Map<Subject, { questions: Question[]; spans: LinkedSpans; answers: Promise<Answer[]> }>()

  function begin(subject: Subject) {
    const questions: Question[] = []
    const spans = new LinkedSpans()
    const answers = new Promise<void>(atEndOfTurn).then(() => {
      if (open.get(subject) === batch) open.delete(subject)
      return spans.run(() => ask(subject, questions))
    })
    const batch = { questions, spans, answers }
    open.set(subject, batch)
    return batch
  }

  function join(subject: Subject, given: readonly Question[]): Promise<Answer[]> {
    const waiting = open.get(subject)
    const fits = waiting && waiting.questions.length + given.length <= MAX_TOGETHER
    const { questions, spans, answers } = fits ? waiting : begin(subject)
    spans.add()
    const at = questions.length
    questions.push(...given)
    return answers.then((all) => all.slice(at, at + given.length))
  }

  return (subject: Subject, given: readonly Question[]): Promise<Answer[]> => {
    if (given.length <= MAX_TOGETHER) return join(subject, given)
    const parts: Promise<Answer[]>[] = []
    for (let from = 0; from < given.length; from += MAX_TOGETHER)
      parts.push(join(subject, given.slice(from, from + MAX_TOGETHER)))
    return Promise.all(parts).then((parts) => parts.flat())
  }
}

const isNumber = (value: unknown) => typeof value === 'bigint' || typeof value === 'number'

/** An array as a parameter. Numbers are written here, in PostgreSQL's notation: pg takes three to five times as long. */
const arrayOf = (values: readonly unknown[]) => (values.every(isNumber) ? `{${values.join()}}` : values)

/** The values of several questions, by parameter instead of by question. */
const transposed = (questions: unknown[][]) =>
  (questions[0] as unknown[]).map((_, i) => arrayOf(questions.map((values) => values[i])))

/** The answers for some values, of which equal ones are asked for once. */
function forDistinct<T>(values: readonly unknown[], ask: (values: readonly unknown[]) => Promise<T[]>): Promise<T[]> {
  if (values.length === 1) return ask(values)
  const distinct = new Set(values)
  if (distinct.size === values.length) return ask(values)
  const places = new Map(Array.from(distinct, (value, i) => [value, i]))
  return ask([...distinct]).then((answers) => values.map((value) => answers[places.get(value) as number] as T))
}

/** Lists with equal keys have one statement. */
const keyOf = ({ conditions, order, direction, within = [], byOwner }: ListRead) =>
  `${conditions.map(([column, operator]) => column + operator)} by ${order} ${direction}, ${within} ${byOwner}`

/** The parameters of the conditions. */
const valuesOf = ({ conditions }: ListRead) =>
  conditions.map(([, , value]) => (Array.isArray(value) ? arrayOf(value) : value))

const textOf = (value: unknown) => (value instanceof Date ? value.toISOString() : String(value))

/** Returns a function that creates reads whose statements are sent by `send`. */
export function createReads<S extends Stored<S> = Models>(tables: Tables): (send: Query) => Reads<S> {
  const statements = createStatements(tables)
  const prepared = createPrepared<ReadStatement | Statement>()

  return function readsBy(send: Query): Reads<S> {
    const askRows = gather(async ({ single, batched, column }: RowStatement, values: unknown[]) => {
      const distinct = [...new Set(values)]
      const rows = distinct.length === 1 ? await send(single, distinct) : await send(batched, [arrayOf(distinct)])
      const found = new Map(rows.map((row) => [row[column], row]))
      return values.map((value) => found.get(value) ?? null)
    })

    const askPages = gather(async ({ single, batched }: ReadStatement, pages: unknown[][]) => {
      if (pages.length === 1) return [await send(single, pages[0] as unknown[])]
      const answers = pages.map((): Row[] => [])
      for (const { page, ...row } of await send(batched, transposed(pages))) answers[Number(page) - 1]?.push(row)
      return answers
    })

    // Equal totals only: each statement counts one list, so that one that fails or takes long concerns no other.
    const askTotal = gather(async (_: string, equal: { statement: Statement; values: unknown[] }[]) => {
      const [{ statement, values }] = equal as [(typeof equal)[0]]
      const [row] = await send(statement, values)
      return equal.map(() => row?.total as number)
    })

    function rows(model: string, column: string, values: readonly unknown[]) {
      const statement = prepared(`${model}.${column}`, () => statements.rows(model, column))
      return forDistinct(values, (distinct) => askRows(statement, distinct)) as Promise<never[]>
    }

    const row = (model: string, column: string, value: unknown) =>
      rows(model, column, [value]).then(([row]) => row as never)

    function pages(model: string, page: PageRead, parents?: readonly unknown[]) {
      const { after, limit } = page
      const key = `${model}: ${keyOf(page)}${after ? ` after${after.inclusive ? ' or at' : ''}` : ''}`
      const statement = prepared(key, () => statements.page(model, page))
      const [first, ...rest] = [...valuesOf(page), ...(after?.values ?? []), limit]
      const valuesFor = (parents: readonly unknown[]) => parents.map((parent) => [parent, ...rest])
      const ask = (parents: readonly unknown[]) => askPages(statement, valuesFor(parents))
      return forDistinct(parents ?? [first], ask) as Promise<never[]>
    }

    return {
      row,
      rows,
      async lock(model, id) {
        const statement = prepared(`lock ${model}`, () => statements.locked(model))
        const [row = null] = await send(statement, [id])
        return row as never
      },
      page: (model, page) => pages(model, page).then(([rows]) => rows as never),
      pages,
      async total(model, list) {
        const key = `${model}, total: ${keyOf(list)}`
        const statement = prepared(key, () => statements.total(model, list))
        const values = [...valuesOf(list), MAX_TOTAL + 1]
        const [total = 0] = await askTotal(`${key} of ${JSON.stringify(values.map(textOf))}`, [{ statement, values }])
        return total > MAX_TOTAL ? null : total
      },
    }
  }
}
