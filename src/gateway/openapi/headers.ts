import { MAX_TOTAL } from '../../../schema/kit/context.js'
import { createEtag } from '../../../schema/kit/etag.js'
import { MAX_INT } from '../../../schema/kit/input/rules.js'
import { fill, type Operation } from '../../../schema/kit/operations.js'
import { EXAMPLE_TIME, exampleWindows } from '../../../schema/kit/quota.js'
import { setRateLimitHeaders } from '../../engines/rate-limit/index.js'
import { MAX_HEAD, MEDIA_TYPES } from '../http/index.js'
import { EXPOSED, setDeprecationHeaders } from '../reply/index.js'
import type { Header, Options, ResponseObject, Schema } from './document.js'
import { exampleParams } from './examples.js'

/** The last moment that a Date can have, in Unix seconds: no ban lasts longer. */
const LAST_SECOND = 8_640_000_000_000

function header(description: string, example: unknown, schema: Schema): Header {
  return { description, required: true, schema, example }
}

// Generators of clients write patterns as they are into string literals.
const withoutQuotes = (pattern?: string) => pattern?.replaceAll('"', '\\x22')

const text = (description: string, example: string | undefined, bounds: Schema) =>
  header(description, example, { type: 'string', ...bounds, pattern: withoutQuotes(bounds.pattern) })

/** A header whose value is one and the same text for every request. */
const constant = (description: string, value: string) => text(description, value, { enum: [value] })

const integer = (description: string, example: unknown, minimum: number, maximum = MAX_INT) =>
  header(description, Number(example), { type: 'integer', format: 'int64', minimum, maximum })

/** A header that is not on each of these responses. */
const optional = (header: Header): Header => ({ ...header, required: undefined })

/** A structured field (RFC 9651) of one window, or of a key's two: each a name and two numbers. */
const perWindow = (first: string, second: string): Schema => ({
  pattern: `^"(minute|day|address|free)";${first}=\\d{1,10};${second}=\\d{1,13}(, "day";${first}=\\d{1,10};${second}=\\d{1,13})?$`,
  maxLength: 80,
})

/** The headers of every response, whatever its status. */
export function createCommonHeaders(): Record<string, Header> {
  const result = { at: EXAMPLE_TIME, outcome: 'allowed' as const, cost: 1, windows: exampleWindows, refusedBy: [] }
  const examples: Record<string, string> = {}
  setRateLimitHeaders(examples, result, false)
  const limit = 'The limit of the binding window: of the two windows, the one with the fewest requests left.'
  const reset = 'When that window resets, as a Unix timestamp in seconds.'
  const cost =
    'What the request cost of each window: mostly 1, more for batches, `count` and `expand`; 0 if it was refused, or is free.'
  return {
    'X-RateLimit-Limit': integer(limit, examples['x-ratelimit-limit'], 1),
    'X-RateLimit-Remaining': integer('Requests left in that window.', examples['x-ratelimit-remaining'], 0),
    'X-RateLimit-Reset': integer(reset, examples['x-ratelimit-reset'], 0, LAST_SECOND),
    'X-RateLimit-Cost': integer(cost, examples['x-ratelimit-cost'], 0),
    RateLimit: text(
      'The requests left in each window (`r`), and the seconds until it resets (`t`): draft-ietf-httpapi-ratelimit-headers-10.',
      examples.ratelimit,
      perWindow('r', 't'),
    ),
    'RateLimit-Policy': text(
      "Each window's quota (`q`) and its length in seconds (`w`): draft-ietf-httpapi-ratelimit-headers-10. " +
        'A request without a valid key is counted in a window named `address`, one that costs nothing in `free`, which shows once it refuses.',
      examples['ratelimit-policy'],
      perWindow('q', 'w'),
    ),
    'X-Request-Id': text(
      'Identifies the request in logs. If the request sent a valid `X-Request-Id`, it is the same.',
      '5f1f9c1e-6a52-4d0b-9e0a-3c8f0a0f7a11',
      { pattern: '^[!-~]+$', minLength: 1, maxLength: 128 },
    ),
    traceparent: optional(
      text(
        'The span of this request, in the trace of the `traceparent` that it sent (W3C Trace Context). Absent if it sent none and the service collects no traces.',
        '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
        { pattern: '^00-[\\da-f]{32}-[\\da-f]{16}-[\\da-f]{2}$', minLength: 55, maxLength: 55 },
      ),
    ),
    'Access-Control-Allow-Origin': optional(
      text('The origins whose pages may read the response. Default: any.', '*', {
        pattern: '^(\\*|https?://[^/]+)$',
        maxLength: MAX_HEAD,
      }),
    ),
    'Access-Control-Expose-Headers': text('The headers that scripts in browsers may read.', EXPOSED, {
      pattern: '^[A-Za-z-]+(, [A-Za-z-]+)*$',
      maxLength: 1_024,
    }),
    'Cache-Control': constant(
      'Only the client may store the response, and must revalidate it before each use.',
      'private, no-cache',
    ),
    'X-Content-Type-Options': constant('Browsers must not guess another media type.', 'nosniff'),
    Vary: optional(constant('If the service allows only some origins, the response depends on the origin.', 'Origin')),
  }
}

