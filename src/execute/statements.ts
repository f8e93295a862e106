import { $Enums, type PrismaClient } from '../../prisma/generated/client/client.js'
import { getDatamodel } from '../../prisma/generated/pothos.js'
import type { Condition, ListRead, PageRead } from '../../schema/context.js'

/** What answers one question, or several: then each parameter is an array with the values of all. */
export interface Statement {
  one: string
  many: string
}

export interface RowStatement extends Statement {
  column: string
}

/** The names in the database where they differ (`@map`, `@@map`), which only the client knows. */
interface Client {
  _runtimeDataModel: { models: Record<string, { dbName?: string | null; fields: { name: string; dbName?: string }[] }> }
}

const TYPES: Record<string, string> = {
  BigInt: 'bigint',
  Int: 'integer',
  Boolean: 'boolean',
  String: 'text',
  DateTime: 'timestamptz',
  Json: 'jsonb',
}

/** After every text with the same beginning: no name has more characters than these. */
const LAST = 'repeat(chr(1114111), 100)'

interface Bound {
  keys: string[]
  operator: '>=' | '<=' | '<'
}
type Bounds = { lower?: Bound; upper?: Bound }

/** The rest of a key, after the bound itself: such that no row is between the bound and this. */
const endOf = (keys: number, operator: Bound['operator']) =>
  (operator === '<=' ? [LAST, '9223372036854775807'] : [`''`, '0']).slice(keys === 3 ? 0 : 1)

