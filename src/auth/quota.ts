import type { Quota } from '../../schema/builder.js'
import { ApiError } from '../../schema/errors.js'
import type { RequestContext } from '../http/context.js'
import type { RateLimiter, WindowName } from '../rate-limit/index.js'
import type { ApiKeyCache } from './api-key-cache.js'

/** The step that takes what a request costs out of the quota of its key. */
export function createQuota({ apiKeys, rateLimiter }: { apiKeys: ApiKeyCache; rateLimiter: RateLimiter }) {
  /**
   * Takes `cost` requests out of both windows of the key, or out of neither.
   *
   * @param answersBanned the request asks for nothing but the quota, which a banned key may do too
   * @throws ApiError key_banned, rate_limited, invalid_request (costs more than a whole window)
   */
  return async function consume(context: RequestContext, cost: number, answersBanned = false): Promise<void> {
    const { key, subject } = context
    if (!key || !subject) throw new ApiError('unauthorized')
    const bannedUntil = key.bannedUntil?.getTime() ?? 0
    const banned = bannedUntil > Date.now()
    const smallest = Math.min(...subject.windows.map(({ limit }) => limit))
    const tooDear = cost > smallest
    const result = await rateLimiter.consume(subject, banned || tooDear ? 0 : cost)
    context.rateLimit = banned ? { ...result, outcome: 'banned', bannedUntil } : result
    const { outcome } = context.rateLimit
    if (outcome === 'banned') {
      if (!answersBanned) throw new ApiError('key_banned')
    } else if (tooDear) {
      throw new ApiError(
        'invalid_request',
        `The operation costs ${cost} requests; the key's plan never allows more than ${smallest} at once.`,
      )
    } else if (outcome === 'limited') {
      if (result.bannedUntil) void apiKeys.ban(key, result.bannedUntil)
      const left = Math.min(...result.windows.map(({ remaining }) => remaining))
      throw new ApiError(
        'rate_limited',
        cost > 1
          ? `The operation costs ${cost} requests, and ${left} are left. Wait for the time in Retry-After.`
          : undefined,
      )
    } else context.cost = cost
  }
}

/** The caller's quota, as the decision on this very request left it. */
export function readQuota({ key, rateLimit }: RequestContext): Quota {
  const window = (name: WindowName) => {
    const found = rateLimit?.windows.find((candidate) => candidate.name === name)
    if (!found) throw new ApiError('internal')
    return { limit: found.limit, remaining: found.remaining, reset: Math.ceil(found.resetAt / 1000) }
  }
  if (!key) throw new ApiError('unauthorized')
  return { plan: key.plan, minute: window('minute'), day: window('day') }
}
