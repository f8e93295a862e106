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

/** `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-10: every window with its limit and its length. */
const policy = ({ windows }: RateLimitResult) =>
  windows.map(({ name, limit, seconds }) => `"${name}";q=${limit};w=${seconds}`).join(', ')

/** `RateLimit` of the same draft: what remains in every window, and the seconds until it resets. */
const remaining = ({ windows, at }: RateLimitResult, banEnd?: number) =>
  windows
    .map((window) => {
      const wait = Math.max(0, Math.ceil(((banEnd ?? window.resetAt) - at) / 1000))
      return `"${window.name}";r=${banEnd ? 0 : window.remaining};t=${wait}`
    })
    .join(', ')

/**
 * The specification's X-RateLimit-* of the binding window (reset in Unix seconds, rounded up), the headers of the draft,
 * and on a refusal Retry-After. Waiting times count from the store's clock, and Retry-After ends with the reset.
 */
export function rateLimitHeaders(result: RateLimitResult): Record<string, string> {
  const binding = bindingWindow(result)
  const banEnd = result.outcome === 'banned' ? result.bannedUntil : undefined
  const reset = Math.ceil((banEnd ?? binding.resetAt) / 1000)
  const headers: Record<string, string> = {
    'x-ratelimit-limit': String(binding.limit),
    'x-ratelimit-remaining': String(banEnd ? 0 : binding.remaining),
    'x-ratelimit-reset': String(reset),
    'ratelimit-policy': policy(result),
    ratelimit: remaining(result, banEnd),
  }
  if (result.outcome !== 'allowed') headers['retry-after'] = String(Math.max(1, Math.ceil(reset - result.at / 1000)))
  return headers
}
