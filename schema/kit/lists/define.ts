import type { ObjectRef } from '@pothos/core'
import { builder, graphqlOnly } from '../builder.js'
import { type Condition, type Context, MAX_TOTAL } from '../context.js'
import { invalidRequest } from '../errors.js'
import { DEFAULT_LIMIT, MAX_LIMIT } from '../input/rules.js'
import type { Values } from '../input/values.js'
import { columnOf } from '../model.js'
import type { Rest } from '../plugin.js'
import { type Any, forAll, selects } from '../relations.js'
import { connectionArgs, defineSort, type List, type ListDeclaration, listArgs, restArgs } from './arguments.js'
import { type Connection, connect, type Edge, edges, fromEach, PageInfo } from './connection.js'
import { cursorOf, readCursor } from './cursor.js'
import { isRange, type ListQuery, planQuery } from './plan.js'

export { atLeast, atMost, beginsWith, below, equals } from './arguments.js'

// Lists are paged by keyset: a page names the last item seen. A late page costs the same as the first one, and rows that are
// added or deleted cause no item to be skipped or repeated. One declaration gives a list its field, its connection, and
// both below other types.

interface ListArgs extends Values {
  limit?: number
  after?: bigint
  cursor?: string
  count?: boolean
}

/** The ends of the ids. With one of them as the cursor, the first page and the others are one statement. */
const FIRST = { asc: -(2n ** 63n), desc: 2n ** 63n - 1n }

/** Where a page begins. */
function placeOf(list: List, query: ListQuery, { after, cursor }: ListArgs): unknown[] | undefined {
  const { sort, direction } = query
  if (cursor !== undefined && after !== undefined)
    throw invalidRequest('after and cursor exclude each other: send one of them.')
  if (cursor !== undefined) return readCursor('cursor', cursor, list, query)
  if (sort === list.key) return [after ?? FIRST[direction]]
  if (after !== undefined)
    throw invalidRequest(
      `after names a place in order of ${list.key} only. In order of ${sort}, send the cursor that the Link of the previous page has (in GraphQL, page by ${list.name}Connection, whose after takes a cursor).`,
    )
}

/** @param parent the condition that names a row which the list is below, without a value */
function pageOf(list: List, args: ListArgs, parent?: Condition) {
  const query = planQuery(list, args, parent)
  const rows = query.rows()
  const values = placeOf(list, query, args)
  const limit = args.limit ?? (args[list.key] ? MAX_LIMIT : DEFAULT_LIMIT)
  return { query, page: { after: values && { values }, limit, ...rows } }
}

/** Reads one row more than the limit, to learn whether another page follows. */
async function readRoot(list: List, args: ListArgs, context: Context) {
  const { query, page } = pageOf(list, args)
  const size = page.limit++
  const [rows, total] = await Promise.all([
    context.reads.page(list.model, page) as Promise<Record<string, unknown>[]>,
    args.count ? context.reads.total(list.model, query.counted) : null,
  ])
  if (total !== null) context.total = total
  if (rows.length <= size) return rows
  rows.length = size
  const last = rows.at(-1) as Record<string, unknown>
  const place =
    query.sort === list.key
      ? { after: String(last[list.key]), cursor: undefined }
      : { cursor: cursorOf(list, query, last) }
  context.next = { count: undefined, ...place }
  return rows
}

