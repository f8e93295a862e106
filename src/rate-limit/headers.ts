import type { RateLimitResult, WindowState } from './index.js'

const seconds = (ms: number) => Math.ceil(ms / 1000)

/**
 * The window that binds: the one with the fewest requests remaining, on a tie the one that resets last; after a
 * refusal the window that refused.
 */
export function bindingWindow(result: RateLimitResult): WindowState {
  const refused = result.refusedBy
  const candidates = result.windows.filter(({ name }) => refused.length === 0 || refused.includes(name))
  return candidates.reduce((binding, window) => {
    const fewer = refused.length > 0 ? 0 : window.remaining - binding.remaining
    return fewer < 0 || (fewer === 0 && window.resetAt > binding.resetAt) ? window : binding
  })
}

/**
 * The specification's X-RateLimit-* of the binding window, and beside them RateLimit and RateLimit-Policy
 * (draft-ietf-httpapi-ratelimit-headers-10) with every window. Reset is in Unix seconds, rounded up; Retry-After, on a
 * refusal, is the whole seconds until then, so that the two agree; by the store's clock, whatever this machine's says.
 */
export function rateLimitHeaders(result: RateLimitResult): Record<string, string> {
  const banned = result.outcome === 'banned'
  const binding = bindingWindow(result)
  const reset = seconds(banned ? (result.bannedUntil as number) : binding.resetAt)
  const wait = (resetAt: number) => Math.max(0, seconds(resetAt - result.at))
  const windows = result.windows.map((window) =>
    banned ? { ...window, remaining: 0, resetAt: result.bannedUntil as number } : window,
  )
  return {
    'x-ratelimit-limit': String(binding.limit),
    'x-ratelimit-remaining': String(banned ? 0 : binding.remaining),
    'x-ratelimit-reset': String(reset),
    'ratelimit-policy': windows.map(({ name, limit, seconds: w }) => `"${name}";q=${limit};w=${w}`).join(', '),
    ratelimit: windows.map(({ name, remaining, resetAt }) => `"${name}";r=${remaining};t=${wait(resetAt)}`).join(', '),
    ...(result.outcome === 'allowed'
      ? {}
      : { 'retry-after': String(Math.max(1, Math.ceil(reset - result.at / 1000))) }),
  }
}
