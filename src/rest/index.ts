import { getOperationAST, type OperationDefinitionNode } from 'graphql'
import type { Context } from '../../schema/builder.js'
import { ApiError } from '../../schema/errors.js'
import { createEtag, matchesWeakly } from '../../schema/etag.js'
import { restSchema } from '../../schema/index.js'
import { type Caller, requireWriteAccess } from '../auth/index.js'
import { type PreparedOperation, prepare } from '../execute/executor.js'
import type { CreateResolverContext } from '../execute/resolver-context.js'
import type { Body } from '../http/body.js'
import type { HttpRequest } from '../http/request.js'
import { type HttpResponse, jsonResponse } from '../http/response.js'
import { type Idempotency, readIdempotencyKey } from '../idempotency/index.js'
import type { ReadRequest, Result } from '../outcome.js'
import type { RateLimitResult } from '../rate-limit/index.js'
import { coerce, type JsonBody, readIfMatch, readIfNoneMatch, readJsonBody, readPath, readQuery } from './input.js'
import { fill, type Operation } from './operations.js'
import { refusalOf } from './refusal.js'
import { createRoutes, type Route } from './routes.js'
import { documents } from './sofa.js'

export interface RestOptions {
  createContext: CreateResolverContext
  idempotency: Idempotency
  baseUrl: string
  sunset: Date
  /** Whether a path that is no operation has a page, which takes GET and HEAD. */
  hasPage(path: string): boolean
}

/** The REST surface: an operation's arguments are read, its prepared document is executed, its result is written. */
export function createRest({ createContext, idempotency, baseUrl, sunset, hasPage }: RestOptions) {
  const routes = createRoutes(hasPage)
  /** SOFA's document of each operation, prepared: what does not depend on a request is done once. */
  const prepared = new Map<Operation, PreparedOperation>()
  for (const [operation, document] of documents) {
    const definition = getOperationAST(document) as OperationDefinitionNode
    // Optional fields without a value are absent from a representation, never null.
    prepared.set(operation, prepare(restSchema, document, definition, { nulls: 'omit' }))
  }

  /** The arguments of the operation, read and coerced once. */
  function readArguments({ operation, params }: Route, { search }: HttpRequest, json: JsonBody | undefined) {
    const { body, queryArguments, pathArguments } = operation
    const args: Record<string, unknown> = {}
    if (json?.refusal) throw json.refusal
    if (search) readQuery(args, search, queryArguments)
    for (const argument of pathArguments) args[argument.name] = readPath(params[argument.name] ?? '', argument)
    if (body) args[body.name] = coerce(json?.value, body)
    return args
  }

  function responseOf({ operation }: Route, request: HttpRequest, result: unknown, nextCursor?: bigint): HttpResponse {
    const { rest, hasEtag } = operation
    if (rest.status === 204) return { status: 204, headers: {} }
    const body = JSON.stringify(result)
    const response = jsonResponse(body, rest.status)
    if (rest.location) response.headers.location = baseUrl + fill(rest.location, result as Record<string, unknown>)
    if (nextCursor !== undefined) {
      const next = new URLSearchParams(request.search)
      next.set('after', String(nextCursor))
      response.headers.link = `<${baseUrl}${request.path}?${next}>; rel="next"`
    }
    // The last page of a list changes also when another follows.
    if (hasEtag) response.headers.etag = createEtag(nextCursor === undefined ? body : `${body}+`)
    return response
  }

  async function run(request: HttpRequest, route: Route, body: Body, caller: Caller, decision: RateLimitResult) {
    const { operation } = route
    const { rest, name, type } = operation
    if (type === 'Mutation') requireWriteAccess(caller)
    if (rest.deprecation && Date.now() >= sunset.getTime()) throw new ApiError('gone')

    const { headers } = request.head
    let args: Record<string, unknown>
    let ifNoneMatch: ReturnType<typeof readIfNoneMatch>
    const json = readJsonBody(operation, request, body)
    try {
      args = readArguments(route, request, json)
      if (readIfMatch(operation, headers)) args.ifMatch = headers['if-match']
      ifNoneMatch = readIfNoneMatch(operation, headers)
    } catch (error) {
      throw refusalOf(route, request, json, error)
    }

    async function perform(transaction?: Context['prisma']): Promise<Result> {
      const contextValue = createContext(caller, decision, transaction)
      const execute = prepared.get(operation) as PreparedOperation
      const { data, errors } = await execute({ contextValue, variables: args })
      if (errors?.[0]) throw refusalOf(route, request, json, errors[0])
      return { response: responseOf(route, request, data?.[name], contextValue.nextCursor) }
    }
    const key = rest.method === 'POST' ? readIdempotencyKey(request) : undefined
    if (key !== undefined)
      return idempotency.once({ request, caller, body, operationName: operation.operationId }, key, perform)
    const result = await perform()
    const { etag } = result.response.headers
    return ifNoneMatch && etag && matchesWeakly(ifNoneMatch, etag)
      ? { response: { status: 304, headers: { etag } } }
      : result
  }

  return {
    /** Found before other steps: an error needs the headers of its operation, too. */
    find: routes.find,

    read(request: HttpRequest, route: Route | undefined, body: Body): ReadRequest {
      if (route)
        return {
          units: route.operation.rest.cost ?? 1,
          operationName: route.operation.operationId,
          run: (caller, decision) => run(request, route, body, caller, decision),
        }
      return { units: 1, run: async () => Promise.reject(routes.refusalOf(request)) }
    },
  }
}
