import {
  type DocumentNode,
  GraphQLError,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  TypeInfo,
  typeFromAST,
  valueFromAST,
  visit,
  visitWithTypeInfo,
} from 'graphql'
import { type Path, Problems, pathText } from '../../schema/input/problems.js'
import { type Input, REFUSED, readValue, refuse, type Values } from '../../schema/input/values.js'

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

/** Reads the variables of an operation of a valid document. graphql-js names those of a wrong type only. */
export function createVariables(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode) {
  let known: ReturnType<typeof usesOf> | undefined
  const variables = (operation.variableDefinitions ?? []).map((node) => {
    const name = node.variable.name.value
    const type = typeFromAST(schema, node.type) as GraphQLInputType
    const input: Input = {
      name,
      type,
      /** Found when it is needed: for a list, or for a refusal. */
      get extensions() {
        known ??= usesOf(schema, document)
        return known.get(name)?.extensions ?? { nullable: true }
      },
    }
    const nameOf = (path: Path) => `$${pathText([name, ...path])}`
    const read = (values: Values, into: Values, problems?: Problems) => {
      if (Object.hasOwn(values, name)) into[name] = readValue(input, values[name], nameOf, problems)
      else if (node.defaultValue) into[name] = valueFromAST(node.defaultValue, type)
      else if (isNonNullType(type)) refuse(problems, () => `$${name} is required; send it in variables`)
    }
    return { node, read }
  })

  /** An error for everything that is wrong, by type and by rule. */
  function errorsOf(values: Values): GraphQLError[] {
    const errors: GraphQLError[] = []
    const described = { count: 0 }
    let more = false
    for (const { node, read } of variables) {
      const problems = new Problems(described)
      problems.collect(() => read(values, {}, problems))
      for (const sentence of problems.sentences) errors.push(new GraphQLError(sentence, { nodes: node }))
      more ||= problems.hasMore || errors.length > MAX_ERRORS
      if (errors.length > MAX_ERRORS) break
    }
    return more ? [...errors.slice(0, MAX_ERRORS), new GraphQLError('There are more problems.')] : errors
  }

  return (values: Values = {}): { coerced: Values } | { errors: GraphQLError[] } => {
    const coerced: Values = Object.create(null)
    try {
      for (const { read } of variables) read(values, coerced)
      return { coerced }
    } catch (error) {
      if (error !== REFUSED) throw error
      return { errors: errorsOf(values) }
    }
  }
}
