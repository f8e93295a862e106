import { getNullableType, isEnumType, isListType } from 'graphql'
import { createEtag } from '../../../schema/kit/etag.js'
import { OBJECTS_PER_UNIT } from '../../../schema/kit/input/rules.js'
import { EXPAND, expandQuery, longestOf, type Operation } from '../../../schema/kit/operations.js'
import { MAX_HEAD, MEDIA_TYPES } from '../http/index.js'
import { MAX_KEY } from '../idempotency/index.js'
import { codeSamples } from './code-samples.js'
import { type Generated, type Options, schemaRef } from './document.js'
import { exampleArgument, exampleBody, exampleResult, inputOf } from './examples.js'
import { bounds, expansionName } from './schemas.js'

type GeneratedOperation = Generated['paths'][string][string]

/** SOFA's parameters without the body and headers, which it wants in the query too. */
const parameters = ({ field, pathArguments, queryArguments }: Operation, generated: GeneratedOperation) =>
  [...pathArguments, ...queryArguments].flatMap((arg) => {
    const parameter = generated.parameters?.find(({ name }) => name === arg.name)
    if (!parameter) return []
    const type = getNullableType(arg.type)
    // The description belongs to the parameter, not to the schema of its values.
    const { description: _, ...plain } = parameter.schema
    // A reference has no default beside it.
    const named =
      isEnumType(type) && (arg.defaultValue === undefined ? schemaRef(type.name) : { allOf: [schemaRef(type.name)] })
    const schema = named || plain
    return {
      name: arg.name,
      in: parameter.in,
      description: arg.description ?? undefined,
      required: parameter.in === 'path',
      ...(isListType(type) && { style: 'form', explode: true }),
      schema: { ...schema, ...bounds(arg), default: arg.defaultValue },
      example: exampleArgument(arg, field),
    }
  })

/** What `expand` can name. */
function expandParameter(operation: Operation) {
  const { expansions, field } = operation
  const all = longestOf(expansions)
  const isList = isListType(getNullableType(field.type))
  const sentences = [
    `Also returns related objects${isList ? ' of each item' : ''}.`,
    all.length > 1 && `For several, repeat the parameter: \`${expandQuery(all)}\`.`,
    ...all
      .filter((path) => path.includes('.'))
      .map((path) => `\`${path}\` includes \`${path.replace(/\.[^.]*$/, '')}\`.`),
    isList &&
      `The request costs 1 for each ${OBJECTS_PER_UNIT} objects, or part of them, that it may return, its items included.`,
  ]
  return {
    name: EXPAND,
    in: 'query',
    description: sentences.filter(Boolean).join(' '),
    required: false,
    style: 'form',
    explode: true,
    schema: { type: 'array', items: schemaRef(expansionName(operation)), maxItems: expansions.length },
    example: all,
  }
}

const requestHeader = (name: string, description: string, maxLength: number, pattern: string, example: string) => ({
  name,
  in: 'header',
  description,
  required: false,
  schema: { type: 'string', minLength: 1, maxLength, pattern },
  example,
})

// Generators of Python write patterns into strings in double quotes.
const ETAG_LIST = '^(\\*|(W/)?\\x22[!#-~]*\\x22.*)$'

/** The headers that make a request conditional, or safe to repeat. */
function requestHeaders({ rest, field, isConditional, hasEtag }: Operation) {
  if (rest.method === 'POST') {
    const description =
      'A unique value that you choose, for example a UUID. For 24 hours, the same request with the same key is not ' +
      'performed again: it gets the response of the first one, with `Idempotency-Replayed: true`.'
    const example = '7c0f6f0e-5d0b-4b0e-8f43-0a52f2a1c9d4'
    return [requestHeader('Idempotency-Key', description, MAX_KEY, '^[ -~]+$', example)]
  }
  const list = 'the `ETag` is in this list, separated by commas. `*` matches any.'
  if (isConditional) {
    const etag = createEtag(JSON.stringify(exampleResult(field)))
    return [requestHeader('If-Match', `Changes nothing and returns 412 unless ${list}`, MAX_HEAD, ETAG_LIST, etag)]
  }
  if (rest.method !== 'GET' || !hasEtag) return []
  return [requestHeader('If-None-Match', `Returns 304 without a body if ${list}`, MAX_HEAD, ETAG_LIST, createEtag(''))]
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

/** One operation of SOFA's document, completed: all but its responses. */
export function createOperation(operation: Operation, generated: Generated, { baseUrl, sunset }: Options) {
  const { method, path, summary, stability, noTryIt, deprecation } = operation.rest
  const found = generated.paths[path]?.[method.toLowerCase()]
  if (!found) throw new Error(`SOFA describes no ${method} ${path}`)

  const input = inputOf(operation)
  const item = input && schemaRef(input.name)
  const { body } = operation
  const schema = body?.extensions.batch ? { type: 'array', ...bounds(body), items: item } : item
  const media = schema && { schema, example: exampleBody(operation) }
  const end = sunset.toISOString().slice(0, 10)
  return {
    operationId: operation.operationId,
    summary,
    description: describe(operation, end),
    tags: found.tags,
    ...(deprecation && { deprecated: true, 'x-deprecated-sunset': end, 'x-sunset': end }),
    // Scalar's words are experimental, stable and deprecated.
    ...(stability && { 'x-stability': stability, 'x-scalar-stability': 'experimental' }),
    // Redocly's and ReadMe's marks; the reason is for our own reference.
    ...(noTryIt && { 'x-hideTryItPanel': true, 'x-explorer-enabled': false, 'x-no-try-it-reason': noTryIt }),
    'x-codeSamples': codeSamples(operation, baseUrl),
    parameters: [
      ...parameters(operation, found),
      ...(operation.expansions.length > 0 ? [expandParameter(operation)] : []),
      ...requestHeaders(operation),
    ],
    requestBody: media && {
      description: operation.body?.description ?? undefined,
      required: true,
      content: Object.fromEntries((MEDIA_TYPES[method] ?? []).map((type) => [type, media])),
    },
  }
}
