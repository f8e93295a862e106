import type { builder, Context } from './builder.js'
import { DEFAULT_LIMIT, limit, MAX_LIMIT } from './rules.js'

// Lists are in ascending order of id and paged by keyset: `after` names the last item seen, so that a page costs the
// same however deep it lies, and nothing is skipped or repeated when rows come and go.

type ArgBuilder = Parameters<Parameters<typeof builder.queryField>[1]>[0]['arg']

export const limitArg = (arg: ArgBuilder) =>
  arg.int({
    defaultValue: DEFAULT_LIMIT,
    description: `The most items to return, 1 to ${MAX_LIMIT}. A page with fewer is the last one.`,
    validate: limit,
  })

export const afterArg = (arg: ArgBuilder, of = 'id') =>
  arg({ type: 'Int64', description: `Returns what follows this ${of}: that of the last item seen.` })

interface Page {
  limit?: number | null
  after?: bigint | null
}

export const keyset = ({ limit, after }: Page) => ({
  where: { id: { gt: after ?? undefined } },
  orderBy: { id: 'asc' as const },
  take: limit ?? DEFAULT_LIMIT,
})

/** A root list. Fetches one row more than asked for, to tell whether a further page follows. */
export async function page<Row>(
  context: Context,
  { limit, after }: Page,
  find: (list: ReturnType<typeof keyset>) => Promise<Row[]>,
) {
  const size = limit ?? DEFAULT_LIMIT
  const rows = await find(keyset({ limit: size + 1, after }))
  context.page?.(rows.length > size)
  return rows.slice(0, size)
}
