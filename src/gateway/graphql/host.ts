import type { GraphQLError, GraphQLSchema } from 'graphql'
import { createYoga, type Plugin } from 'graphql-yoga'
import type { Context } from '../../../schema/kit/context.js'
import type { Executed } from '../../engines/executor/index.js'
import type { Variables } from './cost.js'
import type { KnownDocument } from './documents.js'

/** An operation of a document that is known, and how it is executed. */
export interface Execution {
  source: string
  document: KnownDocument
  operationName: string | undefined
  variables: Variables
  execute(context: Context, variables: Variables): Executed | Promise<Executed>
}

/** Answers each phase from what is known of the document, instead of parsing and validating it again. */
const useKnownDocuments: Plugin<{ execution: Execution }> = {
  onParse: ({ context: { execution }, setParseFn }) => setParseFn(() => execution.document.node),
  onValidate: ({ context: { execution }, setResult }) => setResult(execution.document.errors),
  onExecute: ({ context: { execution }, setExecuteFn }) =>
    setExecuteFn(({ contextValue, variableValues }) => execution.execute(contextValue, variableValues)),
}

/**
 * Yoga is here the host of plugins for Envelop: a plugin that watches or changes parsing, validation, the context or the
 * execution works as documented. What Yoga does around these phases is off, because the steps in app.ts do it for both
 * surfaces (docs/decisions/0018).
 */
export function createHost(schema: GraphQLSchema) {
  const { getEnveloped } = createYoga<object, Context>({
    schema,
    plugins: [useKnownDocuments],
    parserAndValidationCache: false,
    maskedErrors: false,
    graphiql: false,
    landingPage: false,
    cors: false,
    multipart: false,
    maxRequestBodySize: false,
    logging: false,
  })

  /** Executes an operation in the phases of Envelop. Rejects if the execution throws. */
  return async function run(execution: Execution, context: Context): Promise<Executed> {
    const { source, operationName, variables } = execution
    const phases = getEnveloped(Object.assign(context, { execution }))
    const document = phases.parse(source)
    const errors: readonly GraphQLError[] = phases.validate(phases.schema, document)
    if (errors.length > 0) return { errors }
    const contextValue = await phases.contextFactory()
    return phases.execute({ schema: phases.schema, document, contextValue, variableValues: variables, operationName })
  }
}
