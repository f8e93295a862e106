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

/** The end of the ban of a subject that is banned. */
const banEnd = ({ outcome, bannedUntil }: RateLimitResult) => (outcome === 'banned' ? bannedUntil : undefined)

/** Whole seconds, rounded up, so that whoever waits for them comes after the reset. */
const secondsUntil = (resetAt: number, at: number) => Math.max(0, Math.ceil((resetAt - at) / 1000))

/** `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-10: every window with its limit and its length. */
function policy({ windows }: RateLimitResult): string {
  let items = ''
  for (const { name, limit, seconds } of windows) items += `${items && ', '}"${name}";q=${limit};w=${seconds}`
  return items
}

/** `RateLimit` of the same draft: what remains in every window, and the seconds until it resets. */
function remaining(result: RateLimitResult): string {
  const end = banEnd(result)
  let items = ''
  for (const { name, remaining, resetAt } of result.windows) {
    const left = secondsUntil(end ?? resetAt, result.at)
    items += `${items && ', '}"${name}";r=${end ? 0 : remaining};t=${left}`
  }
  return items
}

/**
 * The specification's X-RateLimit-* of the binding window (reset in Unix seconds, rounded up), beside them the headers
 * of the draft with every window, and on a refusal Retry-After. Waiting times count from the store's clock, whatever
 * this machine's says, and Retry-After ends with the reset, so that the two agree.
 */
export function rateLimitHeaders(result: RateLimitResult): Record<string, string> {
  const binding = bindingWindow(result)
  const end = banEnd(result)
  const reset = Math.ceil((end ?? binding.resetAt) / 1000)
  const headers: Record<string, string> = {
    'x-ratelimit-limit': String(binding.limit),
    'x-ratelimit-remaining': String(end ? 0 : binding.remaining),
    'x-ratelimit-reset': String(reset),
    'ratelimit-policy': policy(result),
    ratelimit: remaining(result),
  }
  if (result.outcome !== 'allowed') headers['retry-after'] = String(Math.max(1, Math.ceil(reset - result.at / 1000)))
  return headers
}
