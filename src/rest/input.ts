import type { IncomingHttpHeaders } from 'node:http'
import {
  coerceInputValue,
  type GraphQLArgument,
  type GraphQLInputType,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
} from 'graphql'
import { ApiError, InvalidValue } from '../../schema/errors.js'
import { MALFORMED, parseEntityTags } from '../../schema/etag.js'
import { parseId } from '../../schema/scalars.js'
import { MAX_INT } from '../../schema/validation.js'
import type { Operation } from './operations.js'

const invalid = (message: string) => new ApiError('invalid_request', message)

/** Text of a path or a query string as the value that its type would have in JSON. Nothing is guessed. */
function fromText(text: string, type: GraphQLInputType, name: string): unknown {
  const named = getNamedType(type)
  if (text === '') throw invalid(`${name} must not be empty.`)
  switch (named.name) {
    case 'Int64':
      try {
        return parseId(text)
      } catch (error) {
        throw invalid(`${name} ${(error as Error).message}.`)
      }
    case 'Int':
      if (!/^-?\d+$/.test(text)) throw invalid(`${name} must be a whole number.`)
      return Number(text)
    case 'Boolean':
      if (text !== 'true' && text !== 'false') throw invalid(`${name} must be true or false.`)
      return text === 'true'
  }
  return text
}

/** A path parameter as the value of its argument. */
export const readPath = (text: string, argument: GraphQLArgument) =>
  coerce(fromText(text, argument.type, argument.name), argument)

/**
 * Reads the query string into arguments: every name known, none empty, none repeated but those of a list.
 *
 * @throws ApiError invalid_request
 */
export function readQuery(into: Record<string, unknown>, search: string, args: readonly GraphQLArgument[]): void {
  const query = new URLSearchParams(search)
  for (const name of new Set(query.keys())) {
    const argument = args.find((candidate) => candidate.name === name)
    if (!argument) {
      const known = args.map((arg) => arg.name).join(', ')
      throw invalid(`The query parameter ${name} is unknown${known && `; known are ${known}`}.`)
    }
    const texts = query.getAll(name)
    const list = isListType(getNullableType(argument.type))
    if (texts.length > 1 && !list) throw invalid(`The query parameter ${name} must not be repeated.`)
    const values = texts.map((text) => fromText(text, argument.type, name))
    into[name] = coerce(list ? values : values[0], argument)
  }
}

/** A header with entity tags, if it was sent. An operation that cannot judge the condition refuses it. */
function readEntityTags(text: string | undefined, name: string, methods: string, isSupported: boolean) {
  if (text === undefined) return
  if (!isSupported) throw invalid(`${name} is supported by ${methods} only.`)
  const tags = parseEntityTags(text)
  if (!tags) throw invalid(`${name} ${MALFORMED}.`)
  return tags
}

/**
 * Reads the conditions of a request (RFC 9110, section 13). One that the operation cannot judge is refused, because a
 * client relies on it.
 *
 * @throws ApiError invalid_request
 */
export const readConditions = ({ rest, isConditional }: Operation, headers: IncomingHttpHeaders) => ({
  ifMatch: readEntityTags(headers['if-match'], 'If-Match', 'PATCH and DELETE', isConditional),
  ifNoneMatch: readEntityTags(headers['if-none-match'], 'If-None-Match', 'GET', rest.method === 'GET'),
})

/** What a wrong value should have been, in JSON's words. */
function wanted(type: GraphQLInputType) {
  const named = getNamedType(type)
  if (isEnumType(named))
    return `one of ${named
      .getValues()
      .map((value) => value.name)
      .join(', ')}`
  const words: Record<string, string> = {
    String: 'a string',
    Int: `a whole number up to ${MAX_INT}`,
    Boolean: 'true or false',
  }
  return words[named.name] ?? (isInputObjectType(named) ? 'a JSON object' : undefined)
}

/**
 * The value of an argument in the form that resolvers take.
 *
 * @throws ApiError invalid_request, which names the wrong field as the caller wrote it
 */
export function coerce(value: unknown, { name, type }: GraphQLArgument): unknown {
  return coerceInputValue(value, type, (path, _wrong, error) => {
    const at = path.join('.') || (isInputObjectType(getNamedType(type)) ? 'The body' : name)
    if (error.originalError instanceof InvalidValue) throw invalid(`${at} ${error.originalError.message}.`)
    const missing = /^Field "(\w+)" of required type/.exec(error.message)?.[1]
    if (missing) throw invalid(`${[...path, missing].join('.')} is required.`)
    const unknown = /^Field "(.*)" is not defined by type/s.exec(error.message)?.[1]
    if (unknown !== undefined) throw invalid(`${[...path, unknown].join('.')} is unknown.`)
    const field = path.reduce<GraphQLInputType | undefined>((parent, key) => {
      const named = parent && getNamedType(parent)
      return isInputObjectType(named) ? named.getFields()[String(key)]?.type : parent
    }, type)
    throw invalid(`${at} must be ${(field && wanted(field)) ?? 'of another type'}.`)
  })
}
