import { GraphQLError, getOperationAST, type OperationDefinitionNode } from 'graphql'
import { LRUCache } from 'lru-cache'
import { expandedSchema, restSchema } from '../../../schema/index.js'
import { ApiError } from '../../../schema/kit/errors.js'
import { getOrCreate } from '../../../schema/kit/get-or-create.js'
import { DEFAULT_LIMIT, MAX_LIMIT } from '../../../schema/kit/input/rules.js'
import { EXPAND, longestOf, type Operation } from '../../../schema/kit/operations.js'
import { type PreparedOperation, prepare, Selections } from '../../engines/executor/index.js'
import { costOf, isLimit } from '../graphql/index.js'
import { documentOf } from './sofa.js'

/** Documents that an operation keeps. With one more relation, the combinations double. */
const MAX_KEPT = 16

/** What a request executes, and its price, `count` aside. */
export interface Prepared {
  execute: PreparedOperation
  unitsOf(query: URLSearchParams): number
  /**
   * What would make a request cost no more than the given units.
   *
   * @param extra parameters of which each costs one unit more
   */
  advice(query: URLSearchParams, extra: readonly string[], units: number): string
}

/** An operation without `expand`. */
function preparePlain(operation: Operation): Prepared {
  const document = documentOf(operation)
  const definition = getOperationAST(document) as OperationDefinitionNode
  const units = operation.rest.cost ?? 1
  return {
    // Optional fields without a value are absent from a representation, never null.
    execute: prepare(restSchema, document, definition, { nulls: 'omit' }),
    unitsOf: () => units,
    advice: (_, extra) => `It would fit without ${extra}.`,
  }
}

/** The same with related objects. It costs what the same question costs in GraphQL. */
function prepareExpanded(operation: Operation, names: readonly string[]): Prepared {
  const document = documentOf(operation, names)
  const definition = getOperationAST(document) as OperationDefinitionNode
  const selections = new Selections(expandedSchema, document)
  const { ids = '' } = operation.field.extensions.list ?? {}

  /** How many items are asked for. An invalid limit counts as the largest. */
  function itemsIn(query: URLSearchParams): number {
    if (query.has(ids)) return query.getAll(ids).length
    if (!query.has('limit')) return DEFAULT_LIMIT
    const limit = Number(query.get('limit'))
    return isLimit(limit, MAX_LIMIT) ? limit : MAX_LIMIT
  }

  // Computing it for each request would take a twelfth of its time.
  const known = new Map<number, number>()
  const unitsFor = (items: number) =>
    getOrCreate(known, items, () => costOf(selections, definition, { [ids]: Array(items).fill(1) }).units)

  return {
    execute: prepare(expandedSchema, document, definition, { nulls: 'omit', selections }),
    unitsOf: (query) => unitsFor(itemsIn(query)),
    advice(query, extra, units) {
      const items = itemsIn(query)
      function most(units: number): number | undefined {
        for (let few = Math.min(items, MAX_LIMIT); few > 0; few--) if (unitsFor(few) <= units) return few
      }
      const all = most(units - extra.length)
      const few = all ?? most(units) ?? items
      const changes = [
        ...(all ? [] : [`without ${extra}`]),
        ...(few < items ? [query.has(ids) ? `for ${few} ids` : `with limit=${few}`] : []),
      ]
      return `It would fit ${changes.join(' and ')}.`
    },
  }
}

/** Returns what to execute for a query string. What is unknown in its `expand` is refused later. */
export function createPreparer(operation: Operation): (query: URLSearchParams) => Prepared {
  const { expansions } = operation
  const plain = preparePlain(operation)
  const kept = new LRUCache<string, Prepared>({ max: MAX_KEPT })
  return (query) => {
    const asked = query.getAll(EXPAND)
    if (asked.length === 0) return plain
    const names = longestOf(expansions.filter((name) => asked.includes(name)))
    if (names.length === 0) return plain
    return getOrCreate<string, Prepared>(kept, names.join(), () => prepareExpanded(operation, names))
  }
}

/** Whether an object within another was deleted between the reading of the two. */
export const isDeletedBelow = (error: unknown) =>
  error instanceof GraphQLError &&
  error.originalError instanceof ApiError &&
  error.originalError.code === 'not_found' &&
  (error.path?.length ?? 0) > 1
