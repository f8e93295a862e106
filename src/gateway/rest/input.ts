import { type GraphQLArgument, GraphQLError, getNamedType, getNullableType, isListType } from 'graphql'
import { ApiError, invalidRequest } from '../../../schema/kit/errors.js'
import { MALFORMED, parseEntityTags } from '../../../schema/kit/etag.js'
import {
  anyOf,
  didYouMean,
  type Path,
  Problems,
  pathText,
  shownName,
  unknownNames,
  wrongValue,
} from '../../../schema/kit/input/problems.js'
import { judge, readValue, type Values } from '../../../schema/kit/input/values.js'
import { EXPAND, expandQuery, longestOf, type Operation } from '../../../schema/kit/operations.js'
import { assertJson, type Body, type HttpRequest, MEDIA_TYPES, parseBody } from '../http/index.js'
import { readIdempotencyKey } from '../idempotency/index.js'
import type { Route } from '../reply/index.js'

/** The parts of a request that its operation reads. */
export interface Source extends Pick<Route, 'params'> {
  request: HttpRequest
  body: Body
  /** Returns the JSON in the body, if it was parsed already: a large one takes long. */
  parsed?: () => unknown
}

/** How a value stands in a path or a query string, by its type. */
const forms: Record<string, [form: RegExp, read: (text: string) => unknown]> = {
  Int64: [/^-?\d{1,19}$/, BigInt],
  Int: [/^-?\d{1,15}$/, Number],
  // In any case: Python sends True.
  Boolean: [/^(true|false)$/i, (text) => text.toLowerCase() === 'true'],
}

/** Text as the value that its type would have in JSON, unchanged if it has none. Nothing is guessed. */
function fromText(text: string, type: string): unknown {
  const [form, read] = forms[type] ?? []
  return read && form?.test(text) ? read(text) : text
}

/** Returns how to read a parameter of the path or the query string. */
function createParameter(argument: GraphQLArgument, place: 'path' | 'query') {
  const { name, type } = argument
  const isList = isListType(getNullableType(type))
  const typeName = getNamedType(type).name
  const nameOf = () => `The ${place} parameter ${name}`
  return (texts: string[], problems: Problems): unknown => {
    const [text = ''] = texts
    if (texts.length > 1 && !isList) return problems.add(`${nameOf()} must not be repeated`)
    if (texts.includes('')) return problems.add(`${nameOf()} must not be empty`)
    const report = { problems, nameOf }
    const given = isList ? texts.map((item) => fromText(item, typeName)) : fromText(text, typeName)
    const value = readValue(argument, given, report)
    judge(argument, value, report)
    if (typeName === 'DateTime' && / [\d:]+$/.test(text)) problems.add('In a URL, write + as %2B')
    if (typeName === 'Int64' && isList && texts.some((item) => item.includes(','))) problems.add(repeatRule(name))
    return value
  }
}

const repeatRule = (name: string, values: readonly unknown[] = [1, 2]) =>
  `For several values, repeat the parameter: ${values.map((value) => `${name}=${value}`).join('&')}`

const createParameters = (args: GraphQLArgument[], place: 'path' | 'query') =>
  new Map(args.map((argument) => [argument.name, createParameter(argument, place)]))

/** How to write several names of `expand`. */
function expandRule(expansions: readonly string[]): string {
  const all = longestOf(expansions)
  return all.length > 1 ? repeatRule(EXPAND, all) : `For all of them, write ${expandQuery(all)}`
}

/** Returns how to judge the names in `expand`. What they make of the operation is decided by expand.ts. */
function createExpand(expansions: readonly string[]) {
  const rule = `must be ${anyOf(expansions)}`
  const several = expandRule(expansions)
  return (names: string[], problems: Problems): undefined => {
    const { length } = expansions
    if (names.length > length)
      return problems.add(wrongValue(`The query parameter ${EXPAND}`, names, `must have at most ${length} items`))
    for (const name of names.filter((name) => !expansions.includes(name))) {
      const meant = didYouMean(name, expansions)
      const wrong = wrongValue(`The query parameter ${EXPAND}`, name, rule)
      problems.add(`${wrong}${/[,;|]/.test(name) ? ` ${several}` : meant ? ` D${meant.slice(1)}` : ''}`)
    }
  }
}

