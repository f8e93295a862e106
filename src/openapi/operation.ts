import { isDeepStrictEqual } from 'node:util'
import { getNamedType, getNullableType, isEnumType, isListType } from 'graphql'
import type { OpenAPIV3 } from 'openapi-types'
import { catalogue, type ErrorCode } from '../../schema/errors.js'
import { createEtag } from '../../schema/etag.js'
import { MAX_KEY } from '../idempotency/index.js'
import { createDeprecation } from '../rest/deprecation.js'
import { fill, MEDIA_TYPES, type Operation, operations } from '../rest/operations.js'
import { codeSamples } from './code-samples.js'
import { type Header, type ResponseObject, type Schema, schemaRef } from './document.js'
import {
  addressLimited,
  headers as allHeaders,
  commonHeaders,
  errorContent,
  errorResponses,
  etagHeader,
  exampleEtag,
  MAX_HEAD,
  notModified,
  optional,
  responseName,
  text,
} from './responses.js'
import { sample, sampleArgument, sampleResult } from './samples.js'
import { bounds, inputOf, listName, resultOf, sampleParams } from './schemas.js'

export interface Options {
  baseUrl: string
  /** When deprecated operations end. */
  sunset: Date
}

/** What SOFA generates, as far as it is kept. */
export interface Generated {
  paths: Record<string, Record<string, { tags: string[]; parameters?: { name: string; in: string; schema: Schema }[] }>>
  components: { schemas: Record<string, Schema> }
}
type GeneratedOperation = Generated['paths'][string][string]

export type OperationObject = ReturnType<typeof createOperation>

/** The error codes that an operation can answer with, in the catalogue's order. */
function errorCodes(operation: Operation): ErrorCode[] {
  const { method, path, deprecation, cost, errors = [] } = operation.rest
  const fields = Object.values(inputOf(operation)?.getFields() ?? {})
  const possible = new Set<ErrorCode>(['invalid_request', 'unauthorized', 'rate_limited', 'internal', 'unavailable'])
  for (const code of errors) possible.add(code)
  if (operation.type === 'Mutation') possible.add('forbidden')
  if (path.includes('{')) possible.add('not_found')
  if (deprecation) possible.add('gone')
  if (operation.isConditional) possible.add('precondition_failed')
  if (method === 'POST') possible.add('conflict').add('idempotency_mismatch')
  if (fields.length > 0) possible.add('payload_too_large').add('unsupported_media_type')
  // An id in a body refers to something, which may not exist.
  if (fields.some(({ type }) => getNamedType(type).name === 'Int64')) possible.add('unknown_reference')
  // An operation without a cost serves banned keys too. Requests without a valid key are still limited.
  if (cost !== 0) possible.add('key_banned')
  return (Object.keys(catalogue) as ErrorCode[]).filter((code) => possible.has(code))
}

/** The responses of operations that add nothing of their own to them, as each POST and each deprecated one does. */
export const sharedResponses = Object.fromEntries(
  [
    notModified,
    ...errorResponses([
      ...new Set(operations.filter(({ rest }) => !rest.deprecation && rest.method !== 'POST').flatMap(errorCodes)),
    ]),
  ].map(([status, response]) => [responseName(status), response]),
)

/** SOFA's parameters without the body and headers, which it wants in the query too. */
const parameters = (
  { field, pathArguments, queryArguments }: Operation,
  generated: NonNullable<GeneratedOperation['parameters']>,
) =>
  [...pathArguments, ...queryArguments].flatMap((arg) => {
    const parameter = generated.find(({ name }) => name === arg.name)
    if (!parameter) return []
    const type = getNullableType(arg.type)
    // The description belongs to the parameter, not to the schema of its values.
    const { description: _, ...schema } = isEnumType(type) ? schemaRef(type.name) : parameter.schema
    return {
      name: arg.name,
      in: parameter.in,
      description: arg.description ?? undefined,
      required: parameter.in === 'path',
      ...(isListType(type) && { style: 'form', explode: true }),
      schema: { ...schema, ...bounds(arg), default: arg.defaultValue },
      example: sampleArgument(arg, field),
    }
  })

