import { getOperationAST, type OperationDefinitionNode } from 'graphql'
import type { Context } from '../../schema/context.js'
import { ApiError } from '../../schema/errors.js'
import { createEtag, matchesWeakly } from '../../schema/etag.js'
import { restSchema } from '../../schema/index.js'
import { fill, type Operation } from '../../schema/rest-operations.js'
import { type Caller, requireWriteAccess } from '../auth/index.js'
import { type PreparedOperation, prepare } from '../execute/executor.js'
import type { CreateResolverContext } from '../execute/resolver-context.js'
import type { Body } from '../http/body.js'
import type { HttpRequest } from '../http/request.js'
import { type HttpResponse, jsonResponse } from '../http/response.js'
import type { Idempotency } from '../idempotency/index.js'
import type { ReadRequest, Result } from '../outcome.js'
import type { RateLimitResult } from '../rate-limit/index.js'
import { createReader, type Input, type Source } from './input.js'
import { createRoutes, type Route } from './routes.js'
import { readDocuments } from './sofa.js'

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

/** The REST surface: an operation's arguments are read, its prepared document is executed, its result is written. */
export async function createRest({ createContext, idempotency, baseUrl, sunset, hasPage }: RestOptions) {
  const routes = createRoutes(hasPage)
  const prepared = await prepareOperations()

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

    const { read, execute } = prepared.get(operation) as PreparedRest
    const { args: variables, ifNoneMatch, idempotencyKey, refusalOf } = read({ request, params: route.params, body })

    async function perform(transaction?: Context['prisma']): Promise<Result> {
      const contextValue = createContext(caller, decision, transaction)
      const { data, errors } = await execute({ contextValue, variables })
      if (errors?.[0]) throw refusalOf(errors[0])
      return { response: responseOf(route, request, data?.[name], contextValue.nextCursor) }
    }
    if (idempotencyKey !== undefined) {
      const keyed = { request, caller, body, operationName: operation.operationId }
      return idempotency.once(keyed, idempotencyKey, perform)
    }
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
          run: (caller, decision) => run(request, route, body, caller, decision),
        }
      return { units: 1, run: async () => Promise.reject(routes.refusalOf(request)) }
    },
  }
}
