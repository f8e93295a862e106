import type { GraphQLSchema } from 'graphql'
import type { PrismaClient } from '../../prisma/generated/client/client.js'
import { getDatamodel } from '../../prisma/generated/pothos.js'
import type { Condition } from '../../schema/context.js'

/** What reads rows or pages. */
export interface Statement {
  /** Answers one question. */
  one: string
  /** Answers several, if that is possible: each parameter is an array with the values of all. */
  many?: string
  /** The columns of other rows that each row includes, as `relation.column`. */
  included: string[]
}

export interface RowStatement extends Statement {
  many: string
  column: string
}

/** By Prisma's name of a column's type. Pages with other conditions are not read together. */
const ARRAYS: Record<string, string> = { BigInt: 'bigint[]', Int: 'integer[]' }

/** The names in the database where they differ (`@map`, `@@map`), which only the client knows. */
interface Client {
  _runtimeDataModel: { models: Record<string, { dbName?: string | null; fields: { name: string; dbName?: string }[] }> }
}

/** Builds the statements from Prisma's data model. Values are parameters, all of them. */
export function createStatements(schema: GraphQLSchema, prisma: PrismaClient) {
  const { models } = getDatamodel().datamodel
  const mapped = (prisma as unknown as Client)._runtimeDataModel.models

  const fieldsOf = (model: string) => models[model]?.fields ?? []

  function fieldOf(model: string, name: string) {
    const field = fieldsOf(model).find((field) => field.name === name)
    if (!field) throw new Error(`${model} has no field ${name}`)
    return field
  }

  /** Where the database has a model. */
  const tableOf = (model: string) => `"public"."${mapped[model]?.dbName ?? model}"`

  /** A column of the row, or of a row that it includes (`pet.status`). */
  function columnOf(model: string, path: string) {
    const [name = '', relation] = path.split('.').reverse()
    const owner = relation ? fieldOf(model, relation).type : model
    const stored = mapped[owner]?.fields.find((field) => field.name === name)?.dbName ?? name
    return { path, sql: `"${relation ?? 'row'}"."${stored}"`, array: ARRAYS[fieldOf(owner, name).type] }
  }

  /** Selects all rows of a model with what its type includes, which are columns of rows that always exist. */
  function rowsOf(model: string) {
    const include = (schema.getType(model)?.extensions.pothosPrismaInclude ?? {}) as Record<string, { select: object }>
    const others = Object.entries(include).map(([relation, { select }]) => {
      const { type, relationFromFields: [reference = ''] = [] } = fieldOf(model, relation)
      const key = `${relation}.${fieldsOf(type).find(({ isId }) => isId)?.name}`
      return {
        table: `${tableOf(type)} "${relation}"`,
        join: `${columnOf(model, key).sql} = ${columnOf(model, reference).sql}`,
        columns: Object.keys(select).map((column) => `${relation}.${column}`),
      }
    })
    const own = fieldsOf(model).filter(({ kind }) => kind !== 'object')
    const strange = own.find(({ isList, type }) => isList || ['Decimal', 'Bytes'].includes(type))
    if (strange) throw new Error(`Read ${model} with Prisma: pg has another value for ${strange.name}.`)
    const included = others.flatMap(({ columns }) => columns)
    const columns = [...own.map(({ name }) => name), ...included].map(
      (path) => `${columnOf(model, path).sql} AS "${path}"`,
    )
    // The others first: where rows are locked, it is in the order in which deletes that cascade lock them.
    const tables = [...others.map(({ table }) => table), `${tableOf(model)} "row"`]
    const select = `SELECT ${columns.join(', ')} FROM ${tables.join(' CROSS JOIN ')}`
    return { select, joins: others.map(({ join }) => join), included }
  }

  /** Reads rows by a unique column. */
  function rows(model: string, column: string, lock?: 'lock'): RowStatement {
    const { select, joins, included } = rowsOf(model)
    const { sql } = columnOf(model, column)
    const where = (condition: string) =>
      `${select} WHERE ${[condition, ...joins].join(' AND ')}${lock ? ' FOR NO KEY UPDATE' : ''}`
    return { one: where(`${sql} = $1`), many: where(`${sql} = ANY ($1)`), included, column }
  }

  /** Reads a page. Its parameters: the values of the conditions, those of the cursor if there is one, the limit. */
  function page(model: string, conditions: Condition[], order: readonly string[], hasCursor: boolean): Statement {
    const { select, joins, included } = rowsOf(model)
    const filters = conditions.map(([path, operator]) => ({ ...columnOf(model, path), operator }))
    const sorted = order.map((path) => columnOf(model, path))
    const cursor = hasCursor ? sorted : []
    const sqlOf = (columns: { sql: string }[]) => columns.map(({ sql }) => sql).join(', ')

    function list(parameter: (index: number) => string) {
      let index = 0
      const next = () => parameter(index++)
      const where = [...filters.map(({ sql, operator }) => `${sql} ${operator} (${next()})`), ...joins]
      if (hasCursor) where.push(`(${sqlOf(cursor)}) > (${cursor.map(next).join(', ')})`)
      const which = where.length > 0 ? `WHERE ${where.join(' AND ')} ` : ''
      return `${select} ${which}ORDER BY ${sqlOf(sorted)} LIMIT ${next()}`
    }

    const one = list((index) => `$${index + 1}`)
    const parameters = filters.map(({ operator, array }) => (operator === '=' ? array : undefined))
    parameters.push(...cursor.map(({ array }) => array), 'integer[]')
    if (parameters.includes(undefined)) return { one, included }
    const many = `
      SELECT "page"."index" AS "page", "row".*
      FROM unnest(${parameters.map((array, i) => `$${i + 1}::${array}`).join(', ')})
        WITH ORDINALITY AS "page" (${parameters.map((_, i) => `"p${i}"`).join(', ')}, "index")
      CROSS JOIN LATERAL (${list((index) => `"page"."p${index}"`)}) "row"
      ORDER BY "page"."index", ${sorted.map(({ path }) => `"row"."${path}"`).join(', ')}`
    return { one, many, included }
  }

  return { rows, page }
}