const condition = (name: string, description: string, example: string) => ({
  name,
  in: 'header',
  description,
  required: false,
  schema: { type: 'string', minLength: 1, maxLength: MAX_HEAD, pattern: '^(\\*|(W/)?"[!#-~]*".*)$' },
  example,
})

/** What lets a client repeat a request that creates something. */
const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'A unique value that you choose, for example a UUID. For 24 hours, the same request with the same key is not ' +
    'performed again: it gets the response of the first one, with `Idempotency-Replayed: true`.',
  required: false,
  schema: { type: 'string', minLength: 1, maxLength: MAX_KEY, pattern: '^[ -~]+$' },
  example: '7c0f6f0e-5d0b-4b0e-8f43-0a52f2a1c9d4',
}

/** The headers that make a request conditional, or safe to repeat. */
function requestHeaders({ rest, field, isConditional, hasEtag }: Operation) {
  if (rest.method === 'POST') return [idempotencyKey]
  if (isConditional)
    return [
      condition(
        'If-Match',
        'Changes nothing and returns 412 unless the `ETag` is in this list, separated by commas. `*` matches any.',
        createEtag(JSON.stringify(sampleResult(field))),
      ),
    ]
  if (rest.method !== 'GET' || !hasEtag) return []
  const description = 'Returns 304 without a body if the `ETag` is in this list, separated by commas. `*` matches any.'
  return [condition('If-None-Match', description, exampleEtag)]
}

/** Headers of answers that an Idempotency-Key has replayed, and of the one that says that the first is still running. */
function idempotencyHeaders({ rest }: Operation, status: number): ResponseObject['headers'] {
  if (rest.method !== 'POST' || ![rest.status, 409, 422].includes(status as 201)) return {}
  const replayed = text('This is the response to an earlier request with the same `Idempotency-Key`.', 'true', {
    enum: ['true'],
  })
  const headers: ResponseObject['headers'] = { 'Idempotency-Replayed': optional(replayed) }
  if (status === 409) headers['Retry-After'] = optional(allHeaders['Retry-After'] as Header)
  return headers
}

function success(operation: Operation, baseUrl: string): ResponseObject {
  const { rest, field } = operation
  if (rest.status === 204) return { description: 'Deleted. There is no body.', headers: commonHeaders }
  const list = listName(operation)
  const { name } = resultOf(operation)
  const example = sample(field.type) as Record<string, unknown>
  const headers: ResponseObject['headers'] = { ...commonHeaders, ...(operation.hasEtag && etagHeader) }
  if (rest.location) {
    const maxLength = baseUrl.length + fill(rest.location, { id: Number.MAX_SAFE_INTEGER }).length
    headers.Location = text('The URL of the created resource.', baseUrl + fill(rest.location, example), {
      format: 'uri',
      maxLength,
    })
  }
  if (list) {
    const next = `<${baseUrl}${rest.path}?limit=1&after=1>; rel="next"`
    const bounds = { pattern: '^<[^>]+>; rel="next"$', maxLength: next.length + MAX_HEAD }
    headers.Link = optional(text('The next page (RFC 8288). Absent on the last one.', next, bounds))
  }
  const description = list ? 'One page of the list.' : `The ${rest.status === 201 ? 'created ' : ''}${name}.`
  return { description, headers, content: { 'application/json': { schema: schemaRef(list ?? name), example } } }
}

