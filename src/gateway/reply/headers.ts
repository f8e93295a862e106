import { fill, type Operation } from '../../../schema/kit/operations.js'
import { traceparent } from '../../engines/observe/index.js'
import { type RateLimitResult, setRateLimitHeaders } from '../../engines/rate-limit/index.js'
import { type HttpRequest, type HttpResponse, isServerWide } from '../http/index.js'
import type { Exchange } from './exchange.js'

export interface HeaderOptions {
  baseUrl: string
  /** From then on, deprecated operations return 410. */
  sunset: Date
  /** Those that may read responses; * for all. */
  origins: string[]
}

/**
 * Sets the headers that every response has, refusals included.
 *
 * @param shown the windows that it shows; undefined for probes, which have no headers of the API
 */
export function setHeaders(
  request: HttpRequest,
  { response: { headers, status }, route }: Exchange,
  shown: RateLimitResult | undefined,
  options: HeaderOptions,
): void {
  headers['x-request-id'] = request.id
  if (request.trace) headers.traceparent = traceparent(request.trace)
  if (!shown) return
  // Its responses are of the media type that the client prefers.
  if (request.path === '/graphql') headers.vary ??= 'Accept'
  if (route) setDeprecationHeaders(headers, route.operation, route.params, options)
  setCorsHeaders(headers, request, options.origins)
  // A banned key that reads its quota is not refused: it gets no Retry-After.
  setRateLimitHeaders(headers, shown, status === 429)
  headers['cache-control'] ??= 'private, no-cache'
  headers['x-content-type-options'] ??= 'nosniff'
}

/** Whether a path names an id. Any other text names nothing, and can be longer than the headers that proxies accept. */
const isId = (text: unknown) => /^\d{1,19}$/.test(String(text))

/**
 * If the operation is deprecated: `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and the links that explain them, for the
 * values of a path.
 */
export function setDeprecationHeaders(
  headers: HttpResponse['headers'],
  { rest: { deprecation } }: Pick<Operation, 'rest'>,
  params: Record<string, unknown>,
  { baseUrl, sunset }: Omit<HeaderOptions, 'origins'>,
): void {
  if (!deprecation) return
  const [list = ''] = deprecation.successor.split('?')
  const successor = baseUrl + (Object.values(params).every(isId) ? fill(deprecation.successor, params) : list)
  const links = `<${baseUrl}/docs>; rel="deprecation"; type="text/html", <${successor}>; rel="successor-version"`
  headers.deprecation = `@${deprecation.since.getTime() / 1000}`
  headers.sunset = sunset.toUTCString()
  headers.link = headers.link ? `${headers.link}, ${links}` : links
}

/** The headers that scripts in browsers may read. */
export const EXPOSED =
  'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-RateLimit-Cost, RateLimit, RateLimit-Policy, ' +
  'Idempotency-Replayed, Retry-After, Link, X-Total-Count, ETag, Deprecation, Sunset, Location, X-Request-Id, ' +
  'traceparent, Allow, WWW-Authenticate, Accept-Post, Accept-Patch, Accept-Encoding'

/** Marks a response: any origin may read it unless CORS_ORIGINS names some. Never with credentials. */
function setCorsHeaders(headers: HttpResponse['headers'], { head }: HttpRequest, origins: string[]): void {
  const { origin } = head.headers
  if (origins.includes('*')) headers['access-control-allow-origin'] = '*'
  else {
    headers.vary = headers.vary ? `${headers.vary}, Origin` : 'Origin'
    if (origin && origins.includes(origin)) headers['access-control-allow-origin'] = origin
  }
  headers['access-control-expose-headers'] = EXPOSED
}

/** The headers that a request may have: those that the service reads. A preflight that names others gets them too. */
const ALLOWED =
  'Authorization, X-API-Key, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Request-Id, traceparent'

const METHODS = 'GET, HEAD, POST, PATCH, DELETE, OPTIONS'

/** The longest list of headers that is repeated, in characters: proxies refuse a response with a long head. */
const MAX_REPEATED = 1_024

/** The answer to a CORS preflight (Fetch standard), which browsers keep for a day; undefined for any other request. */
export function preflight({ method, head: { headers } }: HttpRequest): HttpResponse | undefined {
  if (method !== 'OPTIONS' || !headers.origin || headers['access-control-request-method'] === undefined) return
  const named = headers['access-control-request-headers'] ?? ALLOWED
  return {
    status: 204,
    headers: {
      'access-control-allow-methods': METHODS,
      'access-control-allow-headers': named.length > MAX_REPEATED ? ALLOWED : named,
      'access-control-max-age': '86400',
    },
  }
}

/** The answer to `OPTIONS *`, which asks about the service as a whole; undefined for any other request. */
export const serverOptions = ({ head }: HttpRequest): HttpResponse | undefined =>
  isServerWide(head) ? { status: 204, headers: { allow: METHODS } } : undefined
