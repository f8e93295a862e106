import type { HttpRequest } from './request.js'
import type { HttpResponse } from './response.js'

/** The headers that scripts in browsers may read. */
export const EXPOSED = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-RateLimit-Cost',
  'RateLimit',
  'RateLimit-Policy',
  'Idempotency-Replayed',
  'Retry-After',
  'Link',
  'X-Total-Count',
  'ETag',
  'Deprecation',
  'Sunset',
  'Location',
  'X-Request-Id',
  'traceparent',
  'Allow',
  'WWW-Authenticate',
].join(', ')

/** The headers that a request may have: those that the service reads. A preflight that names others gets them too. */
const ALLOWED = [
  'Authorization',
  'X-API-Key',
  'Content-Type',
  'Idempotency-Key',
  'If-Match',
  'If-None-Match',
  'X-Request-Id',
  'traceparent',
].join(', ')

/** The longest list of headers that is repeated, in characters: proxies refuse a response with a long head. */
const MAX_REPEATED = 1_024

/** The answer to a CORS preflight (Fetch standard), which browsers keep for a day; undefined for any other request. */
export function preflight({ method, head: { headers } }: HttpRequest): HttpResponse | undefined {
  if (method !== 'OPTIONS' || !headers.origin || headers['access-control-request-method'] === undefined) return
  const named = headers['access-control-request-headers'] ?? ALLOWED
  return {
    status: 204,
    headers: {
      'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE, OPTIONS',
      'access-control-allow-headers': named.length > MAX_REPEATED ? ALLOWED : named,
      'access-control-max-age': '86400',
    },
  }
}

/** Marks a response: any origin may read it unless CORS_ORIGINS names some. Never with credentials. */
export function setCorsHeaders(headers: HttpResponse['headers'], { head }: HttpRequest, origins: string[]): void {
  const { origin } = head.headers
  if (origins.includes('*')) headers['access-control-allow-origin'] = '*'
  else {
    headers.vary = headers.vary ? `${headers.vary}, Origin` : 'Origin'
    if (origin && origins.includes(origin)) headers['access-control-allow-origin'] = origin
  }
  headers['access-control-expose-headers'] = EXPOSED
}
