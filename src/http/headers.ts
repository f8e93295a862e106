import type { Rest } from '../../schema/plugin.js'
import { type RateLimiter, type RateLimitResult, rateLimitHeaders, type Subject } from '../rate-limit/index.js'
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

/**
 * Rate limit headers on every response of an API surface, whatever its status. A request that nobody was counted for
 * shows the window of its address.
 */
export function useRateLimitHeaders(limits: RateLimiter, addressClient: (address: string) => Subject): GatewayPlugin {
  return {
    onResponse({ response, serverContext: { exchange } }) {
      if (exchange.operational) return
      const mark = (verdict: RateLimitResult) => {
        for (const [name, value] of Object.entries(rateLimitHeaders(verdict))) {
          // Retry-After belongs to refusals alone: a banned key that reads its quota is not refused.
          if (name !== 'retry-after' || response.status === 429) response.headers.set(name, value)
        }
      }
      if (exchange.verdict) mark(exchange.verdict)
      else return limits.consume(exchange.client ?? addressClient(exchange.address), 0).then(mark)
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
