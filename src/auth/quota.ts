import type { Quota } from '../../schema/builder.js'
import { ApiError } from '../../schema/errors.js'
import type { RequestContext } from '../http/context.js'
import { createMemoryRateLimiter, type RateLimiter, type WindowName } from '../rate-limit/index.js'
import type { ApiKeyCache } from './api-key-cache.js'

/** Requests that cost nothing and that a key may make in a minute, on each gateway. */
const FREE_PER_MINUTE = 600

/** The step that takes what a request costs out of the quota of its key. */
export function createQuota({ apiKeys, rateLimiter }: { apiKeys: ApiKeyCache; rateLimiter: RateLimiter }) {
  const freeRequests = createMemoryRateLimiter()

  async function countFree(id: string): Promise<void> {
    const window = { name: 'minute' as const, limit: FREE_PER_MINUTE, seconds: 60 }
    const { outcome, windows, at } = await freeRequests.consume({ id, windows: [window], bannable: false }, 1)
    if (outcome === 'allowed') return
    const wait = Math.ceil(((windows[0]?.resetAt ?? at) - at) / 1000)
    throw new ApiError(
      'rate_limited',
      `More than ${FREE_PER_MINUTE} free requests in a minute. Wait for the time in Retry-After.`,
      { 'retry-after': String(wait) },
    )
  }

  /**
   * Takes `cost` units out of both windows of the key, or out of neither. What costs nothing is answered to a limited or
   * banned key too.
   *
   * @param advice says what would cost no more than the given units
   * @throws ApiError key_banned, rate_limited, invalid_request (costs more than a whole window)
   */
  return async function consume(
    context: RequestContext,
    cost: number,
    advice: (units: number) => string = () => '',
  ): Promise<void> {
    const { key, subject } = context
    if (!key || !subject) throw new ApiError('unauthorized')
    const bannedUntil = key.bannedUntil?.getTime() ?? 0
    const banned = bannedUntil > Date.now()
    const smallest = Math.min(...subject.windows.map(({ limit }) => limit))
    // No waiting would help: the answer is a refusal, which costs one.
    const tooDear = cost > smallest
    const result = await rateLimiter.consume(subject, banned ? 0 : tooDear ? 1 : cost)
    context.rateLimit = banned ? { ...result, outcome: 'banned', bannedUntil } : result
    if (cost === 0) return countFree(subject.id)
    const { outcome } = context.rateLimit
    if (outcome === 'banned') throw new ApiError('key_banned')
    if (outcome === 'limited') {
      if (result.bannedUntil) void apiKeys.ban(key, result.bannedUntil)
      const left = Math.min(...result.windows.map(({ remaining }) => remaining))
      throw new ApiError(
        'rate_limited',
        cost > 1 && !tooDear
          ? `The operation costs ${cost} requests, and ${left} are left. Wait for the time in Retry-After.`
          : undefined,
      )
    }
    if (tooDear)
      throw new ApiError(
        'invalid_request',
        `The operation costs ${cost} requests; the key's plan never allows more than ${smallest} at once. ${advice(smallest)}`,
      )
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