/**
 * Reads a header with entity tags (RFC 9110, section 13), if it was sent. An operation that cannot evaluate the condition
 * refuses it, because a client relies on it.
 */
function readEntityTags(text: string | undefined, name: string, methods: string, isSupported: boolean) {
  if (text === undefined) return undefined
  if (!isSupported) throw invalidRequest(`The header ${name} is supported by ${methods} only; leave it out.`)
  const tags = parseEntityTags(text)
  if (!tags) throw invalidRequest(wrongValue(`The header ${name}`, text, MALFORMED))
  return tags
}

/**
 * Prepares the reading of an operation's requests. The reader that it returns throws one refusal, which names everything
 * that is wrong. The rules of a body are left to Pothos: only if something is refused are they asked here, too.
 */
export function createReader(operation: Operation) {
  const { rest, body, isConditional, expansions } = operation
  const inPath = createParameters(operation.pathArguments, 'path')
  const inQuery = createParameters(operation.queryArguments, 'query')
  const nameOf = (path: Path) => pathText(path) || 'The body'
  const mediaTypes = MEDIA_TYPES[rest.method] ?? []
  /** How to write several values, by the name of the parameter. */
  const lists = new Map(
    operation.queryArguments.flatMap(({ name, type }) =>
      isListType(getNullableType(type)) ? [[name, repeatRule(name)]] : [],
    ),
  )
  if (expansions.length > 0) {
    inQuery.set(EXPAND, createExpand(expansions))
    lists.set(EXPAND, expandRule(expansions))
  }
  const known = [...inQuery.keys()]
  const elsewhere = (name: string) => (inQuery.has(name) ? `it is a query parameter: ?${name}=…` : undefined)

  function readQuery(request: HttpRequest, args: Values, problems: Problems): void {
    request.assertDecodable()
    const unknown = unknownNames(known, 'this operation takes none')
    for (const name of new Set(request.query.keys())) {
      const read = inQuery.get(name)
      if (read) {
        args[name] = read(request.query.getAll(name), problems)
        continue
      }
      problems.add(unknown(`The query parameter ${shownName(name)}`, name))
      const rule = name.includes('[') && lists.get(name.split('[', 1)[0] as string)
      if (rule) problems.add(rule)
    }
  }

  function readBody(argument: GraphQLArgument, { request, body, parsed }: Source, problems: Problems): unknown {
    assertJson(request, body, mediaTypes)
    const json = parsed ? parsed() : parseBody(body)
    // A single item is not taken for a list of one, as GraphQL does.
    if (argument.extensions.batch && !Array.isArray(json))
      return problems.add(wrongValue('The body', json, 'must be a JSON array'))
    return readValue(argument, json, { problems, nameOf, elsewhere })
  }

  return (source: Source) => {
    const { params, request } = source
    const { 'if-match': ifMatch, 'if-none-match': noneMatch } = request.head.headers
    const args: Values = {}
    const problems = new Problems()
    const part = <T>(read: () => T) => problems.collect(read)
    for (const [name, read] of inPath) args[name] = part(() => read([params[name] ?? ''], problems))
    part(() => readQuery(request, args, problems))
    if (part(() => readEntityTags(ifMatch, 'If-Match', 'PATCH and DELETE of one resource', isConditional)))
      args.ifMatch = ifMatch
    const ifNoneMatch = part(() => readEntityTags(noneMatch, 'If-None-Match', 'GET', rest.method === 'GET'))
    const idempotencyKey = rest.method === 'POST' ? part(() => readIdempotencyKey(request)) : undefined
    if (body) args[body.name] = part(() => readBody(body, source, problems))

    function refusal(): ApiError | undefined {
      if (body) part(() => judge(body, args[body.name], { problems, nameOf }))
      return problems.refusal
    }
    if (problems.refusal) throw refusal()
    /** What to throw for an error of the execution: if a rule refuses a value, a refusal of all wrong values. */
    const refusalOf = (error: unknown) => {
      const cause = error instanceof GraphQLError ? (error.originalError ?? error) : error
      return cause instanceof ApiError && cause.code === 'invalid_request' ? (refusal() ?? error) : error
    }
    return { args, ifNoneMatch, idempotencyKey, refusalOf }
  }
}
