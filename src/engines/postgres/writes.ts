import type { Model, Models, Reads, Row, Stored, Writes } from '../../../schema/kit/context.js'
import { deletedMeanwhile, taken, unknownReference } from '../../../schema/kit/errors.js'
import { type Column, createPrepared, type Tables } from './model.js'
import { constraintKey, isBrokenReference, isDuplicate } from './pool/errors.js'
import { rowsComment } from './pool/shapes.js'
import type { Query } from './statements.js'

// Rows are written by statements of our own. One row takes its values as parameters, which costs PostgreSQL least. Many rows
// take one statement, whatever their number: a JSON array, whose objects have the names of the database.

type Item = Record<string, unknown>

const jsonOf = (items: Item[]) =>
  JSON.stringify(items, (_, value) => (typeof value === 'bigint' ? String(value) : value))

/** What a statement of many rows locks before it writes: the rows with the values that a column of its own has. */
interface Lock {
  column: Column
  table: string
  key: Column
  strength: 'KEY SHARE' | 'NO KEY UPDATE' | 'UPDATE'
}

/** The values of a column, each once, in order: two statements that lock in order never wait for each other in a circle. */
const idsIn = (rows: readonly Item[], { name }: Column) =>
  [...new Set(rows.flatMap((row) => row[name] ?? []) as bigint[])].sort((a, b) => (a < b ? -1 : 1))

