import type { PrismaClient } from '../../../prisma/generated/client/client.js'
import { getOrCreate } from '../../../schema/kit/get-or-create.js'
import { keyOf as idOf, models } from '../../../schema/kit/model.js'

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

/** What belongs to the service in the database. */
export const qualified = (name: string) => `"public"."${name}"`

export type Column = ReturnType<ReturnType<typeof createTables>['columnOf']>
export type Tables = ReturnType<typeof createTables>

/** Prisma's data model in SQL. A statement calls the table `"row"`. */
export function createTables(prisma: PrismaClient) {
  const mapped = (prisma as unknown as Client)._runtimeDataModel.models

  const nameOf = (model: string) => mapped[model]?.dbName ?? model
  const tableOf = (model: string) => qualified(nameOf(model))

  function readColumns(model: string) {
    const fields = models[model]?.fields.filter(({ kind }) => kind !== 'object') ?? []
    return fields.map((field) => {
      const { name } = field
      const stored = mapped[model]?.fields.find((field) => field.name === name)?.dbName ?? name
      const sqlType = field.kind === 'enum' ? qualified(field.type) : TYPES[field.type]
      if (!sqlType || field.isList) throw new Error(`${model}.${name} has a type that reads and writes do not know.`)
      if (field.isUpdatedAt) throw new Error(`${model}.${name} needs a trigger: only Prisma's client keeps @updatedAt.`)
      return { ...field, stored, sql: `"row"."${stored}"`, sqlType }
    })
  }

  const prepared = createPrepared<ReturnType<typeof readColumns>>()
  const columnsOf = (model: string) => prepared(model, () => readColumns(model))

  function columnOf(model: string, name: string) {
    const column = columnsOf(model).find((column) => column.name === name)
    if (!column) throw new Error(`${model} has no column ${name}`)
    return column
  }

  const keyOf = (model: string) => columnOf(model, idOf(model).name)

  /** Whether a column is in a unique index, to which a foreign key may refer. */
  const isInKey = (model: string, column: string) =>
    columnOf(model, column).isUnique || models[model]?.uniqueIndexes.some(({ fields }) => fields.includes(column))

  /** The columns that name a row of another model by its id. */
  const referencesOf = (model: string) =>
    models[model]?.fields.flatMap(({ type, relationFromFields = [] }) =>
      relationFromFields.length === 1
        ? [{ column: columnOf(model, relationFromFields[0] as string), model: type, key: keyOf(type) }]
        : [],
    ) ?? []

  /** All columns in SQL, under the names that Prisma has for them. */
  const selectionOf = (model: string) => columnsOf(model).map(({ name, sql }) => `${sql} AS "${name}"`)

  return { nameOf, tableOf, isInKey, columnsOf, columnOf, keyOf, referencesOf, selectionOf }
}

/** Returns a function that builds the statement of a key once. Keys follow from declarations, so there are few. */
export function createPrepared<Statement>() {
  const known = new Map<string, Statement>()
  return <S extends Statement>(key: string, build: () => S) => getOrCreate(known, key, build) as S
}
