import { isDeepStrictEqual } from 'node:util'
import { getNamedType } from 'graphql'
import type { OpenAPIV3 } from 'openapi-types'
import { operations } from '../../../schema/index.js'
import { catalogue, type ErrorCode } from '../../../schema/kit/errors.js'
import { expandQuery, longestOf, type Operation } from '../../../schema/kit/operations.js'
import { EXAMPLE_TIME, exampleWindows } from '../../../schema/kit/quota.js'
import { type RateLimitResult, refusalMessage } from '../../engines/rate-limit/index.js'
import { FREE_PER_MINUTE } from '../keys/index.js'
import { type Options, type ResponseObject, schemaRef } from './document.js'
import { exampleAnswer, exampleExpanded, inputOf, resultOf } from './examples.js'
import { deprecationHeaders, headerRefs, idempotencyHeaders, locationHeader, nextPageHeader } from './headers.js'
import { listName, resultName } from './schemas.js'

type Response = [status: number, response: ResponseObject]

/** The error codes that an operation can return. */
function errorCodes(operation: Operation): ErrorCode[] {
  const { method, path, deprecation, cost, errors = [] } = operation.rest
  const fields = Object.values(inputOf(operation)?.getFields() ?? {})
  const codes: ErrorCode[] = ['invalid_request', 'unauthorized', 'rate_limited', 'internal', 'unavailable', ...errors]
  if (operation.type === 'Mutation') codes.push('forbidden')
  if (path.includes('{')) codes.push('not_found')
  if (deprecation) codes.push('gone')
  if (operation.isConditional) codes.push('precondition_failed')
  if (method === 'POST') codes.push('conflict', 'idempotency_mismatch')
  if (fields.length > 0) codes.push('payload_too_large', 'unsupported_media_type')
  // An id in a body refers to something, which may not exist.
  const { key } = operation.body?.extensions.batch ?? {}
  if (key) codes.push('not_found')
  if (fields.some(({ name, type }) => name !== key && getNamedType(type).name === 'Int64'))
    codes.push('unknown_reference')
  // An operation without a cost serves banned keys too. Requests without a valid key are still limited.
  if (cost !== 0) codes.push('key_banned')
  return codes
}

/** The message of a 429 whose window of a minute is used up. */
const limitedMessage = (name: 'minute' | 'address', ban: Partial<RateLimitResult> = {}) => {
  const windows = exampleWindows.slice(0, 1).map((window) => ({ ...window, name, remaining: 0 }))
  return refusalMessage({ at: EXAMPLE_TIME, outcome: 'limited', cost: 0, windows, refusedBy: [name], ...ban })
}

/** Messages that name what a request was refused for. Others have the catalogue's own. */
const exampleMessages = (): Partial<Record<ErrorCode, string>> => ({
  invalid_request: 'quantity is -1; it must be at least 0. complete is "yes"; it must be true or false.',
  rate_limited: limitedMessage('minute'),
  key_banned: limitedMessage('minute', { outcome: 'banned', bannedUntil: EXAMPLE_TIME + 300_000 }),
})

/** Error bodies that share a status, each as an example. */
const errorContent = (errors: { code: ErrorCode; status: number; message: string }[]) => {
  const examples = errors.map(({ code, message, status }) => [code, { value: { code, message, status } }])
  return { 'application/json': { schema: schemaRef('Error'), examples: Object.fromEntries(examples) } }
}

