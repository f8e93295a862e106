import { builder, graphqlOnly } from './builder.js'
import type { Condition, Reads } from './context.js'
import { cursorOf, readCursor } from './cursors.js'
import { ApiError } from './errors.js'
import { ask, type Question, type Questions } from './list-questions.js'
import { DEFAULT_LIMIT } from './validation.js'
import type { Values } from './values.js'

// Connections: https://relay.dev/graphql/connections.htm. Nothing is read that is not selected.

type Row = Record<string, unknown>

export interface Edge {
  cursor(): string
  node: Row
}

interface Page {
  rows: Row[]
  /** Whether there are more rows in the direction of reading. */
  hasMore: boolean
  cursorOf(row: Row): string
}

export interface Connection {
  page(): Promise<Page>
  total(): Promise<number | null>
  hasNextPage(): Promise<boolean>
  hasPreviousPage(): Promise<boolean>
}

interface ConnectionArgs extends Values {
  first?: number | null
  after?: string | null
  last?: number | null
  before?: string | null
}

export const edges = ({ rows, cursorOf }: Page): Edge[] => rows.map((node) => ({ node, cursor: () => cursorOf(node) }))

const opposite = { asc: 'desc', desc: 'asc' } as const

/** Calls a function at most once. */
function once<T>(call: () => T): () => T {
  let known: { result: T } | undefined
  return () => {
    known ??= { result: call() }
    return known.result
  }
}

function assertOneDirection({ first, after, last, before }: ConnectionArgs): void {
  const given = (names: Values) => Object.keys(names).filter((name) => names[name] != null)
  const [forward, backward] = [given({ first, after }), given({ last, before })]
  const wrong =
    forward.length > 0 && backward.length > 0
      ? `${forward[0]} and ${backward[0]} exclude each other: page forward with first and after, or backward with last and before.`
      : before != null && last == null
        ? 'before needs last: page backward with both.'
        : undefined
  if (wrong) throw new ApiError('invalid_request', wrong)
}

/**
 * A connection of a list.
 *
 * @param parent the condition of a list below a row
 * @throws ApiError invalid_request
 */
export function connect(list: Questions, args: ConnectionArgs, reads: Reads, parent?: Condition): Connection {
  assertOneDirection(args)
  const { first, after, last, before } = args
  const question = ask(list, args, parent)
  const isBackward = last != null
  const [name, text] = isBackward ? ['before', before] : ['after', after]
  const values = text == null ? undefined : readCursor(name, text, list, question)
  const reversed: Question = { ...question, direction: opposite[question.direction] }
  const [along, against] = isBackward ? [reversed, question] : [question, reversed]
  const read = (question: Question, limit: number, inclusive?: boolean) =>
    reads.page(list.model, { after: values && { values, inclusive }, limit, ...question }) as Promise<Row[]>

  const page = once(async (): Promise<Page> => {
    const size = first ?? last ?? DEFAULT_LIMIT
    const rows = await read(along, size + 1)
    const hasMore = rows.length > size
    if (hasMore) rows.length = size
    if (isBackward) rows.reverse()
    return { rows, hasMore, cursorOf: (row) => cursorOf(list, question, row) }
  })
  const hasMore = async () => (await page()).hasMore
  /** Whether there are rows that the cursor is at or after: those before the page. */
  const hasOther = once(async () => values !== undefined && (await read(against, 1, true)).length > 0)

  return {
    page,
    total: once(() => reads.total(list.model, question.counted)),
    hasNextPage: isBackward ? hasOther : hasMore,
    hasPreviousPage: isBackward ? hasMore : hasOther,
  }
}

const placeOf = async ({ page }: Connection, index: 0 | -1) => {
  const { rows, cursorOf } = await page()
  const row = rows.at(index)
  return row && cursorOf(row)
}

export const PageInfo = builder.objectRef<Connection>('PageInfo').implement({
  ...graphqlOnly,
  description: 'Where a page of a connection ends.',
  fields: (t) => ({
    hasNextPage: t.boolean({
      description: 'Whether there are items after the page.',
      resolve: ({ hasNextPage }) => hasNextPage(),
    }),
    hasPreviousPage: t.boolean({
      description: 'Whether there are items before the page.',
      resolve: ({ hasPreviousPage }) => hasPreviousPage(),
    }),
    startCursor: t.string({
      nullable: true,
      description: 'The cursor of the first item; null if the page is empty.',
      resolve: (connection) => placeOf(connection, 0),
    }),
    endCursor: t.string({
      nullable: true,
      description: 'The cursor of the last item; null if the page is empty.',
      resolve: (connection) => placeOf(connection, -1),
    }),
  }),
})
