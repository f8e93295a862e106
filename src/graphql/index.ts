import { type ExecutionResult, GraphQLError, type GraphQLSchema, getOperationAST, parse } from 'graphql'
import { createYoga, type GraphQLParams, type Plugin } from 'graphql-yoga'
import { LRUCache } from 'lru-cache'
import type { Context } from '../../schema/builder.js'
import { ApiError } from '../../schema/errors.js'
import type { Admission } from '../auth/authenticate.js'
import { parseJson, readJson } from '../http/body.js'
import type { Exchange, GatewayPlugin } from '../http/context.js'
import { graphqlMediaType, toApiError } from '../http/errors.js'
import type { Logger } from '../log.js'
import { MEDIA_TYPES } from '../rest/operations.js'
import { assertWithinLimits, MAX_TOKENS, price } from './limits.js'

interface GraphqlContext {
  exchange: Exchange
  params: GraphQLParams
}

export interface GraphqlOptions {
  schema: GraphQLSchema
  /** The path that clients ask for, base path included. */
  endpoint: string
  admission: Admission
  context: (exchange: Exchange) => Context
  maxBodyBytes: number
  log: Logger
}

const invalid = (message: string) => new ApiError('invalid_request', message)

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function fromJson(text: string | undefined, name: string) {
  if (!text) return undefined
  try {
    return parseJson(text)
  } catch {
    throw invalid(`${name} is not valid JSON.`)
  }
}

function fromQuery(query: URLSearchParams) {
  const { variables, extensions, operationName, ...params } = Object.fromEntries(query)
  return {
    ...params,
    operationName: operationName || undefined,
    variables: fromJson(variables, 'variables'),
    extensions: fromJson(extensions, 'extensions'),
  }
}

/** The parameters of a GraphQL request (GraphQL over HTTP, section 5), judged. */
async function readParams(request: Request, { method, query }: Exchange, max: number): Promise<GraphQLParams> {
  if (method !== 'GET' && method !== 'POST')
    throw new ApiError('method_not_allowed', 'GraphQL takes GET and POST.', { allow: 'GET, HEAD, POST' })
  const params = method === 'GET' ? fromQuery(query) : await readJson(request, { max, types: MEDIA_TYPES.POST ?? [] })
  if (!isObject(params)) throw invalid('The body must be a JSON object with a query; batches are not taken.')
  const { query: document, operationName, variables, extensions, ...others } = params
  const unknown = Object.keys(others)
  if (unknown.length > 0) throw invalid(`The parameter ${unknown[0]} is unknown.`)
  if (typeof document !== 'string') throw invalid('query must be a string.')
  if (operationName != null && typeof operationName !== 'string') throw invalid('operationName must be a string.')
  if (variables != null && !isObject(variables)) throw invalid('variables must be an object.')
  if (extensions != null && !isObject(extensions)) throw invalid('extensions must be an object.')
  return {
    query: document,
    operationName: operationName ?? undefined,
    variables: (variables as Record<string, unknown>) ?? undefined,
  }
}

/** An error as GraphQL shows it: where it happened, and the catalogue's code and status. */
function publicError(error: unknown, log: Logger, exchange: Exchange): GraphQLError {
  const { message, code, status } = toApiError(error, log, exchange)
  const { nodes, source, positions, path, extensions } = error instanceof GraphQLError ? error : ({} as GraphQLError)
  return new GraphQLError(message, {
    nodes,
    source,
    positions,
    path,
    extensions: { code, status, ...(extensions?.http ? { http: extensions.http } : {}) },
  })
}

/** The GraphQL surface: Yoga behind the same admission as REST. */
export function useGraphql({ schema, endpoint, admission, context, maxBodyBytes, log }: GraphqlOptions): GatewayPlugin {
  // Parsed once for its price and its execution. Bounded by size: a document may be as large as a body.
  const documents = new LRUCache<string, ReturnType<typeof parse>>({
    maxSize: 8_388_608,
    sizeCalculation: (_document, source) => source.length + 1,
  })

  function parsed(source: string) {
    const known = documents.get(source)
    if (known) return known
    try {
      const document = parse(source, { maxTokens: MAX_TOKENS })
      documents.set(source, document)
      return document
    } catch (error) {
      // Refused like any other limit: with 400, whatever media type the client accepts.
      if ((error as Error).message.startsWith('Syntax Error: Document contains more'))
        throw invalid(`The document has more than ${MAX_TOKENS} tokens.`)
      throw error
    }
  }

  const rules: Plugin<GraphqlContext> = {
    onRequestParse: ({ serverContext, setRequestParser }) =>
      setRequestParser(() => (serverContext as unknown as GraphqlContext).params),
    onParse: ({ setParseFn }) => setParseFn(parsed),
    onExecute({ args, setResultAndStopExecution }) {
      const operation = getOperationAST(args.document, args.operationName)
      try {
        if (operation) assertWithinLimits(args.schema, args.document, operation, args.variableValues ?? {})
      } catch (error) {
        setResultAndStopExecution({ errors: [withStatus(error as ApiError)] })
      }
    },
    onResultProcess({ result, setResult, serverContext }) {
      const { errors, ...rest } = result as ExecutionResult
      const { exchange } = serverContext as unknown as GraphqlContext
      if (errors) setResult({ errors: errors.map((error) => publicError(error, log, exchange)), ...rest })
    },
  }

  const yoga = createYoga<GraphqlContext, Context>({
    schema,
    graphqlEndpoint: endpoint,
    plugins: [rules],
    context: ({ exchange }) => context(exchange),
    parserAndValidationCache: { documentCache: documents, errorCache: new LRUCache({ max: 1 }) },
    // What Yoga would add here, the plugins of the gateway do for both surfaces.
    maskedErrors: false,
    graphiql: false,
    landingPage: false,
    cors: false,
    multipart: false,
    maxRequestBodySize: false,
    healthCheckEndpoint: '\0',
    logging: false,
  })

  return {
    async onRequest({ request, serverContext, endResponse, fetchAPI }) {
      const { exchange } = serverContext
      if (exchange.path !== '/graphql') return
      let params: GraphQLParams = {}
      let priced = { cost: 1, onlyQuota: false }
      let refusal: unknown
      try {
        params = await readParams(request, exchange, maxBodyBytes)
        priced = price(schema, parsed(params.query as string), params.operationName, params.variables)
      } catch (error) {
        refusal = error
      }
      // What cannot be priced costs 1. A syntax error goes on to Yoga, which tells what is wrong and where.
      await admission.admit(exchange, priced.cost, priced.onlyQuota)
      if (refusal instanceof ApiError) throw refusal
      // All that Yoga still asks of the request. It would answer any other Accept with an empty 406.
      const { method } = exchange
      const asked = new fetchAPI.Request(request.url, { method, headers: { accept: graphqlMediaType(request) } })
      endResponse(await yoga.handleRequest(asked, { exchange, params }))
    },
  }
}

/** Carries the HTTP status to Yoga, which else chooses one by the media type that the client accepts. */
function withStatus(error: ApiError) {
  return new GraphQLError(error.message, {
    originalError: error,
    extensions: { ...error.extensions, http: { status: error.status } },
  })
}
