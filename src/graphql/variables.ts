import {
  type DocumentNode,
  GraphQLError,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  isInputType,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  TypeInfo,
  typeFromAST,
  visit,
  visitWithTypeInfo,
} from 'graphql'
import { type Input, judge, Problems, pathText } from '../../schema/problems.js'

/** The arguments and input fields that take each variable of a document: they have rules for its value. */
function usesOf(schema: GraphQLSchema, document: DocumentNode): Map<string, Input> {
  const uses = new Map<string, Input>()
  const types = new TypeInfo(schema)
  const visitor = visitWithTypeInfo(types, {
    Variable({ name }, _key, parent) {
      const node = parent && 'kind' in parent ? parent : undefined
      const input = getNamedType(types.getParentInputType())
      const field =
        node?.kind === Kind.OBJECT_FIELD && isInputObjectType(input) ? input.getFields()[node.name.value] : undefined
      const argument = node?.kind === Kind.ARGUMENT ? types.getArgument() : field
      if (argument) uses.set(name.value, argument)
    },
  })
  visit(document, visitor)
  return uses
}

/** Errors that an answer lists, as graphql-js does. */
const MAX_ERRORS = 50

/** An error for everything that is wrong with the variables of an operation, by type and by rule. */
export function variableErrors(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  values: Record<string, unknown> = {},
): GraphQLError[] {
  const uses = usesOf(schema, document)
  const errors: GraphQLError[] = []
  for (const node of operation.variableDefinitions ?? []) {
    const name = node.variable.name.value
    const type = typeFromAST(schema, node.type) as GraphQLInputType | undefined
    if (!isInputType(type)) continue
    const problems = new Problems()
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    const use = uses.get(name)
    if (value === null && !use && !isNonNullType(type)) continue
    const input = { name, type, extensions: use?.extensions ?? {} }
    problems.collect(() => {
      if (value !== undefined) judge(input, value, (path) => `$${pathText([name, ...path])}`, problems)
      else if (isNonNullType(type) && !node.defaultValue) problems.add(`$${name} is required; send it in variables`)
    })
    for (const sentence of problems.sentences) errors.push(new GraphQLError(sentence, { nodes: node }))
    if (errors.length > MAX_ERRORS)
      return [...errors.slice(0, MAX_ERRORS), new GraphQLError('There are more problems.')]
  }
  return errors
}
