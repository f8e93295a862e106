/** What a statement does first. LOCK reads rows, and locks them. */
type Kind = 'SELECT' | 'LOCK' | 'INSERT' | 'UPDATE' | 'DELETE'

/**
 * A statement of our own. It is made once, and kept: a pool knows it by its identity. Values are parameters, all of them. What
 * belongs to the service is in the schema `public`, for which a pool puts another name.
 */
export interface Statement {
  kind: Kind
  /** All that it reads, writes or locks; what it writes comes first. */
  tables: readonly string[]
  text: string
  /** The rows that it writes or locks: of a table; their ids, or that of the only one, are the parameter with this number. */
  rows?: { table: string; ids: number } | undefined
  /** The last one of its transaction: COMMIT is sent with it. If it fails, nothing is committed. */
  isLast?: boolean
}

/** How a row is named. */
export const rowName = (table: string, id: unknown) => `${table} ${id}`
