import type { Quota } from '../../../schema/kit/context.js'
import { ApiError, invalidRequest } from '../../../schema/kit/errors.js'
import {
  createMemoryRateLimiter,
  type RateLimiter,
  type RateLimitResult,
  refusalMessage,
  type Subject,
  type WindowName,
  waitMessage,
} from '../../engines/rate-limit/index.js'
import { isOver } from './api-key.js'
import type { ApiKeyCache } from './api-key-cache.js'
import type { Caller } from './authenticate.js'

/** Requests that cost nothing and that a key may make in a minute, on each gateway. */
export const FREE_PER_MINUTE = 600

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

/** The share of its smallest window that a key must have left for its next decision to count as certain: others take, too. */
const PLENTY = 0.1

/** The step that takes the cost of a request from the quota of its key. */
export function createQuota({ apiKeys, rateLimiter }: { apiKeys: ApiKeyCache; rateLimiter: RateLimiter }) {
  const freeRequests = createMemoryRateLimiter()
  /** By subject: what the decisions that are on their way will take. */
  const deciding = new Map<string, number>()

  /** Whether the next decision will refuse everything that costs something: the key is banned, or has nothing left. */
  async function isUsedUp({ key, subject }: Caller): Promise<boolean> {
    if (bannedUntil(key) > Date.now()) return true
    const { outcome, windows } = await rateLimiter.consume(subject, 0)
    return outcome === 'banned' || windows.some(({ remaining }) => remaining === 0)
  }

  /** Whether the next decision will allow a request as far as this gateway knows, whatever those before it take. */
  function isForeseen({ key, subject }: Caller, { units }: Cost): boolean {
    if (units === 0 || bannedUntil(key) > Date.now()) return false
    const left = rateLimiter.left(subject) - (deciding.get(subject.id) ?? 0) - units
    return left >= PLENTY * smallestWindow(subject)
  }

  async function consume(subject: Subject, units: number): Promise<RateLimitResult> {
    const { id } = subject
    deciding.set(id, (deciding.get(id) ?? 0) + units)
    const result = await rateLimiter.consume(subject, units)
    const left = (deciding.get(id) ?? 0) - units
    left > 0 ? deciding.set(id, left) : deciding.delete(id)
    return result
  }

  const takeFree = ({ id }: Subject, units: number) => {
    const window = { name: 'free' as const, limit: FREE_PER_MINUTE, seconds: 60 }
    return freeRequests.consume({ id, windows: [window], bannable: false }, units)
  }

  /** Whether a key may make another request that costs nothing. */
  async function hasFree({ subject }: Caller): Promise<boolean> {
    const { windows } = await takeFree(subject, 0)
    return windows.some(({ remaining }) => remaining > 0)
  }

  /** Takes a request that costs nothing. A refusal shows the window of such requests, because it has refused. */
  async function countFree(subject: Subject, decision: RateLimitResult): Promise<QuotaDecision> {
    const free = await takeFree(subject, 1)
    if (free.outcome === 'allowed') return { decision }
    const message = `The limit of ${FREE_PER_MINUTE} free requests per minute is used up. ${waitMessage(free)}`
    return { decision: free, refusal: new ApiError('rate_limited', message) }
  }

  /**
   * Takes the cost from both windows of the key, or from neither. A request that costs nothing also works for a limited
   * or banned key. The refusal is key_banned, rate_limited, or invalid_request (it costs more than a whole window).
   *
   * @param taken what an earlier decision has taken for the same request
   */
  async function take({ key, subject }: Caller, { units, advice }: Cost, taken = 0): Promise<QuotaDecision> {
    const until = bannedUntil(key)
    const isBanned = until > Date.now()
    const smallest = smallestWindow(subject)
    // Waiting would not help: the request is refused, which costs one unit.
    const isTooDear = units > smallest
    const result = await consume(subject, isBanned ? 0 : Math.max(0, (isTooDear ? 1 : units) - taken))
    result.cost += taken
    const decision: RateLimitResult = isBanned ? { ...result, outcome: 'banned', bannedUntil: until } : result
    if (units === 0) return countFree(subject, decision)
    if (decision.outcome === 'banned')
      return { decision, refusal: new ApiError('key_banned', refusalMessage(decision)) }
    if (decision.outcome === 'limited') {
      if (decision.bannedUntil) void apiKeys.ban(key, decision.bannedUntil)
      return { decision, refusal: new ApiError('rate_limited', refusalMessage(decision, units)) }
    }
    if (!isTooDear) return { decision }
    const message = `The operation costs ${units} requests; the key's plan allows at most ${smallest} in a window. ${advice?.(smallest) ?? ''}`
    return { decision, refusal: invalidRequest(message) }
  }

  return { take, isForeseen, isUsedUp, hasFree }
}

const bannedUntil = (key: Caller['key']) => key.bannedUntil?.getTime() ?? 0
const smallestWindow = ({ windows }: Subject) => Math.min(...windows.map(({ limit }) => limit))

/** The caller's quota after the decision on this request. */
export function readQuota({ key }: Caller, { windows, bannedUntil: decided = 0 }: RateLimitResult): Quota {
  const window = (name: WindowName) => {
    const found = windows.find((candidate) => candidate.name === name)
    if (!found) throw new ApiError('internal')
    return { limit: found.limit, remaining: found.remaining, reset: Math.ceil(found.resetAt / 1000) }
  }
  // The row of the key has a ban a moment later. One that has ended is not shown.
  const until = new Date(Math.max(bannedUntil(key), decided))
  const shown = { ...key, bannedUntil: isOver(until) ? null : until }
  return { plan: key.plan, minute: window('minute'), day: window('day'), key: shown }
}
