import type { ObjectRef } from '@pothos/core'
import type { z } from 'zod'
import { type ArgBuilder, builder, columnDescription, restOnly } from '../builder.js'
import { MAX_TOTAL, type Operator } from '../context.js'
import { cursor, DEFAULT_LIMIT, ids, limit, MAX_LIMIT } from '../input/rules.js'
import { columnOf } from '../model.js'
import type { Any } from '../relations.js'
import type { Connection } from './connection.js'
import { cursorOf } from './cursor.js'
import { isRange, type Queryable } from './plan.js'

// What a list is declared by, and the arguments that follow from it.

/** What can be asked of a list by an argument of its own. */
interface Filter {
  column: string
  operator: Operator
  arg: FilterArg
}

interface FilterArg {
  type: Any
  description: string
  validate?: z.ZodType
  example?: unknown
}

export interface ListDeclaration extends Queryable {
  type: ObjectRef<Any, Any>
  /** The name of its field: `pets`. */
  name: string
  filters: Record<string, Filter>
}

export interface List extends ListDeclaration {
  sortType: Any
  connectionType: ObjectRef<Any, Connection, Connection>
}

/** A filter by the value of a column. */
export const equals = (column: string, arg: FilterArg): Filter => ({ column, operator: '=', arg })
export const atLeast = (column: string, arg: FilterArg): Filter => ({ column, operator: '>=', arg })
export const atMost = (column: string, arg: FilterArg): Filter => ({ column, operator: '<=', arg })
export const below = (column: string, arg: FilterArg): Filter => ({ column, operator: '<', arg })
export const beginsWith = (column: string, arg: FilterArg): Filter => ({ column, operator: 'begins with', arg })

const Direction = builder.enumType('SortDirection', {
  description: 'The direction of an order.',
  values: {
    asc: { description: 'Ascending. The default.' },
    desc: { description: 'Descending.' },
  } as const,
})

/** The columns that a list can be sorted by, as an enum. */
export function defineSort({ model, name, key, sorts, textKeys = {} }: ListDeclaration) {
  const values = [key, ...sorts].map((column) => [column, { description: columnDescription(model, column) }])
  const description = [
    `What ${name} can be sorted by.`,
    ...sorts
      .filter((column) => textKeys[column])
      .map(
        (column) =>
          `Values of \`${column}\` are compared in lower case and without accents, then by their code points.`,
      ),
    ...sorts
      .filter((column) => !columnOf(model, column).isRequired)
      .map((column) => `Items without \`${column}\` come last, or first in descending order.`),
  ]
  return builder.enumType(`${model}Sort`, { description: description.join(' '), values: Object.fromEntries(values) })
}

/** The arguments that lists and connections share. @param parent the column that a list below a row is filtered by already */
const commonArgs = (arg: ArgBuilder, list: List, parent?: string) => ({
  [list.key]: arg({
    type: ['Int64'],
    validate: ids,
    description: `Only the items with these ids, at most ${MAX_LIMIT}.`,
    example: [4, 5],
  }),
  ...Object.fromEntries(
    Object.entries(list.filters)
      // A list below a row has one order, and its index serves no other range.
      .filter(([, { column, operator }]) => !parent || (column !== parent && operator === '='))
      .map(([name, filter]) => {
        const needs = isRange(filter) ? ` Needs \`sort\` = ${filter.column}, unless \`${list.key}\` is given.` : ''
        return [name, arg({ ...filter.arg, description: filter.arg.description + needs })]
      }),
  ),
  ...(!parent && {
    sort: arg({
      type: list.sortType,
      defaultValue: list.key,
      description: 'What the list is sorted by.',
      example: list.sorts[0] ?? list.key,
    }),
  }),
  direction: arg({
    type: Direction,
    defaultValue: 'asc',
    description: `The direction of the order${parent ? '' : `, also of the ${list.key} of items that are equal in it`}.`,
  }),
})

export const listArgs = (arg: ArgBuilder, list: List, parent?: string) => ({
  limit: arg.int({
    description: `The maximum number of items on a page, 1 to ${MAX_LIMIT}. Default: ${DEFAULT_LIMIT}, or ${MAX_LIMIT} if \`${list.key}\` is given. A page with fewer items is the last one.`,
    validate: limit,
    example: DEFAULT_LIMIT,
  }),
  after: arg({
    type: 'Int64',
    description: `Returns the items after this ${list.key}. Send the ${list.key} of the last item of the previous page.${parent ? '' : ` Only in order of ${list.key}.`}`,
  }),
  ...commonArgs(arg, list, parent),
})

/** Values of a row, by type. */
const examples: Record<string, unknown> = {
  BigInt: 1n,
  Int: 3,
  String: 'Max',
  DateTime: new Date('2026-12-01T10:00:00Z'),
}

/** The place after a row in the order of the other examples. */
function exampleCursor(list: List): string {
  const [sort = list.key] = list.sorts
  const order = sort === list.key ? [sort] : [sort, list.key]
  const row = Object.fromEntries(order.map((name) => [name, examples[columnOf(list.model, name).type]]))
  return cursorOf(list, { sort, order, direction: 'asc' }, row)
}

export const restArgs = (arg: ArgBuilder, list: List) => ({
  cursor: arg.string({
    ...restOnly,
    validate: cursor,
    description:
      'Returns the items after this place in any order. It is in the `Link` of the previous page; send it with the same `sort` and `direction`.',
    example: exampleCursor(list),
  }),
  count: arg.boolean({
    ...restOnly,
    units: 1,
    description: `Whether \`X-Total-Count\` says how many items match, up to ${MAX_TOTAL}. Costs 1 more.`,
    example: true,
  }),
})

const pageArg = (arg: ArgBuilder, description: string) =>
  arg.int({ validate: limit, description: `${description}, 1 to ${MAX_LIMIT}. Default: ${DEFAULT_LIMIT}.` })

const placeArg = (arg: ArgBuilder, description: string) => arg.string({ validate: cursor, description })

export const connectionArgs = (arg: ArgBuilder, list: List, parent?: string) => ({
  first: pageArg(arg, 'How many items from the beginning, or from `after`'),
  after: placeArg(arg, 'Returns the items after this cursor.'),
  last: pageArg(arg, 'Instead of `first`: how many items from the end, or up to `before`'),
  before: placeArg(arg, 'Returns the items before this cursor. It goes with `last`.'),
  ...commonArgs(arg, list, parent),
})