export function createWrites<S extends Stored<S> = Models>(tables: Tables) {
  const { nameOf, tableOf, columnsOf, keyOf, isInKey, referencesOf, selectionOf } = tables
  const prepared = createPrepared<string>()

  /** The columns that have a value in one of the rows. */
  const givenColumns = (model: string, rows: readonly Item[]) =>
    columnsOf(model).filter(({ name }) => rows.some((row) => row[name] !== undefined))

  const referencesIn = (model: string, columns: readonly Column[]) =>
    referencesOf(model).filter(({ column }) => columns.some(({ name }) => name === column.name))

  const namesOf = (columns: readonly Column[]) => columns.map(({ name }) => name)
  const valuesOf = (columns: readonly Column[], row: Item) => columns.map(({ name }) => row[name])

  const stored = (columns: readonly Column[]) => columns.map(({ stored }) => `"${stored}"`)

  const returning = (model: string) => `RETURNING ${selectionOf(model)}`

  /** The rows that rows with these columns refer to, and those that are changed. */
  function locksOf(model: string, columns: readonly Column[], changed?: Column): Lock[] {
    const locks = referencesIn(model, columns).map(
      ({ column, model, key }): Lock => ({ column, table: tableOf(model), key, strength: 'KEY SHARE' }),
    )
    if (!changed) return locks
    // Others may refer to a row while it changes, if its key stays: an order of a pet does not wait for its new name.
    const strength = columns.some(({ name }) => isInKey(model, name)) ? 'UPDATE' : 'NO KEY UPDATE'
    return [...locks, { column: changed, table: tableOf(model), key: changed, strength }]
  }

  /**
   * Locks in SQL, and that all rows are there. The ids are the parameters after the first. Each row is looked up by its id:
   * PostgreSQL would read an index from its beginning for rows in order.
   */
  function locking(locks: readonly Lock[]) {
    const parts = locks.map(
      ({ table, key, strength }, i) => `"lock${i}" AS MATERIALIZED (
        SELECT FROM unnest($${i + 2}::${key.sqlType}[]) "ids" ("id")
        CROSS JOIN LATERAL (SELECT FROM ${table} "row" WHERE ${key.sql} = "ids"."id" FOR ${strength}) "_")`,
    )
    return {
      first: parts.length > 0 ? `WITH ${parts}` : '',
      conditions: locks.map((_, i) => `(SELECT count(*) FROM "lock${i}") = cardinality($${i + 2})`),
    }
  }

  function insertMany(model: string, columns: readonly Column[], locks: readonly Lock[]): string {
    const { first, conditions } = locking(locks)
    const values = columns.map(({ stored }) => `"new"."${stored}"`)
    return `INSERT INTO ${tableOf(model)} AS "row" (${stored(columns)}) ${first}
      SELECT ${values} FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS "item" ("value", "place"),
        jsonb_populate_record(NULL::${tableOf(model)}, "item"."value") "new"
      WHERE ${['true', ...conditions].join(' AND ')} ORDER BY "item"."place" ${returning(model)}`
  }

  function updateMany(model: string, columns: readonly Column[], locks: readonly Lock[]): string {
    const { stored, sql, sqlType } = keyOf(model)
    const { first, conditions } = locking(locks)
    const changes = columns.map(
      ({ stored }) => `"${stored}" = (jsonb_populate_record("row"::${tableOf(model)}, "item"."value"))."${stored}"`,
    )
    // The changed rows are locked last.
    const rows = rowsComment(nameOf(model), locks.length + 1)
    return `${rows} ${first} UPDATE ${tableOf(model)} "row" SET ${changes} FROM jsonb_array_elements($1::jsonb) "item" ("value")
      WHERE ${[`${sql} = ("item"."value"->>'${stored}')::${sqlType}`, ...conditions].join(' AND ')} ${returning(model)}`
  }

  return function writesBy(query: Query, reads: Reads<S>): Writes<S> {
    const send = <M extends Model<S>>(text: string, values: unknown[]) => query(text, values) as Promise<Row<M, S>[]>

    /** Sends a statement of many rows, of which it takes these columns. @param sorted the rows in the order to write them in */
    function sendMany<M extends Model<S>>(
      model: M,
      text: string,
      rows: readonly Item[],
      columns: Column[],
      locks: readonly Lock[],
      sorted = rows,
    ) {
      const items = sorted.map((row) => Object.fromEntries(columns.map(({ name, stored }) => [stored, row[name]])))
      const values = [jsonOf(items), ...locks.map(({ column }) => idsIn(rows, column))]
      return send<M>(text, values).catch(refusingTaken(model, rows))
    }

    /** Refuses a value that another row has, if it must be unique. @param items of a batch; otherwise there is no place */
    const refusingTaken =
      (model: string, items: readonly Item[] = []) =>
      (error: unknown) => {
        // What another table refuses, such as that of a trigger, is no value of the caller's.
        if (!isDuplicate(error) || error.table !== nameOf(model)) throw error
        const { columns, values } = constraintKey(error)
        const names = columns.map(
          (stored) => columnsOf(model).find((column) => column.stored === stored)?.name ?? stored,
        )
        if (names.includes(keyOf(model).name)) throw error
        const places = [...items.keys()].filter(
          (i) => names.map((name) => String(items[i]?.[name])).join(', ') === values,
        )
        // Where two items of the batch have the same values, the first one could have been written.
        const place = places[1] ?? places[0]
        throw taken(place === undefined ? names : names.map((name) => `[${place}].${name}`))
      }

    /** Refuses a row that refers to one which does not exist, or has a value that another one has. */
    const refusing = (model: string, values: Item) => (error: unknown) => {
      if (!isBrokenReference(error)) return refusingTaken(model)(error)
      const { columns } = constraintKey(error)
      const references = referencesIn(model, givenColumns(model, [values]))
      const { column } = references.find(({ column }) => columns.includes(column.stored)) ?? references[0] ?? {}
      throw column ? unknownReference(column.name, values[column.name] as bigint) : error
    }

    /** Why nothing was written: the first of the rows that refers to one which does not exist. */
    async function assertReferences(model: string, rows: readonly Item[]): Promise<void> {
      for (const { column, model: other, key } of referencesIn(model, givenColumns(model, rows))) {
        const places = rows.flatMap((row, i) => (row[column.name] == null ? [] : i))
        const ids = places.map((i) => rows[i]?.[column.name])
        const found = await reads.rows(other as Model<S>, key.name as never, ids)
        const missing = found.indexOf(null)
        if (missing >= 0) throw unknownReference(`[${places[missing]}].${column.name}`, ids[missing] as bigint)
      }
    }

    return {
      async create(model, values) {
        const given = givenColumns(model, [values])
        const text = prepared(`create ${model} ${namesOf(given)}`, () =>
          given.length === 0
            ? `INSERT INTO ${tableOf(model)} AS "row" DEFAULT VALUES ${returning(model)}`
            : `INSERT INTO ${tableOf(model)} AS "row" (${stored(given)}) VALUES (${given.map((_, i) => `$${i + 1}`)}) ${returning(model)}`,
        )
        const [row] = await send<typeof model>(text, valuesOf(given, values)).catch(refusing(model, values))
        return row as never
      },

      async createMany(model, rows) {
        const given = givenColumns(model, rows)
        const locks = locksOf(model, given)
        const text = prepared(`create many ${model} ${namesOf(given)}`, () => insertMany(model, given, locks))
        const created = await sendMany(model, text, rows, given, locks)
        if (created.length === rows.length) return created
        await assertReferences(model, rows)
        throw deletedMeanwhile()
      },

      async update(model, values) {
        const { name: id, sql } = keyOf(model)
        const given = givenColumns(model, [values]).filter(({ name }) => name !== id)
        if (given.length === 0) return reads.row(model, id as never, (values as Item)[id])
        const text = prepared(
          `update ${model} ${namesOf(given)}`,
          () =>
            `UPDATE ${tableOf(model)} "row" SET ${given.map(({ stored }, i) => `"${stored}" = $${i + 2}`)} WHERE ${sql} = $1 ${returning(model)}`,
        )
        const all = [(values as Item)[id], ...valuesOf(given, values)]
        const [row] = await send<typeof model>(text, all).catch(refusing(model, values))
        return row ?? null
      },

      async updateMany(model, rows) {
        const key = keyOf(model)
        const id = key.name
        const given = givenColumns(model, rows).filter(({ name }) => name !== id)
        const ids = rows.map((row: Item) => row[id])
        if (given.length === 0) return reads.rows(model, id as never, ids)
        const locks = locksOf(model, given, key)
        const text = prepared(`update many ${model} ${namesOf(given)}`, () => updateMany(model, given, locks))
        // In the order of ids, so that what follows from a change is locked in that order, too.
        const sorted = [...rows].sort((a: Item, b: Item) => ((a[id] as bigint) < (b[id] as bigint) ? -1 : 1))
        const changed = await sendMany(model, text, rows, [key, ...given], locks, sorted)
        if (changed.length > 0) {
          const found = new Map((changed as Item[]).map((row) => [row[id], row]))
          return ids.map((id) => found.get(id) as never)
        }
        const found = await reads.rows(model, id as never, ids)
        if (!found.includes(null)) await assertReferences(model, rows)
        return found.includes(null) ? found : Promise.reject(deletedMeanwhile())
      },

      async delete(model, values, refusal) {
        const conditions = givenColumns(model, [values])
        const text = prepared(
          `delete ${model} ${namesOf(conditions)}`,
          () =>
            `DELETE FROM ${tableOf(model)} "row" WHERE ${conditions.map(({ sql }, i) => `${sql} = $${i + 1}`).join(' AND ')} ${returning(model)}`,
        )
        const [row] = await send<typeof model>(text, valuesOf(conditions, values)).catch((error) => {
          throw refusal && isBrokenReference(error) ? refusal : error
        })
        return row ?? null
      },
    }
  }
}
