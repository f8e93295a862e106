import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isListType,
} from 'graphql'
import { ITEMS_PER_UNIT, MAX_BATCH } from './input/rules.js'
import { columnOf } from './model.js'
import type { Rest } from './plugin.js'

/** The query parameter that names the related objects which a GET also returns. */
export const EXPAND = 'expand'

/** A root field with a REST operation. */
export interface Operation {
  name: string
  /** The name in generated clients: listPets, getPet. A mutation's name begins with its verb already. */
  operationId: string
  type: 'Query' | 'Mutation'
  field: GraphQLField<unknown, unknown>
  rest: Rest
  /** The argument that is the whole body. */
  body?: GraphQLArgument
  /** The arguments that the path names, and all others. */
  pathArguments: GraphQLArgument[]
  queryArguments: GraphQLArgument[]
  /** What `expand` can name: paths like `pet.category`, each after those that it begins with. */
  expansions: string[]
  /** It takes If-Match. */
  isConditional: boolean
  /** Its result has an ETag, because it is stored. */
  hasEtag: boolean
}

function operationId(type: Operation['type'], { name, type: result }: GraphQLField<unknown, unknown>) {
  if (type === 'Mutation') return name
  return (isListType(getNullableType(result)) ? 'list' : 'get') + name.charAt(0).toUpperCase() + name.slice(1)
}

/** The fields of an object type, by name. */
export const fieldsOf = (schema: GraphQLSchema, type: string) => (schema.getType(type) as GraphQLObjectType).getFields()

/**
 * The paths from a type to single objects of others: the relations that only the expanded schema has and, below these,
 * those whose key the row itself holds. None leads back.
 */
function expansionsOf(type: string, rest: GraphQLSchema, expanded: GraphQLSchema, above: string[] = []): string[] {
  const plain = fieldsOf(rest, type)
  const relations = Object.values(fieldsOf(expanded, type)).filter(({ name }) => !plain[name])
  return relations.flatMap(({ name, type: result }) => {
    const target = getNamedType(result).name
    const isReference = Boolean(columnOf(type, name).relationFromFields?.length)
    if (above.includes(target) || (above.length > 0 && !isReference)) return []
    return [name, ...expansionsOf(target, rest, expanded, [...above, type]).map((path) => `${name}.${path}`)]
  })
}

function createOperation(
  type: Operation['type'],
  field: GraphQLField<unknown, unknown>,
  rest: Rest,
  expand: (type: string) => string[],
): Operation {
  const body = field.args.find((arg) => isInputObjectType(getNamedType(arg.type)))
  const inPath = ({ name }: GraphQLArgument) => rest.path.includes(`{${name}}`)
  const isHeader = ({ name }: GraphQLArgument) => name === 'ifMatch'
  const result = getNamedType(field.type)
  const isStored = result.extensions.pothosPrismaModel !== undefined
  return {
    name: field.name,
    operationId: operationId(type, field),
    type,
    field,
    rest,
    body,
    pathArguments: field.args.filter(inPath),
    queryArguments: field.args.filter((arg) => arg !== body && !inPath(arg) && !isHeader(arg)),
    expansions: type === 'Query' && isStored ? expand(result.name) : [],
    isConditional: field.args.some(isHeader),
    hasEtag: rest.status !== 204 && isStored,
  }
}

/**
 * The operations that the root fields of a schema declare, in its order.
 *
 * @param expanded the same schema with the fields that `expand` adds
 * @throws Error if two of them have the same method and path
 */
export function operationsOf(schema: GraphQLSchema, expanded: GraphQLSchema): Operation[] {
  const expand = (type: string) => expansionsOf(type, schema, expanded)
  const operations = [schema.getQueryType(), schema.getMutationType()].flatMap((type) =>
    Object.values(type?.getFields() ?? {}).flatMap((field) => {
      const { rest } = field.extensions
      return rest ? [createOperation(type?.name as Operation['type'], field, rest, expand)] : []
    }),
  )
  const known = new Map<string, string>()
  for (const { name, rest } of operations) {
    const address = `${rest.method} ${rest.path.replace(/\{\w+\}/g, '{}')}`
    const other = known.get(address)
    if (other)
      throw new Error(`${other} and ${name} are both ${rest.method} ${rest.path}: each needs a path of its own`)
    known.set(address, name)
  }
  return operations
}

/** What a batch costs, by its items, of which at most `cap` count; 1 if it is no list. */
export const batchUnits = (items: unknown, cap = MAX_BATCH) =>
  Array.isArray(items) ? Math.max(1, Math.ceil(Math.min(items.length, cap) / ITEMS_PER_UNIT)) : 1

/** Paths as a tree: of `pet` and `pet.category`, `{ pet: { category: {} } }`. */
export interface Tree {
  [name: string]: Tree
}

export function treeOf(paths: readonly string[]): Tree {
  const tree: Tree = {}
  for (const path of paths)
    path.split('.').reduce((branch, name) => {
      branch[name] ??= {}
      return branch[name]
    }, tree)
  return tree
}

/** Without those that a longer one includes: `pet.category` also returns the pet. */
export const longestOf = (expansions: readonly string[]) =>
  expansions.filter((path) => !expansions.some((other) => other.startsWith(`${path}.`)))

/** Names in a query string: `expand=category&expand=inventory`. */
export const expandQuery = (names: readonly string[]) => names.map((name) => `${EXPAND}=${name}`).join('&')

/** A path template with its values: `/pets/{id}` and `{ id: 7 }` give `/pets/7`. */
export const fill = (template: string, values: Record<string, unknown>) =>
  template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values[name])))
