import type { ListRead, Reads } from '../../schema/context.js'
import { MAX_TOTAL } from '../../schema/validation.js'
import type { Database } from '../database/index.js'
import { Askers } from '../tracing.js'
import { createStatements, type RowStatement, type Statement } from './statements.js'

// Rows and pages are read by statements of our own, without Prisma, which takes several times as long for them. What is
// read in one turn of the event loop shares statements. Collect, then ask: a read may share a statement that begins after
// the read has arrived, never one that is already running. Otherwise a client could miss its own last write.

type Row = Record<string, unknown>
type Send = (text: string, values: unknown[]) => Promise<Row[]>

/** The most that is read by one statement. It bounds what one slow statement can delay. */
const MAX_TOGETHER = 100

/** Collects what is asked until the end of the event loop's turn. */
function gather<Subject, Question, Answer>(ask: (subject: Subject, questions: Question[]) => Promise<Answer[]>) {
  const open = new Map<Subject, { questions: Question[]; askers: Askers; answers: Promise<Answer[]> }>()

  function begin(subject: Subject) {
    const questions: Question[] = []
    const askers = new Askers()
    const answers = new Promise((resolve) => setImmediate(resolve)).then(() => {
      if (open.get(subject) === batch) open.delete(subject)
      return askers.run(() => ask(subject, questions))
    })
    const batch = { questions, askers, answers }
    open.set(subject, batch)
    return batch
  }

  return (subject: Subject, question: Question): Promise<Answer> => {
    const waiting = open.get(subject)
    const { questions, askers, answers } = waiting && waiting.questions.length < MAX_TOGETHER ? waiting : begin(subject)
    askers.add()
    const index = questions.push(question) - 1
    return answers.then((all) => all[index] as Answer)
  }
}

/** The values of several questions, by parameter instead of by question. */
const transposed = (questions: unknown[][]) =>
  (questions[0] as unknown[]).map((_, i) => questions.map((values) => values[i]))

/** Lists with equal keys have one statement. */
const keyOf = ({ conditions, order, direction, apart = [] }: ListRead) =>
  `${conditions.map(([column, operator]) => column + operator)} by ${order} ${direction}, ${apart}`

/** The parameters of the conditions: a list of ids is one text, in PostgreSQL's notation. */
const valuesOf = ({ conditions }: ListRead) =>
  conditions.map(([, , value]) => (Array.isArray(value) ? `{${value.join()}}` : value))

export function createReads({ prisma, query }: Pick<Database, 'prisma' | 'query'>): Reads {
  const statements = createStatements(prisma)
  const known = new Map<string, Statement>()

  /** The statement of this key, which is built once. */
  function prepared<S extends Statement>(key: string, build: () => S): S {
    const statement = (known.get(key) as S | undefined) ?? build()
    known.set(key, statement)
    return statement
  }

  function readsBy(send: Send): Reads {
    const askRows = gather(async ({ one, many, column }: RowStatement, values: unknown[]) => {
      const distinct = [...new Set(values)]
      const rows = distinct.length === 1 ? await send(one, distinct) : await send(many, [distinct])
      const found = new Map(rows.map((row) => [row[column], row]))
      return values.map((value) => found.get(value) ?? null)
    })

    const askPages = gather(async ({ one, many }: Statement, pages: unknown[][]) => {
      if (pages.length === 1) return [await send(one, pages[0] as unknown[])]
      const answers = pages.map((): Row[] => [])
      for (const { page, ...row } of await send(many, transposed(pages))) answers[Number(page) - 1]?.push(row)
      return answers
    })

    const askTotals = gather(async ({ one, many }: Statement, lists: unknown[][]) => {
      const rows = await (lists.length === 1 ? send(one, lists[0] as unknown[]) : send(many, transposed(lists)))
      return rows.map(({ total }) => total as number)
    })

    const row = (model: string, column: string, value: unknown, lock?: 'lock') => {
      const statement = prepared(`${model}.${column} ${lock}`, () => statements.rows(model, column, lock))
      return askRows(statement, value) as Promise<never>
    }

    return {
      row,
      lock: (model, column, value) => row(model, column, value, 'lock'),
      page(model, page) {
        const { after, limit } = page
        const key = `${model}: ${keyOf(page)}${after ? ` after${after.inclusive ? ' or at' : ''}` : ''}`
        const statement = prepared(key, () => statements.page(model, page))
        return askPages(statement, [...valuesOf(page), ...(after?.values ?? []), limit]) as Promise<never>
      },
      async total(model, list) {
        const statement = prepared(`${model}, total: ${keyOf(list)}`, () => statements.total(model, list))
        const total = await askTotals(statement, [...valuesOf(list), MAX_TOTAL + 1])
        return total > MAX_TOTAL ? null : total
      },
      inside: (transaction) => readsBy((text, values) => transaction.$queryRawUnsafe(text, ...values)),
    }
  }

  return readsBy(query)
}
