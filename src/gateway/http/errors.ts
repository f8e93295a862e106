import { GraphQLError } from 'graphql'
import { ApiError, InvalidValue, invalidRequest } from '../../../schema/kit/errors.js'
import type { Logger } from '../../engines/observe/index.js'
import { isAway } from '../../engines/postgres/index.js'
import { type HttpRequest, prefersType } from './request.js'
import { type HttpResponse, jsonResponse } from './response.js'

/** Seconds after which a client may try again when the database did not answer. */
const RETRY_UNAVAILABLE = '5'

/** @param allow the methods that the path takes, as the header lists them */
export const methodNotAllowed = (method: string | undefined, allow: string) =>
  new ApiError('method_not_allowed', `This path does not take ${method}; it takes ${allow}.`, { allow })

export const unavailable = () => new ApiError('unavailable', undefined, { 'retry-after': RETRY_UNAVAILABLE })

/** A message of GraphQL's own, which repeats wrong texts and numbers in full, with what is wrong with them at its end. */
const readable = (message: string) =>
  message
    // Every match that begins also ends, whatever comes: without the closing quote, too.
    .replace(/"(?:[^"\\]|\\.)*"?|\w{60,}/gs, (text) =>
      text.length < 60 ? text : `${text.slice(0, 40)}…${text.startsWith('"') ? '"' : ''}`,
    )
    .replace('; must ', '; it must ')

const rootCause = (error: unknown): unknown =>
  error instanceof GraphQLError && error.originalError ? rootCause(error.originalError) : error

/**
 * The error that a caller may see. ApiErrors stay as they are; errors of graphql-js become `invalid_request`; an
 * unreachable database becomes `unavailable`; all others are logged with the request's id and become `internal`.
 */
export function toApiError(error: unknown, log: Logger, requestId?: string): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof GraphQLError) {
    const cause = rootCause(error)
    // Of graphql-js' errors, the outermost says which value it is about. A resolver's error is handled on its own.
    const own = cause instanceof InvalidValue || (cause instanceof GraphQLError && !(cause instanceof ApiError))
    if (!own) return toApiError(cause, log, requestId)
    return invalidRequest(readable(error.message))
  }
  if (isAway(error)) {
    // What is wrong with the database is logged once, by src/gateway/database.
    log.debug({ err: error, requestId }, 'the database did not answer')
    return unavailable()
  }
  log.error({ err: error, requestId }, 'unexpected error')
  return new ApiError('internal')
}

const GRAPHQL_TYPE = 'application/graphql-response+json'

/** GraphQL's own media type if Accept names it and does not prefer JSON. */
export const graphqlMediaType = (request: HttpRequest) =>
  prefersType(request, GRAPHQL_TYPE) ? GRAPHQL_TYPE : 'application/json'

/** The response to a refused request: GraphQL's shape on /graphql, elsewhere the Error object. */
export function errorResponse({ code, message, status, headers }: ApiError, request: HttpRequest): HttpResponse {
  if (request.path !== '/graphql') return jsonResponse(JSON.stringify({ code, message, status }), status, headers)
  const body = JSON.stringify({ errors: [{ message, extensions: { code, status } }] })
  return jsonResponse(body, status, { 'content-type': `${graphqlMediaType(request)}; charset=utf-8`, ...headers })
}
