import {
  type FieldNode,
  getNamedType,
  isCompositeType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type ValueNode,
} from 'graphql'
import { operations } from '../../../schema/index.js'
import { DEFAULT_LIMIT, MAX_LIMIT, OBJECTS_PER_UNIT } from '../../../schema/kit/input/rules.js'
import { batchUnits } from '../../../schema/kit/operations.js'
import type { ListCost } from '../../../schema/kit/plugin.js'
import type { SelectedField, Selections } from '../../engines/executor/index.js'
import { dearest, type Measured, NOTHING, SCALARS_PER_WEIGHT, sum, times } from './weight.js'

/** The most that an operation may ask for, and how a refusal begins. */
export const LIMITS = [
  ['totals', 100, 'could ask for', 'totals of connections'],
  ['objects', 10_000, 'could return', 'objects'],
  ['completed', 100_000, 'could complete', 'fields, those of each item of a list counted'],
  ['letters', 8_388_608, 'could return', 'characters in keys, those of each item of a list counted'],
] as const
/** The characters of response keys that a unit buys: writing them takes time, too. Only very long aliases need more. */
export const LETTERS_PER_UNIT = 262_144

const isFree = (field: string) =>
  field === '__typename' || operations.find(({ name }) => name === field)?.rest.cost === 0

const PAGE = { argument: 'limit', default: DEFAULT_LIMIT, max: MAX_LIMIT }

export const isLimit = (value: unknown, max: number): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max

export type Variables = Record<string, unknown> | undefined

export interface Cost {
  /** Units of the quota. 0 if the operation selects nothing but what is free. */
  units: number
  /** Its distinct root response keys, without those that are free. */
  fields: number
  /** The objects that it may return. */
  objects: number
  /** The totals of connections that it asks for. */
  totals: number
  /** The fields that it may complete: each response key, in each object that it is selected from. */
  completed: number
  /** The characters of their keys. */
  letters: number
  /** The variables that it depends on: if these have the same values, it is the same. */
  variables: readonly string[]
}

/** The cost of an operation on a root that the schema does not have. */
const UNKNOWN_COST: Cost = { units: 1, fields: 0, objects: 0, totals: 0, completed: 0, letters: 0, variables: [] }

/** A field by itself. */
function ownOf(selected: SelectedField[]): Measured {
  const { node } = selected[0] as SelectedField
  return { ...NOTHING, completed: 1, letters: (node.alias ?? node.name).value.length }
}

/**
 * What an operation costs: its distinct root response keys (a batch counts by its items), a hundredth of the weight of the
 * objects that it may return, or the length of its response keys, whichever is the most.
 *
 * The document need not be valid, but within the limits (see limits.ts). Of the variables only those count that skip
 * fields or size lists. They are read as their types would coerce them; what is wrong with them shows at execution.
 *
 * @param cap the most that any `limit` and any batch count for, to find what would fit
 * @throws ApiError invalid_request (its fragments make too much of it)
 */
