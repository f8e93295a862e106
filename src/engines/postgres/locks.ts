import { type Column, qualified, type Tables } from './model.js'

// What a statement locks before it writes, all in this order, so that no two wait for each other in a circle: what rows refer to,
// owners before what belongs to them, then the rows themselves; of each, by their ids.

/** What is locked: the rows with the values that a column has. */
export interface Lock {
  column: Column
  table: string
  key: Column
  strength: 'KEY SHARE' | 'NO KEY UPDATE' | 'UPDATE'
}

interface Locking {
  /** The column that names the rows which are changed. */
  changed?: Column
  /** The column that names the rows from which new rows take. */
  takesFrom?: Column
}

/** Parts of WITH that lock rows of these tables, and the conditions that all rows are there. */
interface Locked {
  tables: string[]
  parts: string[]
  conditions: string[]
}

export const where = (conditions: readonly string[]) =>
  conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
const tablesOf = (locks: readonly Lock[]) => locks.map(({ table }) => table)
export const withParts = (parts: readonly string[]) => (parts.length > 0 ? `WITH ${parts}` : '')

export function createLocks({ nameOf, keyOf, ownerOf, isInKey, referencesOf }: Tables) {
  const referencesIn = (model: string, columns: readonly Column[]) =>
    referencesOf(model).filter(({ column }) => columns.some(({ name }) => name === column.name))

  /**
   * The lock on a row that is referred to. Those who take by that reference wait for each other there: with a lock that they
   * share, one that changes its key after it has taken would wait for one that waits for what it has taken.
   */
  const strengthOf = (column: Column, takesFrom?: Column) =>
    column.name === takesFrom?.name ? 'NO KEY UPDATE' : 'KEY SHARE'

  /** The owners of the rows that are changed. */
  function ownersOf(model: string): Lock[] {
    const owner = ownerOf(model)
    return owner ? [{ column: keyOf(model), table: nameOf(owner), key: keyOf(owner), strength: 'NO KEY UPDATE' }] : []
  }

  /** What rows with these columns refer to, and the rows that are changed. */
  function locksOf(model: string, columns: readonly Column[], { changed, takesFrom }: Locking = {}): Lock[] {
    const locks = referencesIn(model, columns).map(
      ({ column, model, key }): Lock => ({
        column,
        table: nameOf(model),
        key,
        strength: strengthOf(column, takesFrom),
      }),
    )
    if (!changed) return locks
    // Others may refer to a row while it changes, if its key stays: an order of a pet does not wait for its new name.
    const strength = columns.some(({ name }) => isInKey(model, name)) ? 'UPDATE' : 'NO KEY UPDATE'
    return [...locks, ...ownersOf(model), { column: changed, table: nameOf(model), key: changed, strength }]
  }

  /**
   * Locks in SQL. The ids are the parameters from this one on. Each row is looked up by its id: PostgreSQL would read an index
   * from its beginning for rows in order.
   */
  function locking(locks: readonly Lock[], first = 2): Locked {
    const parts = locks.map(
      ({ table, key, strength }, i) => `"lock${i}" AS MATERIALIZED (
        SELECT FROM unnest($${i + first}::${key.sqlType}[]) "ids" ("id")
        CROSS JOIN LATERAL (SELECT FROM ${qualified(table)} "row" WHERE ${key.sql} = "ids"."id" FOR ${strength}) "_")`,
    )
    return {
      tables: tablesOf(locks),
      parts,
      conditions: locks.map((_, i) => `(SELECT count(*) FROM "lock${i}") = cardinality($${i + first})`),
    }
  }

  /** Locks in SQL, of one row each. */
  function lockingOne(locks: readonly Lock[], sqlOf: (column: Column) => string): Locked {
    const parts = locks.map(
      ({ column, table, key, strength }, i) => `"lock${i}" AS MATERIALIZED (
        SELECT FROM ${qualified(table)} "row" WHERE ${key.sql} = ${sqlOf(column)} FOR ${strength})`,
    )
    return { tables: tablesOf(locks), parts, conditions: parts.map((_, i) => `EXISTS (SELECT FROM "lock${i}")`) }
  }

  return {
    referencesIn,
    locksOf,
    locking,
    /** Locks what one row with these columns refers to. */
    lockingReferences: (
      model: string,
      columns: readonly Column[],
      takesFrom: Column,
      sqlOf: (column: Column) => string,
    ) => lockingOne(locksOf(model, columns, { takesFrom }), sqlOf),
    /** Locks the owner of the row whose id is the first parameter. */
    lockingOwner: (model: string) => lockingOne(ownersOf(model), () => '$1'),
    /** Locks the owners of the rows whose ids are the first parameter. */
    lockingOwners: (model: string) => locking(ownersOf(model), 1),
  }
}
