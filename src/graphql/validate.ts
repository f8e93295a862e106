import {
  type ASTVisitor,
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  GraphQLError,
  type GraphQLSchema,
  isAbstractType,
  Kind,
  type NameNode,
  OverlappingFieldsCanBeMergedRule,
  print,
  specifiedRules,
  UniqueArgumentNamesRule,
  UniqueVariableNamesRule,
  type ValidationContext,
  type ValidationRule,
  validate,
} from 'graphql'
import { sortValueNode } from 'graphql/utilities/sortValueNode.js'
import { fragmentsOf, MergedSelections, responseKey, type SelectedField, subselections } from './selection.js'

/** The most errors in a response. Each may cost a search for what the client could have meant. */
const MAX_ERRORS = 10

/** Reports the first repetition: graphql-js would look up the line of each. */
function reportRepeated(context: ValidationContext, what: string, names: NameNode[]) {
  const seen = new Map<string, NameNode>()
  for (const name of names) {
    const first = seen.get(name.value)
    if (first) {
      const message = `There can be only one ${what} named "${name.value}".`
      return context.reportError(new GraphQLError(message, { nodes: [first, name] }))
    }
    seen.set(name.value, name)
  }
}

function uniqueArguments(context: ValidationContext): ASTVisitor {
  const check = ({ arguments: given = [] }: FieldNode | DirectiveNode) =>
    reportRepeated(
      context,
      'argument',
      given.map(({ name }) => name),
    )
  return { Field: check, Directive: check }
}

const uniqueVariables = (context: ValidationContext): ASTVisitor => ({
  OperationDefinition: ({ variableDefinitions = [] }) =>
    reportRepeated(
      context,
      'variable',
      variableDefinitions.map(({ variable }) => variable.name),
    ),
})

const replaced: ValidationRule[] = [UniqueArgumentNamesRule, UniqueVariableNamesRule, OverlappingFieldsCanBeMergedRule]
const rules = [...specifiedRules.filter((rule) => !replaced.includes(rule)), uniqueArguments, uniqueVariables]

export interface Validation {
  errors: readonly GraphQLError[]
  /** Selections of the document with its fragments expanded: what a plan of its execution can hold at most. */
  expanded: number
}

/**
 * Validates a document that is within the limits. The rule of graphql-js about fields with equal response keys compares
 * each with each, for every selection that contains them. In a schema without abstract types it is enough to compare
 * each with the first.
 */
export function validateDocument(schema: GraphQLSchema, document: DocumentNode): Validation {
  const hasAbstractTypes = Object.values(schema.getTypeMap()).some(isAbstractType)
  const all = hasAbstractTypes ? [...rules, OverlappingFieldsCanBeMergedRule] : rules
  const errors = validate(schema, document, all, { maxErrors: MAX_ERRORS })
  if (errors.length > 0) return { errors, expanded: 0 }
  const conflicts: GraphQLError[] = []
  // Numbers, so that long arguments are compared once.
  const signatures = new Map<string, number>()
  const numbers = new Map<FieldNode, number>()
  function numberOf(node: FieldNode) {
    const signature = numbers.has(node) ? '' : signatureOf(node)
    const number = numbers.get(node) ?? signatures.get(signature) ?? signatures.size
    numbers.set(node, number)
    if (signature) signatures.set(signature, number)
    return number
  }

  const merged = new MergedSelections(fragmentsOf(document), (fields): true => {
    for (const selected of fields.values()) {
      const { node } = selected[0] as SelectedField
      const isOther = (other: SelectedField) => numberOf(other.node) !== numberOf(node)
      const other = selected.length === 1 || hasAbstractTypes ? undefined : selected.find(isOther)
      if (other && conflicts.length < MAX_ERRORS) conflicts.push(conflictError(node, other.node))
      const below = subselections(schema, selected)
      if (below.length > 0) merged.of(below)
    }
    return true
  })
  try {
    for (const definition of document.definitions)
      if (definition.kind === Kind.OPERATION_DEFINITION)
        merged.of([{ set: definition.selectionSet, type: schema.getRootType(definition.operation)?.name }])
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error
    conflicts.push(error)
  }
  return { errors: conflicts, expanded: merged.expanded }
}

/** A field with its arguments as text, in which their order does not count. */
const signatureOf = ({ name, arguments: given = [] }: FieldNode) =>
  [
    name.value,
    ...given.map((argument) => `${argument.name.value}: ${print(sortValueNode(argument.value))}`).sort(),
  ].join()

const conflictError = (a: FieldNode, b: FieldNode) =>
  new GraphQLError(
    `Fields "${responseKey(a)}" conflict because they are different fields or have different arguments. Use different aliases on the fields to fetch both if this was intentional.`,
    { nodes: [a, b] },
  )
