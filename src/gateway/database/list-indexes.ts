import type { Queryable } from '../../../schema/kit/lists/plan.js'
import type { Query, Statement, Tables } from '../../engines/postgres/index.js'
import { StartupError } from '../../startup-error.js'

// A list reads its rows in the order of an index, without which it would read and sort the whole table.

/** An index that a list needs. */
export interface ListIndex {
  list: string
  model: string
  table: string
  /** The names of its columns in the data model. */
  fields: string[]
  /** Its columns in SQL, in the form that `columnIn` returns. */
  columns: string[]
}

type List = Queryable & { name: string }
type Database = { tables: Tables; query: Query }

const byCodePoints = (name: string) => `"${name}" COLLATE "C"`

/** The indexes that a list is declared with. */
function indexesOf({ ownerIndexes = [], ...own }: List, tables: Tables): ListIndex[] {
  const { name: list, model, key, sorts, textKeys = {}, indexes } = own
  /** The fields and columns of one that an index ends with, before the key, or of another. */
  function partsOf(name: string, isSorted: boolean): [field: string, column: string][] {
    const { stored, type, isRequired } = tables.columnOf(model, name)
    const textKey = textKeys[name]
    if (!isSorted || (!textKey && (type !== 'DateTime' || isRequired))) return [[name, `"${stored}"`]]
    if (!textKey) return [[name, `coalesce("${stored}", 'infinity')`]]
    return [textKey, name].map((field) => [field, byCodePoints(field === name ? stored : field)])
  }
  // That of the key alone is its constraint.
  const others = indexes.filter(({ length }) => length > 0)
  const owner = tables.ownerOf(model) as List['model'] | undefined
  const ofOwner = owner
    ? indexesOf({ ...own, model: owner, key: tables.keyOf(owner).name, indexes: ownerIndexes }, tables)
    : []
  const ofThese = others.map((names) => {
    const sorted = names.at(-1) ?? ''
    const parts = [...names, key].flatMap((name) => partsOf(name, name === sorted && sorts.includes(name)))
    const [fields, columns] = [parts.map(([field]) => field), parts.map(([, column]) => column)]
    return { list, model, table: tables.nameOf(model), fields, columns }
  })
  return [...ofThese, ...ofOwner]
}

const INDEXES: Statement = {
  kind: 'SELECT',
  tables: ['pg_index'],
  text: `SELECT "table"."relname" AS "table", (
    SELECT string_agg(pg_get_indexdef("indexrelid", "place", true) || CASE WHEN "collname" = 'C' THEN ' C' ELSE '' END, E'\\n'
      ORDER BY "place")
    FROM generate_series(1, "indnkeyatts") "place" LEFT JOIN pg_collation ON pg_collation.oid = "indcollation"["place" - 1]
  ) AS "columns"
  FROM pg_index JOIN pg_class "table" ON "table".oid = "indrelid"
  WHERE "indisvalid" AND "indpred" IS NULL AND "relnamespace" =
    (SELECT "relnamespace" FROM pg_class WHERE oid = '"public"."ApiKey"'::regclass)`,
}

/** A column of an index as PostgreSQL prints it: `"plainName" C`, `id`, `COALESCE("shipDate", 'infinity'::…)`. */
function columnIn(definition: string): string {
  const [, moment] = /^COALESCE\("?(\w+)"?, 'infinity'/i.exec(definition) ?? []
  if (moment) return `coalesce("${moment}", 'infinity')`
  const [, name, collation] = /^"?(\w+)"?( C)?$/.exec(definition) ?? []
  return name ? (collation ? byCodePoints(name) : `"${name}"`) : definition
}

/** What lists need and the database does not have. */
export async function missingIndexes(lists: readonly List[], { tables, query }: Database): Promise<ListIndex[]> {
  const rows = (await query(INDEXES, [])) as { table: string; columns: string }[]
  const known = new Set(rows.map(({ table, columns }) => `${table}: ${columns.split('\n').map(columnIn)}`))
  return lists
    .flatMap((list) => indexesOf(list, tables))
    .filter(({ table, columns }) => !known.has(`${table}: ${columns}`))
}

/** @throws StartupError if the database lacks an index that a list needs */
export async function assertIndexes(lists: readonly List[], database: Database): Promise<void> {
  const [missing] = await missingIndexes(lists, database)
  if (!missing) return
  const { list, table, columns } = missing
  throw new StartupError(
    `the list ${list} needs an index of "${table}" on (${columns.join(', ')}), which the database does not have: for a new list, npm run migration -- ${list} writes it`,
  )
}
