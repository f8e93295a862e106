import { GraphQLError, type GraphQLFormattedError } from 'graphql'
import { ApiError, type ErrorCode } from '../../../schema/kit/errors.js'
import type { Executed } from '../../engines/executor/index.js'
import type { Logger } from '../../engines/observe/index.js'
import { graphqlMediaType, type HttpRequest, jsonResponse, toApiError, unavailable } from '../http/index.js'
import type { Reply } from '../reply/index.js'
import { SeveralOperations } from './parameters.js'

/** Errors that a response lists. */
const MAX_ERRORS = 100

/** This gateway does not know the document of a hash. The client sends both, in the words of Apollo's protocol. */
export class PersistedQueryNotFound extends GraphQLError {
  constructor() {
    super('PersistedQueryNotFound', { extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } })
  }
}

export class ResponseTooLong extends ApiError {
  constructor(max: number, figure = '') {
    super(
      'invalid_request',
      `The response would be longer than the allowed ${max} bytes${figure}. Select fewer fields or smaller pages.`,
    )
  }
}

/** The body of a response, errors first: they are what a reader looks for. */
function bodyOf({ data }: Executed, errors?: readonly GraphQLFormattedError[]): string {
  let fields = ''
  for (const [key, json] of data ?? []) fields += `${fields && ','}${JSON.stringify(key)}:${json}`
  const shown = data === undefined ? '' : data === null ? '"data":null' : `"data":{${fields}}`
  return errors ? `{"errors":${JSON.stringify(errors)}${shown && ','}${shown}}` : `{${shown}}`
}

export const hasNoValue = ({ data }: Executed) => [...(data?.values() ?? [])].every((json) => json === 'null')

/** Turns what came of an operation into responses. */
export function createResponses(log: Logger) {
  /** The first errors as GraphQL shows them: where each happened, the catalogue's code and status; and how many more. */
  function publicErrors(errors: readonly GraphQLError[], request: HttpRequest): GraphQLFormattedError[] {
    const shown = errors.slice(0, MAX_ERRORS).map((error): GraphQLFormattedError => {
      const { message, code, status } = toApiError(error, log, request.id)
      return { message, locations: error.locations, path: error.path, extensions: { code, status } }
    })
    const more = errors.length - shown.length
    const extensions = { code: 'invalid_request', status: 400 }
    return more === 0 ? shown : [...shown, { message: `There are ${more} more errors.`, extensions }]
  }

  function resultOf(executed: Executed, request: HttpRequest): Reply {
    const { errors } = executed
    const mediaType = graphqlMediaType(request)
    const headers: Record<string, string> = { 'content-type': `${mediaType}; charset=utf-8` }
    if (!errors) return { response: jsonResponse(bodyOf(executed), 200, headers) }
    const shown = publicErrors(errors, request)
    const codes = shown.map(({ extensions }) => extensions?.code as ErrorCode)
    const [refusal] = codes
    if (codes.includes('unavailable')) Object.assign(headers, unavailable().headers)
    // There is neither a value nor another error.
    if (hasNoValue(executed) && codes.every((code) => code === 'unavailable'))
      return { response: jsonResponse(JSON.stringify({ errors: shown }), 503, headers), refusal }
    // GraphQL over HTTP, section 6.4: the status of a request error shows in GraphQL's own media type alone.
    const status = !('data' in executed) && mediaType !== 'application/json' ? 400 : 200
    return { response: jsonResponse(bodyOf(executed, shown), status, headers), refusal }
  }

  /** Errors of graphql-js have the status of its media type; all others that of the error. */
  function refuse(error: unknown, request: HttpRequest): Reply {
    const headers = { 'content-type': `${graphqlMediaType(request)}; charset=utf-8` }
    // Apollo's clients read both of these with status 200 alone.
    if (error instanceof PersistedQueryNotFound)
      return { response: jsonResponse(JSON.stringify({ errors: [error] }), 200, headers) }
    if (error instanceof SeveralOperations && error.count !== undefined) {
      const errors = Array(error.count).fill({ errors: publicErrors([error], request) })
      return { response: jsonResponse(JSON.stringify(errors), 200, headers), refusal: error.code }
    }
    if (error instanceof GraphQLError && !(error instanceof ApiError)) return resultOf({ errors: [error] }, request)
    throw error
  }

  return { resultOf, refuse }
}
