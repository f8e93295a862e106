import {
  coerceInputValue,
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
import { type Input, judge, wrongLengthOf } from '../../schema/judge.js'
import { Problems, pathText } from '../../schema/problems.js'

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

/** Some value is wrong: `errors` then says what is wrong with all of them. */
const REFUSED = new Error()
const refuse = () => {
  throw REFUSED
}

type Values = Record<string, unknown>

/** Reads the variables of an operation of a valid document. graphql-js names those of a wrong type only. */
export function createVariables(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode) {
  const definitions = (operation.variableDefinitions ?? []).map((node) => {
    const name = node.variable.name.value
    return { node, name, type: typeFromAST(schema, node.type) as GraphQLInputType }
  })
  let known: ReturnType<typeof usesOf> | undefined
  /** Found when it is needed: for a list, or for a refusal. */
  const useOf = (name: string) => {
    known ??= usesOf(schema, document)
    return known.get(name)
  }
  const inputOf = ({ name, type }: Pick<Input, 'name' | 'type'>): Input => ({
    name,
    type,
    extensions: useOf(name)?.extensions ?? {},
  })

  /** @throws REFUSED */
  function coerceAll(values: Values): Values {
    const coerced: Values = Object.create(null)
    for (const definition of definitions) {
      const { node, name, type } = definition
      if (Object.hasOwn(values, name)) {
        const value = values[name]
        if (Array.isArray(value) && wrongLengthOf(inputOf(definition), value)) refuse()
        coerced[name] = coerceInputValue(value, type, refuse, true)
      } else if (node.defaultValue) coerced[name] = valueFromAST(node.defaultValue, type)
      else if (isNonNullType(type)) refuse()
    }
    return coerced
  }

  /** An error for everything that is wrong, by type and by rule. */
  function errorsOf(values: Values): GraphQLError[] {
    const errors: GraphQLError[] = []
    const described = { count: 0 }
    let more = false
    for (const definition of definitions) {
      const { node, name, type } = definition
      const value = Object.hasOwn(values, name) ? values[name] : undefined
      if (value === null && !useOf(name) && !isNonNullType(type)) continue
      const problems = new Problems(described)
      problems.collect(() => {
        if (value !== undefined) judge(inputOf(definition), value, (path) => `$${pathText([name, ...path])}`, problems)
        else if (isNonNullType(type) && !node.defaultValue) problems.add(`$${name} is required; send it in variables`)
      })
      for (const sentence of problems.sentences) errors.push(new GraphQLError(sentence, { nodes: node }))
      more ||= problems.hasMore || errors.length > MAX_ERRORS
      if (errors.length > MAX_ERRORS) break
    }
    return more ? [...errors.slice(0, MAX_ERRORS), new GraphQLError('There are more problems.')] : errors
  }

  return (values: Values = {}): { coerced: Values } | { errors: GraphQLError[] } => {
    try {
      return { coerced: coerceAll(values) }
    } catch (error) {
      if (error !== REFUSED) throw error
      return { errors: errorsOf(values) }
    }
  }
}