/** Builds the statements from Prisma's data model. Values are parameters, all of them. */
export function createStatements(prisma: PrismaClient) {
  const { models } = getDatamodel().datamodel
  const mapped = (prisma as unknown as Client)._runtimeDataModel.models

  const fieldsOf = (model: string) => models[model]?.fields.filter(({ kind }) => kind !== 'object') ?? []

  /** What belongs to the service in the database. */
  const qualified = (name: string) => `"public"."${name}"`

  const tableOf = (model: string) => `${qualified(mapped[model]?.dbName ?? model)} "row"`

  type Column = ReturnType<typeof columnOf>

  function columnOf(model: string, name: string) {
    const field = fieldsOf(model).find((field) => field.name === name)
    if (!field) throw new Error(`${model} has no column ${name}`)
    const stored = mapped[model]?.fields.find((field) => field.name === name)?.dbName ?? name
    const type = field.kind === 'enum' ? qualified(field.type) : TYPES[field.type]
    if (!type || field.isList) throw new Error(`Read ${model} with Prisma: pg has another value for ${name}.`)
    return { ...field, sql: `"row"."${stored}"`, sqlType: type }
  }

  /** How a column is ordered and compared: the expressions of its index, for the column or for a parameter. */
  function keysOf({ type, isRequired }: Column, value: string): string[] {
    if (type === 'String') return [`${qualified('folded')}(${value}) COLLATE "C"`, `${value} COLLATE "C"`]
    return type === 'DateTime' && !isRequired ? [`coalesce(${value}, 'infinity')`] : [value]
  }

  const columnsOf = (model: string) => fieldsOf(model).map(({ name }) => `${columnOf(model, name).sql} AS "${name}"`)

  /** Reads rows by a unique column. */
  function rows(model: string, column: string, lock?: 'lock'): RowStatement {
    const { sql } = columnOf(model, column)
    const where = (condition: string) =>
      `SELECT ${columnsOf(model).join(', ')} FROM ${tableOf(model)} WHERE ${condition}${lock ? ' FOR NO KEY UPDATE' : ''}`
    return { one: where(`${sql} = $1`), many: where(`${sql} = ANY ($1)`), column }
  }

  const boundSql = (key: string, { keys, operator }: Bound) => `${key} ${operator} ${keys[0]}`

  /** A condition in SQL. */
  function filter(model: string, condition: Condition, parameter: string): string[] {
    const [name, operator] = condition
    const column = columnOf(model, name)
    if (operator === '=') return [`${column.sql} = ${parameter}`]
    if (operator === '= ANY') return [`${column.sql} = ANY (${parameter}::${column.sqlType}[])`]
    const [key = ''] = keysOf(column, column.sql)
    const bounds = boundsOf(column, [condition], () => parameter)
    return Object.values(bounds).map((bound) => boundSql(key, bound))
  }

  /** What bounds a column that a list is ordered by. What has no moment is not after any. */
  function boundsOf(column: Column, conditions: readonly Condition[], parameter: (index: number) => string): Bounds {
    const bounds: Bounds = {}
    for (const [i, [name, operator]] of conditions.entries()) {
      if (name !== column.name || operator.startsWith('=')) continue
      const keys = keysOf(column, parameter(i))
      if (operator === '>=' || operator === 'begins with') bounds.lower = { keys, operator: '>=' }
      if (operator === '<=' || operator === '<') bounds.upper = { keys, operator }
      if (operator === 'begins with')
        bounds.upper = { keys: [keys[0]?.replace(' COLLATE', ` || ${LAST} COLLATE`) ?? ''], operator: '<=' }
    }
    if (bounds.lower && column.type === 'DateTime' && !column.isRequired)
      bounds.upper ??= { keys: [`'infinity'`], operator: '<' }
    return bounds
  }

  /** The values of columns, each combination as conditions. */
  const combinations = (model: string, names: readonly string[]): string[][] =>
    names.reduce<string[][]>(
      (known, name) => {
        const { sql, kind, type, sqlType } = columnOf(model, name)
        const values = kind === 'enum' ? Object.values($Enums[type as keyof typeof $Enums]) : [true, false]
        return known.flatMap((conditions) => values.map((value) => [...conditions, `${sql} = '${value}'::${sqlType}`]))
      },
      [[]],
    )

  /** Reads a page, or counts a list. The parameters: the values of the conditions, those of `after`, the limit. */
  function list(model: string, asked: Omit<PageRead, 'limit'>, isTotal = false): Statement {
    const { conditions, order, direction, apart = [], after } = asked
    const sorted = order.map((name) => columnOf(model, name))
    const values = after ? sorted : []
    // What a parameter is in a statement of its own. Ids are one text for each page, because pages may have different ones.
    const types = [
      ...conditions.map(([name, operator]) => (operator === '= ANY' ? 'text' : columnOf(model, name).sqlType)),
      ...values.map(({ sqlType }) => sqlType),
      'integer',
    ]
    const keys = sorted.flatMap((column) => keysOf(column, column.sql))
    const orderBy = (keys: string[]) => `ORDER BY ${keys.map((key) => `${key} ${direction}`).join(', ')}`
    const [near, beyond] = direction === 'asc' ? (['lower', '>'] as const) : (['upper', '<'] as const)
    const named = keys.map((key, i) => `${key} AS "key${i}"`)
    const byName = orderBy(keys.map((_, i) => `"key${i}"`))

    function select(columns: string[], parameter: (index: number) => string, more: string[] = []) {
      const [first] = sorted as [Column]
      const bounds = boundsOf(first, conditions, parameter)
      const isBound = ([name, operator]: Condition) => name === first.name && !operator.startsWith('=')
      const filters = conditions.flatMap((condition, i) =>
        isBound(condition) ? [] : filter(model, condition, parameter(i)),
      )
      const where = [...more, ...filters]
      if (after) {
        let place = values.flatMap((column, i) => keysOf(column, parameter(conditions.length + i)))
        const bound = bounds[near]
        delete bounds[near]
        // PostgreSQL would begin at either of the two, and read all between them.
        if (bound) {
          const start = [...bound.keys.slice(0, 1), ...endOf(keys.length, bound.operator)]
          place = place.map(
            (value, i) =>
              `CASE WHEN (${place.join(', ')}) ${beyond} (${start.join(', ')}) THEN ${value} ELSE ${start[i]} END`,
          )
        }
        where.push(`(${keys.join(', ')}) ${beyond}${after.inclusive ? '=' : ''} (${place.join(', ')})`)
      }
      where.push(...Object.values(bounds).map((bound) => boundSql(keys[0] as string, bound)))
      const which = where.length > 0 ? `WHERE ${where.join(' AND ')} ` : ''
      return `SELECT ${columns.join(', ')} FROM ${tableOf(model)} ${which}${orderBy(keys)} LIMIT ${parameter(types.length - 1)}`
    }

    /** The list in one piece, with its keys if it is part of a longer statement. */
    function whole(parameter: (index: number) => string, isPart: boolean): string {
      const columns = isTotal ? ['1'] : columnsOf(model)
      if (apart.length === 0) return select(isPart && !isTotal ? [...columns, ...named] : columns, parameter)
      const each = combinations(model, apart).map(
        (more) => `(${select(isTotal ? columns : [...columns, ...named], parameter, more)})`,
      )
      const names = isPart || isTotal ? ['*'] : fieldsOf(model).map(({ name }) => `"${name}"`)
      const all = `SELECT ${names.join(', ')} FROM (${each.join(' UNION ALL ')}) "row"`
      return isTotal ? all : `${all} ${byName} LIMIT ${parameter(types.length - 1)}`
    }

    const one = whole((i) => `$${i + 1}::${types[i]}`, false)
    const fromMany = `FROM unnest(${types.map((type, i) => `$${i + 1}::${type}[]`).join(', ')})
        WITH ORDINALITY AS "page" (${types.map((_, i) => `"p${i}"`).join(', ')}, "index")`
    const part = whole((i) => `"page"."p${i}"`, true)
    const counted = (list: string) => `SELECT count(*)::integer AS "total" FROM (${list}) "row"`
    if (isTotal)
      return {
        one: counted(one),
        many: `SELECT "total" ${fromMany} CROSS JOIN LATERAL (${counted(part)}) "row" ORDER BY "page"."index"`,
      }
    const names = fieldsOf(model).map(({ name }) => `"row"."${name}"`)
    const many = `SELECT "page"."index" AS "page", ${names.join(', ')} ${fromMany}
      CROSS JOIN LATERAL (${part}) "row" ${byName.replace('BY', 'BY "page"."index",')}`
    return { one, many }
  }

  return {
    rows,
    page: (model: string, page: Omit<PageRead, 'limit'>) => list(model, page),
    total: (model: string, read: ListRead) => list(model, { ...read, after: undefined }, true),
  }
}
