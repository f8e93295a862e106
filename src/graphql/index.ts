import { type ExecutionResult, GraphQLError, type GraphQLFormattedError, type GraphQLSchema } from 'graphql'
import { createYoga, type Plugin } from 'graphql-yoga'
import type { Context } from '../../schema/builder.js'
import { ApiError } from '../../schema/errors.js'
import { requireWriteAccess } from '../auth/index.js'
import { AnswerTooLong } from '../execute/executor.js'
import type { Cancelled } from '../execute/fields.js'
import type { RequestContext } from '../http/context.js'
import { graphqlMediaType, toApiError, unavailable } from '../http/errors.js'
import { type HttpResponse, jsonResponse } from '../http/response.js'
import { type Idempotency, readIdempotencyKey } from '../idempotency/index.js'
import type { Logger } from '../log.js'
import { DEFAULT_COST, MAX_OBJECTS, type Variables } from './cost.js'
import { createDocumentCache, KnownDocument, type KnownOperation } from './documents.js'
import { type GraphqlParameters, readParameters } from './parameters.js'
import { DocumentLimitError } from './selection.js'

/** The longest response, in bytes. That of a mutation is cut off much later: its change was made. */
const MAX_ANSWER = 8_388_608
const MAX_MUTATION_ANSWER = 8 * MAX_ANSWER
/** Errors that an answer lists. */
const MAX_ERRORS = 100
/** How long an execution may take. */
const DEADLINE_MS = 10_000

export interface GraphqlOptions {
  schema: GraphQLSchema
  consume: (context: RequestContext, cost: number, advice?: (units: number) => string) => Promise<void>
  createContext: (context: RequestContext, transaction?: Context['prisma']) => Context
  idempotency: Idempotency
  log: Logger
  deadlineMs?: number
}

const answerTooLong = (figure = '') =>
  new ApiError(
    'invalid_request',
    `The response would be longer than the allowed ${MAX_ANSWER} bytes${figure}. Select fewer fields or smaller pages.`,
  )

const interrupted = (message: string) => new ApiError('unavailable', message, unavailable().headers)

/** A request whose cost is known. */
interface KnownRequest {
  parameters: GraphqlParameters
  document: KnownDocument
  operation: KnownOperation
}

/** An error as GraphQL shows it: where it happened, and the catalogue's code and status. */
function publicError(error: GraphQLError, log: Logger, context: RequestContext): GraphQLFormattedError {
  const { message, code, status } = toApiError(error, log, context)
  context.refusal ??= code
  const { locations, path } = error
  return { message, locations, path, extensions: { code, status } }
}

/** The first errors, and how many more there are. */
function publicErrors(errors: readonly GraphQLError[], log: Logger, context: RequestContext) {
  const shown = errors.slice(0, MAX_ERRORS).map((error) => publicError(error, log, context))
  const more = errors.length - shown.length
  if (more === 0) return shown
  return [...shown, { message: `There are ${more} more errors.`, extensions: { code: 'invalid_request', status: 400 } }]
}

const isMutation = ({ operation }: KnownRequest) => operation.definition.operation === 'mutation'

/** Replaces Yoga's parsing, validation and execution by the cached results for the document. */
const useKnownDocuments: Plugin<Context & { known: KnownRequest; cancelled: Cancelled }> = {
  onParse: ({ context: { known }, setParseFn }) => setParseFn(() => known.document.node),
  onValidate: ({ context: { known }, setResult }) => setResult(known.document.errors),
  onExecute: ({ context: { known, cancelled }, setExecuteFn }) =>
    setExecuteFn(({ contextValue, variableValues }) =>
      known.operation.execute(variableValues as Variables, {
        contextValue,
        cancelled,
        maxLength: isMutation(known) ? MAX_MUTATION_ANSWER : MAX_ANSWER,
      }),
    ),
}