const headersOf: Record<number, string[]> = {
  401: ['WWW-Authenticate'],
  415: ['Accept-Post', 'Accept-Patch', 'Accept-Encoding'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

/** The error responses for these codes, one for each status. */
function errorResponses(codes: ErrorCode[]): Response[] {
  const messages = exampleMessages()
  // In the order of the catalogue.
  const errors = Object.entries(catalogue).flatMap(([name, { message, ...entry }]) => {
    const code = name as ErrorCode
    return codes.includes(code) ? [{ code, ...entry, message: messages[code] ?? message }] : []
  })
  return [...new Set(errors.map(({ status }) => status))].map((status) => {
    const here = errors.filter((error) => error.status === status)
    const description = here.map(({ code, description }) => `\`${code}\`: ${description}`).join('\n\n')
    return [status, { description, headers: headerRefs(...(headersOf[status] ?? [])), content: errorContent(here) }]
  })
}

/** @param counted whether the operation can say how many items a list has */
const notModified = (counted: string[] = []): Response => [
  304,
  {
    description: '`If-None-Match` has the `ETag` of what a 200 would return.',
    headers: headerRefs('ETag', ...counted),
  },
]

/** The headers of a list. */
const countHeaders = ({ queryArguments }: Operation) =>
  queryArguments.some(({ name }) => name === 'count') ? ['X-Total-Count'] : []

function success(operation: Operation, baseUrl: string): ResponseObject {
  const { rest, hasEtag } = operation
  if (rest.status === 204) return { description: 'Deleted. There is no body.', headers: {} }
  const list = listName(operation)
  const { name } = resultOf(operation)
  const example = exampleAnswer(operation)
  const headers = headerRefs(...(hasEtag ? ['ETag'] : []), ...countHeaders(operation))
  if (rest.location) headers.Location = locationHeader(rest.location, baseUrl, example as Record<string, unknown>)
  const isPage = operation.field.args.some(({ name }) => name === 'limit')
  if (isPage) headers.Link = nextPageHeader(rest.path, baseUrl)
  const created = rest.status === 201 ? 'created ' : ''
  const many = operation.body ? `The ${created}objects, in the order of the items.` : 'All of the list.'
  const description = isPage ? 'One page of the list.' : list ? many : `The ${created}${name}.`
  const expanded = exampleExpanded(operation)
  const examples = expanded && {
    plain: { value: example },
    expanded: { summary: `?${expandQuery(longestOf(operation.expansions))}`, value: expanded },
  }
  const media = { schema: schemaRef(resultName(operation)), ...(examples ? { examples } : { example }) }
  return { description, headers, content: { 'application/json': media } }
}

/** `rate_limited` and `key_banned` share 429: one response, `RateLimited`, named after the first code of the status. */
const responseName = (status: number) => {
  const [code = 'not_modified'] = Object.entries(catalogue).find(([, entry]) => entry.status === status) ?? []
  return code.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase())
}

/**
 * The responses that several operations share, by name.
 *
 * @param common the headers of every response
 */
export function createSharedResponses(common: ResponseObject['headers']): Record<string, ResponseObject> {
  // Those of a POST and of a deprecated operation have headers of their own.
  const plain = operations.filter(({ rest }) => !rest.deprecation && rest.method !== 'POST')
  const responses = [notModified(), ...errorResponses(plain.flatMap(errorCodes))]
  const named = responses.map(([status, response]) => {
    return [responseName(status), { ...response, headers: { ...common, ...response.headers } }]
  })
  return Object.fromEntries(named)
}

/** The responses of one operation, by status. */
export function createResponses(
  operation: Operation,
  options: Options,
  common: ResponseObject['headers'],
  shared: Record<string, ResponseObject>,
) {
  const { status = 200, method, cost } = operation.rest
  const own: Response[] = [[status, success(operation, options.baseUrl)]]
  if (method === 'GET' && operation.hasEtag) own.push(notModified(countHeaders(operation)))
  const deprecation = deprecationHeaders(operation, options)
  const responses: Record<string, ResponseObject | OpenAPIV3.ReferenceObject> = {}
  for (const [status, response] of [...own, ...errorResponses(errorCodes(operation))]) {
    const added = { ...idempotencyHeaders(operation, status), ...deprecation }
    const completed = { ...response, headers: { ...common, ...response.headers, ...added } }
    if (status === 429 && cost === 0) {
      completed.description += `\n\nIt costs nothing, so a key may ask ${FREE_PER_MINUTE} times a minute. Requests without a valid key are limited by their address.`
      completed.content = errorContent([{ code: 'rate_limited', status, message: limitedMessage('address') }])
    }
    const name = responseName(status)
    const isShared = isDeepStrictEqual(completed, shared[name])
    responses[status] = isShared ? { $ref: `#/components/responses/${name}` } : completed
  }
  return responses
}
