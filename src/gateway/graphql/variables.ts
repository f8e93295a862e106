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
import { type Path, Problems, pathText } from '../../../schema/kit/input/problems.js'
import { type Input, judge, readValue, type Values } from '../../../schema/kit/input/values.js'

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
      type,
      /** Found when it is needed: for a list, or for a refusal. */
      get extensions() {
        known ??= usesOf(schema, document)
        return known.get(name)?.extensions ?? { nullable: true }
      },
    }
    const nameOf = (path: Path) => `$${pathText([name, ...path])}`
    return { name, node, input, nameOf }
  })

  return (values: Values = {}): { coerced: Values } | { errors: GraphQLError[] } => {
    const coerced: Values = Object.create(null)
    const described = { count: 0 }
    const found: Problems[] = []
    let count = 0
    for (const { name, node, input, nameOf } of variables) {
      const problems = new Problems(described)
      problems.collect(() => {
        if (Object.hasOwn(values, name)) coerced[name] = readValue(input, values[name], { problems, nameOf })
        else if (node.defaultValue) coerced[name] = valueFromAST(node.defaultValue, input.type)
        else if (isNonNullType(input.type)) problems.add(`$${name} is required; send it in variables`)
      })
      found.push(problems)
      count += problems.sentences.length
      if (count > MAX_ERRORS) break
    }
    if (count === 0) return { coerced }
    const errors = found.flatMap((problems, i) => {
      const { name, node, input, nameOf } = variables[i] as (typeof variables)[number]
      if (Object.hasOwn(values, name)) problems.collect(() => judge(input, coerced[name], { problems, nameOf }))
      return problems.sentences.map((sentence) => new GraphQLError(sentence, { nodes: node }))
    })
    const hasMore = errors.length > MAX_ERRORS || found.some((problems) => problems.hasMore)
    return { errors: hasMore ? [...errors.slice(0, MAX_ERRORS), new GraphQLError('There are more problems.')] : errors }
  }
}
