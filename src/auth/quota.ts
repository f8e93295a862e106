import type { Quota } from '../../schema/builder.js'
import { ApiError } from '../../schema/errors.js'
import type { RequestContext } from '../http/context.js'
import {
  createMemoryRateLimiter,
  type RateLimiter,
  type RateLimitResult,
  refusalMessage,
  type Subject,
  type WindowName,
  waitMessage,
} from '../rate-limit/index.js'
import type { ApiKeyCache } from './api-key-cache.js'

/** Requests that cost nothing and that a key may make in a minute, on each gateway. */
const FREE_PER_MINUTE = 600

/** The step that takes the cost of a request from the quota of its key. */
export function createQuota({ apiKeys, rateLimiter }: { apiKeys: ApiKeyCache; rateLimiter: RateLimiter }) {
  const freeRequests = createMemoryRateLimiter()

  async function countFree({ id }: Subject, result: RateLimitResult): Promise<void> {
    const window = { name: 'minute' as const, limit: FREE_PER_MINUTE, seconds: 60 }
    const { outcome, windows, at } = await freeRequests.consume({ id, windows: [window], bannable: false }, 1)
    if (outcome === 'allowed') return
    const wait = Math.ceil(((windows[0]?.resetAt ?? at) - at) / 1000)
    throw new ApiError(
      'rate_limited',
      `The limit of ${FREE_PER_MINUTE} free requests per minute is used up. ${waitMessage(result, wait)}`,
      { 'retry-after': String(wait) },
    )
  }

  /**
   * Takes `cost` units from both windows of the key, or from neither. A request that costs nothing also works for a
   * limited or banned key.
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
    // Waiting would not help: the request is refused, which costs one unit.
    const tooDear = cost > smallest
    const result = await rateLimiter.consume(subject, banned ? 0 : tooDear ? 1 : cost)
    context.rateLimit = banned ? { ...result, outcome: 'banned', bannedUntil } : result
    if (cost === 0) return countFree(subject, context.rateLimit)
    const { outcome } = context.rateLimit
    if (outcome === 'banned') throw new ApiError('key_banned', refusalMessage(context.rateLimit))
    if (outcome === 'limited') {
      if (result.bannedUntil) void apiKeys.ban(key, result.bannedUntil)
      throw new ApiError('rate_limited', refusalMessage(result, cost))
    }
    if (tooDear)
      throw new ApiError(
        'invalid_request',
        `The operation costs ${cost} requests; the key's plan allows at most ${smallest} in a window. ${advice(smallest)}`,
      )
  }
}

/** The caller's quota after the decision on this request. */
export function readQuota({ key, rateLimit }: RequestContext): Quota {
  const window = (name: WindowName) => {
    const found = rateLimit?.windows.find((candidate) => candidate.name === name)
    if (!found) throw new ApiError('internal')
    return { limit: found.limit, remaining: found.remaining, reset: Math.ceil(found.resetAt / 1000) }
  }
  if (!key) throw new ApiError('unauthorized')
  return { plan: key.plan, minute: window('minute'), day: window('day') }
}
