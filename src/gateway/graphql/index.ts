import type { GraphQLSchema } from 'graphql'
import { ApiError, invalidRequest } from '../../../schema/kit/errors.js'
import { MAX_TEXT } from '../../../schema/kit/input/rules.js'
import { type Cancelled, type Executed, type Isolate, pause } from '../../engines/executor/index.js'
import { addToSpan, inSpan, type Logger } from '../../engines/observe/index.js'
import type { Query } from '../../engines/postgres/index.js'
import type { CreateResolverContext, CreateTransact } from '../context/index.js'
import { type Body, type HttpRequest, unavailable } from '../http/index.js'
import { type Idempotency, readIdempotencyKey, undoing } from '../idempotency/index.js'
import { type Caller, type QuotaDecision, requireWriteAccess } from '../keys/index.js'
import type { ReadRequest, Reply } from '../reply/index.js'
import { LIMITS } from './cost.js'
import { createDocuments, createPersisted } from './document-caches.js'
import { KnownDocument, type KnownOperation } from './documents.js'
import { createHost, type Execution } from './host.js'
import { isShort, MAX_FREE_REQUEST, MAX_FREE_TOKENS } from './limits.js'
import { type GraphqlParameters, lengthOf, readParameters } from './parameters.js'
import { createResponses, hasNoValue, PersistedQueryNotFound, ResponseTooLong } from './responses.js'

/** The longest response, in bytes; of a mutation, in characters. */
const MAX_RESPONSE = 8_388_608
/** The longest value of a field, in characters of JSON, which can take six for one. */
const MAX_VALUE = 6 * MAX_TEXT
/** How long an execution may take. */
const DEADLINE_MS = 10_000

export { costOf, isLimit } from './cost.js'
export { MAX_FREE_REQUEST } from './limits.js'

export interface GraphqlOptions {
  schema: GraphQLSchema
  createContext: CreateResolverContext
  createTransact: CreateTransact
  idempotency: Idempotency
  log: Logger
  deadlineMs?: number
}

const interrupted = (message: string) => new ApiError('unavailable', message, unavailable().headers)

/** An operation of a document within the limits, and what the client sent with it. */
interface Call extends GraphqlParameters {
  request: HttpRequest
  body: Body
  query: string
  document: KnownDocument
  operation: KnownOperation
}

/** An error that is not about the values of a request, but about the request itself: it comes before the quota. */
const isBeforeQuota = (error: unknown) => error instanceof ApiError && [405, 413, 415].includes(error.status)

