import {
  type ASTVisitor,
  type DocumentNode,
  type FieldNode,
  FieldsOnCorrectTypeRule,
  GraphQLError,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  KnownArgumentNamesRule,
  OperationTypeNode,
  specifiedRules,
  type ValidationContext,
  ValuesOfCorrectTypeRule,
  validate,
} from 'graphql'
import { didYouMean } from 'graphql/jsutils/didYouMean.js'
import { likelyNames } from '../../../schema/kit/input/problems.js'

/** The most errors in a response. Each may cost a search for what the client could have meant. */
const MAX_ERRORS = 10

/** The rule of graphql-js, which does not know what other APIs call an argument. */
const knownArgumentNames = (context: ValidationContext): ASTVisitor => ({
  ...KnownArgumentNamesRule(context),
  Argument(node) {
    const field = context.getFieldDef()
    if (!field || context.getArgument()) return
    const known = field.args.map(({ name }) => name)
    const what = `"${node.name.value}" on field "${context.getParentType()?.name}.${field.name}"`
    const hint = didYouMean(likelyNames(node.name.value, known))
    context.reportError(new GraphQLError(`Unknown argument ${what}.${hint}`, { nodes: node }))
  },
})

/** The rule of graphql-js, which does not know that a field may be one of another operation type. */
function fieldsOnCorrectType(context: ValidationContext): ASTVisitor {
  const schema = context.getSchema()
  const { Field: check } = FieldsOnCorrectTypeRule(context) as { Field(node: FieldNode): void }
  const roots = [OperationTypeNode.QUERY, OperationTypeNode.MUTATION]
  return {
    Field(node) {
      const parent = context.getParentType()
      const { value: name } = node.name
      const isRoot = roots.some((type) => schema.getRootType(type) === parent)
      const meant =
        isRoot && !context.getFieldDef() && roots.find((type) => schema.getRootType(type)?.getFields()[name])
      if (!meant) return check(node)
      const hint = `Did you mean "${meant} { ${name} ... }"?`
      context.reportError(
        new GraphQLError(`Cannot query field "${name}" on type "${parent}". ${hint}`, { nodes: node }),
      )
    },
  }
}

/** graphql-js has no rule for it: it refuses the operation when it executes, which the service does itself. */
const knownOperationTypes = (context: ValidationContext): ASTVisitor => ({
  OperationDefinition(node) {
    if (context.getSchema().getRootType(node.operation)) return
    context.reportError(new GraphQLError(`There is no ${node.operation}: send a query or a mutation.`, { nodes: node }))
  },
})

/** Longer than the values of all enumerations: what follows says nothing about which one was meant. */
const MAX_SEARCHED = 100

/** The rule of graphql-js, which searches for the values that a text is like, however long that is. */
function valuesOfCorrectType(context: ValidationContext): ASTVisitor {
  const { StringValue, EnumValue, ...rule } = ValuesOfCorrectTypeRule(context) as Record<
    string,
    (node: unknown) => void
  >
  const shorten = <Node extends { value: string }>(node: Node) =>
    isEnumType(getNamedType(context.getInputType())) ? { ...node, value: node.value.slice(0, MAX_SEARCHED) } : node
  return {
    ...rule,
    StringValue: (node) => StringValue?.(shorten(node)),
    EnumValue: (node) => EnumValue?.(shorten(node)),
  }
}

const own = new Map([
  [FieldsOnCorrectTypeRule, fieldsOnCorrectType],
  [KnownArgumentNamesRule, knownArgumentNames],
  [ValuesOfCorrectTypeRule, valuesOfCorrectType],
])
const rules = [knownOperationTypes, ...specifiedRules.map((rule) => own.get(rule) ?? rule)]

/** The errors of a document that is within the limits. */
export const validateDocument = (schema: GraphQLSchema, document: DocumentNode) =>
  validate(schema, document, rules, { maxErrors: MAX_ERRORS })
