import {
  type ASTNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getArgumentValues,
  getNamedType,
  getNullableType,
  getVariableValues,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  visit,
} from 'graphql'
// graphql-js' own account of what an operation selects: fragments spread, @skip and @include obeyed, equal keys merged.
import { collectFields, collectSubfields } from 'graphql/execution/collectFields.js'
import { getFieldDef } from 'graphql/execution/execute.js'
import { ApiError } from '../../schema/errors.js'
import { DEFAULT_LIMIT } from '../../schema/validation.js'
import { operations } from '../rest/operations.js'
import type { KnownDocument } from './documents.js'

export const MAX_TOKENS = 2_000
const MAX_ALIASES = 100
const MAX_INTROSPECTION_ALIASES = 5
const MAX_DEPTH = 10
const MAX_INTROSPECTION_DEPTH = 20
const MAX_OBJECTS = 10_000

const introspectionFields = new Set(['__schema', '__type'])
const freeFields = new Set([...introspectionFields, '__typename'])
for (const { name, rest } of operations) if (rest.cost === 0) freeFields.add(name)

export type Variables = Record<string, unknown> | undefined

/** What an operation selects; undefined if its variables are not valid, which execution reports. */
function select(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode, values: Variables) {
  const { coerced: variables } = getVariableValues(schema, operation.variableDefinitions ?? [], values ?? {})
  if (!variables) return undefined
  const fragments: Record<string, FragmentDefinitionNode> = Object.create(null)
  for (const node of document.definitions) if (node.kind === Kind.FRAGMENT_DEFINITION) fragments[node.name.value] = node
  const type = schema.getRootType(operation.operation)
  const fields = type && collectFields(schema, fragments, variables, type, operation.selectionSet)
  return { variables, fragments, type, fields }
}

export interface Cost {
  /** Requests of the quota. */
  cost: number
  /** The operation asks for nothing but the caller's quota. */
  onlyQuota: boolean
}

/** The cost of what is refused, or of what has no cost of its own. */
export const DEFAULT_COST: Cost = { cost: 1, onlyQuota: false }

/** What an operation costs: the number of its distinct root response keys that are not free. */
export function costOf(
  schema: GraphQLSchema,
  document: KnownDocument,
  operation: OperationDefinitionNode,
  values: Variables,
): Cost {
  try {
    const { fields } = select(schema, document.node, operation, values) ?? {}
    if (!fields) return DEFAULT_COST
    const names = [...fields.values()].map(([node]) => (node as FieldNode).name.value)
    const cost = names.filter((name) => !freeFields.has(name)).length
    // Only what can run is free.
    if (cost === 0 && document.errors.length > 0) return DEFAULT_COST
    const onlyQuota = names.includes('quota') && names.every((name) => name === 'quota' || name === '__typename')
    return { cost, onlyQuota }
  } catch {
    // @skip or @include without a value: validation reports it once the default cost is paid.
    return DEFAULT_COST
  }
}

const invalid = (message: string) => new ApiError('invalid_request', message)

function countAliases(root: ASTNode) {
  let count = 0
  visit(root, {
    Field({ alias }) {
      if (alias) count++
    },
  })
  return count
}

/** Introspection is free, so that aliases must not multiply it: few are allowed in it, many elsewhere. */
function assertAliases(document: DocumentNode) {
  let introspection = 0
  visit(document, {
    enter(node) {
      const introspects =
        (node.kind === Kind.FIELD && introspectionFields.has(node.name.value)) ||
        (node.kind === Kind.FRAGMENT_DEFINITION && node.typeCondition.name.value.startsWith('__'))
      if (!introspects) return undefined
      introspection += countAliases(node)
      return false
    },
  })
  const refuse = (count: number, max: number, where: string) =>
    invalid(`The document has ${count} aliases${where}; at most ${max} are allowed.`)
  if (introspection > MAX_INTROSPECTION_ALIASES)
    throw refuse(introspection, MAX_INTROSPECTION_ALIASES, ' in introspection')
  const all = countAliases(document)
  if (all > MAX_ALIASES) throw refuse(all, MAX_ALIASES, '')
}

/**
 * Refuses what a valid document must not be: deeper than 10 fields (20 in introspection), with more than 100 aliases,
 * or able to return more than 10,000 objects. Each set of merged fields is measured once, however often it is
 * selected, so that hostile fragments cost no more than their tokens.
 *
 * @throws ApiError invalid_request
 */
export function assertWithinLimits(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  values: Variables,
) {
  const selection = select(schema, document, operation, values)
  if (!selection) return
  const { type, fields, fragments, variables } = selection
  assertAliases(document)

  const numbers = new Map<FieldNode, number>()
  const measured = new Map<string, number>()
  const numberOf = (node: FieldNode) => {
    if (!numbers.has(node)) numbers.set(node, numbers.size)
    return numbers.get(node)
  }

  /** How many objects one object's selection can bring. */
  function measure(
    parent: GraphQLObjectType,
    fields: ReturnType<typeof collectFields>,
    level: number,
    max: number,
  ): number {
    if (level > max) throw invalid(`The document is nested deeper than ${max} fields, which is the most allowed.`)
    let objects = 0
    for (const nodes of fields.values()) {
      const node = nodes[0] as FieldNode
      const field = getFieldDef(schema, parent, node)
      const type = field && getNamedType(field.type)
      if (!field || !isObjectType(type)) continue
      const introspection = node.name.value.startsWith('__')
      const key = `${level}:${nodes.map(numberOf).join()}`
      let below = measured.get(key)
      if (below === undefined) {
        const selected = collectSubfields(schema, fragments, variables, type, nodes as FieldNode[])
        below = measure(type, selected, level + 1, introspection ? MAX_INTROSPECTION_DEPTH : max)
        measured.set(key, below)
      }
      if (!introspection) objects += pageSize(field, node) * (1 + below)
    }
    return objects
  }

  function pageSize(field: GraphQLField<unknown, unknown>, node: FieldNode) {
    if (!isListType(getNullableType(field.type))) return 1
    const { limit, id } = getArgumentValues(field, node, variables)
    if (typeof limit === 'number') return Math.max(limit, 1)
    return Array.isArray(id) ? id.length : field.args.some(({ name }) => name === 'limit') ? DEFAULT_LIMIT : 1
  }

  const objects = type && fields ? measure(type, fields, 1, MAX_DEPTH) : 0
  if (objects > MAX_OBJECTS)
    throw invalid(
      `The document could return ${objects} objects; at most ${MAX_OBJECTS} are allowed. Ask for smaller pages.`,
    )
}
