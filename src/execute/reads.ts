import type { GraphQLSchema } from 'graphql'
import type { Model, Reads } from '../../schema/context.js'
import type { Database } from '../database/index.js'
import { createStatements, type RowStatement, type Statement } from './statements.js'

// Rows and pages are read by statements of our own, without Prisma, which takes several times as long for them. What is
// read in one turn of the event loop shares statements. Collect, then ask: a read may share a statement that begins after
// the read has arrived, never one that is already running. Otherwise a client could miss its own last write.

const nameOf = (model: Model) => (typeof model === 'string' ? model : model.name)

type Row = Record<string, unknown>
type Send = (text: string, values: unknown[]) => Promise<Row[]>

/** The most that is read by one statement. It bounds what one slow statement can delay. */
const MAX_TOGETHER = 100

/** Collects what is asked until the end of the event loop's turn. */
function gather<Subject, Question, Answer>(ask: (subject: Subject, questions: Question[]) => Promise<Answer[]>) {
  const open = new Map<Subject, { questions: Question[]; answers: Promise<Answer[]> }>()

  function begin(subject: Subject) {
    const questions: Question[] = []
    const answers = new Promise((resolve) => setImmediate(resolve)).then(() => {
      if (open.get(subject) === batch) open.delete(subject)
      return ask(subject, questions)
    })
    const batch = { questions, answers }
    open.set(subject, batch)
    return batch
  }

  return (subject: Subject, question: Question): Promise<Answer> => {
    const waiting = open.get(subject)
    const { questions, answers } = waiting && waiting.questions.length < MAX_TOGETHER ? waiting : begin(subject)
    const index = questions.push(question) - 1
    return answers.then((all) => all[index] as Answer)
  }
}

/** Moves the columns of other rows into objects, where Prisma has them. */
function include(row: Row, paths: string[]): Row {
  for (const path of paths) {
    const [relation, column] = path.split('.') as [string, string]
    row[relation] = { ...(row[relation] as Row | undefined), [column]: row[path] }
    delete row[path]
  }
  return row
}

export function createReads({ prisma, query }: Pick<Database, 'prisma' | 'query'>, schema: GraphQLSchema): Reads {
  const statements = createStatements(schema, prisma)
  const known = new Map<string, Statement>()

  /** The statement of this key, which is built once. */
  function prepared<S extends Statement>(key: string, build: () => S): S {
    const statement = (known.get(key) as S | undefined) ?? build()
    known.set(key, statement)
    return statement
  }

  function readsBy(send: Send): Reads {
    const askRows = gather(async ({ one, many, included, column }: RowStatement, values: unknown[]) => {
      const distinct = [...new Set(values)]
      const rows = distinct.length === 1 ? await send(one, distinct) : await send(many, [distinct])
      const found = new Map(rows.map((row) => [row[column], include(row, included)]))
      return values.map((value) => found.get(value) ?? null)
    })

    const askPages = gather(async ({ one, many, included }: Statement, pages: unknown[][]) => {
      if (pages.length === 1 || !many)
        return Promise.all(pages.map(async (values) => (await send(one, values)).map((row) => include(row, included))))
      const columns = (pages[0] as unknown[]).map((_, i) => pages.map((values) => values[i]))
      const answers = pages.map((): Row[] => [])
      for (const { page, ...row } of await send(many, columns)) answers[Number(page) - 1]?.push(include(row, included))
      return answers
    })

    const row = (model: Model, column: string, value: unknown, lock?: 'lock') => {
      const name = nameOf(model)
      const statement = prepared(`${name}.${column} ${lock}`, () => statements.rows(name, column, lock))
      return askRows(statement, value) as Promise<never>
    }

    return {
      row,
      lock: (model, column, value) => row(model, column, value, 'lock'),
      page(model, { conditions, order, after = [], limit }) {
        const name = nameOf(model)
        const given = conditions.filter(([, , value]) => value !== undefined && value !== null)
        const key = `${name}: ${given.map(([column, operator]) => column + operator)}, ${after.length} of ${order}`
        const statement = prepared(key, () => statements.page(name, given, order, after.length > 0))
        return askPages(statement, [...given.map(([, , value]) => value), ...after, limit]) as Promise<never>
      },
      inside: (transaction) => readsBy((text, values) => transaction.$queryRawUnsafe(text, ...values)),
    }
  }

  return readsBy(query)
}
