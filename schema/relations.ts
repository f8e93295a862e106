import { getDatamodel } from '../prisma/generated/pothos.js'
import type { Context } from './context.js'
import type { Page } from './pagination.js'
import { DEFAULT_LIMIT } from './validation.js'

// Pothos loads a relation together with its parent. An alias that asks the same relation for another page cannot be loaded
// so, and Pothos would read the parent again for each. What these functions load is gathered instead: all pages that are
// asked for in one turn of the event loop are one statement.

const { models } = getDatamodel().datamodel

interface PendingPage<Row> extends Page {
  parent: bigint
  resolve(rows: Row[]): void
  reject(error: unknown): void
}

/** Before every id. */
const FIRST = -(2n ** 63n)

/**
 * Loads pages of a list below other rows, in ascending order of id.
 *
 * @param column refers to the parent
 */
export function pagesOf<Row extends object>(model: string, column: string) {
  const columns = (models[model]?.fields ?? []).filter(({ kind }) => kind === 'scalar' || kind === 'enum')
  const statement = `
    SELECT "page"."index" AS "page", ${columns.map(({ name }) => `"row"."${name}"`).join(', ')}
    FROM unnest($1::bigint[], $2::bigint[], $3::int[]) WITH ORDINALITY AS "page" ("parent", "after", "limit", "index")
    CROSS JOIN LATERAL (
      SELECT * FROM "${model}" WHERE "${column}" = "page"."parent" AND "id" > "page"."after" ORDER BY "id" LIMIT "page"."limit"
    ) AS "row"
    ORDER BY "page"."index", "row"."id"`

  async function load(prisma: Context['prisma'], pending: PendingPage<Row>[]) {
    const rows = await prisma.$queryRawUnsafe<(Row & { page: bigint })[]>(
      statement,
      pending.map(({ parent }) => parent),
      pending.map(({ after }) => after ?? FIRST),
      pending.map(({ limit }) => limit ?? DEFAULT_LIMIT),
    )
    const pages = pending.map((): Row[] => [])
    for (const { page, ...row } of rows) pages[Number(page) - 1]?.push(row as unknown as Row)
    for (const [i, { resolve }] of pending.entries()) resolve(pages[i] as Row[])
  }

  /** By the client of the request. */
  const open = new WeakMap<object, PendingPage<Row>[]>()
  return ({ prisma }: Context, parent: bigint, { limit, after }: Page) =>
    new Promise<Row[]>((resolve, reject) => {
      const page = { parent, limit, after, resolve, reject }
      const pending = open.get(prisma)
      if (pending) return void pending.push(page)
      const opened = [page]
      open.set(prisma, opened)
      setImmediate(() => {
        open.delete(prisma)
        load(prisma, opened).catch((error) => {
          for (const { reject } of opened) reject(error)
        })
      })
    })
}
