import { describeStatement, inSpan } from '../../observe/tracing.js'

// What the text of a statement says about it. Texts come from Prisma and from our own code, never from a client.

/** A comment in which a statement names its bulkhead, and the parameter that names the row for which it may wait. */
export const bulkheadComment = (bulkhead: string, row: number) => `/* bulkhead: ${bulkhead}, row: $${row} */`
const NAMED = /^\/\* bulkhead: (.+), row: \$(\d+) \*\//

const TABLES = /\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:"\w+"\.)?"(\w+)"/g
const LOCKS = /\bFOR\s+(?:NO\s+KEY\s+)?UPDATE\b/
/** The first column that is compared with a parameter. */
const ROW = /\bWHERE\b[^$]*"\w+"\s*=\s*\$(\d+)/

/** The comment of the last statement of a transaction: COMMIT is sent with it. If it fails, nothing is committed. */
export const LAST_COMMENT = '/* last */'
export const isLast = (sql: string): boolean => sql.startsWith(LAST_COMMENT)

/** Whether it may share a connection with others, and may be sent again if its connection was lost. */
export const isRead = (sql: string): boolean => /^\s*SELECT\b/.test(sql) && !LOCKS.test(sql)

const tablesOf = (sql: string) => [...new Set(Array.from(sql.matchAll(TABLES), ([, table = '']) => table))].sort()

/** The name of its bulkhead: `SELECT Category Pet`. One that locks rows may wait for others, so reads do not wait for it. */
export function bulkheadOf(sql: string): string {
  const [, named] = NAMED.exec(sql) ?? []
  if (named) return named
  const verb = LOCKS.test(sql) ? 'LOCK' : /\w+/.exec(sql)?.[0]
  return [verb, ...tablesOf(sql)].join(' ')
}

/** Sends it in a span that its verb and tables name. */
export const inStatementSpan = <T>(sql: string, send: () => T): T =>
  inSpan(() => describeStatement(/^(?:\/\*.*?\*\/)?\s*(\w+)/.exec(sql)?.[1] ?? '', tablesOf(sql)), send)

/** The index of the value that names the row that a statement writes or locks; undefined if there is none. */
export function rowIndexOf(sql: string): number | undefined {
  const number = isRead(sql) ? undefined : (NAMED.exec(sql)?.[2] ?? ROW.exec(sql)?.[1])
  return number === undefined ? undefined : Number(number) - 1
}