function deprecationHeaders(operation: Operation, options: Options): Record<string, Header> {
  const { deprecation } = operation.rest
  if (!deprecation) return {}
  const examples: Record<string, string> = {}
  createDeprecation(deprecation, options)(examples, sampleParams(operation))
  return {
    Deprecation: text('When the operation was deprecated, in Unix seconds (RFC 9745).', examples.deprecation, {
      pattern: '^@\\d+$',
      maxLength: 16,
    }),
    Sunset: text('From this date on, the operation returns 410 (RFC 8594).', examples.sunset, {
      pattern: ' GMT$',
      maxLength: 32,
    }),
    Link: text('The documentation, and the operation to use instead (RFC 8288).', examples.link, {
      pattern: '^<[^>]+>; rel="deprecation"; type="text/html", <[^>]+>; rel="successor-version"$',
      // What stands in the path is named again, percent-encoded.
      maxLength: String(examples.link).length + 3 * MAX_HEAD,
    }),
  }
}

function responses(operation: Operation, options: Options) {
  const { status = 200, cost } = operation.rest
  const responses: Record<string, ResponseObject | OpenAPIV3.ReferenceObject> = {}
  // Every response of a deprecated operation has these headers, errors included.
  const added = deprecationHeaders(operation, options)
  const own: [number, ResponseObject] = [status, success(operation, options.baseUrl)]
  const unchanged = operation.rest.method === 'GET' && operation.hasEtag ? [notModified] : []
  for (const [status, response] of [own, ...unchanged, ...errorResponses(errorCodes(operation))]) {
    const headers = { ...response.headers, ...idempotencyHeaders(operation, status), ...added }
    const completed = { ...response, headers }
    if (status === 429 && cost === 0) {
      completed.description += '\n\nOnly requests without a valid key are limited here, by their address.'
      completed.content = errorContent([{ ...catalogue.rate_limited, code: 'rate_limited', message: addressLimited }])
    }
    const name = responseName(status)
    const isShared = isDeepStrictEqual(completed, sharedResponses[name])
    responses[status] = isShared ? { $ref: `#/components/responses/${name}` } : completed
  }
  return responses
}

/** What the marks mean. The guide to versions says the same. */
export const stabilities = {
  experimental: 'it stays, but anything about it may still change',
  beta: 'it stays, and only its details may still change',
}

function describe({ field, rest }: Operation, sunset: string) {
  const { status, stability, noTryIt, deprecation } = rest
  const paragraphs = [
    field.description,
    status === 204 && 'REST returns 204 without a body.',
    stability && `This operation is ${stability}: ${stabilities[stability]}.`,
    noTryIt,
    deprecation && `Use \`GET ${deprecation.successor}\` instead. From ${sunset} on it returns 410.`,
  ]
  return paragraphs.filter(Boolean).join('\n\n')
}

/** One operation of SOFA's document, completed. */
export function createOperation(operation: Operation, generated: Generated, options: Options) {
  const { method, path, summary, stability, noTryIt, deprecation } = operation.rest
  const found = generated.paths[path]?.[method.toLowerCase()]
  if (!found) throw new Error(`SOFA describes no ${method} ${path}`)

  const input = inputOf(operation)
  const media = input && { schema: schemaRef(input.name), example: sample(input, resultOf(operation)) }
  const sunset = options.sunset.toISOString().slice(0, 10)
  return {
    operationId: operation.operationId,
    summary,
    description: describe(operation, sunset),
    tags: found.tags,
    ...(deprecation && { deprecated: true, 'x-deprecated-sunset': sunset, 'x-sunset': sunset }),
    // Scalar's words are experimental, stable and deprecated.
    ...(stability && { 'x-stability': stability, 'x-scalar-stability': 'experimental' }),
    // Redocly's and ReadMe's marks; the reason is for our own reference.
    ...(noTryIt && { 'x-hideTryItPanel': true, 'x-explorer-enabled': false, 'x-no-try-it-reason': noTryIt }),
    'x-codeSamples': codeSamples(operation, options.baseUrl),
    parameters: [...parameters(operation, found.parameters ?? []), ...requestHeaders(operation)],
    requestBody: media && {
      description: operation.body?.description ?? undefined,
      required: true,
      content: Object.fromEntries((MEDIA_TYPES[method] ?? []).map((type) => [type, media])),
    },
    responses: responses(operation, options),
  }
}
