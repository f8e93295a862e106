import { type GraphQLArgument, GraphQLError, getNamedType, getNullableType, isListType } from 'graphql'
import { ApiError } from '../../schema/errors.js'
import { type EntityTags, MALFORMED, parseEntityTags } from '../../schema/etag.js'
import { type Path, Problems, pathText, shownName, unknownNames, wrongValue } from '../../schema/input/problems.js'
import { readValue, refuse, type Values } from '../../schema/input/values.js'
import type { Operation } from '../../schema/operations.js'
import { assertJson, type Body, MEDIA_TYPES, readJson } from '../http/body.js'
import type { HttpRequest } from '../http/request.js'
import { readIdempotencyKey } from '../idempotency/index.js'
import type { Route } from '../reply.js'

/** The parts of a request that its operation reads. */
export interface Source extends Pick<Route, 'params'> {
  request: HttpRequest
  body: Body
  /** The JSON in the body, if it was parsed already. */
  parsed?: unknown
}

/** What an operation takes from a request. */
export interface Input {
  /** The arguments of its field, coerced. */
  args: Values
  ifNoneMatch: EntityTags | undefined
  idempotencyKey: string | undefined
  /** What to throw for an error of the execution: if a rule refuses a value, a refusal that names all wrong values. */
  refusalOf(error: unknown): unknown
}

/**
 * Text of a path or a query string as the value that its type would have in JSON, unchanged if it has none. Nothing is
 * guessed.
 */
function fromText(text: string, type: string): unknown {
  switch (type) {
    case 'Int64':
      return /^-?\d{1,19}$/.test(text) ? BigInt(text) : text
    case 'Int':
      return /^-?\d{1,15}$/.test(text) ? Number(text) : text
    case 'Boolean':
      // In any case: Python sends True.
      return /^(true|false)$/i.test(text) ? text.toLowerCase() === 'true' : text
  }
  return text
}

/** Returns how to read a parameter of the path or the query string. */
function createParameter(argument: GraphQLArgument, place: 'path' | 'query') {
  const { name, type } = argument
  const isList = isListType(getNullableType(type))
  const typeName = getNamedType(type).name
  const nameOf = () => `The ${place} parameter ${name}`
  return (texts: string[], problems?: Problems): unknown => {
    const [text = ''] = texts
    if (texts.length > 1 && !isList) return refuse(problems, () => `${nameOf()} must not be repeated`)
    if (texts.includes('')) return refuse(problems, () => `${nameOf()} must not be empty`)
    const value = isList ? texts.map((item) => fromText(item, typeName)) : fromText(text, typeName)
    const coerced = readValue(argument, value, nameOf, problems)
    if (problems && typeName === 'DateTime' && / [\d:]+$/.test(text)) problems.add('In a URL, write + as %2B')
    if (problems && isList && texts.some((item) => item.includes(',')))
      problems.add(`For several values, repeat the parameter: ${name}=1&${name}=2`)
    return coerced
  }
}

const createParameters = (args: GraphQLArgument[], place: 'path' | 'query') =>
  new Map(args.map((argument) => [argument.name, createParameter(argument, place)]))

/**
 * Reads a header with entity tags (RFC 9110, section 13), if it was sent. An operation that cannot evaluate the condition
 * refuses it, because a client relies on it.
 */
function readEntityTags(text: string | undefined, name: string, methods: string, isSupported: boolean) {
  if (text === undefined) return undefined
  const invalid = (message: string) => new ApiError('invalid_request', message)
  if (!isSupported) throw invalid(`The header ${name} is supported by ${methods} only; leave it out.`)
  const tags = parseEntityTags(text)
  if (!tags) throw invalid(wrongValue(`The header ${name}`, text, MALFORMED))
  return tags
}

/** The JSON in a body, or what is wrong with it. It is parsed once, because a large one takes long. */
type Json = { value: unknown; refusal?: undefined } | { value?: undefined; refusal: unknown }

function parseBody({ request, body, parsed }: Source, mediaTypes: string[]): Json {
  try {
    if (parsed === undefined) return { value: readJson(request, body, mediaTypes) }
    assertJson(request, body, mediaTypes)
    return { value: parsed }
  } catch (refusal) {
    return { refusal }
  }
}

/**
 * Prepares the reading of an operation's requests. The reader that it returns throws one refusal, which names everything
 * that is wrong. Nothing of that costs a request that succeeds.
 */
export function createReader(operation: Operation): (source: Source) => Input {
  const { rest, body, isConditional } = operation
  const inPath = createParameters(operation.pathArguments, 'path')
  const inQuery = createParameters(operation.queryArguments, 'query')
  const mediaTypes = MEDIA_TYPES[rest.method] ?? []

  function readQuery(query: URLSearchParams, args: Values, problems?: Problems): void {
    const unknown = problems && unknownNames([...inQuery.keys()], 'this operation takes none')
    for (const name of new Set(query.keys())) {
      const read = inQuery.get(name)
      if (read) args[name] = read(query.getAll(name), problems)
      else refuse(problems, () => unknown?.(`The query parameter ${shownName(name)}`, name) ?? '')
    }
  }

  /** A single item is not taken for a list of one, as GraphQL does. */
  function readArgument(
    argument: GraphQLArgument,
    value: unknown,
    nameOf: (path: Path) => string,
    problems?: Problems,
  ) {
    if (argument.extensions.batch && !Array.isArray(value))
      return refuse(problems, () => wrongValue(nameOf([]), value, 'must be a JSON array'))
    return readValue(argument, value, nameOf, problems)
  }

  return (source) => {
    const { params, request } = source
    const { 'if-match': ifMatch, 'if-none-match': noneMatch } = request.head.headers
    let json: Json | undefined
    const readBody = () => {
      json ??= parseBody(source, mediaTypes)
      if (json.refusal) throw json.refusal
      return json.value
    }

    /** Reads every part. The first problem ends it, unless `problems` collects them all. */
    function read(problems?: Problems): Input {
      const args: Values = {}
      const part = <T>(readPart: () => T) => (problems ? problems.collect(readPart) : readPart())
      for (const [name, read] of inPath) args[name] = part(() => read([params[name] ?? ''], problems))
      part(() => readQuery(request.query, args, problems))
      if (part(() => readEntityTags(ifMatch, 'If-Match', 'PATCH and DELETE of one resource', isConditional)))
        args.ifMatch = ifMatch
      const ifNoneMatch = part(() => readEntityTags(noneMatch, 'If-None-Match', 'GET', rest.method === 'GET'))
      const idempotencyKey = rest.method === 'POST' ? part(() => readIdempotencyKey(request)) : undefined
      const nameOf = (path: Path) => pathText(path) || 'The body'
      if (body) args[body.name] = part(() => readArgument(body, readBody(), nameOf, problems))
      return { args, ifNoneMatch, idempotencyKey, refusalOf }
    }

    function refusalOf(error: unknown): unknown {
      const cause = error instanceof GraphQLError ? (error.originalError ?? error) : error
      if (!(cause instanceof ApiError) || cause.code !== 'invalid_request') return error
      const problems = new Problems()
      read(problems)
      return problems.refusal ?? error
    }

    try {
      return read()
    } catch (error) {
      throw refusalOf(error)
    }
  }
}
