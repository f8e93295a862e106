import type { ErrorCode } from '../schema/errors.js'
import type { Caller, Cost } from './auth/index.js'
import type { HttpResponse } from './http/response.js'
import type { RateLimitResult } from './rate-limit/index.js'

/** What a surface returns. */
export interface Result {
  response: HttpResponse
  /** The code of its first error. */
  refusal?: ErrorCode
}

/** What a surface has read of a request: the operation, its cost, and the way to run it. */
export interface ReadRequest extends Cost {
  /** Names the operation in logs and metrics. */
  operationName?: string
  /** A refusal that is returned even if the quota is used up. */
  isRefusedFirst?: boolean
  /** Runs it, once its cost is taken from the quota. A refused request throws its refusal. */
  run(caller: Caller, decision: RateLimitResult): Promise<Result>
}
