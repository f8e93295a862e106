import { getOperationAST, type OperationDefinitionNode } from 'graphql'
import type { Context } from '../../schema/context.js'
import { ApiError } from '../../schema/errors.js'
import { createEtag, matchesWeakly } from '../../schema/etag.js'
import { restSchema } from '../../schema/index.js'
import { batchUnits, fill, type Operation } from '../../schema/operations.js'
import type { Query } from '../database/index.js'
import { type PreparedOperation, prepare } from '../execute/executor.js'
import type { CreateResolverContext } from '../execute/resolver-context.js'
import { type Body, parseBody } from '../http/body.js'
import type { HttpRequest } from '../http/request.js'
import { type HttpResponse, jsonResponse } from '../http/response.js'
import type { Idempotency } from '../idempotency/index.js'
import { type Caller, type QuotaDecision, requireWriteAccess } from '../keys/index.js'
import { inSpan } from '../observe/tracing.js'
import type { ReadRequest, Reply, Route } from '../reply.js'
import { createReader, type Input, type Source } from './input.js'
import { createRoutes } from './routes.js'
import { readDocuments } from './sofa.js'

export { createRouter } from './sofa.js'

export interface RestOptions {
  createContext: CreateResolverContext
  idempotency: Idempotency
  baseUrl: string
  sunset: Date
  /** Whether a path that is no operation has a page, which takes GET and HEAD. */
  hasPage(path: string): boolean
}

/** How an operation is served: everything about it that does not depend on a request. */
interface PreparedRest {
  read: (source: Source) => Input
  execute: PreparedOperation
}

/** Prepares SOFA's document of each operation. */
async function prepareOperations(): Promise<Map<Operation, PreparedRest>> {
  const prepared = new Map<Operation, PreparedRest>()
  for (const [operation, document] of await readDocuments()) {
    const definition = getOperationAST(document) as OperationDefinitionNode
    // Optional fields without a value are absent from a representation, never null.
    const execute = prepare(restSchema, document, definition, { nulls: 'omit' })
    prepared.set(operation, { read: createReader(operation), execute })
  }
  return prepared
}

/** The items of a batch, which its cost depends on; undefined if they cannot be read, which is refused later. */
function itemsOf({ body: argument }: Operation, body: Body): unknown {
  if (!argument?.extensions.batch) return undefined
  try {
    return body instanceof ApiError ? undefined : parseBody(body)
  } catch {
    return undefined
  }
}

/** The cost of an operation, and of the arguments that cost more: they count where they are true, whatever else is wrong. */
function unitsOf({ rest, body, queryArguments }: Operation, { query }: HttpRequest, items: unknown): number {
  if (body?.extensions.batch) return batchUnits(body, items)
  const dear = queryArguments.filter(
    ({ name, extensions }) => extensions.units && query.getAll(name).some((text) => /^true$/i.test(text)),
  )
  return (rest.cost ?? 1) + dear.length
}

/** What a request would have to leave out to cost no more than the given units. */
function adviceOf({ body, queryArguments }: Operation, units: number): string {
  const { batch } = body?.extensions ?? {}
  if (batch) return `It would fit with at most ${units * batch.itemsPerUnit} items.`
  return `It would fit without ${queryArguments.flatMap(({ name, extensions }) => (extensions.units ? name : []))}.`
}

/** The REST surface: an operation's arguments are read, its prepared document is executed, its result is written. */
export async function createRest({ createContext, idempotency, baseUrl, sunset, hasPage }: RestOptions) {
  const routes = createRoutes(hasPage)
  const prepared = await prepareOperations()

  function responseOf(
    operation: Operation,
    request: HttpRequest,
    body: string,
    { next, total }: Context,
  ): HttpResponse {
    const { rest, hasEtag } = operation
    if (rest.status === 204) return { status: 204, headers: {} }
    const response = jsonResponse(body, rest.status)
    if (rest.location) response.headers.location = baseUrl + fill(rest.location, JSON.parse(body))
    if (next) {
      // Values are short, white space around them aside. Without any, a copy takes a tenth of the time.
      const mayHaveSpace = /[%+]/.test(request.search)
      const query = new URLSearchParams(
        mayHaveSpace ? Array.from(request.query, ([name, value]) => [name, value.trim()]) : request.query,
      )
      for (const [name, value] of Object.entries(next))
        value === undefined ? query.delete(name) : query.set(name, value)
      response.headers.link = `<${baseUrl}${request.path}?${query}>; rel="next"`
    }
    if (total !== undefined) response.headers['x-total-count'] = String(total)
    // A list changes also when a page follows its last one, or when its total changes.
    if (hasEtag)
      response.headers.etag = createEtag(`${body}${next ? '+' : ''}${total === undefined ? '' : ` of ${total}`}`)
    return response
  }

  async function run(source: Source, operation: Operation, caller: Caller, quota: Promise<QuotaDecision>) {
    const { request, body } = source
    const { rest, name, type } = operation
    if (type === 'Mutation') requireWriteAccess(caller)
    if (rest.deprecation && Date.now() >= sunset.getTime()) throw new ApiError('gone')

    const { read, execute } = prepared.get(operation) as PreparedRest
    const { args, ifNoneMatch, idempotencyKey, refusalOf } = inSpan('validate', () => read(source))

    async function perform(query?: Query): Promise<Reply> {
      const contextValue = createContext(caller, quota, query)
      const { data, errors } = await inSpan('execute', () => execute({ contextValue, variables: args }))
      if (errors?.[0]) throw refusalOf(errors[0])
      return { response: responseOf(operation, request, data?.get(name) ?? 'null', contextValue) }
    }
    if (idempotencyKey !== undefined) {
      const keyed = { request, caller, body, operationName: operation.operationId }
      return idempotency.once(keyed, idempotencyKey, perform)
    }
    const result = await perform()
    const { etag, 'x-total-count': total } = result.response.headers
    if (!ifNoneMatch || !etag || !matchesWeakly(ifNoneMatch, etag)) return result
    return { response: { status: 304, headers: { etag, ...(total && { 'x-total-count': total }) } } }
  }

  return {
    /** Found before other steps: an error needs the headers of its operation, too. */
    find: routes.find,

    read(request: HttpRequest, route: Route | undefined, body: Body): ReadRequest {
      if (!route) return { units: 1, run: async () => Promise.reject(routes.refusalOf(request)) }
      const { operation, params } = route
      const parsed = itemsOf(operation, body)
      return {
        units: unitsOf(operation, request, parsed),
        advice: (most) => adviceOf(operation, most),
        isRead: operation.type === 'Query',
        run: (caller, quota) => run({ request, params, body, parsed }, operation, caller, quota),
      }
    },
  }
}
