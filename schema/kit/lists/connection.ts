import { builder, graphqlOnly } from '../builder.js'
import type { Condition, ListRead, Reads } from '../context.js'
import { invalidRequest } from '../errors.js'
import { getOrCreate } from '../get-or-create.js'
import { DEFAULT_LIMIT } from '../input/rules.js'
import type { Values } from '../input/values.js'
import { cursorOf, readCursor } from './cursor.js'
import { planQuery, type Queryable } from './plan.js'

// Connections: https://relay.dev/graphql/connections.htm. Nothing is read that is not selected.

type Row = Record<string, unknown>

/** An item of a page. Its cursor is made when it is read. */
export class Edge {
  constructor(
    readonly node: Row,
    private readonly cursorOf: Page['cursorOf'],
  ) {}

  get cursor(): string {
    return this.cursorOf(this.node)
  }
}

interface Page {
  rows: Row[]
  /** Whether there are more rows in the direction of reading. */
  hasMore: boolean
  /** The cursor of a row, which is made once. */
  cursorOf(row: Row): string
}

/** The connections of a list below all parents of a level, or that of the whole list. What they have is read together. */
interface Level {
  pages(): Promise<Page[]>
  pageInfos(selects: (field: keyof PageInfoShape) => boolean): Promise<PageInfoShape[]>
  total(index: number): Promise<number | null>
}

export interface Connection {
  level: Level
  index: number
}

/** What each of the connections of a level has. */
export async function fromEach<T>(connections: Connection[], read: (level: Level) => Promise<T[]>): Promise<T[]> {
  const found = await read((connections[0] as Connection).level)
  return connections.map(({ index }) => found[index] as T)
}

interface PageInfoShape {
  hasNextPage: boolean
  hasPreviousPage: boolean
  startCursor: string | null
  endCursor: string | null
}

interface ConnectionArgs extends Values {
  first?: number
  after?: string
  last?: number
  before?: string
}

export const edges = ({ rows, cursorOf }: Page): Edge[] => rows.map((node) => new Edge(node, cursorOf))

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
  const given = (names: Values) => Object.keys(names).filter((name) => names[name] !== undefined)
  const [forward, backward] = [given({ first, after }), given({ last, before })]
  const wrong =
    forward.length > 0 && backward.length > 0
      ? `${forward[0]} and ${backward[0]} exclude each other: page forward with first and after, or backward with last and before.`
      : before !== undefined && last === undefined
        ? 'before needs last: page backward with both.'
        : undefined
  if (wrong) throw invalidRequest(wrong)
}

/** The conditions of a list below one parent: the first one names it. */
const below = (read: ListRead, parent: unknown): ListRead => {
  const [[column, operator] = ['', '=' as const], ...others] = read.conditions
  return { ...read, conditions: [[column, operator, parent], ...others] }
}

/**
 * The connections of a list below some parents, or of the whole list. Their pages are read together.
 *
 * @param parent the condition that names a parent, without a value
 * @throws ApiError invalid_request
 */
export function connect(
  list: Queryable,
  args: ConnectionArgs,
  reads: Reads,
  parent?: Condition,
  parents: readonly unknown[] = [undefined],
): Connection[] {
  assertOneDirection(args)
  const { first, after, last, before } = args
  const query = planQuery(list, args, parent)
  const { direction, counted } = query
  const isBackward = last !== undefined
  const [name, text] = isBackward ? ['before', before] : ['after', after]
  const values = text === undefined ? undefined : readCursor(name, text, list, query)
  const size = first ?? last ?? DEFAULT_LIMIT
  const reversed = opposite[direction]
  const [along, against] = isBackward ? [reversed, direction] : [direction, reversed]
  const [toward, back] = isBackward
    ? (['hasPreviousPage', 'hasNextPage'] as const)
    : (['hasNextPage', 'hasPreviousPage'] as const)
  // Only what reads rows is refused for their order: a total has none.
  const read = (direction: ListRead['direction'], limit: number, inclusive?: boolean) => {
    const page = { ...query.rows(), direction, after: values && { values, inclusive }, limit }
    if (parent !== undefined) return reads.pages(list.model, page, parents) as Promise<Row[][]>
    return reads.page(list.model, page).then((rows) => [rows as Row[]])
  }
  /** The row nearest to the cursor on the side that is not read, or at it. If there is one, the page is not the first. */
  const others = once(async () => (values === undefined ? parents.map(() => []) : read(against, 1, true)))
  const pages = once(async () =>
    (await read(along, size + 1)).map((read): Page => {
      const rows = read.slice(0, size)
      if (isBackward) rows.reverse()
      const cursors = new Map<Row, string>()
      const cursor = (row: Row) => getOrCreate(cursors, row, () => cursorOf(list, query, row))
      return { rows, hasMore: read.length > size, cursorOf: cursor }
    }),
  )
  const level: Level = {
    pages,
    total: (i) => reads.total(list.model, parent === undefined ? counted : below(counted, parents[i])),
    async pageInfos(selects) {
      const [needsOthers, needsCursors] = [selects(back), selects('startCursor') || selects('endCursor')]
      const [found, other] = await Promise.all([pages(), needsOthers ? others() : []])
      return found.map(({ rows, hasMore, cursorOf }, i) => {
        const place = (row: Row | undefined) => (row && needsCursors ? cursorOf(row) : null)
        const cursors = { startCursor: place(rows[0]), endCursor: place(rows.at(-1)) }
        return { [toward]: hasMore, [back]: (other[i]?.length ?? 0) > 0, ...cursors } as PageInfoShape
      })
    },
  }
  return parents.map((_, index) => ({ level, index }))
}

export const PageInfo = builder.objectRef<PageInfoShape>('PageInfo').implement({
  ...graphqlOnly,
  description: 'Where a page of a connection ends.',
  fields: (t) => ({
    hasNextPage: t.exposeBoolean('hasNextPage', { description: 'Whether there are items after the page.' }),
    hasPreviousPage: t.exposeBoolean('hasPreviousPage', { description: 'Whether there are items before the page.' }),
    startCursor: t.exposeString('startCursor', {
      nullable: true,
      description: 'The cursor of the first item; null if the page is empty.',
    }),
    endCursor: t.exposeString('endCursor', {
      nullable: true,
      description: 'The cursor of the last item; null if the page is empty.',
    }),
  }),
})
