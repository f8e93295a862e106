import type { Counter, Model, Models, Reads, Row, Stored, Taken, Taking, Writes } from '../../../schema/kit/context.js'
import { changedMeanwhile, deletedMeanwhile, taken, unknownReference } from '../../../schema/kit/errors.js'
import type { Lock } from './locks.js'
import type { Column, Tables } from './model.js'
import { constraintKey, isBrokenReference, isDuplicate } from './pool/errors.js'
import { type Query, sendAsking, type Unasked } from './query.js'
import type { Statement } from './statement.js'
import { createWriteStatements, type TakingOf } from './write-statements.js'

// Rows are written by statements of our own. Their SQL is in write-statements.ts; what was wrong if nothing was written, here.

type Item = Record<string, unknown>

const jsonOf = (items: Item[]) =>
  JSON.stringify(items, (_, value) => (typeof value === 'bigint' ? String(value) : value))

const byId = (a: unknown, b: unknown) => ((a as bigint) < (b as bigint) ? -1 : 1)

/** The values of a column, each once, in order: two statements that lock in order never wait for each other in a circle. */
const idsIn = (rows: readonly Item[], { name }: Column) =>
  [...new Set(rows.flatMap((row) => row[name] ?? []) as bigint[])].sort(byId)

/** What rows take from each counter, in the order of its ids. */
function sumsOf(rows: readonly Item[], { from, amount }: TakingOf): [ids: bigint[], sums: number[]] {
  const sums = new Map<bigint, number>()
  for (const row of rows) {
    const id = row[from.name] as bigint
    sums.set(id, (sums.get(id) ?? 0) - (row[amount.name] as number))
  }
  const ids = [...sums.keys()].sort(byId)
  return [ids, ids.map((id) => sums.get(id) as number)]
}

/**
 * Writes rows, all or none. If none is written, `judge` throws why, or returns what to answer. Otherwise that has changed
 * since, such as a stock that was filled up: the rows are written again, once.
 */
async function orAgain<R>(write: () => Promise<R[]>, judge: () => Promise<R[] | undefined>): Promise<R[]> {
  for (let attempt = 0; attempt < 2; attempt++) {
    const written = await write()
    if (written.length > 0) return written
    const answer = await judge()
    if (answer) return answer
  }
  throw changedMeanwhile()
}

