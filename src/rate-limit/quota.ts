import type { Quota } from '../../schema/builder.js'
import { ApiError } from '../../schema/errors.js'
import type { RateLimitResult, WindowName } from './result.js'

/**
 * The quota of a key as the decision on this very request left it.
 *
 * @throws ApiError internal (the result is not that of a key)
 */
export function quotaOf(plan: Quota['plan'], result: RateLimitResult): Quota {
  const window = (name: WindowName) => {
    const found = result.windows.find((candidate) => candidate.name === name)
    if (!found) throw new ApiError('internal')
    return { limit: found.limit, remaining: found.remaining, reset: Math.ceil(found.resetAt / 1000) }
  }
  return { plan, minute: window('minute'), day: window('day') }
}