/** The connection of a list, and its edge. */
function defineConnection({ model, type, name }: ListDeclaration) {
  const EdgeType = builder.objectRef<Edge>(`${model}Edge`).implement({
    ...graphqlOnly,
    description: 'An item of a page, and its place.',
    fields: (t) => ({
      cursor: t.exposeString('cursor', { description: 'For `after`, `before`, and `cursor` of REST.' }),
      node: t.field({ type, description: 'The item.', resolve: ({ node }) => node as Any }),
    }),
  })
  return builder.objectRef<Connection>(`${model}Connection`).implement({
    ...graphqlOnly,
    description: `A page of ${name}, by the GraphQL Cursor Connections Specification.`,
    fields: (t) => ({
      edges: t.field({
        type: [EdgeType],
        description: 'The items, each with its cursor.',
        ...forAll(async (connections) => (await fromEach(connections, ({ pages }) => pages())).map(edges)),
      }),
      nodes: t.field({
        type: [type],
        description: 'The items.',
        ...forAll(async (connections) => (await fromEach(connections, ({ pages }) => pages())).map(({ rows }) => rows)),
      }),
      pageInfo: t.field({
        type: PageInfo,
        description: 'Where the page ends.',
        ...forAll((connections, _args, _context, info) =>
          fromEach(connections, ({ pageInfos }) => pageInfos((field) => selects(info, field))),
        ),
      }),
      totalCount: t.int({
        nullable: true,
        description: `How many items match, whatever the page; null above ${MAX_TOTAL}. It costs as much as 100 objects.`,
        // It may have to count a whole index.
        weight: 1_000,
        resolve: ({ level, index }) => level.total(index),
      }),
    }),
  })
}

/** The columns of text that a list is compared by. */
const textsOf = ({ model, sorts, filters }: ListDeclaration) => {
  const searched = Object.values(filters).flatMap(({ column, operator }) => (isRange({ operator }) ? column : []))
  return new Set([...sorts, ...searched].filter((name) => columnOf(model, name).type === 'String'))
}

/** A list that can have fields (`addList`, `addListBelow`). */
export function defineList(declaration: ListDeclaration): List {
  const { name, textKeys = {} } = declaration
  for (const text of textsOf(declaration))
    if (!textKeys[text])
      throw new Error(
        `The list ${name} compares ${text}, which is text: add textKeys: { ${text}: 'plain${text.charAt(0).toUpperCase()}${text.slice(1)}' } to it`,
      )
  return { ...declaration, sortType: defineSort(declaration), connectionType: defineConnection(declaration) }
}

/** Every list, and those below rows of another type, with the column that names the row. */
export const lists: { list: List; parent?: string }[] = []

/** Adds the root field of a list, and its connection. */
export function addList(list: List, { description, rest }: { description: string; rest: Rest }) {
  const { name, key, type } = list
  lists.push({ list })
  builder.queryFields((t) => ({
    [name]: t.field({
      type: [type],
      description: `${description}, in ascending order of ${key} if nothing else is asked for.`,
      rest,
      list: { ids: key },
      args: { ...listArgs(t.arg, list), ...restArgs(t.arg, list) } as Any,
      resolve: (_root, args: Any, context) => readRoot(list, args, context) as Any,
    }),
    [`${name}Connection`]: t.field({
      ...graphqlOnly,
      type: list.connectionType,
      description: `${description}, as a connection: in any order, in both directions, with a total.`,
      rest: false,
      list: { ids: key, isConnection: true },
      args: connectionArgs(t.arg, list) as Any,
      resolve: (_root, args: Any, { reads }) => connect(list, args, reads)[0] as Connection,
    }),
  }))
}

/** Adds a list below the rows of a type, and its connection. @param column the column that names the row above */
export function addListBelow(list: List, parent: ObjectRef<Any, Any>, column: string, description: string) {
  const { name, key, type, model } = list
  lists.push({ list, parent: column })
  const condition = [column, '=', undefined] as const
  const idsOf = (parents: { id: bigint }[]) => parents.map(({ id }) => id)
  builder.objectFields(parent, (t) => ({
    [name]: t.field({
      ...graphqlOnly,
      type: [type],
      description: `${description}, in order of ${key}.`,
      list: { ids: key },
      args: listArgs(t.arg, list, column) as Any,
      ...forAll((parents, args, { reads }) => reads.pages(model, pageOf(list, args, condition).page, idsOf(parents))),
    }),
    [`${name}Connection`]: t.field({
      ...graphqlOnly,
      type: list.connectionType,
      description: `${description}, as a connection.`,
      list: { ids: key, isConnection: true },
      args: connectionArgs(t.arg, list, column) as Any,
      ...forAll((parents, args, { reads }) => connect(list, args, reads, condition, idsOf(parents))),
    }),
  }))
}
