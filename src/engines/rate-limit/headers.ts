import type { RateLimitResult, WindowState } from './result.js'

/**
 * The window that binds: the one with the fewest requests remaining, on a tie the one that resets last; after a refusal
 * the window that refused, if both did the one that resets last.
 */
export function bindingWindow({ windows, refusedBy }: RateLimitResult): WindowState {
  let binding: WindowState | undefined
  for (const window of windows) {
    if (refusedBy.length > 0 && !refusedBy.includes(window.name)) continue
    const fewer = binding && refusedBy.length === 0 ? window.remaining - binding.remaining : 0
    if (!binding || fewer < 0 || (fewer === 0 && window.resetAt > binding.resetAt)) binding = window
  }
  return binding as WindowState
}

/** When a refused request may come again, in epoch milliseconds: at the end of its ban, or of the binding window. */
const endOf = ({ outcome, bannedUntil }: RateLimitResult, binding: WindowState) =>
  outcome === 'banned' && bannedUntil ? bannedUntil : binding.resetAt

/** Whole seconds until that moment as the headers show it, at least 1, by the clock of the store. */
function secondsToWait(result: RateLimitResult, binding = bindingWindow(result)): number {
  const reset = Math.ceil(endOf(result, binding) / 1000)
  return Math.max(1, Math.ceil(reset - result.at / 1000))
}

const { format } = new Intl.NumberFormat('en-US')
const counted = (count: number, unit: string) => `${format(count)} ${unit}${count === 1 ? '' : 's'}`
const lengths: Record<number, string> = { 60: 'minute', 86400: 'day' }

/** What a client that gets a 429 has to do. */
export const waitMessage = (result: RateLimitResult) =>
  `Wait ${counted(secondsToWait(result), 'second')} (Retry-After).`

/** Why a request is refused with 429: the window, its limit, and how long to wait. */
export function refusalMessage(result: RateLimitResult, cost = 1): string {
  const wait = waitMessage(result)
  if (result.outcome === 'banned')
    return `The key is banned until ${new Date(result.bannedUntil ?? 0).toISOString().slice(0, 19)}Z. ${wait}`
  const { name, limit, seconds, remaining } = bindingWindow(result)
  const window = `${counted(limit, 'request')} per ${lengths[seconds] ?? counted(seconds, 'second')}`
  if (name === 'address') return `The limit of ${window} without a valid key is used up for your address. ${wait}`
  if (remaining > 0)
    return `The operation costs ${counted(cost, 'request')}, but of ${window} only ${format(remaining)} ${remaining === 1 ? 'is' : 'are'} left. ${wait}`
  return `The limit of ${window} is used up. ${wait}`
}

/**
 * Sets X-RateLimit-* (docs/specification.md, Limits) of the binding window (reset in Unix seconds, rounded up), the cost of
 * the request, and the headers of draft-ietf-httpapi-ratelimit-headers-10: `RateLimit-Policy` has the limit and the length
 * of every window, `RateLimit` what remains and the seconds until it resets. A refusal also has Retry-After, which counts
 * from the store's clock and ends with the reset.
 */
export function setRateLimitHeaders(headers: Record<string, string>, result: RateLimitResult, refused: boolean): void {
  const { at, cost, windows } = result
  const banned = result.outcome === 'banned'
  const binding = bindingWindow(result)
  let policy = ''
  let left = ''
  for (const window of windows) {
    const comma = policy && ', '
    const wait = Math.max(0, Math.ceil((endOf(result, window) - at) / 1000))
    policy += `${comma}"${window.name}";q=${window.limit};w=${window.seconds}`
    left += `${comma}"${window.name}";r=${banned ? 0 : window.remaining};t=${wait}`
  }
  headers['x-ratelimit-limit'] = String(binding.limit)
  headers['x-ratelimit-remaining'] = String(banned ? 0 : binding.remaining)
  headers['x-ratelimit-reset'] = String(Math.ceil(endOf(result, binding) / 1000))
  headers['ratelimit-policy'] = policy
  headers['x-ratelimit-cost'] = String(cost)
  headers.ratelimit = left
  if (refused) headers['retry-after'] = String(secondsToWait(result, binding))
}
