import { GraphQLError } from 'graphql'

/**
 * Every error of the API, once. Both surfaces and the OpenAPI document derive from this list, and a test compares
 * docs/specification.md with it.
 * `message` is the default for callers; `description` is for the documentation: when the error occurs.
 */
export const catalogue = {
  invalid_request: {
    status: 400,
    message: 'The request is not valid.',
    description: 'Malformed JSON, a wrong type, a value out of bounds, or an unknown field or parameter.',
  },
  unauthorized: {
    status: 401,
    message: 'A valid API key is needed: send it as "Authorization: Bearer <key>" or "X-API-Key: <key>".',
    description: 'No key, or the key is unknown, revoked or expired.',
  },
  forbidden: {
    status: 403,
    message: 'This API key may only read: it cannot change data.',
    description: 'The key may only read, and the request would change data.',
  },
  not_found: { status: 404, message: 'Not found.', description: 'The path or the resource does not exist.' },
  method_not_allowed: {
    status: 405,
    message: 'This path does not support this method.',
    description: 'The path does not support this method. `Allow` lists those that it supports.',
  },
  request_timeout: {
    status: 408,
    message: 'The request did not arrive in time: its head must be there within 10 seconds, and all of it within 30.',
    description: 'The request has begun, but did not arrive in time.',
  },
  conflict: {
    status: 409,
    message: 'The state of the resource does not allow this.',
    description: 'The state of the resource does not allow the request.',
  },
  gone: {
    status: 410,
    message: 'The sunset date of this operation has passed.',
    description: 'The sunset date of the deprecated operation has passed.',
  },
  precondition_failed: {
    status: 412,
    message:
      'Somebody else has changed it since you read it, or the ETag is that of a list or of an answer with expand. Read it again without expand.',
    description: 'The resource has changed or is gone: it has none of the ETags in `If-Match`.',
  },
  payload_too_large: {
    status: 413,
    message: 'The body is too large.',
    description: 'The body is larger than the limit (default: 128 KiB), or arrives in too many small chunks.',
  },
  uri_too_long: {
    status: 414,
    message: 'The path and query string are too long: together with the headers they may have 16384 characters.',
    description: 'The head of the request is larger than 16 KiB, mostly because of its target: path and query string.',
  },
  unsupported_media_type: {
    status: 415,
    message: 'The body must be JSON, with a JSON Content-Type.',
    description: 'The body is not JSON.',
  },
  unknown_reference: {
    status: 422,
    message: 'The request refers to a resource that does not exist.',
    description: 'The request refers to a resource that does not exist.',
  },
  idempotency_mismatch: {
    status: 422,
    message: 'This Idempotency-Key was used before with a different request.',
    description: 'The `Idempotency-Key` was used before with a different request.',
  },
  rate_limited: {
    status: 429,
    message: 'The rate limit is exceeded. Wait for the seconds in Retry-After.',
    description: 'A window is used up. The message names it with its limit; `Retry-After` says how long to wait.',
  },
  key_banned: {
    status: 429,
    message: 'The key is temporarily banned. Wait for the seconds in Retry-After.',
    description: 'The key is temporarily banned. `Retry-After` says for how long.',
  },
  headers_too_large: {
    status: 431,
    message: 'The headers are too large: together with the path and query string they may have 16384 characters.',
    description: 'The head of the request is larger than 16 KiB, mostly because of its headers.',
  },
  internal: { status: 500, message: 'Something went wrong on our side.', description: 'A bug in the service.' },
  not_implemented: {
    status: 501,
    message: 'The service does not support this.',
    description: 'HTTP has no such method, or the body has a transfer coding other than `chunked`.',
  },
  unavailable: {
    status: 503,
    message: 'The service cannot answer now. Retry after the seconds in Retry-After.',
    description: 'The database did not answer in time, or the service has more requests than it can answer in time.',
  },
} as const satisfies Record<string, { status: number; message: string; description: string }>

export type ErrorCode = keyof typeof catalogue

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(catalogue, code)

/** Characters of a message, which may name what the caller sent. */
export const MAX_MESSAGE = 1_000

/** A message may show what the caller sent, which may be a key in the wrong place. Its prefix tells which one. */
const withoutSecrets = (message: string) => message.replace(/(petstore_[\da-f]{8})[\da-f]+…?/gi, '$1…')

/**
 * An error that callers may see: a code of the catalogue and, where it helps, a more exact message.
 * Responses of both surfaces have its `headers`.
 */
export class ApiError extends GraphQLError {
  readonly status: number

  constructor(
    readonly code: ErrorCode,
    message: string = catalogue[code].message,
    readonly headers: Record<string, string> = {},
  ) {
    const { status } = catalogue[code]
    const safe = withoutSecrets(message)
    super(safe.length > MAX_MESSAGE ? `${safe.slice(0, MAX_MESSAGE - 1)}…` : safe, { extensions: { code, status } })
    this.name = 'ApiError'
    this.status = status
  }
}

/** A scalar's error: what the value must be. GraphQL adds which value it was. */
export class InvalidValue extends TypeError {}

const notFound = (resource: string, id: bigint) => new ApiError('not_found', `There is no ${resource} ${id}.`)

/** The row, if there is one. @throws ApiError not_found */
export function found<Row>(row: Row | null, resource: string, id: bigint): Row {
  if (row === null) throw notFound(resource, id)
  return row
}

/** The rows of a batch, if all are there. @throws ApiError not_found (the first one that is not) */
export function allFound<Row>(rows: readonly (Row | null)[], resource: string, ids: readonly bigint[]): Row[] {
  const missing = rows.indexOf(null)
  if (missing < 0) return rows as Row[]
  throw new ApiError('not_found', `There is no ${resource} ${ids[missing]}, which [${missing}] names.`)
}

/** The row of a nested field is gone: deleted by another request, or by this mutation. */
export const deletedMeanwhile = () =>
  new ApiError('not_found', 'The resource was deleted while the request was running.')

/** A statement was refused twice because of a counter, although the counter allowed it each time when it was read afterwards. */
export const changedMeanwhile = () =>
  conflict('What the request needs changed twice while it was running. Try again (with another Idempotency-Key).')

export const unknownReference = (field: string, id: bigint | null | undefined) =>
  new ApiError('unknown_reference', `${field} ${id} does not exist.`)

export const invalidRequest = (message: string) => new ApiError('invalid_request', message)

export const conflict = (message: string) => new ApiError('conflict', message)

/** Another row has the same values in columns that must be unique. */
export const taken = (fields: readonly string[]) =>
  conflict(
    fields.length === 1
      ? `${fields} is already taken: it must be unique.`
      : `${fields.join(' and ')} are already taken: together they must be unique.`,
  )
