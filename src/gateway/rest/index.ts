import { operations } from '../../../schema/index.js'
import { attempt, once } from '../../../schema/kit/attempt.js'
import type { Context } from '../../../schema/kit/context.js'
import { ApiError } from '../../../schema/kit/errors.js'
import { createEtag, matchesWeakly } from '../../../schema/kit/etag.js'
import { ITEMS_PER_UNIT } from '../../../schema/kit/input/rules.js'
import { batchUnits, EXPAND, fill, type Operation } from '../../../schema/kit/operations.js'
import { inSpan } from '../../engines/observe/index.js'
import type { Query } from '../../engines/postgres/index.js'
import { type CreateResolverContext, type CreateTransact, rowsOf } from '../context/index.js'
import { type Body, type HttpRequest, type HttpResponse, jsonResponse, parseBody } from '../http/index.js'
import type { Idempotency } from '../idempotency/index.js'
import { type Caller, type QuotaDecision, requireWriteAccess } from '../keys/index.js'
import type { ReadRequest, Reply, Route } from '../reply/index.js'
import { createPreparer, isDeletedBelow, type Prepared } from './expand.js'
import { createReader, type Source } from './input.js'
import { createRoutes } from './routes.js'

export { createSofaDocument } from './sofa.js'

export interface RestOptions {
  createContext: CreateResolverContext
  createTransact: CreateTransact
  idempotency: Idempotency
  baseUrl: string
  sunset: Date
  /** Whether a path that is no operation has a page, which takes GET and HEAD. */
  hasPage(path: string): boolean
}

/** Prepares how the requests of an operation are read and run: everything about it that does not depend on a request. */
function prepareOperation(
  operation: Operation,
  { createContext, createTransact, idempotency, baseUrl, sunset }: Omit<RestOptions, 'hasPage'>,
) {
  const { rest, name, hasEtag, field, body: argument, queryArguments, operationId: operationName } = operation
  const isRead = operation.type === 'Query'
  const batch = argument?.extensions.batch
  /** Arguments that cost more. They count where they are true, whatever else is wrong. */
  const surcharged = queryArguments.flatMap((argument) => (argument.extensions.units ? argument.name : []))
  const readInput = createReader(operation)
  const preparedFor = createPreparer(operation)

  /** Whether a list was asked for one id alone, and has it. Then its tag is that of the item, which If-Match takes. */
  const isOneItem = ({ query }: HttpRequest, body: string) =>
    isRead && query.size === 1 && query.has(field.extensions.list?.ids ?? '') && body !== '[]'

  function responseOf(request: HttpRequest, body: string, context: Context): HttpResponse {
    const { next, total } = context
    if (rest.status === 204) return { status: 204, headers: {} }
    const response = jsonResponse(body, rest.status)
    if (rest.location) response.headers.location = baseUrl + fill(rest.location, JSON.parse(body))
    if (next) {
      // Values are short, white space around them aside. Without any, a copy takes a tenth of the time.
      const mayHaveSpace = /[%+]/.test(request.search)
      const query = new URLSearchParams(
        mayHaveSpace ? Array.from(request.query, ([name, value]) => [name, value.trim()]) : request.query,
      )
      for (const [name, value] of Object.entries(next))
        value === undefined ? query.delete(name) : query.set(name, value)
      response.headers.link = `<${baseUrl}${request.path}?${query}>; rel="next"`
    }
    if (total !== undefined) response.headers['x-total-count'] = String(total)
    if (hasEtag)
      response.headers.etag = createEtag(isOneItem(request, body) ? body.slice(1, -1) : stateOf(body, context))
    return response
  }

  async function run(source: Source, { execute }: Prepared, caller: Caller, quota: Promise<QuotaDecision>) {
    const { request, body } = source
    if (!isRead) requireWriteAccess(caller)
    if (rest.deprecation && Date.now() >= sunset.getTime()) throw new ApiError('gone')
    const { args, ifNoneMatch, idempotencyKey, refusalOf } = inSpan('validate', () => readInput(source))
    const transact = request.query.has(EXPAND) ? createTransact(caller) : undefined

    async function perform(query?: Query): Promise<Reply> {
      const contextValue = createContext(caller, quota, query)
      const { data, errors } = await inSpan('execute', () => execute({ contextValue, variables: args }))
      // Only now, because a transaction costs more.
      if (transact && !query && isDeletedBelow(errors?.[0])) return transact(perform, { isAtOneMoment: true })
      if (errors?.[0]) throw refusalOf(errors[0])
      return { response: responseOf(request, data?.get(name) ?? 'null', contextValue) }
    }

    if (idempotencyKey !== undefined) {
      const { search } = request
      const rows = rowsOf(field, args)
      const keyed = { request, search, caller, body, operationName, rows, isBatch: batch !== undefined }
      return idempotency.once(keyed, idempotencyKey, perform)
    }
    const result = await perform()
    const { etag, 'x-total-count': total } = result.response.headers
    if (!ifNoneMatch || !etag || !matchesWeakly(ifNoneMatch, etag)) return result
    return { response: { status: 304, headers: { etag, ...(total && { 'x-total-count': total }) } } }
  }

  return (request: HttpRequest, params: Route['params'], body: Body): ReadRequest => {
    const { query } = request
    const prepared = preparedFor(query)
    const surcharges = surcharged.filter((name) => query.getAll(name).some((text) => /^true$/i.test(text)))
    // The cost of a batch depends on its items. What cannot be read is refused later.
    const parsed = batch && !(body instanceof ApiError) ? once(() => parseBody(body)) : undefined
    return {
      units: batch ? batchUnits(parsed && attempt(parsed)) : prepared.unitsOf(query) + surcharges.length,
      advice: (units) =>
        batch
          ? `It would fit with at most ${units * ITEMS_PER_UNIT} items.`
          : prepared.advice(query, surcharges, units),
      isRead,
      run: (caller, quota) => run({ request, params, body, parsed }, prepared, caller, quota),
    }
  }
}

/** What the tag of a result depends on. A list changes also when a page follows its last one, or when its total changes. */
const stateOf = (body: string, { next, total }: Context) =>
  `${body}${next ? '+' : ''}${total === undefined ? '' : ` of ${total}`}`

/** The REST surface: an operation's arguments are read, its prepared document is executed, its result is written. */
export function createRest({ hasPage, ...options }: RestOptions) {
  const routes = createRoutes(hasPage, options.baseUrl)
  const prepared = new Map(operations.map((operation) => [operation, prepareOperation(operation, options)]))
  return {
    /** Found before other steps: an error needs the headers of its operation, too. */
    find: routes.find,

    read(request: HttpRequest, route: Route | undefined, body: Body): ReadRequest {
      const read = route && prepared.get(route.operation)
      if (read) return read(request, route.params, body)
      return { units: 1, run: async () => Promise.reject(routes.refusalOf(request)) }
    },
  }
}
