import type { ArgBuilder } from './builder.js'
import type { Condition, Context, Model, RowOf } from './context.js'
import { DEFAULT_LIMIT, limit, MAX_LIMIT } from './validation.js'

// Lists are in ascending order of id and paged by keyset: `after` names the last item seen. A late page
// costs the same as the first one, and rows that are added or deleted cause no item to be skipped or repeated.

export const afterArg = (arg: ArgBuilder, cursor = 'id') =>
  arg({
    type: 'Int64',
    description: `Returns the items after this ${cursor}. Send the ${cursor} of the last item of the previous page.`,
  })

/** @param cursor the column that the list is ordered by */
export const pageArgs = (arg: ArgBuilder, cursor?: string) => ({
  limit: arg.int({
    defaultValue: DEFAULT_LIMIT,
    description: `The maximum number of items on a page, 1 to ${MAX_LIMIT}. A page with fewer items is the last one.`,
    validate: limit,
    example: DEFAULT_LIMIT,
  }),
  after: afterArg(arg, cursor),
})

export interface Page {
  limit?: number | null
  after?: bigint | null
}

/** A list below a row that a mutation returns, for Prisma, which reads both together. */
export const keyset = ({ limit, after }: Page) => ({
  where: { id: { gt: after ?? undefined } },
  orderBy: { id: 'asc' as const },
  take: limit ?? DEFAULT_LIMIT,
})

/** Before every id. With it, the first page and the others are one statement. */
const FIRST = -(2n ** 63n)

/** A list in ascending order of one column. */
export const list = ({ limit, after }: Page, conditions: readonly Condition[], cursor = 'id') => ({
  conditions,
  order: [cursor],
  after: [after ?? FIRST],
  limit: limit ?? DEFAULT_LIMIT,
})

/**
 * A root list. Reads one row more than the limit, to learn whether another page follows.
 *
 * @param cursor the column that the list is ordered by
 */
export async function page<M extends Model>(
  context: Context,
  model: M,
  { limit, after }: Page,
  conditions: readonly Condition[] = [],
  cursor = 'id',
): Promise<RowOf<M>[]> {
  const size = limit ?? DEFAULT_LIMIT
  const rows = await context.reads.page(model, list({ limit: size + 1, after }, conditions, cursor))
  if (rows.length <= size) return rows
  rows.length = size
  context.nextCursor = rows.at(-1)?.[cursor as keyof RowOf<M>] as bigint
  return rows
}
