import type { Counter } from '../../../schema/kit/context.js'
import { createLocks, type Lock, where, withParts } from './locks.js'
import { type Column, createPrepared, type Tables } from './model.js'
import type { Unasked } from './query.js'
import type { Statement } from './statement.js'

// One row takes its values as parameters, which costs PostgreSQL least. Many rows take one statement, whatever their number: a
// JSON array, whose objects have the names of the database.

type CounterOf = Pick<Counter<never, never>, 'min' | 'max'> & { model: string; column: string }

/** A counter from which new rows take, and the columns of theirs that say from which row and how much. */
export interface TakingOf {
  counter: CounterOf
  from: Column
  amount: Column
  kept: { from: string; amount: string }
}

const namesOf = (columns: readonly Column[]) => columns.map(({ name }) => name)
const stored = (columns: readonly Column[]) => columns.map(({ stored }) => `"${stored}"`)

/** How a statement with so many parameters asks a guard: a part of WITH, and the condition for each part that writes. */
const asking = (count: number, guard?: Unasked) => ({
  parts: guard ? [`"guard" AS MATERIALIZED (${guard.select(count + 1)})`] : [],
  conditions: guard ? ['(SELECT "isFree" FROM "guard")'] : [],
})

interface Parts extends Pick<Statement, 'kind' | 'tables' | 'rows'> {
  /** Of WITH. */
  parts: string[]
  main: string
}

/**
 * A statement. If it asks a guard, there is a row also if nothing was written: it has the answer, and otherwise nulls. The rows
 * that it writes are named with its transaction then.
 */
function statement({ parts, main, ...said }: Parts, guard?: Unasked): Statement {
  if (!guard) return { ...said, text: `${withParts(parts)} ${main}` }
  const text = `${withParts([...parts, `"written" AS (${main})`])}
    SELECT to_jsonb("guard") AS "guard", "written".* FROM "guard" LEFT JOIN "written" ON true`
  return { ...said, tables: [...said.tables, ...guard.question.tables], rows: undefined, text }
}

