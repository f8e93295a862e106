import type { IncomingHttpHeaders } from 'node:http'
import {
  coerceInputValue,
  type GraphQLArgument,
  type GraphQLInputType,
  getNamedType,
  getNullableType,
  isListType,
} from 'graphql'
import { ApiError } from '../../schema/errors.js'
import { MALFORMED, parseEntityTags } from '../../schema/etag.js'
import { wrongLengthOf } from '../../schema/judge.js'
import { wrongValue } from '../../schema/problems.js'
import { type Body, readJson } from '../http/body.js'
import type { HttpRequest } from '../http/request.js'
import { MEDIA_TYPES, type Operation } from './operations.js'

const invalid = (message: string) => new ApiError('invalid_request', message)

/** Some value is wrong: refusal.ts then says what is wrong with all of them. */
const REFUSED = new ApiError('invalid_request')
const refuse = (): never => {
  throw REFUSED
}

/**
 * Text of a path or a query string as the value that its type would have in JSON, unchanged if it has none. Nothing is
 * guessed.
 */
export function fromText(text: string, type: GraphQLInputType): unknown {
  if (text === '') throw REFUSED
  switch (getNamedType(type).name) {
    case 'Int64':
      return /^-?\d+$/.test(text) ? BigInt(text) : text
    case 'Int':
      return /^-?\d{1,15}$/.test(text) ? Number(text) : text
    case 'Boolean':
      return text === 'true' || (text === 'false' ? false : text)
  }
  return text
}

/** The JSON in the body of a request, or what is wrong with it. It is parsed once, because a large one takes long. */
export type JsonBody = { value: unknown; refusal?: undefined } | { value?: undefined; refusal: unknown }

export function readJsonBody(operation: Operation, request: HttpRequest, body: Body): JsonBody | undefined {
  const { rest } = operation
  try {
    return operation.body && { value: readJson(request, body, MEDIA_TYPES[rest.method] ?? []) }
  } catch (refusal) {
    return { refusal }
  }
}

/** The value of an argument in the form that resolvers take. @throws ApiError invalid_request */
export const coerce = (value: unknown, { type }: GraphQLArgument) => coerceInputValue(value, type, refuse)

/** A path parameter as the value of its argument. @throws ApiError invalid_request */
export const readPath = (text: string, argument: GraphQLArgument) => coerce(fromText(text, argument.type), argument)

export const isList = ({ type }: GraphQLArgument) => isListType(getNullableType(type))

/**
 * Reads the query string into arguments: every name known, none empty, none repeated but those of a list.
 *
 * @throws ApiError invalid_request
 */
export function readQuery(into: Record<string, unknown>, search: string, args: readonly GraphQLArgument[]): void {
  const query = new URLSearchParams(search)
  for (const name of new Set(query.keys())) {
    const argument = args.find((candidate) => candidate.name === name)
    if (!argument) throw REFUSED
    const texts = query.getAll(name)
    const list = isList(argument)
    if ((texts.length > 1 && !list) || wrongLengthOf(argument, texts)) throw REFUSED
    const values = texts.map((text) => fromText(text, argument.type))
    into[name] = coerce(list ? values : values[0], argument)
  }
}

/** A header with entity tags, if it was sent. An operation that cannot evaluate the condition refuses it. */
function readEntityTags(text: string | undefined, name: string, methods: string, isSupported: boolean) {
  if (text === undefined) return
  if (!isSupported) throw invalid(`The header ${name} is supported by ${methods} only; leave it out.`)
  const tags = parseEntityTags(text)
  if (!tags) throw invalid(wrongValue(`The header ${name}`, text, MALFORMED))
  return tags
}

/**
 * Reads the conditions of a request (RFC 9110, section 13). One that the operation cannot evaluate is refused, because
 * a client relies on it.
 *
 * @throws ApiError invalid_request
 */
export const readIfMatch = ({ isConditional }: Operation, headers: IncomingHttpHeaders) =>
  readEntityTags(headers['if-match'], 'If-Match', 'PATCH and DELETE', isConditional)
export const readIfNoneMatch = ({ rest }: Operation, headers: IncomingHttpHeaders) =>
  readEntityTags(headers['if-none-match'], 'If-None-Match', 'GET', rest.method === 'GET')
