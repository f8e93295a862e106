import type { Condition, ListRead, Model, Operator } from '../context.js'
import { invalidRequest } from '../errors.js'
import { getOrCreate } from '../get-or-create.js'
import { anyOf, wrongValue } from '../input/problems.js'
import type { Values } from '../input/values.js'
import { columnOf } from '../model.js'

// A list answers the queries that one of its indexes answers, however many rows there are, and refuses the others.

/** What a list can be asked. */
export interface Queryable {
  model: Model
  /** Its unique column. A list is in ascending order of it, if no other order is asked for. */
  key: string
  filters: Record<string, { column: string; operator: Operator }>
  /** The columns beside the key that it can be sorted by. */
  sorts: readonly string[]
  /** For each column of text that it is sorted or searched by: the column in which a trigger keeps what it is compared by. */
  textKeys?: Readonly<Record<string, string>>
  /** The columns of its indexes, without the key, which ends each of them. That of the key alone is `[]`. */
  indexes: readonly (readonly string[])[]
  /**
   * Indexes of the model to whose rows these belong, by which they are read, too, in order of the key. Each row there has exactly
   * one of these, with the same id and the same values in these columns.
   */
  ownerIndexes?: readonly (readonly string[])[]
}

/** The order in which the rows of a query are read, or counted, in both directions. */
type Reading = Pick<ListRead, 'order' | 'within' | 'byOwner'>

/** How the queries of each list are read, found once for each combination of filters and order. */
const readings = new WeakMap<Queryable, Map<string, Partial<Record<'read' | 'counted', Reading>>>>()

export interface ListQuery extends Pick<ListRead, 'order' | 'direction'> {
  sort: string
  /**
   * Its rows in that order.
   *
   * @throws ApiError invalid_request if no index has them so
   */
  rows(): ListRead
  /** The same rows in the order in which they are counted: that of the key, if that can be. */
  counted: ListRead
}

/** A column of few values that are known: an index that begins with it is read for each of them. */
function hasFewValues(model: Model, name: string): boolean {
  const { kind, type } = columnOf(model, name)
  return kind === 'enum' || type === 'Boolean'
}

/** Whether a filter bounds the order of a list. */
export const isRange = ({ operator }: { operator: Operator }) => operator !== '=' && operator !== '= ANY'

/** A filter that a query has, by its name. */
export type Given = readonly [name: string, filter: { column: string; operator: Operator }]

interface QueryPlan {
  /** The columns of the index, without the key. */
  index: readonly string[]
  /** Those before the order. */
  within: readonly string[]
  /** Those of them whose values the query does not name: each value is read on its own. */
  partitions: readonly string[]
  /** Whether the index is that of the model to whose rows these belong. */
  byOwner: boolean
}

/**
 * The best plan; undefined if no index answers the query.
 *
 * @param sort the column that the list is ordered by
 */
export function planOf(
  { model, key, indexes, ownerIndexes = [] }: Queryable,
  given: readonly Given[],
  sort: string,
): QueryPlan | undefined {
  // A hundred rows at most, which need no order of an index.
  if (given.some(([, { operator }]) => operator === '= ANY'))
    return { index: [], within: [], partitions: [], byOwner: false }
  const equal = new Set(given.filter(([, filter]) => !isRange(filter)).map(([, { column }]) => column))
  if (given.some(([, filter]) => isRange(filter) && filter.column !== sort)) return
  const plansBy = (indexes: readonly (readonly string[])[], byOwner: boolean) =>
    indexes.flatMap((columns) => {
      const within = sort === key ? columns : columns.at(-1) === sort ? columns.slice(0, -1) : undefined
      if (!within || ![...equal].every((column) => within.includes(column))) return []
      const partitions = within.filter((column) => !equal.has(column))
      return partitions.every((column) => hasFewValues(model, column))
        ? [{ index: columns, within, partitions, byOwner }]
        : []
    })
  const plans = [...plansBy(indexes, false), ...(sort === key ? plansBy(ownerIndexes, true) : [])]
  return plans.sort((a, b) => a.partitions.length - b.partitions.length)[0]
}

/** Which query instead of one that no index answers. */
function advise(list: Queryable, given: readonly Given[], sort: string): string {
  const names = given.flatMap(([name]) => (name in list.filters ? [name] : []))
  const sorts = [list.key, ...list.sorts].filter((other) => planOf(list, given, other))
  const refusal = `${anyOf(names).replace(' or ', ' and ')} ${names.length === 1 ? 'is' : 'are'} not answered in order of ${sort}`
  if (sorts.length > 0) return `${refusal}: add sort=${sorts.join(' or sort=')}.`
  const allBut = (name: string) => given.filter(([other]) => other !== name)
  const superfluous = names.find((name) => planOf(list, allBut(name), sort))
  return `${refusal}${superfluous ? `: leave out ${superfluous}` : ''}.`
}

/** @throws ApiError invalid_request if a lower bound is above an upper one */
function assertOrdered(args: Values, given: readonly Given[]): void {
  for (const [low, { column, operator }] of given) {
    if (operator !== '>=') continue
    const high = given.find(([, other]) => other.column === column && other.operator.startsWith('<'))?.[0]
    if (high !== undefined && (args[low] as number) > (args[high] as number))
      throw invalidRequest(wrongValue(low, args[low], `must not be above ${high}`))
  }
}

const orderOf = ({ key, sorts }: Queryable, sort: string) => (sorts.includes(sort) ? [sort, key] : [key])

function readingOf(list: Queryable, given: readonly Given[], sort: string) {
  const inOrderOf = (sort: string): Reading | undefined => {
    const plan = planOf(list, given, sort)
    return plan && { order: orderOf(list, sort), within: plan.within, byOwner: plan.byOwner }
  }
  return { read: inOrderOf(sort), counted: inOrderOf(list.key) ?? list.sorts.map(inOrderOf).find(Boolean) }
}

/**
 * What the arguments of a list ask.
 *
 * @param parent the condition of a list below a row; without a value for all rows
 * @throws ApiError invalid_request (no index answers it in any order; bounds that exclude each other)
 */
export function planQuery(list: Queryable, args: Values, parent?: Condition): ListQuery {
  const { key, filters, textKeys } = list
  const { [key]: ids, sort = key, direction = 'asc' } = args as { sort?: string; direction?: 'asc' | 'desc' } & Values
  const given: Given[] = []
  const conditions: Condition[] = []
  const add = (name: string, filter: Given[1], value: unknown) => {
    given.push([name, filter])
    conditions.push([filter.column, filter.operator, value])
  }
  if (parent) add(parent[0], { column: parent[0], operator: parent[1] }, parent[2])
  if (Array.isArray(ids)) add(key, { column: key, operator: '= ANY' }, ids)
  for (const name in filters) if (args[name] !== undefined) add(name, filters[name] as Given[1], args[name])
  assertOrdered(args, given)
  const name = `${given.map(([name]) => name)} by ${sort}`
  const known = getOrCreate(readings, list, () => new Map())
  const { read, counted } = getOrCreate(known, name, () => readingOf(list, given, sort))
  const refusal = () => invalidRequest(advise(list, given, sort))
  if (!counted) throw refusal()
  const rows = () => {
    if (!read) throw refusal()
    return { conditions, direction, textKeys, ...read }
  }
  return { sort, direction, order: orderOf(list, sort), rows, counted: { conditions, direction, textKeys, ...counted } }
}
