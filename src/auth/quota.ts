import type { Quota } from '../../schema/context.js'
import { ApiError } from '../../schema/errors.js'
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
import type { Caller } from './caller.js'

/** Requests that cost nothing and that a key may make in a minute, on each gateway. */
const FREE_PER_MINUTE = 600

/** What a request costs. */
export interface Cost {
  units: number
  /** Says what would cost no more than the given units. */
  advice?(units: number): string
}

/** The decision on a request, and why it is refused, if it is. */
export interface QuotaDecision {
  decision: RateLimitResult
  refusal?: ApiError
}

/** The step that takes the cost of a request from the quota of its key. */
export function createQuota({ apiKeys, rateLimiter }: { apiKeys: ApiKeyCache; rateLimiter: RateLimiter }) {
  const freeRequests = createMemoryRateLimiter()

  async function countFree({ id }: Subject, decision: RateLimitResult): Promise<ApiError | undefined> {
    const window = { name: 'minute' as const, limit: FREE_PER_MINUTE, seconds: 60 }
    const { outcome, windows, at } = await freeRequests.consume({ id, windows: [window], bannable: false }, 1)
    if (outcome === 'allowed') return
    const wait = Math.ceil(((windows[0]?.resetAt ?? at) - at) / 1000)
    return new ApiError(
      'rate_limited',
      `The limit of ${FREE_PER_MINUTE} free requests per minute is used up. ${waitMessage(decision, wait)}`,
      { 'retry-after': String(wait) },
    )
  }

  /**
   * Takes the cost from both windows of the key, or from neither. A request that costs nothing also works for a limited
   * or banned key. The refusal is key_banned, rate_limited, or invalid_request (it costs more than a whole window).
   */
  return async function takeQuota({ key, subject }: Caller, { units, advice }: Cost): Promise<QuotaDecision> {
    const bannedUntil = key.bannedUntil?.getTime() ?? 0
    const isBanned = bannedUntil > Date.now()
    const smallest = Math.min(...subject.windows.map(({ limit }) => limit))
    // Waiting would not help: the request is refused, which costs one unit.
    const isTooDear = units > smallest
    const result = await rateLimiter.consume(subject, isBanned ? 0 : isTooDear ? 1 : units)
    const decision: RateLimitResult = isBanned ? { ...result, outcome: 'banned', bannedUntil } : result
    if (units === 0) return { decision, refusal: await countFree(subject, decision) }
    if (decision.outcome === 'banned')
      return { decision, refusal: new ApiError('key_banned', refusalMessage(decision)) }
    if (decision.outcome === 'limited') {
      if (decision.bannedUntil) void apiKeys.ban(key, decision.bannedUntil)
      return { decision, refusal: new ApiError('rate_limited', refusalMessage(decision, units)) }
    }
    if (!isTooDear) return { decision }
    const message = `The operation costs ${units} requests; the key's plan allows at most ${smallest} in a window. ${advice?.(smallest) ?? ''}`
    return { decision, refusal: new ApiError('invalid_request', message) }
  }
}

/** The caller's quota after the decision on this request. */
export function readQuota({ key }: Caller, { windows }: RateLimitResult): Quota {
  const window = (name: WindowName) => {
    const found = windows.find((candidate) => candidate.name === name)
    if (!found) throw new ApiError('internal')
    return { limit: found.limit, remaining: found.remaining, reset: Math.ceil(found.resetAt / 1000) }
  }
  return { plan: key.plan, minute: window('minute'), day: window('day') }
}
