import { GraphQLError } from 'graphql'

/**
 * Every error of the API, once. Both surfaces, the OpenAPI document and the README derive from this list.
 * `message` is the default for callers; `description` is for the documentation: when the error occurs.
 */
export const catalogue = {
  invalid_request: {
    status: 400,
    message: 'The request is not valid.',
    description: 'Malformed JSON, a wrong type, a value out of bounds, an unknown field or parameter.',
  },
  unauthorized: {
    status: 401,
    message: 'A valid API key is needed: send it as "Authorization: Bearer <key>" or "X-API-Key: <key>".',
    description: 'No key, or an unknown, revoked or expired one.',
  },
  not_found: { status: 404, message: 'There is nothing here.', description: 'No such path or no such thing.' },
  method_not_allowed: {
    status: 405,
    message: 'This path does not take this method.',
    description: 'A known path, but another method; `Allow` names those it takes.',
  },
  conflict: { status: 409, message: 'The state of the thing forbids it.', description: 'The state forbids it.' },
  gone: {
    status: 410,
    message: 'This operation ended with its sunset date.',
    description: 'A deprecated operation after its sunset date.',
  },
  precondition_failed: {
    status: 412,
    message: 'The condition of the request does not hold.',
    description: 'A conditional request whose condition does not hold.',
  },
  payload_too_large: {
    status: 413,
    message: 'The body is too large.',
    description: 'A body over the limit (128 KiB unless set otherwise).',
  },
  unsupported_media_type: {
    status: 415,
    message: 'The body must be JSON, with a Content-Type that says so.',
    description: 'A body that is not JSON.',
  },
  unknown_reference: {
    status: 422,
    message: 'The request refers to something that does not exist.',
    description: 'A reference to something that does not exist.',
  },
  idempotency_mismatch: {
    status: 422,
    message: 'This Idempotency-Key was used before with another request.',
    description: 'An `Idempotency-Key` used before with another request.',
  },
  rate_limited: {
    status: 429,
    message: 'The rate limit is used up. Wait for the time in Retry-After.',
    description: 'A window is used up; `Retry-After` says how long to wait.',
  },
  key_banned: {
    status: 429,
    message: 'The key is banned for a time. Wait for the time in Retry-After.',
    description: 'The key is banned; `Retry-After` says for how long.',
  },
  internal: { status: 500, message: 'Something went wrong on our side.', description: 'A defect of ours.' },
  unavailable: {
    status: 503,
    message: 'The service cannot answer just now. Try again after the time in Retry-After.',
    description: 'The database did not answer in time, or the service has more requests than it can answer in time.',
  },
} as const satisfies Record<string, { status: number; message: string; description: string }>

export type ErrorCode = keyof typeof catalogue

/** Characters of a message, which may name what the caller sent. */
export const MAX_MESSAGE = 1_000

/**
 * An error that a caller may read: a code of the catalogue and, where it helps, a more exact message.
 * `headers` go with it on either surface.
 */
export class ApiError extends GraphQLError {
  readonly status: number

  constructor(
    readonly code: ErrorCode,
    message: string = catalogue[code].message,
    readonly headers: Record<string, string> = {},
  ) {
    const { status } = catalogue[code]
    super(message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 1)}…` : message, {
      extensions: { code, status },
    })
    this.name = 'ApiError'
    this.status = status
  }
}

/** A scalar's error: what the value must be. GraphQL adds which value it was. */
export class InvalidValue extends TypeError {}

export const notFound = (resource: string, id: bigint) => new ApiError('not_found', `There is no ${resource} ${id}.`)

/** The row, if there is one. @throws ApiError not_found */
export function found<Row>(row: Row | null, resource: string, id: bigint): Row {
  if (row === null) throw notFound(resource, id)
  return row
}

export const unknownReference = (field: string, id: bigint | null | undefined) =>
  new ApiError('unknown_reference', `${field} ${id} does not exist.`)

export const conflict = (message: string) => new ApiError('conflict', message)

/**
 * Maps one of Prisma's error codes to an error of ours: P2025 is a missing row, P2003 a foreign key that does not hold.
 * Everything else passes unchanged.
 */
export const mapPrismaError =
  (code: 'P2025' | 'P2003', create: () => ApiError | Promise<ApiError>) => async (error: unknown) => {
    throw (error as { code?: string } | null)?.code === code ? await create() : error
  }
