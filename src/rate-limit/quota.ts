import type { Quota } from '../../schema/builder.js'
import { ApiError } from '../../schema/errors.js'
import type { Exchange } from '../http/context.js'
import type { WindowName } from './index.js'

/** The caller's quota as the decision on this very request left it. */
export function quotaOf({ key, verdict }: Exchange): Quota {
  const window = (name: WindowName) => {
    const found = verdict?.windows.find((candidate) => candidate.name === name)
    if (!found) throw new ApiError('internal')
    return { limit: found.limit, remaining: found.remaining, reset: Math.ceil(found.resetAt / 1000) }
  }
  if (!key) throw new ApiError('unauthorized')
  return { plan: key.plan, minute: window('minute'), day: window('day') }
}
