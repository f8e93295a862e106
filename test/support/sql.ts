import { getOrCreate } from '../../schema/kit/get-or-create.js'

type Kind = 'SELECT' | 'LOCK' | 'INSERT' | 'UPDATE' | 'DELETE'
type Rows = { table: string; ids: number } | undefined

// As in src/engines/postgres/statement.ts, of which this knows nothing: engines test with it.
interface Statement {
  kind: Kind
  tables: readonly string[]
  text: string
  rows: Rows
}

const known = new Map<string, Statement>()

const TABLES = /\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:"\w+"\.)?"(\w+)"/g

function kindOf(text: string): Kind {
  if (/\bFOR (NO KEY )?UPDATE\b/.test(text)) return 'LOCK'
  const [verb = ''] = /\w+/.exec(text) ?? []
  return /^(SELECT|INSERT|UPDATE|DELETE)$/.test(verb) ? (verb as Kind) : 'UPDATE'
}

/** A statement of a test's own. Those with equal texts are one. @param rows as in Statement */
export const sql = (text: string, rows?: Rows): Statement =>
  getOrCreate(known, text, () => ({
    kind: kindOf(text),
    tables: Array.from(text.matchAll(TABLES), ([, table = '']) => table),
    text,
    rows,
  }))
