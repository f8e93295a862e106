import { hash as hashOf } from 'node:crypto'
import { ApiError, invalidRequest } from '../../../schema/kit/errors.js'
import { Problems, shownName, unknownNames, wrongValue } from '../../../schema/kit/input/problems.js'
import type { Values } from '../../../schema/kit/input/values.js'
import {
  assertJson,
  type Body,
  type HttpRequest,
  MEDIA_TYPES,
  parseBody,
  parseJson,
  unavailable,
} from '../http/index.js'

/** The parameters of a GraphQL request (GraphQL over HTTP, section 5). */
export interface GraphqlParameters {
  /** Undefined only if there is a hash, for a document that was sent before. */
  query?: string
  /** The SHA-256 of the document, if the client wants it to be kept, or has sent it before. */
  hash?: string
  operationName?: string
  variables?: Values
}

const BODY_RULE = 'must be a JSON object such as {"query": "{ quota { plan } }"}'

/** The operations that a batch of Apollo's link may have. A longer array is no such batch. */
const MAX_TOGETHER = 100

/** Several operations in one request, which is refused. Their client expects as many results. */
export class SeveralOperations extends ApiError {
  readonly count: number | undefined

  constructor(operations: unknown[]) {
    super(
      'invalid_request',
      `${wrongValue('The body', operations, BODY_RULE)} Send the operations of a batch one by one.`,
    )
    const { length } = operations
    this.count = length > 0 && length <= MAX_TOGETHER ? length : undefined
  }
}

const KNOWN = ['query', 'variables', 'operationName', 'extensions']

const isObject = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function fromJson(text: string | undefined, name: string) {
  if (!text) return undefined
  try {
    return parseJson(text)
  } catch {
    throw invalidRequest(wrongValue(name, text, 'must be a JSON object'))
  }
}

function fromQuery(query: URLSearchParams) {
  for (const name of KNOWN)
    if (query.getAll(name).length > 1) throw invalidRequest(`The parameter ${name} is given more than once.`)
  const { variables, extensions, ...parameters } = Object.fromEntries(query)
  return {
    ...parameters,
    variables: fromJson(variables, 'variables'),
    extensions: fromJson(extensions, 'extensions'),
  }
}

/** What Apollo's clients send to name a document by its hash, and no other extension. */
interface PersistedQuery {
  version: number
  sha256Hash: string
}

const persistedIn = ({ extensions }: Values) =>
  (isObject(extensions) ? (extensions.persistedQuery ?? undefined) : undefined) as PersistedQuery | undefined

function assertPersisted({ query }: Values, persisted: unknown, problems: Problems): void {
  const name = 'extensions.persistedQuery'
  if (!isObject(persisted)) return void problems.add(wrongValue(name, persisted, 'must be a JSON object'))
  const { version, sha256Hash: hash } = persisted
  if (version !== 1) problems.add(wrongValue(`${name}.version`, version, 'must be 1'))
  if (typeof hash !== 'string' || !/^[\da-f]{64}$/.test(hash))
    problems.add(wrongValue(`${name}.sha256Hash`, hash, 'must be a SHA-256 of 64 hexadecimal digits in lower case'))
  else if (typeof query === 'string' && hashOf('sha256', query, 'hex') !== hash)
    problems.add(wrongValue(`${name}.sha256Hash`, hash, 'must be the SHA-256 of query'))
}

/** An empty name counts as absent, and beside a hash so does an empty document. */
const withoutEmpty = ({ query, operationName, ...others }: Values): Values => ({
  ...others,
  query: query === '' && persistedIn(others) !== undefined ? undefined : query,
  operationName: operationName === '' ? undefined : operationName,
})

/** @throws ApiError invalid_request (everything that is wrong with the parameters) */
function assertParameters(parameters: Values): asserts parameters is Values & Pick<GraphqlParameters, 'query'> {
  const { query, operationName } = parameters
  const persisted = persistedIn(parameters)
  const problems = new Problems()
  problems.collect(() => {
    if (persisted !== undefined) assertPersisted(parameters, persisted, problems)
    if (query == null && persisted !== undefined) return
    if (query === undefined) problems.add('query is missing; it must be a GraphQL document')
    else if (typeof query !== 'string') problems.add(wrongValue('query', query, 'must be a string'))
    if (operationName != null && typeof operationName !== 'string')
      problems.add(wrongValue('operationName', operationName, 'must be a string'))
    for (const name of ['variables', 'extensions'])
      if (parameters[name] != null && !isObject(parameters[name]))
        problems.add(wrongValue(name, parameters[name], 'must be a JSON object'))
    const unknown = unknownNames(KNOWN)
    for (const name of Object.keys(parameters))
      if (!KNOWN.includes(name)) problems.add(unknown(`The parameter ${shownName(name)}`, name))
  })
  if (problems.refusal) throw problems.refusal
}

/** How long the parameters are as they were sent. */
export const lengthOf = ({ method, search }: HttpRequest, body: Body): number =>
  method === 'POST' && Buffer.isBuffer(body) ? body.length : search.length

function parse(request: HttpRequest, body: Body, max: number): unknown {
  const assertShort = () => {
    if (lengthOf(request, body) > max) throw unavailable()
  }
  if (request.method === 'GET') {
    assertShort()
    request.assertDecodable()
    return fromQuery(request.query)
  }
  if (request.method !== 'POST')
    throw new ApiError('method_not_allowed', 'GraphQL takes GET and POST.', { allow: 'GET, HEAD, POST' })
  assertJson(request, body, MEDIA_TYPES.POST as string[])
  assertShort()
  return parseBody(body)
}

/**
 * Reads the parameters from the query string of a GET or the body of a POST.
 *
 * @param max a longer one is not read
 * @throws ApiError method_not_allowed, payload_too_large, unsupported_media_type, unavailable (it is not read), invalid_request
 */
export function readParameters(request: HttpRequest, body: Body, max = Number.POSITIVE_INFINITY): GraphqlParameters {
  const sent = parse(request, body, max)
  if (Array.isArray(sent)) throw new SeveralOperations(sent)
  if (!isObject(sent)) throw invalidRequest(wrongValue('The body', sent, BODY_RULE))
  const parameters = withoutEmpty(sent)
  assertParameters(parameters)
  const { query, operationName, variables } = parameters
  return {
    query: query ?? undefined,
    hash: persistedIn(parameters)?.sha256Hash,
    operationName: (operationName as string | null) ?? undefined,
    variables: (variables as Values | null) ?? undefined,
  }
}
