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
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  visit,
} from 'graphql'
// graphql-js' own account of what an operation selects: fragments spread, @skip and @include obeyed, equal keys merged.
import { collectFields, collectSubfields } from 'graphql/execution/collectFields.js'
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

const free = new Set(['__typename', '__schema', '__type'])
for (const { name, rest } of operations) if (rest.cost === 0) free.add(name)

const fragmentsOf = (document: DocumentNode) => {
  const fragments: Record<string, FragmentDefinitionNode> = Object.create(null)
  for (const node of document.definitions) if (node.kind === Kind.FRAGMENT_DEFINITION) fragments[node.name.value] = node
  return fragments
}

// __schema and __type stand in no type's own list.
const meta: Record<string, GraphQLField<unknown, unknown>> = { __schema: SchemaMetaFieldDef, __type: TypeMetaFieldDef }
const fieldOf = (type: GraphQLObjectType, name: string) => type.getFields()[name] ?? meta[name]

const rootType = (schema: GraphQLSchema, { operation }: OperationDefinitionNode) =>
  schema.getRootType(operation) as GraphQLObjectType | undefined

export interface Cost {
  /** Requests of the quota. */
  cost: number
  /** The operation asks for nothing but the caller's quota. */
  onlyQuota: boolean
}

/**
 * What an operation costs: the number of its distinct root response keys. What cannot be priced costs 1.
 */
export function costOf(
  schema: GraphQLSchema,
  document: KnownDocument,
  operation: OperationDefinitionNode,
  variables: Record<string, unknown> | undefined,
): Cost {
  const unpriced = { cost: 1, onlyQuota: false }
  const type = rootType(schema, operation)
  if (!type) return unpriced
  try {
    const { coerced } = getVariableValues(schema, operation.variableDefinitions ?? [], variables ?? {})
    if (!coerced) return unpriced
    const fields = collectFields(schema, fragmentsOf(document.node), coerced, type, operation.selectionSet)
    const names = [...fields.values()].map(([node]) => (node as FieldNode).name.value)
    const cost = names.filter((name) => !free.has(name)).length
    // Free is what can run; a document that is only refused is not.
    if (cost === 0 && document.errors.length > 0) return unpriced
    return {
      cost,
      onlyQuota: names.includes('quota') && names.every((name) => name === 'quota' || name === '__typename'),
    }
  } catch {
    // @skip or @include without a value: validation says so after the price of one is paid.
    return unpriced
  }
}

/** Introspection is free, so that aliases must not multiply it: few are allowed in it, many elsewhere. */
function assertAliases(document: DocumentNode) {
  const count = { all: 0, introspection: 0 }
  let inside = 0
  const introspects = (node: ASTNode) =>
    (node.kind === Kind.FIELD && node.name.value in meta) ||
    (node.kind === Kind.FRAGMENT_DEFINITION && node.typeCondition.name.value.startsWith('__'))
  visit(document, {
    enter(node) {
      if (introspects(node)) inside++
      if (node.kind !== Kind.FIELD || !node.alias) return
      count.all++
      if (inside > 0) count.introspection++
    },
    leave(node) {
      if (introspects(node)) inside--
    },
  })
  const atMost = (most: number, found: number, where: string) => {
    if (found > most)
      throw new ApiError('invalid_request', `The document has ${found} aliases${where}; at most ${most} are allowed.`)
  }
  atMost(MAX_INTROSPECTION_ALIASES, count.introspection, ' in introspection')
  atMost(MAX_ALIASES, count.all, '')
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
  inputs: Record<string, unknown>,
) {
  const { coerced } = getVariableValues(schema, operation.variableDefinitions ?? [], inputs)
  if (!coerced) return // execution refuses them before it runs
  const variables = coerced

  assertAliases(document)

  const fragments = fragmentsOf(document)
  const numbers = new Map<FieldNode, number>()
  const measured = new Map<string, number>()
  const numberOf = (node: FieldNode) => {
    if (!numbers.has(node)) numbers.set(node, numbers.size)
    return numbers.get(node)
  }

  /** How many objects one object's selection can bring. */
  function measure(
    type: GraphQLObjectType,
    fields: Map<string, readonly FieldNode[]>,
    level: number,
    max: number,
  ): number {
    if (level > max)
      throw new ApiError(
        'invalid_request',
        `The document is nested deeper than ${max} fields, which is the most allowed.`,
      )
    let objects = 0
    for (const nodes of fields.values()) {
      const node = nodes[0] as FieldNode
      const introspection = node.name.value.startsWith('__')
      const field = fieldOf(type, node.name.value)
      const named = field && getNamedType(field.type)
      if (!isObjectType(named)) continue
      const key = `${level}:${nodes.map(numberOf).join()}`
      let below = measured.get(key)
      if (below === undefined) {
        const selected = collectSubfields(schema, fragments, variables, named, nodes as FieldNode[])
        below = measure(named, selected, level + 1, introspection ? MAX_INTROSPECTION_DEPTH : max)
        measured.set(key, below)
      }
      const limit = field && isListType(getNullableType(field.type)) ? pageSize(field, node) : 1
      objects += introspection ? 0 : limit * (1 + below)
    }
    return objects
  }

  function pageSize(field: Parameters<typeof getArgumentValues>[0], node: FieldNode) {
    const { limit, id } = getArgumentValues(field, node, variables)
    if (typeof limit === 'number') return Math.max(limit, 1)
    return Array.isArray(id) ? id.length : field.args.some(({ name }) => name === 'limit') ? DEFAULT_LIMIT : 1
  }

  const type = rootType(schema, operation)
  if (!type) return
  const objects = measure(type, collectFields(schema, fragments, variables, type, operation.selectionSet), 1, MAX_DEPTH)
  if (objects > MAX_OBJECTS)
    throw new ApiError(
      'invalid_request',
      `The document could return ${objects} objects; at most ${MAX_OBJECTS} are allowed. Ask for smaller pages.`,
    )
}
