import type { ErrorCode } from '../../../schema/kit/errors.js'
import type { Operation } from '../../../schema/kit/operations.js'
import type { RateLimitResult } from '../../engines/rate-limit/index.js'
import type { HttpResponse } from '../http/index.js'
import type { Caller, Cost, QuotaDecision } from '../keys/index.js'

/** The operation that path and method name, and the text in the path's parameters. */
export interface Route {
  operation: Operation
  params: Record<string, string | undefined>
}

/** What a surface has read of a request: the operation, its cost, and the way to run it. */
export interface ReadRequest extends Cost {
  /** The operationId; in GraphQL that of each root field, separated by commas. */
  operationName?: string
  /** Its refusal is returned even if the quota is used up. */
  isRefusedFirst?: boolean
  /** Whether it changes nothing, so that it may begin before its cost is taken from the quota. */
  isRead?: boolean
  /** Runs it. A refused request throws its refusal. */
  run(caller: Caller, quota: Promise<QuotaDecision>): Promise<Reply>
}

/** What a surface returns to a request. */
export interface Reply {
  response: HttpResponse
  /** Why the request was refused: the code of its first error. */
  refusal?: ErrorCode
}

/** What the steps have found out about a request: for the headers, the log, the metrics and the usage of keys. */
export interface Findings {
  /** Undefined if it is not an operation of REST. */
  route?: Route
  operationName?: string
  /** Undefined without a valid key. */
  caller?: Caller
  /** Undefined if nothing was asked of the quota. */
  decision?: RateLimitResult
  /** Not part of an API: not counted, and without rate limit headers. */
  isOperational?: boolean
}

export interface Exchange extends Findings, Reply {}