export function createWrites<S extends Stored<S> = Models>(tables: Tables) {
  const { nameOf, columnsOf, columnOf, keyOf } = tables
  const statements = createWriteStatements(tables)
  const { givenColumns, referencesIn, locksOf } = statements

  const valuesOf = (columns: readonly Column[], row: Item) => columns.map(({ name }) => row[name])

  function takingOf<M extends Model<S>, C extends Model<S>>(
    model: M,
    { counter, from, amount, kept }: Taking<M, C, S>,
  ): TakingOf {
    return { counter, from: columnOf(model, from), amount: columnOf(model, amount), kept }
  }

  return function writesBy(query: Query, reads: Reads<S>, scope?: 'in a transaction'): Writes<S> {
    const send = <M extends Model<S>>(statement: Statement, values: unknown[]) =>
      query(statement, values) as Promise<Row<M, S>[]>

    /** Sends a statement of many rows, of which it takes these columns. @param sorted the rows in the order to write them in */
    function sendMany<M extends Model<S>>(
      model: M,
      statement: Statement,
      rows: readonly Item[],
      columns: readonly Column[],
      locks: readonly Lock[],
      { sorted = rows, more = [] as unknown[] } = {},
    ) {
      const items = sorted.map((row) => Object.fromEntries(columns.map(({ name, stored }) => [stored, row[name]])))
      const values = [jsonOf(items), ...locks.map(({ column }) => idsIn(rows, column)), ...more]
      return send<M>(statement, values).catch(refusingTaken(model, rows))
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
    async function assertReferences(model: string, rows: readonly Item[], isBatch = true): Promise<void> {
      for (const { column, model: other, key } of referencesIn(model, givenColumns(model, rows))) {
        const places = rows.flatMap((row, i) => (row[column.name] == null ? [] : i))
        const ids = places.map((i) => rows[i]?.[column.name])
        const found = await reads.rows(other as Model<S>, key.name as never, ids)
        const missing = found.indexOf(null)
        if (missing >= 0)
          throw unknownReference(isBatch ? `[${places[missing]}].${column.name}` : column.name, ids[missing] as bigint)
      }
    }

    /**
     * Why no counter was changed. Returns the rows if one of them is not there, and undefined if all can be changed now.
     *
     * @throws what `refuse` returns, for the first one that would leave its bounds
     */
    async function assertBounds<C extends Model<S>>(
      { model, column, min, max }: Counter<C, S>,
      changes: readonly { id: bigint; by: number }[],
      refuse: Taking<Model<S>, C, S>['refuse'],
    ): Promise<(Row<C, S> | null)[] | undefined> {
      const ids = changes.map(({ id }) => id)
      const rows = await reads.rows(model, keyOf(model).name as never, ids)
      if (rows.includes(null)) return rows
      const sums = new Map<bigint, number>()
      for (const [i, { id, by }] of changes.entries()) {
        const sum = (sums.get(id) ?? 0) + by
        sums.set(id, sum)
        const row = rows[i] as Row<C, S>
        const value = (row[column] as number) + sum
        if (value < min || value > max) throw refuse(row, sum, i)
      }
    }

    /** Writes rows that take from counters. @throws why none of them is written */
    function writeTaking<M extends Model<S>, C extends Model<S>>(
      model: M,
      rows: readonly Item[],
      { counter, from, amount, refuse }: Taking<M, C, S>,
      write: () => Promise<Row<M, S>[]>,
      isBatch = true,
    ) {
      const changes = rows.map((row) => ({ id: row[from] as bigint, by: -(row[amount] as number) }))
      return orAgain(write, async () => {
        await assertReferences(model, rows, isBatch)
        if (await assertBounds(counter, changes, refuse)) throw deletedMeanwhile()
        return undefined
      })
    }

    return {
      async create(model, values, taking) {
        const given = givenColumns(model, [values])
        const of = taking && takingOf(model, taking)
        const statementBy = (guard?: Unasked) => statements.insert(model, given, of, guard)
        const insert = () =>
          sendAsking(query, statementBy, valuesOf(given, values)).catch(refusing(model, values)) as Promise<never[]>
        const [row] = taking ? await writeTaking(model, [values], taking, insert, false) : await insert()
        return row as never
      },

      async createMany(model, rows, taking) {
        const given = givenColumns(model, rows)
        const of = taking && takingOf(model, taking)
        const locks = locksOf(model, given, { takesFrom: of?.from })
        const statement = statements.insertMany(model, given, locks, of)
        const more = of && sumsOf(rows, of)
        const insert = () => sendMany(model, statement, rows, given, locks, { more })
        if (taking) return writeTaking(model, rows, taking, insert)
        const created = await insert()
        if (created.length === rows.length) return created
        await assertReferences(model, rows)
        throw deletedMeanwhile()
      },

      async update(model, values) {
        const { name: id } = keyOf(model)
        const given = givenColumns(model, [values]).filter(({ name }) => name !== id)
        if (given.length === 0) return reads.row(model, id as never, (values as Item)[id])
        const all = [(values as Item)[id], ...valuesOf(given, values)]
        const [row] = await send<typeof model>(statements.update(model, given), all).catch(refusing(model, values))
        return row ?? null
      },

      async updateMany(model, rows) {
        const key = keyOf(model)
        const id = key.name
        const given = givenColumns(model, rows).filter(({ name }) => name !== id)
        const ids = rows.map((row: Item) => row[id])
        if (given.length === 0) return reads.rows(model, id as never, ids)
        const locks = locksOf(model, given, { changed: key })
        const statement = statements.updateMany(model, given, locks)
        // In the order of ids, so that what follows from a change is locked in that order, too.
        const sorted = [...rows].sort((a: Item, b: Item) => byId(a[id], b[id]))
        const changed = await sendMany(model, statement, rows, [key, ...given], locks, { sorted })
        if (changed.length > 0) return inOrder(id, changed, ids)
        const found = await reads.rows(model, id as never, ids)
        if (!found.includes(null)) await assertReferences(model, rows)
        return found.includes(null) ? found : Promise.reject(deletedMeanwhile())
      },

      async set(counter, id, value) {
        // Most changes do not concern the owner of the row; what a transaction does next may.
        for (const locksOwner of scope ? [true] : [false, true]) {
          const [row] = await send<typeof counter.model>(statements.set(counter, locksOwner), [id, value])
          if (row) return row
        }
        return null
      },

      async addMany(counter, changes, refuse) {
        const ids = changes.map(({ id }) => id)
        const sorted = [...changes].sort((a, b) => byId(a.id, b.id))
        const parameters = [sorted.map(({ id }) => id), sorted.map(({ by }) => by)]
        const add = () => send<typeof counter.model>(statements.addMany(counter), parameters)
        const judge = () => assertBounds(counter, changes, refuse)
        const changed = await orAgain<Row<typeof counter.model, S> | null>(add, judge)
        return changed.includes(null) ? changed : inOrder(keyOf(counter.model).name, changed, ids)
      },

      async giveBack(model, id, taking) {
        const [taken] = await query(statements.giveBack(model, takingOf(model, taking)), [id])
        return (taken as unknown as Taken | undefined) ?? null
      },

      async delete(model, values, refusal) {
        const conditions = givenColumns(model, [values])
        const gone = send<typeof model>(statements.delete(model, conditions), valuesOf(conditions, values))
        const [row] = await gone.catch((error) => {
          throw refusal && isBrokenReference(error) ? refusal : error
        })
        return row ?? null
      },
    }
  }
}

/** Rows in the order of these ids. */
function inOrder<R>(key: string, rows: readonly R[], ids: readonly unknown[]): R[] {
  const found = new Map((rows as Item[]).map((row) => [row[key], row]))
  return ids.map((id) => found.get(id) as R)
}
