import { type ExecutionResult, GraphQLError, type GraphQLSchema } from 'graphql'
import { createYoga, type Plugin } from 'graphql-yoga'
import type { Context } from '../../schema/builder.js'
import { ApiError } from '../../schema/errors.js'
import type { RequestContext } from '../http/context.js'
import { graphqlMediaType, toApiError } from '../http/errors.js'
import { type HttpResponse, jsonResponse } from '../http/response.js'
import type { Idempotency } from '../idempotency/index.js'
import type { Logger } from '../log.js'
import { createDocuments } from './documents.js'
import { DEFAULT_COST } from './limits.js'
import { type GraphqlParameters, readParameters } from './parameters.js'

export interface GraphqlOptions {
  schema: GraphQLSchema
  consume: (context: RequestContext, cost: number, answersBanned?: boolean) => Promise<void>
  createContext: (context: RequestContext, prisma: Context['prisma']) => Context
  idempotency: Idempotency
  maxBodyBytes: number
  log: Logger
}

/** An error as GraphQL shows it: where it happened, and the catalogue's code and status. */
function publicError(error: GraphQLError, log: Logger, context: RequestContext) {
  const { message, code, status } = toApiError(error, log, context)
  const { nodes, source, positions, path } = error
  return new GraphQLError(message, { nodes, source, positions, path, extensions: { code, status } })
}

/** Replaces Yoga's own parsing, validation and execution by what is known of the document. */
const useKnownDocuments = (
  documents: ReturnType<typeof createDocuments>,
): Plugin<Context & { params: GraphqlParameters }> => ({
  onParse: ({ setParseFn }) => setParseFn((source) => documents.memo(String(source)).node),
  onValidate: ({ context, setResult }) => setResult(documents.memo(context.params.query).errors),
  onExecute: ({ args, context, setExecuteFn }) => {
    const operation = documents.memo(context.params.query).operation(args.operationName ?? undefined)
    if (operation)
      setExecuteFn((run) =>
        operation.execute({ contextValue: run.contextValue, variables: { raw: run.variableValues } }),
      )
  },
})

/** The GraphQL surface: Yoga executes parameters that have been read and whose cost is paid. */
export function createGraphql({ schema, consume, createContext, idempotency, maxBodyBytes, log }: GraphqlOptions) {
  const documents = createDocuments(schema)
  const yoga = createYoga<object, Context>({
    schema,
    plugins: [useKnownDocuments(documents)],
    parserAndValidationCache: false,
    // What Yoga would add here, the steps in app.ts do for both surfaces.
    maskedErrors: false,
    graphiql: false,
    landingPage: false,
    cors: false,
    multipart: false,
    maxRequestBodySize: false,
    logging: false,
  })

  /** Refuses what the document itself shows to be wrong, once its cost is paid. */
  function assertOperation(parameters: GraphqlParameters, method: string) {
    const document = documents.memo(parameters.query)
    const operation = document.operation(parameters.operationName)
    if (!operation) throw new ApiError('invalid_request', 'Could not determine what operation to execute.')
    if (operation.definition.operation === 'mutation' && method === 'GET')
      throw new ApiError('method_not_allowed', 'A mutation must be sent by POST.', { allow: 'POST' })
    if (document.errors.length === 0) operation.assertWithinLimits(parameters.variables)
  }

  function respond({ errors, ...result }: ExecutionResult, context: RequestContext): HttpResponse {
    const mediaType = graphqlMediaType(context)
    const shown = errors && { errors: errors.map((error) => publicError(error, log, context)) }
    // GraphQL over HTTP, section 6.4: the status of a request error shows in GraphQL's own media type alone.
    const status = errors && !('data' in result) && mediaType !== 'application/json' ? 400 : 200
    return jsonResponse(JSON.stringify({ ...shown, ...result }), status, {
      'content-type': `${mediaType}; charset=utf-8`,
    })
  }

  return async function answer(context: RequestContext): Promise<HttpResponse> {
    let parameters: GraphqlParameters | undefined
    let cost = DEFAULT_COST
    let failure: unknown
    try {
      parameters = await readParameters(context, maxBodyBytes)
      cost = documents.memo(parameters.query).operation(parameters.operationName)?.cost(parameters.variables) ?? cost
    } catch (error) {
      failure = error
    }
    await consume(context, cost.cost, cost.onlyQuota)
    if (failure instanceof GraphQLError && !(failure instanceof ApiError))
      return respond({ errors: [failure] }, context)
    if (failure || !parameters) throw failure
    assertOperation(parameters, context.method)
    const params = parameters
    return idempotency.once(context, async (prisma) => {
      const result = await yoga.getResultForParams(
        // No plugin in use reads the request.
        { params, request: undefined as unknown as Request },
        createContext(context, prisma),
      )
      return { response: respond(result as ExecutionResult, context) }
    })
  }
}
