import { ApiError } from '../../schema/errors.js'
import { parseJson, readJson } from '../http/body.js'
import type { RequestContext } from '../http/context.js'
import { MEDIA_TYPES } from '../rest/operations.js'

/** The parameters of a GraphQL request (GraphQL over HTTP, section 5). */
export interface GraphqlParameters {
  query: string
  operationName?: string
  variables?: Record<string, unknown>
}

const invalid = (message: string) => new ApiError('invalid_request', message)

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function fromJson(text: string | undefined, name: string) {
  if (!text) return undefined
  try {
    return parseJson(text)
  } catch {
    throw invalid(`${name} is not valid JSON.`)
  }
}

function fromSearch(search: string) {
  const { variables, extensions, operationName, ...parameters } = Object.fromEntries(new URLSearchParams(search))
  return {
    ...parameters,
    operationName: operationName || undefined,
    variables: fromJson(variables, 'variables'),
    extensions: fromJson(extensions, 'extensions'),
  }
}

/**
 * Reads the parameters from the query string of a GET or the body of a POST.
 *
 * @throws ApiError method_not_allowed, payload_too_large, unsupported_media_type, invalid_request
 */
export async function readParameters(context: RequestContext, maxBodyBytes: number): Promise<GraphqlParameters> {
  const { method, search } = context
  if (method !== 'GET' && method !== 'POST')
    throw new ApiError('method_not_allowed', 'GraphQL takes GET and POST.', { allow: 'GET, HEAD, POST' })
  const parameters =
    method === 'GET' ? fromSearch(search) : await readJson(context, maxBodyBytes, MEDIA_TYPES.POST as string[])
  if (!isObject(parameters)) throw invalid('The body must be a JSON object with a query; batches are not taken.')
  const { query, operationName, variables, extensions, ...others } = parameters
  const unknown = Object.keys(others)
  if (unknown.length > 0) throw invalid(`The parameter ${unknown[0]} is unknown.`)
  if (typeof query !== 'string') throw invalid('query must be a string.')
  if (operationName != null && typeof operationName !== 'string') throw invalid('operationName must be a string.')
  if (variables != null && !isObject(variables)) throw invalid('variables must be an object.')
  if (extensions != null && !isObject(extensions)) throw invalid('extensions must be an object.')
  return { query, operationName: operationName ?? undefined, variables: variables ?? undefined }
}
