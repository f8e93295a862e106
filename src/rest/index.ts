import findMyWay from 'find-my-way'
import { getOperationAST, type OperationDefinitionNode } from 'graphql'
import type { Context } from '../../schema/builder.js'
import { ApiError } from '../../schema/errors.js'
import { createEtag, matchesWeakly } from '../../schema/etag.js'
import { restSchema } from '../../schema/index.js'
import { requireWriteAccess } from '../auth/index.js'
import { type PreparedOperation, prepare } from '../execute/executor.js'
import type { RequestContext } from '../http/context.js'
import { type HttpResponse, jsonResponse } from '../http/response.js'
import { type Idempotency, readIdempotencyKey } from '../idempotency/index.js'
import { type Body, coerce, readBody, readIfMatch, readIfNoneMatch, readPath, readQuery } from './input.js'
import { fill, type Operation, operations } from './operations.js'
import { refusalOf, unknownPath } from './refusal.js'
import { documents, routePath } from './sofa.js'

export interface RestOptions {
  consume: (context: RequestContext, cost: number) => Promise<void>
  createContext: (context: RequestContext, transaction?: Context['prisma']) => Context
  idempotency: Idempotency
  baseUrl: string
  sunset: Date
}

const router = findMyWay({ caseSensitive: true, ignoreTrailingSlash: false, maxParamLength: 16_384 })
/** SOFA's document of each operation, prepared: what does not depend on a request is done once. */
const prepared = new Map<Operation, PreparedOperation>()
for (const [operation, document] of documents) {
  const { method, path } = operation.rest
  router.on(method, routePath(path), () => {}, operation)
  // Optional fields without a value are absent from a representation, never null.
  prepared.set(
    operation,
    prepare(restSchema, document, getOperationAST(document) as OperationDefinitionNode, { nulls: 'omit' }),
  )
}

function find(method: string, path: string) {
  const found = router.find(method as 'GET', path)
  // A trailing slash is another path, not an empty parameter.
  return found && Object.values(found.params).every(Boolean) ? found : null
}

/** Finds the operation before other steps: an error needs its deprecation headers and its cost, too. */
export function route(context: RequestContext): void {
  const found = context.path ? find(context.method, context.path) : null
  if (!found) return
  context.operation = found.store
  context.operationName = found.store.operationId
  context.params = found.params
}

const decodes = (path: string) => {
  try {
    return decodeURIComponent(path) !== ''
  } catch {
    return false
  }
}

/** Why there is no operation: the path is malformed or unknown, or supports other methods. */
function refuse({ path, allow, head }: RequestContext): never {
  if (path && !decodes(path)) throw new ApiError('invalid_request', 'The path is not percent-encoded UTF-8.')
  const methods = [...new Set(operations.map(({ rest }) => rest.method))].filter((method) => path && find(method, path))
  const allowed = allow ?? methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
  if (!allowed) throw new ApiError('not_found', unknownPath(path ?? ''))
  throw new ApiError('method_not_allowed', `This path does not take ${head.method}; it takes ${allowed}.`, {
    allow: allowed,
  })
}

/** The REST surface: an operation's arguments are read, its prepared document is executed, its result is written. */
export function createRest({ consume, createContext, idempotency, baseUrl, sunset }: RestOptions) {
  /** The arguments of the operation, read and coerced once. */
  function readArguments(
    { body, queryArguments, pathArguments }: Operation,
    context: RequestContext,
    json: Body | undefined,
  ) {
    const args: Record<string, unknown> = {}
    if (json?.refusal) throw json.refusal
    if (context.search) readQuery(args, context.search, queryArguments)
    for (const argument of pathArguments)
      args[argument.name] = readPath(context.params?.[argument.name] ?? '', argument)
    if (body) args[body.name] = coerce(json?.value, body)
    return args
  }

  return async function answer(context: RequestContext): Promise<HttpResponse> {
    const { operation } = context
    await consume(context, operation?.rest.cost ?? 1)
    const execute = operation && prepared.get(operation)
    if (!execute) return refuse(context)
    if (operation.type === 'Mutation') requireWriteAccess(context)
    const { rest, name, hasEtag } = operation
    if (rest.deprecation && Date.now() >= sunset.getTime()) throw new ApiError('gone')

    const { headers } = context.head
    let coerced: Record<string, unknown>
    let ifNoneMatch: ReturnType<typeof readIfNoneMatch>
    const json = readBody(operation, context)
    try {
      coerced = readArguments(operation, context, json)
      if (readIfMatch(operation, headers)) coerced.ifMatch = headers['if-match']
      ifNoneMatch = readIfNoneMatch(operation, headers)
    } catch (error) {
      throw refusalOf(operation, context, json, error)
    }

    async function perform(transaction?: Context['prisma']): Promise<HttpResponse> {
      const contextValue = createContext(context, transaction)
      const { data, errors } = await (execute as PreparedOperation)({ contextValue, variables: coerced })
      if (errors?.[0]) throw refusalOf(operation as Operation, context, json, errors[0])
      const result = (data as Record<string, unknown>)[name]
      if (rest.status === 204) return { status: 204, headers: {} }
      const body = JSON.stringify(result)
      const response = jsonResponse(body, rest.status)
      if (rest.location) response.headers.location = baseUrl + fill(rest.location, result as Record<string, unknown>)
      if (contextValue.nextCursor !== undefined) {
        const next = new URLSearchParams(context.search)
        next.set('after', String(contextValue.nextCursor))
        response.headers.link = `<${baseUrl}${context.path}?${next}>; rel="next"`
      }
      if (hasEtag) {
        // The last page of a list changes also when another follows.
        const etag = createEtag(contextValue.nextCursor === undefined ? body : `${body}+`)
        response.headers.etag = etag
        if (ifNoneMatch && matchesWeakly(ifNoneMatch, etag)) return { status: 304, headers: { etag } }
      }
      return response
    }
    const key = rest.method === 'POST' ? readIdempotencyKey(context) : undefined
    if (key === undefined) return await perform()
    return await idempotency.once(context, key, async (transaction) => ({ response: await perform(transaction) }))
  }
}
