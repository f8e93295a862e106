import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isListType,
} from 'graphql'
import { ITEMS_PER_UNIT, MAX_BATCH } from './input/rules.js'
import type { Rest } from './plugin.js'

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
  /** It takes If-Match. */
  isConditional: boolean
  /** Its result has an ETag, because it is stored. */
  hasEtag: boolean
}

function operationId(type: Operation['type'], { name, type: result }: GraphQLField<unknown, unknown>) {
  if (type === 'Mutation') return name
  return (isListType(getNullableType(result)) ? 'list' : 'get') + name.charAt(0).toUpperCase() + name.slice(1)
}

function createOperation(type: Operation['type'], field: GraphQLField<unknown, unknown>, rest: Rest): Operation {
  const body = field.args.find((arg) => isInputObjectType(getNamedType(arg.type)))
  const inPath = ({ name }: GraphQLArgument) => rest.path.includes(`{${name}}`)
  const isHeader = ({ name }: GraphQLArgument) => name === 'ifMatch'
  return {
    name: field.name,
    operationId: operationId(type, field),
    type,
    field,
    rest,
    body,
    pathArguments: field.args.filter(inPath),
    queryArguments: field.args.filter((arg) => arg !== body && !inPath(arg) && !isHeader(arg)),
    isConditional: field.args.some(isHeader),
    hasEtag: rest.status !== 204 && getNamedType(field.type).extensions.pothosPrismaModel !== undefined,
  }
}

/** The operations that the root fields of a schema declare, in its order. */
export const operationsOf = (schema: GraphQLSchema): Operation[] =>
  [schema.getQueryType(), schema.getMutationType()].flatMap((type) =>
    Object.values(type?.getFields() ?? {}).flatMap((field) => {
      const { rest } = field.extensions
      return rest ? [createOperation(type?.name as Operation['type'], field, rest)] : []
    }),
  )

/** What a batch costs, by its items, of which at most `cap` count; 1 if it is no list. */
export const batchUnits = (items: unknown, cap = MAX_BATCH) =>
  Array.isArray(items) ? Math.max(1, Math.ceil(Math.min(items.length, cap) / ITEMS_PER_UNIT)) : 1

/** A path template with its values: `/pets/{id}` and `{ id: 7 }` give `/pets/7`. */
export const fill = (template: string, values: Record<string, unknown>) =>
  template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values[name])))
