import type { Condition, ListRead, PageRead } from '../../../schema/kit/context.js'
import { createLocks, where, withParts } from './locks.js'
import { type Column, qualified, type Tables } from './model.js'
import type { Statement } from './statement.js'

/** What answers one question, or several: then each parameter is an array with the values of all. */
export interface ReadStatement {
  single: Statement
  batched: Statement
}

export interface RowStatement extends ReadStatement {
  column: string
}

/** After every text with the same beginning: no name has more characters than these. */
const LAST = 'repeat(chr(1114111), 100)'

/** An end of what is read in an index: a row in SQL, of as many keys as it has. */
interface End {
  operator: '>' | '>=' | '<' | '<='
  row: string[]
}
type Range = Partial<Record<'lower' | 'upper', End>>

/** A parameter in SQL, and what it is compared by if it is a name. */
type Parameter = (index: number) => { value: string; key: string }

/** The rest of a row of keys, such that no row of the table is between the given keys and all of them. */
const restOf = (keys: number, { operator }: End) =>
  (operator === '<=' ? [LAST, '9223372036854775807'] : [`''`, '0']).slice(keys === 3 ? 0 : 1)

const reading = (tables: string[], text: string): Statement => ({ kind: 'SELECT', tables, text })

/** Builds the statements that read. Values are parameters, all of them. */
export function createStatements(tables: Tables) {
  const { nameOf, tableOf, columnsOf, columnOf, keyOf, ownerOf, valuesOf, selectionOf } = tables
  const { lockingOwner } = createLocks(tables)

  /** How a column is ordered and compared: the columns of its index, or the same of a value. */
  function keysOf({ type, isRequired }: Column, value: string, key: string): string[] {
    if (type === 'String') return [`${key} COLLATE "C"`, `${value} COLLATE "C"`]
    return type === 'DateTime' && !isRequired ? [`coalesce(${value}, 'infinity')`] : [value]
  }

  /** Reads rows by a unique column. */
  function rows(model: string, column: string): RowStatement {
    const { sql } = columnOf(model, column)
    const select = (condition: string) =>
      reading([nameOf(model)], `SELECT ${selectionOf(model)} FROM ${tableOf(model)} "row" WHERE ${condition}`)
    return { single: select(`${sql} = $1`), batched: select(`${sql} = ANY ($1)`), column }
  }

  /** Reads the row with an id, and locks it after its owner. */
  function locked(model: string): Statement {
    const { tables, parts, conditions } = lockingOwner(model)
    const table = nameOf(model)
    const text = `${withParts(parts)} SELECT ${selectionOf(model)} FROM ${tableOf(model)} "row"
      ${where([`${keyOf(model).sql} = $1`, ...conditions])} FOR NO KEY UPDATE`
    return { kind: 'LOCK', tables: [table, ...tables], text, rows: { table, ids: 1 } }
  }

  /** What bounds a column that a list is ordered by. What has no moment is not after any. */
  function rangeOf(column: Column, conditions: readonly Condition[], parameter: Parameter): Range {
    const range: Range = {}
    for (const [i, [name, operator]] of conditions.entries()) {
      if (name !== column.name || operator.startsWith('=')) continue
      const { value, key } = parameter(i)
      const [first = ''] = keysOf(column, value, key)
      if (operator === '>=' || operator === 'begins with') range.lower = { operator: '>=', row: [first] }
      if (operator === '<=' || operator === '<') range.upper = { operator, row: [first] }
      if (operator === 'begins with') range.upper = { operator: '<=', row: [`(${key} || ${LAST}) COLLATE "C"`] }
    }
    if (range.lower && column.type === 'DateTime' && !column.isRequired)
      range.upper ??= { operator: '<', row: [`'infinity'`] }
    return range
  }

  /** The values of columns of few values, in SQL: each combination is a row. */
  function everyValue(model: string, names: readonly string[]): string {
    const rows = names.reduce<string[][]>(
      (known, name) => {
        const column = columnOf(model, name)
        return known.flatMap((row) => valuesOf(column).map((value) => [...row, `'${value}'::${column.sqlType}`]))
      },
      [[]],
    )
    return `(VALUES ${rows.map((row) => `(${row})`)}) "unbound" (${names.map((name) => `"${name}"`)})`
  }

  /**
   * Reads a page, or counts a list. The parameters: the values of the conditions, those of `after`, the limit.
   *
   * Its rows are a range of one index, the only one that has the order: its first column and that before the key are sorted
   * by although they are equal. PostgreSQL drops columns with `=` from an order, and would take any index with the rest, such
   * as the primary key, and read past most rows; so the first has ANY, and the other is a range. A scan ends at such a bound
   * only behind equal columns, and only at the first column of a row comparison.
   */
  function list(model: string, read: Omit<PageRead, 'limit'>, isTotal = false): ReadStatement {
    const { conditions, order, direction, within = [], byOwner, after, textKeys = {} } = read
    const owner = byOwner ? ownerOf(model) : undefined
    if (byOwner && !owner) throw new Error(`${model} belongs to no other model, by whose index it could be read.`)
    /** A column in the index. */
    const sqlOf = ({ name, sql, isId }: Column) =>
      owner ? `"owner"."${(isId ? keyOf(owner) : columnOf(owner, name)).stored}"` : sql
    const storedKeys = (column: Column) => keysOf(column, sqlOf(column), `"row"."${textKeys[column.name]}"`)
    const sorted = order.map((name) => columnOf(model, name))
    const [first] = sorted as [Column]
    const places = after ? sorted : []
    // What a parameter is in a statement of its own. Ids are one text for each page, because pages may have different ones.
    const types = [
      ...conditions.map(([name, operator]) => (operator === '= ANY' ? 'text' : columnOf(model, name).sqlType)),
      ...places.map(({ sqlType }) => sqlType),
      'integer',
    ]
    const ids = conditions.findIndex(([, operator]) => operator === '= ANY')
    const names = types.flatMap((type, i) => (type === 'text' && i !== ids ? [i] : []))
    const equal = (name: string) => conditions.findIndex(([column, operator]) => column === name && operator === '=')
    const unbound = within.filter((name) => equal(name) < 0)
    const ranged = order.length === 1 && within.length > 1 ? within.slice(-1) : []
    const fixed = within.slice(0, within.length - ranged.length)
    const keys = sorted.flatMap(storedKeys)
    const indexed = [...within.map((name) => sqlOf(columnOf(model, name))), ...keys]
    const orderBy = (keys: string[]) => `ORDER BY ${keys.map((key) => `${key} ${direction}`)}`
    const byKeys = orderBy(keys.map((_, i) => `"key${i}"`))
    const [near, beyond] = direction === 'asc' ? (['lower', '>'] as const) : (['upper', '<'] as const)
    const ofPage: Parameter = (i) => ({ value: `"page"."p${i}"`, key: `"page"."k${i}"` })
    const start = after && rangeOf(first, conditions, ofPage)[near]

    const placeOf = (parameter: Parameter) =>
      places.flatMap((column, i) => {
        const { value, key } = parameter(conditions.length + i)
        return keysOf(column, value, key)
      })

    /** What is no part of that range: filters beside ids. */
    function filter(condition: Condition, parameter: Parameter): string[] {
      const [name, operator] = condition
      const column = columnOf(model, name)
      if (operator === '= ANY' || within.includes(name)) return []
      if (operator === '=') return [`${column.sql} = ${parameter(0).value}`]
      if (name === order[0]) return []
      const [key] = storedKeys(column)
      return Object.values(rangeOf(column, [condition], parameter)).map((end) => `${key} ${end.operator} ${end.row}`)
    }

    function select(columns: string[], parameter: Parameter) {
      const givenFor = (name: string) => (unbound.includes(name) ? `"unbound"."${name}"` : parameter(equal(name)).value)
      const range: Record<string, End> = {
        lower: { operator: '>=', row: [] },
        upper: { operator: '<=', row: [] },
        ...rangeOf(first, conditions, parameter),
      }
      if (after) {
        const row = start ? keys.map((_, i) => `"page"."start${i}"`) : placeOf(parameter)
        range[near] = { operator: `${beyond}${after.inclusive ? '=' : ''}`, row }
      }
      const bounds = conditions.flatMap((condition, i) => filter(condition, () => parameter(i)))
      for (const [i, name] of fixed.entries())
        bounds.push(`${sqlOf(columnOf(model, name))} = ${i === 0 ? `ANY (ARRAY[${givenFor(name)}])` : givenFor(name)}`)
      for (const { operator, row } of Object.values(range)) {
        const values = [...ranged.map(givenFor), ...row]
        if (values.length > 0)
          bounds.push(`(${indexed.slice(fixed.length).slice(0, values.length)}) ${operator} (${values})`)
      }
      return `SELECT ${columns} FROM ${source(parameter)} ${where(bounds)} ${orderBy(indexed)} LIMIT ${limitOf(parameter)}`
    }

    const limitOf = (parameter: Parameter) => parameter(types.length - 1).value

    /** What the rows are selected from. */
    function source(parameter: Parameter): string {
      if (owner) {
        // Each owner has exactly one row: a total counts owners.
        const owners = `${tableOf(owner)} "owner"`
        const key = keyOf(model)
        return isTotal ? owners : `${owners} JOIN ${tableOf(model)} "row" ON ${key.sql} = ${sqlOf(key)}`
      }
      const [name] = conditions[ids] ?? []
      if (name === undefined) return `${tableOf(model)} "row"`
      // The few rows with given ids, for which no index of the order may be read.
      const { sql, sqlType } = columnOf(model, name)
      return `(SELECT * FROM ${tableOf(model)} "row" WHERE ${sql} = ANY (${parameter(ids).value}::${sqlType}[]) OFFSET 0) "row"`
    }

    /** The list in one piece, with its keys if it is part of a longer statement. */
    function whole(parameter: Parameter, isPart: boolean): string {
      const named = keys.map((key, i) => `${key} AS "key${i}"`)
      const isOne = unbound.length === 0
      const list = select(isTotal ? ['1'] : [...selectionOf(model), ...(isPart || !isOne ? named : [])], parameter)
      if (isOne) return list
      const columns = isTotal ? '1' : isPart ? '"row".*' : found
      return `SELECT ${columns} FROM ${everyValue(model, unbound)} CROSS JOIN LATERAL (${list}) "row"
        ${isTotal ? '' : byKeys} LIMIT ${limitOf(parameter)}`
    }

    /** The pages that are asked for. OFFSET keeps what is computed for a page from being computed for each row. */
    function asking(pages: string): string {
      const plain = names.map((i) => `, ${qualified('plain')}("p${i}") AS "k${i}"`).join('')
      const known = `(SELECT "pages".*${plain} FROM ${pages} OFFSET 0) "page"`
      if (!start) return known
      // A page begins at its cursor or at its bound. PostgreSQL would take either, and read all between them.
      const place = placeOf(ofPage)
      const bound = [...start.row, ...restOf(keys.length, start)]
      const starts = place.map(
        (value, i) => `CASE WHEN (${place}) ${beyond} (${bound}) THEN ${value} ELSE ${bound[i]} END AS "start${i}"`,
      )
      return `(SELECT "page".*, ${starts} FROM ${known} OFFSET 0) "page"`
    }

    const found = columnsOf(model).map(({ name }) => `"row"."${name}"`)
    const direct = (i: number) => ({ value: `$${i + 1}::${types[i]}`, key: '' })
    const given = types.map((type, i) => `$${i + 1}::${type} AS "p${i}"`)
    const arrays = types.map((type, i) => `$${i + 1}::${type}[]`)
    const parts = `CROSS JOIN LATERAL (${whole(ofPage, true)}) "row"`
    const alone =
      names.length === 0 && !start
        ? whole(direct, false)
        : `SELECT ${isTotal ? '1' : found} FROM ${asking(`(SELECT ${given}) "pages"`)} ${parts} ${isTotal ? '' : byKeys}`
    const pages = `unnest(${arrays}) WITH ORDINALITY AS "pages" (${types.map((_, i) => `"p${i}"`)}, "index")`
    const tables = [nameOf(model), ...(owner ? [nameOf(owner)] : [])]
    const batched = `SELECT "page"."index" AS "page", ${found} FROM ${asking(pages)} ${parts} ${byKeys.replace('BY', 'BY "page"."index",')}`
    return {
      single: reading(tables, isTotal ? `SELECT count(*)::integer AS "total" FROM (${alone}) "row"` : alone),
      batched: reading(tables, batched),
    }
  }

  return {
    rows,
    locked,
    page: (model: string, page: Omit<PageRead, 'limit'>) => list(model, page),
    total: (model: string, read: ListRead) => list(model, { ...read, after: undefined }, true).single,
  }
}
