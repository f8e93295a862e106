import { GraphQLError } from 'graphql'
import { ApiError, InvalidValue } from '../../schema/errors.js'
import type { Logger } from '../log.js'
import type { RequestContext } from './context.js'
import { type HttpResponse, jsonResponse } from './response.js'

/** Seconds after which a client may try again when the database did not answer. */
const RETRY_UNAVAILABLE = '5'

export const unavailable = () => new ApiError('unavailable', undefined, { 'retry-after': RETRY_UNAVAILABLE })

// Prisma: cannot reach, timed out, refused, closed, no connection or transaction in time, rolled back by a conflict.
const away = new Set(['P1001', 'P1002', 'P1003', 'P1008', 'P1011', 'P1017', 'P2024', 'P2028', 'P2034', 'P2037'])
// PostgreSQL: connection, resources, operator, system; a conflict, a lock, a server that only reads.
const awayState = /^(08|53|57|58|40001|40P01|55P03|25006)/
// Node and pg say the same in their own words.
const awayText =
  /ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|Connection terminated|connection error and is not queryable|terminating connection|the database system is|prepared statement "\w+" does not exist|DatabaseNotReachable|ConnectionClosed|SocketTimeout/i

interface PrismaError extends Error {
  code?: string
  meta?: { driverAdapterError?: { cause?: { originalCode?: string } } }
}

function isAway(error: unknown): boolean {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth++) {
    const { code, meta } = cause as PrismaError
    if (code && away.has(code)) return true
    if (awayState.test(meta?.driverAdapterError?.cause?.originalCode ?? '')) return true
    if (awayText.test(`${code} ${cause.name} ${cause.message} ${JSON.stringify(meta)}`)) return true
  }
  return false
}

const rootCause = (error: unknown): unknown =>
  error instanceof GraphQLError && error.originalError ? rootCause(error.originalError) : error

/**
 * What a caller may know of an error. Ours pass as they are; what GraphQL itself refuses is `invalid_request`; a
 * database out of reach is `unavailable`; all else is logged, with the request's id, and answered `internal`.
 */
export function toApiError(error: unknown, log: Logger, context?: RequestContext): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof GraphQLError) {
    const cause = rootCause(error)
    // GraphQL's own refusals, of which the outermost says which value it was. What a resolver threw is judged itself.
    const own = cause instanceof InvalidValue || (cause instanceof GraphQLError && !(cause instanceof ApiError))
    if (!own) return toApiError(cause, log, context)
    return new ApiError(error.extensions.http?.status === 405 ? 'method_not_allowed' : 'invalid_request', error.message)
  }
  if (isAway(error)) {
    // What is wrong with the database is logged once, by src/database.
    log.debug({ err: error, requestId: context?.id }, 'the database did not answer')
    return unavailable()
  }
  // What a nested field would have read is gone: deleted by another request, or by this very mutation.
  if ((error as { code?: string } | null)?.code === 'P2025')
    return new ApiError('not_found', 'It was deleted meanwhile.')
  log.error({ err: error, requestId: context?.id }, 'unexpected error')
  return new ApiError('internal')
}

/** GraphQL's own media type where the client names it, else JSON, whatever Accept says. */
export const graphqlMediaType = ({ head }: RequestContext) =>
  head.headers.accept?.includes('application/graphql-response+json')
    ? 'application/graphql-response+json'
    : 'application/json'

/** The response to a refused request: GraphQL's shape on /graphql, elsewhere the Error object. */
export function errorResponse({ code, message, status, headers }: ApiError, context: RequestContext): HttpResponse {
  if (context.path !== '/graphql') return jsonResponse(JSON.stringify({ code, message, status }), status, headers)
  const body = JSON.stringify({ errors: [{ message, extensions: { code, status } }] })
  return jsonResponse(body, status, {
    'content-type': `${graphqlMediaType(context)}; charset=utf-8`,
    ...headers,
  })
}