/** The GraphQL surface: Yoga executes documents that are within the limits and whose cost was taken from the quota. */
export function createGraphql(options: GraphqlOptions) {
  const { schema, consume, createContext, idempotency, log, deadlineMs = DEADLINE_MS } = options
  const documents = createDocumentCache()
  const yoga = createYoga<object, Context>({
    schema,
    plugins: [useKnownDocuments],
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

  function readRequest(context: RequestContext): KnownRequest {
    const parameters = readParameters(context)
    const document = documents.get(parameters.query) ?? new KnownDocument(schema, parameters.query)
    const operation = document.operation(parameters.operationName)
    context.operationName = operation.name
    return { parameters, document, operation }
  }

  /** Charges one unit for a request whose cost is unknown. Errors that come before the quota are returned first. */
  async function chargeRefused(context: RequestContext, refusal: unknown): Promise<void> {
    const isBeforeQuota =
      refusal instanceof DocumentLimitError || (refusal instanceof ApiError && [405, 413, 415].includes(refusal.status))
    await consume(context, DEFAULT_COST.units).catch((error) => {
      if (!isBeforeQuota || error.status !== 429) throw error
    })
  }

  /** Takes the cost of the operation from the quota. An operation that is refused here costs one unit. */
  async function pay(context: RequestContext, request: KnownRequest): Promise<void> {
    const { document, operation } = request
    const { query, variables } = request.parameters
    const { units, objects } = operation.cost(variables)
    if (objects > MAX_OBJECTS) {
      const fitting = operation.fittingLimit(variables, (cost) => cost.objects <= MAX_OBJECTS)
      const refusal = new DocumentLimitError(
        `The operation could return ${objects} objects; at most ${MAX_OBJECTS} are allowed. ${fitting}`,
      )
      await chargeRefused(context, refusal)
      throw refusal
    }
    await consume(context, units, (most) => operation.fittingLimit(variables, (cost) => cost.units <= most))
    const isValid = document.errors.length === 0
    // Only what can run is free.
    if (units === 0 && !isValid) await consume(context, DEFAULT_COST.units)
    if (units > 0 && isValid && !documents.has(query)) documents.set(query, document)
  }

  /** Executes until the deadline, or until the client disconnects. */
  async function execute(request: KnownRequest, context: RequestContext, transaction?: Context['prisma']) {
    const end = performance.now() + deadlineMs
    const cancelled: Cancelled = () =>
      context.head.socket.destroyed
        ? interrupted('The client has disconnected.')
        : performance.now() > end
          ? interrupted(
              `The operation took longer than ${deadlineMs / 1000} seconds. Select fewer fields or smaller pages.`,
            )
          : undefined
    const result = await yoga.getResultForParams(
      // No plugin in use reads Yoga's own request.
      { params: request.parameters, request: undefined as unknown as Request },
      Object.assign(createContext(context, transaction), { known: request, cancelled }),
    )
    return result as ExecutionResult
  }

  function respond({ errors, ...result }: ExecutionResult, context: RequestContext): HttpResponse {
    const mediaType = graphqlMediaType(context)
    const headers: Record<string, string> = { 'content-type': `${mediaType}; charset=utf-8` }
    const shown = errors && publicErrors(errors, log, context)
    const missing = shown?.filter(({ extensions }) => extensions?.code === 'unavailable') ?? []
    if (missing.length > 0) {
      Object.assign(headers, unavailable().headers)
      // There is neither a value nor another error.
      if (missing.length === shown?.length && Object.values(result.data ?? {}).every((value) => value === null))
        return jsonResponse(JSON.stringify({ errors: shown }), 503, headers)
    }
    // GraphQL over HTTP, section 6.4: the status of a request error shows in GraphQL's own media type alone.
    const status = errors && !('data' in result) && mediaType !== 'application/json' ? 400 : 200
    return jsonResponse(JSON.stringify(shown ? { errors: shown, ...result } : result), status, headers)
  }

  async function mutate(context: RequestContext, request: KnownRequest): Promise<HttpResponse> {
    if (context.method === 'GET')
      throw new ApiError('method_not_allowed', 'A mutation must be sent by POST.', { allow: 'POST' })
    requireWriteAccess(context)
    const key = readIdempotencyKey(context)
    if (key === undefined || request.document.errors.length > 0)
      return respond(await execute(request, context), context)
    const { fields } = request.operation.cost(request.parameters.variables)
    if (fields !== 1)
      throw new ApiError(
        'invalid_request',
        `With an Idempotency-Key, an operation must have exactly one mutation field; this one has ${fields}.`,
      )
    const perform = async (transaction: Context['prisma']) => {
      const result = await execute(request, context, transaction)
      const response = respond(result, context)
      const isRefused = result.errors && Object.values(result.data ?? {}).every((value) => value === null)
      return { response, refusal: isRefused ? context.refusal : undefined }
    }
    return idempotency.once(context, key, perform, request.operation.row(request.parameters.variables))
  }

  return async function answer(context: RequestContext): Promise<HttpResponse> {
    let request: KnownRequest
    try {
      request = readRequest(context)
    } catch (error) {
      await chargeRefused(context, error)
      if (error instanceof GraphQLError && !(error instanceof ApiError)) return respond({ errors: [error] }, context)
      throw error
    }
    await pay(context, request)
    if (isMutation(request)) return mutate(context, request)
    const result = await execute(request, context)
    if (result.errors?.some(({ originalError }) => originalError instanceof AnswerTooLong)) throw answerTooLong()
    const response = respond(result, context)
    const bytes = Buffer.byteLength(response.body as string)
    if (bytes > MAX_ANSWER) throw answerTooLong(` (it has ${bytes})`)
    return response
  }
}
