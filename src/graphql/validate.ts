import {
  type ASTVisitor,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  KnownArgumentNamesRule,
  specifiedRules,
  type ValidationContext,
  validate,
} from 'graphql'
import { didYouMean } from 'graphql/jsutils/didYouMean.js'
import { likelyNames } from '../../schema/input/problems.js'

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

const rules = specifiedRules.map((rule) => (rule === KnownArgumentNamesRule ? knownArgumentNames : rule))

/** The errors of a document that is within the limits. */
export const validateDocument = (schema: GraphQLSchema, document: DocumentNode) =>
  validate(schema, document, rules, { maxErrors: MAX_ERRORS })