export function costOf(
  selections: Selections,
  operation: OperationDefinitionNode,
  values: Variables = {},
  cap = MAX_LIMIT,
): Cost {
  const root = selections.root(operation)
  if (!root.type) return UNKNOWN_COST
  const variables = new Set<string>()

  function read(node: ValueNode | undefined): unknown {
    switch (node?.kind) {
      case Kind.INT:
        return Number(node.value)
      case Kind.BOOLEAN:
        return node.value
      case Kind.LIST:
        return node.values
      case Kind.VARIABLE: {
        const { value: name } = node.name
        variables.add(name)
        if (Object.hasOwn(values, name)) return values[name] ?? undefined
        return read(operation.variableDefinitions?.find(({ variable }) => variable.name.value === name)?.defaultValue)
      }
      // A null argument counts as absent.
      case Kind.NULL:
      case undefined:
        return undefined
      default:
        // Any other value sizes nothing, but is there.
        return Number.NaN
    }
  }

  const argument = ({ arguments: given }: Pick<FieldNode, 'arguments'>, name: string) =>
    read(given?.find((node) => node.name.value === name)?.value)

  const includes = ({ directives }: SelectionNode) =>
    !directives?.some(
      (directive) =>
        (directive.name.value === 'skip' && argument(directive, 'if') === true) ||
        (directive.name.value === 'include' && argument(directive, 'if') === false),
    )

  /** How many items a list may return. */
  function pageSize(node: FieldNode, { ids: name, isBatch, isConnection, limit = PAGE }: ListCost) {
    const ids = name === undefined ? undefined : argument(node, name)
    if (ids !== undefined) return Math.min(Array.isArray(ids) ? ids.length : 1, isBatch ? cap : Infinity)
    const given = isConnection ? (argument(node, 'first') ?? argument(node, 'last')) : argument(node, limit.argument)
    const size = given === undefined ? limit.default : isLimit(given, limit.max) ? given : limit.max
    return Math.min(size, cap)
  }

  /** What is selected below objects, of their edges, and of connections: of equal selections once. */
  const objects = selections.fold((fields) => measure(fields.values()), includes)
  const edges = selections.fold((fields) => sum(Array.from(fields.values(), measureInEdge)), includes)
  const connections = selections.fold((fields) => measureOfConnection([...fields.values()]), includes)

  const objectBelow = (selected: SelectedField[]) => dearest(objects.of(selections.below(selected)))

  /** A field of an edge counts as one of its node. */
  const measureInEdge = (selected: SelectedField[]): Measured =>
    selected[0]?.node.name.value === 'node' ? sum([ownOf(selected), objectBelow(selected)]) : measureField(selected)

  /**
   * A connection counts as its list: its items once, weighed by what is selected of them, however many ways lead to them;
   * and totals. Its own scalars, with those of `pageInfo`, count only if they are many.
   */
  function measureOfConnection(fields: SelectedField[][]) {
    let [items, own, isRead] = [NOTHING, NOTHING, false]
    for (const field of fields) {
      const definition = selections.definitionOf(field[0] as SelectedField)
      const name = definition?.name
      isRead ||= name === 'edges' || name === 'nodes' || name === 'pageInfo'
      own = sum([own, ownOf(field)])
      if (name === 'edges') items = sum([items, dearest(edges.of(selections.below(field)))])
      else if (name === 'nodes') items = sum([items, objectBelow(field)])
      else if (name === 'pageInfo') own = sum([own, objectBelow(field)])
      else if (name === 'totalCount') {
        const weight = (definition?.extensions.weight ?? 1) / SCALARS_PER_WEIGHT
        own = sum([own, { ...NOTHING, weight, totals: 1 }])
      } else own = sum([own, { ...NOTHING, scalars: 1 }])
    }
    const few = own.scalars <= SCALARS_PER_WEIGHT
    const weight = own.weight + (few ? 0 : Math.ceil(own.scalars / SCALARS_PER_WEIGHT))
    return { items, isRead, own: { ...own, scalars: 0, weight } }
  }

  function measureConnection(selected: SelectedField[], size: number): Measured {
    const measured = connections.of(selections.below(selected)).map(({ items, isRead, own }) => {
      const read = isRead ? times(size, items) : own.weight === 0 ? times(1, NOTHING) : NOTHING
      return sum([own, read])
    })
    return dearest(measured)
  }

  function measureField(selected: SelectedField[]): Measured {
    const [field] = selected as [SelectedField]
    const definition = selections.definitionOf(field)
    if (!definition || !isCompositeType(getNamedType(definition.type))) {
      const weight = definition?.extensions.weight
      const computed = weight && definition ? new Map([[definition.name, weight - 1]]) : NOTHING.computed
      return { ...ownOf(selected), scalars: 1, computed }
    }
    // The objects of introspection are not counted: its limits bound them.
    if (definition.name.startsWith('__')) return ownOf(selected)
    const { list } = definition.extensions
    const { max: size, usual = size } = list?.items ?? { max: list ? pageSize(field.node, list) : 1 }
    if (list?.isConnection) return sum([ownOf(selected), measureConnection(selected, size)])
    const measured = objects.of(selections.below(selected)).map((each) => {
      return { ...times(size, each), weight: times(usual, each).weight }
    })
    return sum([ownOf(selected), dearest(measured)])
  }

  /** What a root field costs, whatever it returns. */
  function baseUnits([field]: SelectedField[]): number {
    const { node } = field as SelectedField
    const batch = selections.definitionOf(field as SelectedField)?.args.find(({ extensions }) => extensions.batch)
    return batch ? batchUnits(argument(node, batch.name), cap) : 1
  }

  const measure = (fields: Iterable<SelectedField[]>) => sum(Array.from(fields, measureField))

  const fields = Array.from(objects.expand([root], root.type).values(), (selected) => ({
    selected,
    measured: measureField(selected),
    isPaid: !isFree((selected[0] as SelectedField).node.name.value),
  }))
  const paid = fields.filter(({ isPaid }) => isPaid)
  const { weight, totals, objects: size } = sum(paid.map(({ measured }) => measured))
  const { completed, letters } = sum(fields.map(({ measured }) => measured))
  const units = Math.max(
    // An empty selection is not free: it costs as much as a selection of one field.
    paid.length === 0 && fields.length > 0 ? 0 : 1,
    paid.reduce((sum, { selected }) => sum + baseUnits(selected), 0),
    Math.ceil(weight / OBJECTS_PER_UNIT),
    // What is free has keys too, so only a length that a unit does not buy counts.
    letters > LETTERS_PER_UNIT ? Math.ceil(letters / LETTERS_PER_UNIT) : 0,
  )
  return { units, fields: paid.length, objects: size, totals, completed, letters, variables: [...variables] }
}
