import findMyWay from 'find-my-way'
import { execute } from 'graphql'
import type { Context } from '../../schema/builder.js'
import { ApiError } from '../../schema/errors.js'
import type { Admission } from '../auth/authenticate.js'
import { readJson } from '../http/body.js'
import type { Exchange, GatewayPlugin } from '../http/context.js'
import { check, fromQuery, fromText } from './input.js'
import { fill, MEDIA_TYPES, type Operation, operations } from './operations.js'
import { createRouter, routePath } from './sofa.js'

/** A representation holds what has a value; the specification's optional fields are absent, never null. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, field]) => (field === null ? [] : [[name, withoutNulls(field)]])),
  )
}

function decodes(path: string) {
  try {
    return decodeURIComponent(path) !== ''
  } catch {
    return false
  }
}

interface Call {
  context: Context
  variables: Record<string, unknown>
  data?: unknown
}

type Handler = (request: { url: string; body: null; params: object }, call: Call) => Promise<Response>

export interface RestOptions {
  admission: Admission
  context: (exchange: Exchange) => Context
  baseUrl: string
  sunset: Date
  maxBodyBytes: number
}

/**
 * The REST surface. SOFA generates a route for each operation; they are mounted here on a router that knows the
 * difference between an unknown path and an unknown method, and fed with arguments that have been judged first.
 */
export function useRest({ admission, context, baseUrl, sunset, maxBodyBytes }: RestOptions) {
  const generated = createRouter({
    execute: async ({ contextValue: call, ...args }: { contextValue: Call } & Parameters<typeof execute>[0]) => {
      const result = await execute({ ...args, contextValue: call.context, variableValues: call.variables })
      if (result.errors) return result
      const data = withoutNulls(result.data) as Record<string, unknown>
      call.data = Object.values(data)[0]
      return { data }
    },
    errorHandler: ([error]: readonly Error[]) => {
      throw error
    },
  })
  const router = findMyWay({ caseSensitive: true, ignoreTrailingSlash: false, maxParamLength: 16_384 })
  const handlers = new Map<Operation, Handler>()
  for (const operation of operations) {
    const { method, path } = operation.rest
    const route = generated.__routes.find(
      (candidate) => candidate.method === method && candidate.path === routePath(path),
    )
    if (!route) throw new Error(`SOFA made no route for ${operation.name}`)
    handlers.set(operation, route.handler as unknown as Handler)
    router.on(method, routePath(path), () => {}, operation)
  }
  const find = (method: string, path: string | null) => {
    const found = path ? router.find(method as 'GET', path) : null
    // A trailing slash is another path, not an empty parameter.
    return found && Object.values(found.params).every(Boolean) ? found : null
  }

  /** Finds the operation, before anything is judged: what it is deprecated for or costs, a refusal must know too. */
  const route: GatewayPlugin = {
    onRequest({ serverContext: { exchange } }) {
      const found = find(exchange.method, exchange.path)
      if (!found) return
      exchange.operation = found.store
      exchange.params = found.params as Record<string, string>
    },
  }

  const serve: GatewayPlugin = {
    async onRequest({ request, serverContext: { exchange }, endResponse, fetchAPI }) {
      const { path, operation, params = {}, query } = exchange
      await admission.admit(exchange, operation?.rest.cost ?? 1, operation?.name === 'quota')
      if (!operation) throw refusal(exchange)
      const { rest, field } = operation
      if (rest.deprecation && Date.now() >= sunset.getTime()) throw new ApiError('gone')

      const variables: Record<string, unknown> = {}
      const body = field.args.find((arg) => arg.name === 'input')
      if (body) variables.input = await readJson(request, { max: maxBodyBytes, types: MEDIA_TYPES[rest.method] ?? [] })
      const queryArgs = field.args.filter((arg) => arg !== body && !(arg.name in params))
      Object.assign(variables, fromQuery(query, queryArgs))
      for (const arg of field.args) {
        const text = params[arg.name]
        if (text !== undefined) variables[arg.name] = fromText(text, arg.type, arg.name)
        if (arg.name in variables) check(variables[arg.name], arg)
      }

      let more = false
      const call: Call = { variables, context: { ...context(exchange), page: (next) => (more = next) } }
      const handler = handlers.get(operation) as Handler
      const response = await handler({ url: '', body: null, params: {} }, call)
      response.headers.set('content-type', 'application/json')
      if (rest.location)
        response.headers.set('location', baseUrl + fill(rest.location, call.data as object as Record<string, unknown>))
      if (more) {
        const next = new URLSearchParams(query)
        const last = (call.data as { id?: number; petId?: number }[]).at(-1)
        next.set('after', String(last?.id ?? last?.petId))
        response.headers.set('link', `<${baseUrl}${path}?${next}>; rel="next"`)
      }
      endResponse(rest.status === 204 ? new fetchAPI.Response(null, { status: 204 }) : response)
    },
  }

  function refusal({ path, allow }: Exchange) {
    if (path && !decodes(path)) return new ApiError('invalid_request', 'The path is not percent-encoded UTF-8.')
    const methods = [...new Set(operations.map(({ rest }) => rest.method))].filter((method) => find(method, path))
    const allowed = allow ?? methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
    if (!allowed) return new ApiError('not_found', 'No operation has this path.')
    return new ApiError('method_not_allowed', `This path takes ${allowed}.`, { allow: allowed })
  }

  return { route, serve }
}
