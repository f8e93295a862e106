import {
  type FieldNode,
  type GraphQLField,
  getNamedType,
  getNullableType,
  isCompositeType,
  isListType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type ValueNode,
} from 'graphql'
import { operations } from '../../schema/rest-operations.js'
import { DEFAULT_LIMIT, MAX_LIMIT } from '../../schema/validation.js'
import type { SelectedField, Selections } from '../execute/selections.js'

export const MAX_OBJECTS = 10_000
/** The weight of objects that a unit of the quota buys. */
const OBJECTS_PER_UNIT = 100
const SCALARS_PER_WEIGHT = 10

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
  /** Whether it is the same for all variables. */
  isConstant: boolean
}

/** The cost of an operation on a root that the schema does not have. */
const UNKNOWN_COST: Cost = { units: 1, fields: 0, objects: 0, isConstant: true }

interface Measured {
  /** What the objects of the selection weigh, each. */
  own: number
  /** Objects below each object, and their weight. */
  objects: number
  weight: number
}

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
  function pageSize(definition: GraphQLField<unknown, unknown>, node: FieldNode) {
    const [limit, id] = [argument(node, 'limit'), argument(node, 'id')]
    const ids = id == null ? undefined : Array.isArray(id) ? id.length : 1
    const standard = definition.args.find(({ name }) => name === 'limit')?.defaultValue ?? DEFAULT_LIMIT
    const asked = limit === undefined ? standard : limit
    const size = isLimit(asked) ? asked : MAX_LIMIT
    return Math.max(1, Math.min(ids ?? size, cap))
  }

  const measured = selections.fold((fields) => measure(fields.values()), includes)

  function measure(fields: Iterable<SelectedField[]>): Measured {
    const sum = { own: 1, objects: 0, weight: 0 }
    let scalars = 0
    for (const selected of fields) {
      const [field] = selected as [SelectedField]
      const definition = selections.definitionOf(field)
      if (!definition || !isCompositeType(getNamedType(definition.type))) {
        scalars++
        continue
      }
      // The objects of introspection are not counted: its limits bound them.
      if (definition.name.startsWith('__')) continue
      const isList = isListType(getNullableType(definition.type))
      const size = isList ? pageSize(definition, field.node) : 1
      const below = measured.of(selections.below(selected))
      sum.objects += size * (1 + below.objects)
      sum.weight += size * (below.own + below.weight)
    }
    sum.own = Math.max(1, Math.ceil(scalars / SCALARS_PER_WEIGHT))
    return sum
  }

  const fields = [...measured.expand([root]).values()]
  const paid = fields.filter(([field]) => !isFree((field as SelectedField).node.name.value))
  const { objects, weight } = measure(paid)
  const units = Math.max(paid.length, Math.ceil(weight / OBJECTS_PER_UNIT))
  // An empty selection is not free: it costs as much as a selection of one field.
  const least = paid.length === 0 && fields.length > 0 ? 0 : 1
  return { units: Math.max(least, units), fields: paid.length, objects, isConstant }
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
    ? `It would fit with a limit of ${fitting} in every list.`
    : 'It would not fit with any limit of its lists: select fewer fields.'
}
