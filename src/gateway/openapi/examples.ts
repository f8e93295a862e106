import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputObjectType,
  type GraphQLObjectType,
  type GraphQLType,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql'
import { expandedSchema, restSchema } from '../../../schema/index.js'
import { fieldsOf, type Operation, type Tree, treeOf } from '../../../schema/kit/operations.js'

// Examples follow from the declaration of a field and, where it has none, from its type. They agree with the sample
// data, so that a request made of them works as it is.

const scalars: Record<string, unknown> = {
  Int64: 1,
  Int: 1,
  String: 'text',
  Boolean: false,
  DateTime: '2026-12-24T18:00:00.000Z',
}

/** The type of an operation's body. */
export const inputOf = ({ body }: Operation) => body && (getNamedType(body.type) as GraphQLInputObjectType)

export const resultOf = ({ field }: Operation) => getNamedType(field.type) as GraphQLObjectType

/** @param like the type whose examples serve, where `type` is an input that creates or changes one */
export function exampleOf(type: GraphQLType, like?: GraphQLObjectType): unknown {
  const bare = getNullableType(type)
  if (isListType(bare)) return [exampleOf(bare.ofType, like)]
  if (isEnumType(bare)) return bare.getValues()[0]?.name
  if (!isObjectType(bare) && !isInputObjectType(bare)) return scalars[bare.name]
  const examples = like?.getFields() ?? {}
  return Object.fromEntries(
    Object.values(bare.getFields()).map((field) => [
      field.name,
      field.extensions.example ?? examples[field.name]?.extensions.example ?? exampleOf(field.type),
    ]),
  )
}

/** What an operation returns, or deletes. */
export const exampleResult = ({ type, extensions }: GraphQLField<unknown, unknown>) =>
  extensions.example ?? exampleOf(type)

/** @param field the operation of the argument: a required argument names what it returns */
export function exampleArgument({ name, type, extensions }: GraphQLArgument, field: GraphQLField<unknown, unknown>) {
  if (extensions.example !== undefined) return extensions.example
  const result = isNonNullType(type) ? (exampleResult(field) as Record<string, unknown>) : {}
  return result[name] ?? result.id ?? exampleOf(type)
}

/** What an operation returns. What it writes is what its body has. */
export function exampleAnswer(operation: Operation) {
  const result = exampleResult(operation.field)
  const items = [exampleBody(operation) ?? []].flat() as Record<string, unknown>[]
  const merge = (row: object, item: Record<string, unknown> = {}) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, item[name] ?? value]))
  return Array.isArray(result) ? result.map((row, i) => merge(row, items[i])) : merge(result as object, items[0])
}

/** The fields that `expand` adds to a type: each with the type of its object, and with what the tree has below it. */
export const expandedFields = (type: GraphQLObjectType, tree: Tree) =>
  Object.entries(tree).map(([name, below]) => {
    const field = fieldsOf(expandedSchema, type.name)[name] as GraphQLField<unknown, unknown>
    return { field, below, type: restSchema.getType(getNamedType(field.type).name) as typeof type }
  })

/** Examples of the objects that `expand` adds to one of a type. */
export const exampleObjects = (type: GraphQLObjectType, tree: Tree): Record<string, object> =>
  Object.fromEntries(
    expandedFields(type, tree).map(({ field, below, type }) => [
      field.name,
      { ...((field.extensions.example ?? exampleOf(type)) as object), ...exampleObjects(type, below) },
    ]),
  )

/** What a GET returns with everything that `expand` can name; undefined if that is nothing. */
export function exampleExpanded(operation: Operation) {
  const { expansions, field } = operation
  if (expansions.length === 0) return
  const objects = exampleObjects(resultOf(operation), treeOf(expansions))
  const result = exampleResult(field)
  return Array.isArray(result) ? result.map((row) => ({ ...row, ...objects })) : { ...(result as object), ...objects }
}

/** An example of each value in the path. */
export const exampleParams = ({ pathArguments, field }: Operation) =>
  Object.fromEntries(pathArguments.map((arg) => [arg.name, String(exampleArgument(arg, field))]))

/** Undefined if the operation has no body. */
export function exampleBody(operation: Operation) {
  const { body } = operation
  return body && exampleOf(body.type, resultOf(operation))
}
