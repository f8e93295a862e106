import { type GraphQLArgument, GraphQLError } from 'graphql'
import { ApiError } from '../../schema/errors.js'
import { judge, wrongLengthOf } from '../../schema/judge.js'
import { Problems, pathText, shownName, unknownNames } from '../../schema/problems.js'
import type { HttpRequest } from '../http/request.js'
import { readIdempotencyKey } from '../idempotency/index.js'
import { fromText, isList, type JsonBody, readIfMatch, readIfNoneMatch } from './input.js'
import type { Operation } from './operations.js'
import type { Route } from './routes.js'

function judgeText(texts: string[], argument: GraphQLArgument, place: string, problems: Problems): void {
  if (texts.includes('')) {
    problems.add(`${place} must not be empty`)
    return
  }
  const values = wrongLengthOf(argument, texts) ? texts : texts.map((text) => fromText(text, argument.type))
  judge(argument, isList(argument) ? values : values[0], () => place, problems)
  if (isList(argument) && texts.some((text) => text.includes(',')))
    problems.add(`For several values, repeat the parameter: ${argument.name}=1&${argument.name}=2`)
}

function judgeQuery({ queryArguments }: Operation, search: string, problems: Problems): void {
  const query = new URLSearchParams(search)
  const unknown = unknownNames(
    queryArguments.map(({ name }) => name),
    'this operation takes none',
  )
  for (const name of new Set(query.keys())) {
    const argument = queryArguments.find((candidate) => candidate.name === name)
    const place = `The query parameter ${shownName(name)}`
    const texts = query.getAll(name)
    if (!argument) problems.add(unknown(place, name))
    else if (texts.length > 1 && !isList(argument)) problems.add(`${place} must not be repeated`)
    else judgeText(texts, argument, place, problems)
  }
}

function judgeBody({ body }: Operation, json: JsonBody | undefined, problems: Problems): void {
  if (json?.refusal) throw json.refusal
  if (body) judge(body, json?.value, (path) => pathText(path) || 'The body', problems)
}

/**
 * The refusal of a request whose values are wrong: all of them, wherever they stand. Any other error passes unchanged.
 * Nothing of this costs a request that succeeds.
 */
export function refusalOf(
  { operation, params }: Route,
  request: HttpRequest,
  json: JsonBody | undefined,
  error: unknown,
): unknown {
  const cause = error instanceof GraphQLError ? (error.originalError ?? error) : error
  if (!(cause instanceof ApiError) || cause.code !== 'invalid_request') return error
  const { headers } = request.head
  const problems = new Problems()
  for (const argument of operation.pathArguments)
    problems.collect(() =>
      judgeText([params[argument.name] ?? ''], argument, `The path parameter ${argument.name}`, problems),
    )
  problems.collect(() => judgeQuery(operation, request.search, problems))
  problems.collect(() => readIfMatch(operation, headers))
  problems.collect(() => readIfNoneMatch(operation, headers))
  if (operation.rest.method === 'POST') problems.collect(() => readIdempotencyKey(request))
  problems.collect(() => judgeBody(operation, json, problems))
  return problems.refusal ?? error
}
