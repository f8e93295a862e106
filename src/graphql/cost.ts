import {
  type FieldNode,
  getNamedType,
  isCompositeType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type ValueNode,
} from 'graphql'
import type { ListCost } from '../../schema/plugin.js'
import { operations } from '../../schema/rest-operations.js'
import { DEFAULT_LIMIT, MAX_LIMIT } from '../../schema/validation.js'
import type { Fields, SelectedField, Selections } from '../execute/selections.js'

export const MAX_OBJECTS = 10_000
export const MAX_TOTALS = 100
/** The weight of objects that a unit of the quota buys. */
const OBJECTS_PER_UNIT = 100
const SCALARS_PER_WEIGHT = 10
/** A total may have to count a whole index. */
const WEIGHT_OF_TOTAL = 100

const isFree = (field: string) =>
  field === '__typename' || operations.find(({ name }) => name === field)?.rest.cost === 0

const isLimit = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_LIMIT

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
  /** Whether it is the same for all variables. */
  isConstant: boolean
}

/** The cost of an operation on a root that the schema does not have. */
const UNKNOWN_COST: Cost = { units: 1, fields: 0, objects: 0, totals: 0, isConstant: true }

interface Measured {
  /** Scalar fields of each object of the selection. */
  scalars: number
  /** Objects below each object, their weight, and totals. */
  objects: number
  weight: number
  totals: number
}

const NOTHING: Measured = { scalars: 0, objects: 0, weight: 0, totals: 0 }

const sum = (parts: Measured[]): Measured =>
  parts.reduce(
    (all, part) => ({
      scalars: all.scalars + part.scalars,
      objects: all.objects + part.objects,
      weight: all.weight + part.weight,
      totals: all.totals + part.totals,
    }),
    NOTHING,
  )

/** Objects of which each is measured. */
const times = (size: number, { scalars, objects, weight, totals }: Measured): Measured => ({
  scalars: 0,
  objects: size * (1 + objects),
  weight: size * (Math.max(1, Math.ceil(scalars / SCALARS_PER_WEIGHT)) + weight),
  totals: size * totals,
})

/**
 * What an operation costs: its distinct root response keys, or a hundredth of the weight of the objects that it may return,
 * whichever is more.
 *
 * The document need not be valid, but within the limits (see limits.ts). Of the variables only those count that skip
 * fields or size lists. They are read as their types would coerce them; what is wrong with them shows at execution.
 *
 * @param cap the most that any `limit` counts for, to find limits that would fit
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
  let isConstant = true

  function read(node: ValueNode | undefined): unknown {
    switch (node?.kind) {
      case Kind.INT:
        return Number(node.value)
      case Kind.BOOLEAN:
        return node.value
      case Kind.LIST:
        return node.values
      case Kind.VARIABLE: {
        isConstant = false
        const { value: name } = node.name
        if (Object.hasOwn(values, name)) return values[name]
        return read(operation.variableDefinitions?.find(({ variable }) => variable.name.value === name)?.defaultValue)
      }
      default:
        // Any other value sizes nothing, but is there.
        return node && null
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
  function pageSize(node: FieldNode, { ids: name, isConnection }: ListCost) {
    const ids = argument(node, name)
    const given = isConnection ? (argument(node, 'first') ?? argument(node, 'last')) : argument(node, 'limit')
    const asked = given === undefined || (isConnection && given === null) ? DEFAULT_LIMIT : given
    const size = isLimit(asked) ? asked : MAX_LIMIT
    return Math.max(1, Math.min(ids == null ? size : Array.isArray(ids) ? ids.length : 1, cap))
  }

  const measured = selections.fold((fields) => measure(fields), includes)

  const below = (selected: SelectedField[]) => [...measured.expand(selections.below(selected)).values()]
  const named = (fields: SelectedField[][], name: string) => fields.filter(([field]) => field?.node.name.value === name)

  /** A connection counts as its list: its items once, however many ways lead to them; and totals. */
  function measureConnection(selected: SelectedField[], size: number): Measured {
    const fields = below(selected)
    const [edges, nodes, totals] = [named(fields, 'edges'), named(fields, 'nodes'), named(fields, 'totalCount').length]
    const items = [...edges.flatMap((edge) => named(below(edge), 'node')), ...nodes]
    const counted = { scalars: 0, objects: 0, weight: WEIGHT_OF_TOTAL * totals, totals }
    if (edges.length + nodes.length + named(fields, 'pageInfo').length === 0) return counted
    return sum([times(size, sum(items.map((fields) => measured.of(selections.below(fields))))), counted])
  }

  function measureField(selected: SelectedField[]): Measured {
    const [field] = selected as [SelectedField]
    const definition = selections.definitionOf(field)
    if (!definition || !isCompositeType(getNamedType(definition.type))) return { ...NOTHING, scalars: 1 }
    // The objects of introspection are not counted: its limits bound them.
    if (definition.name.startsWith('__')) return NOTHING
    const { list } = definition.extensions
    const size = list ? pageSize(field.node, list) : 1
    if (list?.isConnection) return measureConnection(selected, size)
    return times(size, measured.of(selections.below(selected)))
  }

  const measure = (fields: Fields | SelectedField[][]): Measured => sum(Array.from(fields.values(), measureField))

  const fields = [...measured.expand([root]).values()]
  const paid = fields.filter(([field]) => !isFree((field as SelectedField).node.name.value))
  const { objects, weight, totals } = measure(paid)
  const units = Math.max(paid.length, Math.ceil(weight / OBJECTS_PER_UNIT))
  // An empty selection is not free: it costs as much as a selection of one field.
  const least = paid.length === 0 && fields.length > 0 ? 0 : 1
  return { units: Math.max(least, units), fields: paid.length, objects, totals, isConstant }
}

/** Which `limit` in every list makes an operation fit, as a sentence. */
export function fittingLimit(fits: (limit: number) => boolean): string {
  let [fitting, over] = [0, MAX_LIMIT]
  while (over - fitting > 1) {
    const limit = Math.floor((fitting + over) / 2)
    if (fits(limit)) fitting = limit
    else over = limit
  }
  return fitting > 0
    ? `It would fit with a limit of ${fitting} in every list (in connections: first or last).`
    : 'It would not fit with any limit of its lists: select fewer fields.'
}