/** The GraphQL surface: executes documents that are within the limits and whose cost was taken from the quota. */
export function createGraphql(options: GraphqlOptions) {
  const { schema, createContext, createTransact, idempotency, log, deadlineMs = DEADLINE_MS } = options
  const { resultOf, refuse } = createResponses(log)
  const documents = createDocuments()
  const persisted = createPersisted()
  const run = createHost(schema)

  function readCall(request: HttpRequest, body: Body, maxBytes: number | undefined): Call {
    const { query: sent, hash, operationName, variables } = readParameters(request, body, maxBytes)
    const query = sent ?? persisted.get(hash as string)
    if (query === undefined) throw new PersistedQueryNotFound()
    if (maxBytes !== undefined && !isShort(query)) throw unavailable()
    const maxTokens = maxBytes === undefined ? undefined : MAX_FREE_TOKENS
    const document = documents.get(query) ?? new KnownDocument(schema, query, maxTokens)
    const operation = document.operation(operationName)
    return { request, body, query, hash, operationName, variables, document, operation }
  }

  /**
   * The operation and its cost. One that cannot run costs one unit.
   *
   * @param maxBytes how many bytes are read to find a free operation; undefined if any operation is read
   */
  function read(request: HttpRequest, body: Body, maxBytes: number | undefined): ReadRequest {
    let operationName: string | undefined
    try {
      const call = readCall(request, body, maxBytes)
      const { query, hash, variables, document, operation } = call
      operationName = operation.name
      addToSpan('graphql.operation.type', operation.definition.operation)
      const cost = operation.cost(variables)
      const isFree = cost.units === 0 && operation.isSmall && lengthOf(request, body) <= MAX_FREE_REQUEST
      if (maxBytes !== undefined && !isFree) throw unavailable()
      for (const [figure, max, verb, what] of LIMITS)
        if (cost[figure] > max) {
          const fitting = operation.fittingLimit(variables, (cost) => cost[figure] <= max)
          throw invalidRequest(`The operation ${verb} ${cost[figure]} ${what}; at most ${max} are allowed. ${fitting}`)
        }
      return {
        operationName,
        units: isFree ? 0 : Math.max(1, cost.units),
        advice: (most) => operation.fittingLimit(variables, (cost) => cost.units <= most),
        isRead: !operation.isMutation,
        run(caller, quota) {
          const isValid = inSpan('validate', () => document.errors.length === 0)
          // Free operations can be sent by a key that has nothing left: they share one room.
          const holder = isFree ? 'free' : String(caller.key.id)
          if (isValid) documents.keep(query, document, holder)
          if (isValid && hash !== undefined) persisted.keep(hash, query, holder)
          return operation.isMutation ? mutate(call, caller, quota) : ask(call, caller, quota)
        },
      }
    } catch (error) {
      return { operationName, units: 1, isRefusedFirst: isBeforeQuota(error), run: async () => refuse(error, request) }
    }
  }

  async function ask(call: Call, caller: Caller, quota: Promise<QuotaDecision>): Promise<Reply> {
    const executed = await execute(call, caller, quota)
    const result = resultOf(executed, call.request)
    const bytes = Buffer.byteLength(result.response.body as string)
    if (bytes > MAX_RESPONSE) throw new ResponseTooLong(MAX_RESPONSE, ` (it has ${bytes})`)
    return result
  }

  async function mutate(call: Call, caller: Caller, quota: Promise<QuotaDecision>): Promise<Reply> {
    const { request, variables, document, operation } = call
    if (request.method === 'GET')
      throw new ApiError('method_not_allowed', 'A mutation must be sent by POST.', { allow: 'POST' })
    requireWriteAccess(caller)
    const key = readIdempotencyKey(request)
    const { isAtomic, readsBelow } = operation
    const { fields, completed, letters } = operation.cost(variables)
    // Without fields there is nothing to perform once, or to undo.
    if (document.errors.length > 0 || (isAtomic ? fields === 0 : key === undefined)) {
      const needsUndo = readsBelow || letters + MAX_VALUE * completed > MAX_RESPONSE
      return resultOf(
        await execute(call, caller, quota, needsUndo ? { isolate: isolateFor(caller, quota) } : {}),
        request,
      )
    }
    if (fields !== 1 && !isAtomic)
      throw invalidRequest(
        `With an Idempotency-Key, an operation must have exactly one mutation field or @atomic; this one has ${fields} fields.`,
      )
    const perform = async (query: Query) => {
      const executed = await execute(call, caller, quota, { query })
      const { data, errors } = executed
      const isRefused = errors !== undefined && (isAtomic || hasNoValue(executed))
      const isWithoutData = isAtomic && errors !== undefined && data !== undefined
      return { isRefused, ...resultOf(isWithoutData ? { data: null, errors: errors.slice(0, 1) } : executed, request) }
    }
    const rows = operation.rows(variables)
    if (key === undefined) return createTransact(caller)((query, undo) => undoing(undo, () => perform(query)), { rows })
    const { name: operationName, isBatch } = operation
    const keyed = { request, body: bodyOf(call), caller, operationName, rows, isBatch }
    return idempotency.once(keyed, key, perform)
  }

  function isolateFor(caller: Caller, quota: Promise<QuotaDecision>): Isolate {
    const transact = createTransact(caller)
    return (work) => transact((query, undo) => undoing(undo, () => work(createContext(caller, quota, query))))
  }

  /** Executes until the deadline, or until the client disconnects. */
  async function execute(
    call: Call,
    caller: Caller,
    quota: Promise<QuotaDecision>,
    { query, isolate }: { query?: Query; isolate?: Isolate } = {},
  ): Promise<Executed> {
    const end = performance.now() + deadlineMs
    const cancelled: Cancelled = () => {
      if (call.request.head.socket.destroyed) return interrupted('The client has disconnected.')
      if (performance.now() <= end) return
      const seconds = deadlineMs / 1000
      return interrupted(`The operation took longer than ${seconds} seconds. Select fewer fields or smaller pages.`)
    }
    const { query: source, document, operation, operationName, variables } = call
    const limits = {
      isolate,
      cancelled,
      pause,
      maxLength: MAX_RESPONSE,
      tooLong: (max: number) => new ResponseTooLong(max),
    }
    const execution: Execution = {
      source,
      document,
      operationName,
      variables,
      execute: (contextValue, variables) =>
        inSpan('execute', () => operation.execute(variables, { contextValue, ...limits })),
    }
    try {
      return await run(execution, createContext(caller, quota, query))
    } catch (error) {
      if (error instanceof ApiError && !(error instanceof ResponseTooLong)) return { errors: [error] }
      throw error
    }
  }

  return { read }
}

/**
 * What an Idempotency-Key stands for: a document may be sent by its hash alone, or with it.
 *
 * @throws ApiError invalid_request (the variables are nested too deeply to be compared)
 */
function bodyOf({ body, hash, query, operationName, variables }: Call): Body {
  if (hash === undefined) return body
  const exact = (_: string, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value)
  try {
    return Buffer.from(JSON.stringify([query, operationName, variables], exact))
  } catch (error) {
    throw error instanceof RangeError ? invalidRequest('variables is nested too deeply.') : error
  }
}
