import type { Rest } from '../../schema/plugin.js'
import type { Client, Limits, Verdict, WindowState } from '../rate-limit/index.js'
import { fill } from '../rest/operations.js'
import type { Exchange, GatewayPlugin } from './context.js'

export const EXPOSED = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'Link',
  'ETag',
  'Deprecation',
  'Sunset',
  'Location',
  'X-Request-Id',
].join(', ')

/** CORS (Fetch standard): any origin unless CORS_ORIGINS names some, never credentials, preflights kept for a day. */
export function useCors(origins: string[]): GatewayPlugin {
  const any = origins.includes('*')
  return {
    onRequest({ request, endResponse, fetchAPI }) {
      if (request.method !== 'OPTIONS' || !request.headers.has('origin')) return
      if (!request.headers.has('access-control-request-method')) return
      endResponse(
        new fetchAPI.Response(null, {
          status: 204,
          headers: {
            'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE, OPTIONS',
            'access-control-allow-headers':
              request.headers.get('access-control-request-headers') ?? 'Authorization, X-API-Key, Content-Type',
            'access-control-max-age': '86400',
          },
        }),
      )
    },
    onResponse({ request, response: { headers }, serverContext: { exchange } }) {
      if (exchange.operational) return
      const origin = request.headers.get('origin')
      if (any) headers.set('access-control-allow-origin', '*')
      else {
        headers.append('vary', 'Origin')
        if (origin && origins.includes(origin)) headers.set('access-control-allow-origin', origin)
      }
      headers.set('access-control-expose-headers', EXPOSED)
    },
  }
}

const seconds = (ms: number) => Math.ceil(ms / 1000)

/**
 * The window that binds: the one with the fewest requests remaining, on a tie the one that resets last; after a
 * refusal the window that refused.
 */
export function bindingWindow(verdict: Verdict): WindowState {
  const refused = verdict.outcome === 'limited' ? verdict.refusedBy : []
  const candidates = verdict.windows.filter(({ name }) => refused.length === 0 || refused.includes(name))
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
export function rateLimitHeaders(verdict: Verdict): Record<string, string> {
  const banned = verdict.outcome === 'banned'
  const binding = bindingWindow(verdict)
  const reset = seconds(banned ? verdict.until : binding.resetAt)
  const wait = (resetAt: number) => Math.max(0, seconds(resetAt - verdict.at))
  const windows = verdict.windows.map((window) =>
    banned ? { ...window, remaining: 0, resetAt: verdict.until } : window,
  )
  return {
    'x-ratelimit-limit': String(binding.limit),
    'x-ratelimit-remaining': String(banned ? 0 : binding.remaining),
    'x-ratelimit-reset': String(reset),
    'ratelimit-policy': windows.map(({ name, limit, seconds: w }) => `"${name}";q=${limit};w=${w}`).join(', '),
    ratelimit: windows.map(({ name, remaining, resetAt }) => `"${name}";r=${remaining};t=${wait(resetAt)}`).join(', '),
    ...(verdict.outcome === 'allowed'
      ? {}
      : { 'retry-after': String(Math.max(1, Math.ceil(reset - verdict.at / 1000))) }),
  }
}

/**
 * Rate limit headers on every response of an API surface, whatever its status. A request that nobody was counted for
 * shows the window of its address.
 */
export function useRateLimitHeaders(limits: Limits, addressClient: (address: string) => Client): GatewayPlugin {
  return {
    onResponse({ response, serverContext: { exchange } }) {
      if (exchange.operational) return
      const mark = (verdict: Verdict) => {
        for (const [name, value] of Object.entries(rateLimitHeaders(verdict))) {
          // Retry-After belongs to refusals alone: a banned key that reads its quota is not refused.
          if (name !== 'retry-after' || response.status === 429) response.headers.set(name, value)
        }
      }
      if (exchange.verdict) mark(exchange.verdict)
      else return limits.take(exchange.client ?? addressClient(exchange.address), 0).then(mark)
    },
  }
}

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and the links that explain them. */
export function deprecationHeaders(
  deprecation: NonNullable<Rest['deprecation']>,
  { baseUrl, sunset, params }: { baseUrl: string; sunset: Date; params: NonNullable<Exchange['params']> },
) {
  return {
    deprecation: `@${deprecation.since.getTime() / 1000}`,
    sunset: sunset.toUTCString(),
    link: [
      `<${baseUrl}/docs>; rel="deprecation"; type="text/html"`,
      `<${baseUrl}${fill(deprecation.successor, params)}>; rel="successor-version"`,
    ].join(', '),
  }
}

/** Marks every response of a deprecated operation, refusals included. */
export function useDeprecation(options: { baseUrl: string; sunset: Date }): GatewayPlugin {
  return {
    onResponse({ response, serverContext: { exchange } }) {
      const { operation, params = {} } = exchange
      if (!operation?.rest.deprecation) return
      const { link, ...headers } = deprecationHeaders(operation.rest.deprecation, { ...options, params })
      response.headers.append('link', link)
      for (const [name, value] of Object.entries(headers)) response.headers.set(name, value)
    },
  }
}
