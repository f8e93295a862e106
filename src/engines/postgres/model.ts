import { getOrCreate } from '../../../schema/kit/get-or-create.js'

/** A column, or the rows of another model that a model refers to: a field of Prisma's data model. */
interface Field {
  name: string
  kind: string
  type: string
  isId: boolean
  isUnique: boolean
  isList: boolean
  isRequired: boolean
  isUpdatedAt?: boolean
  /** The columns of the model that name a row of the other. */
  relationFromFields?: readonly string[]
}

/** What is stored: a part of Prisma's data model. */
export interface DataModel {
  models: Record<string, { fields: readonly Field[]; uniqueIndexes: readonly { fields: readonly string[] }[] }>
  /** The values of each enum, in their order. */
  enums: Record<string, Record<string, string>>
  /** The names in the database where they differ (`@map`, `@@map`). */
  mapped: Record<string, { dbName?: string | null; fields: readonly { name: string; dbName?: string | null }[] }>
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

/** The data model in SQL. A statement calls the table `"row"`. */
export function createTables({ models, enums, mapped }: DataModel) {
  const nameOf = (model: string) => mapped[model]?.dbName ?? model
  const tableOf = (model: string) => qualified(nameOf(model))

  function readColumns(model: string) {
    const fields = models[model]?.fields.filter(({ kind }) => kind !== 'object') ?? []
    return fields.map((field) => {
      const { name } = field
      const stored = mapped[model]?.fields.find((field) => field.name === name)?.dbName ?? name
      const sqlType = field.kind === 'enum' ? qualified(field.type) : TYPES[field.type]
      if (!sqlType || field.isList)
        throw new Error(
          `${model}.${name} is ${field.isList ? 'a list' : `a ${field.type}`}: reads and writes know enums and ${Object.keys(TYPES).join(', ')}.`,
        )
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

  function keyOf(model: string) {
    const key = columnsOf(model).find(({ isId }) => isId)
    if (!key) throw new Error(`${model} has no column that is its id`)
    return key
  }

  /** All values of an enum, or of a Boolean. */
  function valuesOf({ kind, type }: Pick<Field, 'kind' | 'type'>): unknown[] {
    if (kind !== 'enum') return [true, false]
    const values = enums[type]
    if (!values) throw new Error(`The data model has no enum ${type}`)
    return Object.values(values)
  }

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

  /**
   * The model to whose rows those of a model belong: a row and its owner have the same id. Whoever locks both locks the owner
   * first, as PostgreSQL does where a change of the owner changes what belongs to it.
   */
  const ownerOf = (model: string) =>
    models[model]?.fields.find(({ relationFromFields = [] }) =>
      relationFromFields.some((name) => columnOf(model, name).isId),
    )?.type

  /** All columns in SQL, under the names that Prisma has for them. */
  const selectionOf = (model: string) => columnsOf(model).map(({ name, sql }) => `${sql} AS "${name}"`)

  return {
    nameOf,
    tableOf,
    isInKey,
    columnsOf,
    columnOf,
    keyOf,
    ownerOf,
    valuesOf,
    referencesOf,
    selectionOf,
  }
}

/** Returns a function that builds the statement of a key once. Keys follow from declarations, so there are few. */
export function createPrepared<Statement>() {
  const known = new Map<string, Statement>()
  return <S extends Statement>(key: string, build: () => S) => getOrCreate(known, key, build) as S
}