/** Builds the statements that write, each once. Values are parameters, all of them. */
export function createWriteStatements(tables: Tables) {
  const { nameOf, tableOf, columnsOf, columnOf, keyOf, selectionOf } = tables
  const { referencesIn, locksOf, locking, lockingReferences, lockingOwner, lockingOwners } = createLocks(tables)
  const prepared = createPrepared<Statement>()

  const returning = (model: string) => `RETURNING ${selectionOf(model)}`
  function insertInto(model: string, columns: readonly Column[], { kept }: Partial<TakingOf> = {}): string {
    const names = [...stored(columns), ...(kept ? [`"${kept.from}"`, `"${kept.amount}"`] : [])]
    return `INSERT INTO ${tableOf(model)} AS "row" ${names.length > 0 ? `(${names})` : ''}`
  }

  /** The columns that have a value in one of the rows. */
  const givenColumns = (model: string, rows: readonly Record<string, unknown>[]) =>
    columnsOf(model).filter(({ name }) => rows.some((row) => row[name] !== undefined))

  /**
   * Adds to the counters of many rows, or to none if one of them is not there or would leave its bounds. The ids are the
   * parameter `ids`; what is added to each is the one after.
   *
   * @param before what is locked before, and must be true
   */
  function adding({ model, column, min, max }: CounterOf, ids: number, before: ReturnType<typeof locking>) {
    const [key, counter] = [keyOf(model), columnOf(model, column)]
    const sum = `${counter.sql} + "change"."by"`
    return {
      tables: [nameOf(model), ...before.tables],
      rows: { table: nameOf(model), ids },
      parts: [
        ...before.parts,
        `"change" AS MATERIALIZED (SELECT * FROM unnest($${ids}::${key.sqlType}[], $${ids + 1}::bigint[]) "_" ("id", "by"))`,
        `"held" AS MATERIALIZED (SELECT FROM "change" CROSS JOIN LATERAL (
          SELECT FROM ${tableOf(model)} "row" WHERE ${key.sql} = "change"."id" AND ${sum} BETWEEN ${min} AND ${max}
          FOR NO KEY UPDATE) "_" ${where(before.conditions)})`,
      ],
      update: `UPDATE ${tableOf(model)} "row" SET "${counter.stored}" = ${sum} FROM "change"
        WHERE ${key.sql} = "change"."id" AND (SELECT count(*) FROM "held") = cardinality($${ids})`,
    }
  }

  return {
    givenColumns,
    referencesIn,
    locksOf,

    /** The parameters are the values of the columns, and then those of the guard. */
    insert: (model: string, given: readonly Column[], taking?: TakingOf, guard?: Unasked) =>
      prepared(`insert ${model} ${namesOf(given)} taking ${taking?.counter.model} ${guard?.question.tables}`, () => {
        const values = given.map(({ sqlType }, i) => `$${i + 1}::${sqlType}`)
        const before = asking(given.length, guard)
        const insert = insertInto(model, given, taking)
        if (!taking) {
          const main = `${insert} SELECT ${values} ${where(before.conditions)} ${returning(model)}`
          return statement({ kind: 'INSERT', tables: [nameOf(model)], parts: before.parts, main }, guard)
        }
        const { counter, from, amount } = taking
        const sqlOf = ({ name }: Column) => values[given.findIndex((column) => column.name === name)] as string
        const { tables, parts, conditions } = lockingReferences(model, given, from, sqlOf)
        const { stored, sql } = columnOf(counter.model, counter.column)
        const left = `${sql} - ${sqlOf(amount)}`
        const isThere = [`${keyOf(counter.model).sql} = ${sqlOf(from)}`, `${left} >= ${counter.min}`]
        const taken = `"taken" AS (UPDATE ${tableOf(counter.model)} "row" SET "${stored}" = ${left}
          ${where([...before.conditions, ...isThere, ...conditions])} RETURNING 1)`
        const main = `${insert} SELECT ${[...values, sqlOf(from), sqlOf(amount)]} FROM "taken" ${returning(model)}`
        const table = nameOf(counter.model)
        const said = { tables: [nameOf(model), ...tables, table], rows: { table, ids: given.indexOf(from) + 1 } }
        return statement({ kind: 'INSERT', ...said, parts: [...before.parts, ...parts, taken], main }, guard)
      }),

    /** The parameter is the id of the row that gives back what it took. */
    giveBack: (model: string, taking: TakingOf) =>
      prepared(`give back ${model} ${taking.counter.model}`, () => {
        const { counter, from, kept } = taking
        const { stored, sql } = columnOf(counter.model, counter.column)
        const { tables, parts, conditions } = lockingReferences(
          model,
          [from],
          from,
          () => '(SELECT "from" FROM "kept")',
        )
        const [table, other] = [nameOf(model), nameOf(counter.model)]
        const sum = `${sql} + "kept"."amount"::bigint`
        const isThere = [`${keyOf(counter.model).sql} = "kept"."from"`, `${sum} <= ${counter.max}`]
        const text = `WITH "kept" AS MATERIALIZED (
            SELECT "row"."${kept.from}" AS "from", "row"."${kept.amount}" AS "amount" FROM ${tableOf(model)} "row"
            WHERE ${keyOf(model).sql} = $1 AND "row"."${kept.from}" IS NOT NULL),
          ${[...parts, `"back" AS (UPDATE ${tableOf(counter.model)} "row" SET "${stored}" = ${sum} FROM "kept" ${where([...isThere, ...conditions])} RETURNING 1)`]}
          SELECT "from", "amount", EXISTS (SELECT FROM "back") AS "isReturned" FROM "kept"`
        return { kind: 'UPDATE', tables: [other, table, ...tables], text, rows: { table, ids: 1 } }
      }),

    /** The parameters: the rows in JSON, the ids of what is locked, and, if they take, from which rows and how much. */
    insertMany: (model: string, given: readonly Column[], locks: readonly Lock[], taking?: TakingOf) =>
      prepared(`insert many ${model} ${namesOf(given)} ${taking?.counter.model}`, () => {
        const before = locking(locks)
        const insert = insertInto(model, given, taking)
        const values = [...given, ...(taking ? [taking.from, taking.amount] : [])]
        const select = (conditions: readonly string[]) =>
          `SELECT ${stored(values).map((name) => `"new".${name}`)}
          FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS "item" ("value", "place"),
            jsonb_populate_record(NULL::${tableOf(model)}, "item"."value") "new"
          ${where(conditions)} ORDER BY "item"."place" ${returning(model)}`
        const table = nameOf(model)
        if (!taking) {
          const text = `${insert} ${withParts(before.parts)} ${select(before.conditions)}`
          return { kind: 'INSERT', tables: [table, ...before.tables], text }
        }
        const ids = locks.length + 2
        const { tables, rows, update, parts } = adding(taking.counter, ids, before)
        const changed = `"changed" AS (${update} RETURNING 1)`
        const isTaken = `(SELECT count(*) FROM "changed") = cardinality($${ids})`
        const text = `${withParts([...parts, changed])} ${insert} ${select([isTaken])}`
        return { kind: 'INSERT', tables: [table, ...tables], text, rows }
      }),

    update: (model: string, given: readonly Column[]) =>
      prepared(`update ${model} ${namesOf(given)}`, () => {
        const table = nameOf(model)
        const changes = given.map(({ stored }, i) => `"${stored}" = $${i + 2}`)
        const text = `UPDATE ${tableOf(model)} "row" SET ${changes} WHERE ${keyOf(model).sql} = $1 ${returning(model)}`
        return { kind: 'UPDATE', tables: [table], text, rows: { table, ids: 1 } }
      }),

    updateMany: (model: string, given: readonly Column[], locks: readonly Lock[]) =>
      prepared(`update many ${model} ${namesOf(given)}`, () => {
        const { stored, sql, sqlType } = keyOf(model)
        const { tables, parts, conditions } = locking(locks)
        const table = nameOf(model)
        const changes = given.map(
          ({ stored }) => `"${stored}" = (jsonb_populate_record("row"::${tableOf(model)}, "item"."value"))."${stored}"`,
        )
        const text = `${withParts(parts)} UPDATE ${tableOf(model)} "row" SET ${changes}
          FROM jsonb_array_elements($1::jsonb) "item" ("value")
          WHERE ${[`${sql} = ("item"."value"->>'${stored}')::${sqlType}`, ...conditions].join(' AND ')} ${returning(model)}`
        // The changed rows are locked last.
        return { kind: 'UPDATE', tables: [table, ...tables], text, rows: { table, ids: locks.length + 1 } }
      }),

    /**
     * The parameters: the id, and the value of the counter.
     *
     * @param locksOwner locks the owner of the row first. Otherwise the counter must stay at `min`, or stay above it, so that the
     * owner stays as it is.
     */
    set: ({ model, column, min }: CounterOf, locksOwner: boolean) =>
      prepared(`set ${model} ${column} ${locksOwner}`, () => {
        const { stored, sql, sqlType } = columnOf(model, column)
        const value = `$2::${sqlType}`
        const { tables, parts, conditions } = locksOwner
          ? lockingOwner(model)
          : { tables: [], parts: [], conditions: [`(${sql} > ${min}) = (${value} > ${min})`] }
        const table = nameOf(model)
        const text = `${withParts(parts)} UPDATE ${tableOf(model)} "row" SET "${stored}" = ${value}
          ${where([`${keyOf(model).sql} = $1`, ...conditions])} ${returning(model)}`
        return { kind: 'UPDATE', tables: [table, ...tables], text, rows: { table, ids: 1 } }
      }),

    /** The parameters: the ids, and what is added to the counter of each. */
    addMany: (counter: CounterOf) =>
      prepared(`add ${counter.model} ${counter.column}`, () => {
        const { parts, update, ...said } = adding(counter, 1, lockingOwners(counter.model))
        return { kind: 'UPDATE', ...said, text: `${withParts(parts)} ${update} ${returning(counter.model)}` }
      }),

    delete: (model: string, conditions: readonly Column[]) =>
      prepared(`delete ${model} ${namesOf(conditions)}`, () => {
        const table = nameOf(model)
        const all = conditions.map(({ sql }, i) => `${sql} = $${i + 1}`)
        const key = conditions.findIndex(({ isId }) => isId)
        const text = `DELETE FROM ${tableOf(model)} "row" ${where(all)} ${returning(model)}`
        return { kind: 'DELETE', tables: [table], text, rows: key < 0 ? undefined : { table, ids: key + 1 } }
      }),
  }
}
