import type { ErrorCode } from '../schema/errors.js'
import type { Caller } from './auth/index.js'
import type { HttpResponse } from './http/response.js'
import type { RateLimitResult } from './rate-limit/index.js'

/** What came of a request: its response, and what its headers, the log, the metrics and the usage of keys say of it. */
export interface Outcome {
  response: HttpResponse
  /** Why the request was refused: the code of its first error. */
  refusal?: ErrorCode
  surface: 'rest' | 'graphql' | 'other'
  /** The operationId; in GraphQL that of each root field, separated by commas. */
  operationName?: string
  /** Undefined without a valid key. */
  caller?: Caller
  /** Undefined if nothing was asked of the quota. */
  decision?: RateLimitResult
  /** Not part of an API: not counted, and without rate limit headers. */
  isOperational?: boolean
}