const mediaTypes = (method: string) => MEDIA_TYPES[method]?.join(', ') ?? ''

const retryAfter = () => integer('Whole seconds to wait before the next attempt.', 60, 1, LAST_SECOND)

/** The headers that some responses of several operations have. */
export const createSharedHeaders = (): Record<string, Header> => ({
  ETag: text('Changes whenever the result changes (RFC 9110).', createEtag(''), {
    pattern: '^"[\\w-]{27}"$',
    maxLength: 29,
  }),
  'Retry-After': retryAfter(),
  'X-Total-Count': optional(
    integer('How many items match, whatever the page, if `count=true` was sent. Absent above 10000.', 12, 0, MAX_TOTAL),
  ),
  'WWW-Authenticate': constant('How to authenticate (RFC 9110).', 'Bearer'),
  'Accept-Post': optional(
    constant('What the body of a POST may be, if it has another media type.', mediaTypes('POST')),
  ),
  'Accept-Patch': optional(
    constant('What the body of a PATCH may be, if it has another media type (RFC 5789).', mediaTypes('PATCH')),
  ),
  'Accept-Encoding': optional(constant('Bodies are sent uncompressed (RFC 9110).', 'identity')),
})

export const headerRefs = (...names: string[]): ResponseObject['headers'] =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

/** For responses that an Idempotency-Key replays, and for the 409 that says that the first request still runs. */
export function idempotencyHeaders({ rest }: Operation, status: number): Record<string, Header> {
  if (rest.method !== 'POST' || ![rest.status, 409, 422].includes(status as 201)) return {}
  const replayed = constant('This is the response to an earlier request with the same `Idempotency-Key`.', 'true')
  return {
    'Idempotency-Replayed': optional(replayed),
    ...(status === 409 && { 'Retry-After': optional(retryAfter()) }),
  }
}

/** On every response of a deprecated operation, errors included. */
export function deprecationHeaders(operation: Operation, options: Options): Record<string, Header> {
  if (!operation.rest.deprecation) return {}
  const examples: Record<string, string> = {}
  setDeprecationHeaders(examples, operation, exampleParams(operation), options)
  return {
    Deprecation: text('When the operation was deprecated, in Unix seconds (RFC 9745).', examples.deprecation, {
      pattern: '^@\\d+$',
      maxLength: 16,
    }),
    Sunset: text('From this date on, the operation returns 410 (RFC 8594).', examples.sunset, {
      pattern: ' GMT$',
      maxLength: 32,
    }),
    Link: text('The documentation, and the operation to use instead (RFC 8288).', examples.link, {
      pattern: '^<[^>]+>; rel="deprecation"; type="text/html", <[^>]+>; rel="successor-version"$',
      // What stands in the path is named again, percent-encoded.
      maxLength: String(examples.link).length + 3 * MAX_HEAD,
    }),
  }
}

/** Where a created resource is. `example` is the resource. */
export function locationHeader(template: string, baseUrl: string, example: Record<string, unknown>): Header {
  const maxLength = baseUrl.length + fill(template, { id: Number.MAX_SAFE_INTEGER }).length
  const bounds = { format: 'uri', maxLength }
  return text('The URL of the created resource.', baseUrl + fill(template, example), bounds)
}

export function nextPageHeader(path: string, baseUrl: string): Header {
  const next = `<${baseUrl}${path}?limit=1&after=1>; rel="next"`
  const bounds = { pattern: '^<[^>]+>; rel="next"$', maxLength: next.length + MAX_HEAD }
  return optional(text('The next page (RFC 8288). Absent on the last one.', next, bounds))
}
