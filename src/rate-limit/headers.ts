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
function policy({ windows }: RateLimitResult): string {
  let text = ''
  for (const { name, limit, seconds } of windows) text += `${text && ', '}"${name}";q=${limit};w=${seconds}`
  return text
}

/** `RateLimit` of the same draft: what remains in every window, and the seconds until it resets. */
function remaining({ windows, at }: RateLimitResult, banEnd: number | undefined): string {
  let text = ''
  for (const window of windows) {
    const wait = Math.max(0, Math.ceil(((banEnd ?? window.resetAt) - at) / 1000))
    text += `${text && ', '}"${window.name}";r=${banEnd ? 0 : window.remaining};t=${wait}`
  }
  return text
}

/**
 * Sets the specification's X-RateLimit-* of the binding window (reset in Unix seconds, rounded up) and what the
 * request has cost, and the headers of the draft. A refusal has Retry-After too, which counts from the store's clock and ends with the reset.
 */
export function setRateLimitHeaders(headers: Record<string, string>, result: RateLimitResult, refused: boolean): void {
  const binding = bindingWindow(result)
  const banEnd = result.outcome === 'banned' ? result.bannedUntil : undefined
  const reset = Math.ceil((banEnd ?? binding.resetAt) / 1000)
  headers['x-ratelimit-limit'] = String(binding.limit)
  headers['x-ratelimit-remaining'] = String(banEnd ? 0 : binding.remaining)
  headers['x-ratelimit-reset'] = String(reset)
  headers['ratelimit-policy'] = policy(result)
  headers['x-ratelimit-cost'] = String(result.cost)
  headers.ratelimit = remaining(result, banEnd)
  // A refusal may know of a longer wait.
  const wait = Math.max(1, Math.ceil(reset - result.at / 1000), Number(headers['retry-after'] ?? 0))
  if (refused) headers['retry-after'] = String(wait)
}
