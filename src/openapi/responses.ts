import { catalogue, type ErrorCode } from '../../schema/errors.js'
import { EXAMPLE_TIME, exampleWindows } from '../../schema/quota.js'
import { MAX_INT } from '../../schema/validation.js'
import { EXPOSED } from '../http/cors.js'
import { setRateLimitHeaders } from '../rate-limit/index.js'
import { type Header, type ResponseObject, type Schema, schemaRef } from './document.js'

const examples: Record<string, string> = {}
setRateLimitHeaders(
  examples,
  { at: EXAMPLE_TIME, outcome: 'allowed', cost: 1, windows: exampleWindows, refusedBy: [] },
  false,
)

/** Node takes no longer head of a request (its own default), so nothing that is made of one is longer than that allows. */
export const MAX_HEAD = 16_384

/** The last moment that a Date can have, in Unix seconds: no ban lasts longer. */
const LAST_SECOND = 8_640_000_000_000

const header = (description: string, example: unknown, schema: Schema) => ({
  description,
  required: true,
  schema,
  example,
})

/** A header that is not on each of these responses. */
export const optional = (header: Header): Header => ({ ...header, required: undefined })

/** A header whose value is one and the same text for every request. */
const constant = (description: string, value: string) => header(description, value, { type: 'string', enum: [value] })

export const text = (description: string, example: string | undefined, bounds: Schema) =>
  header(description, example, { type: 'string', ...bounds })

const integer = (description: string, example: unknown, minimum: number, maximum: number) =>
  header(description, Number(example), { type: 'integer', format: 'int64', minimum, maximum })

/** A structured field (RFC 9651) of one window, or of a key's two: each a name and two numbers. */
const perWindow = (first: string, second: string): Schema => ({
  pattern: `^"(minute|day|address)";${first}=\\d{1,10};${second}=\\d{1,13}(, "day";${first}=\\d{1,10};${second}=\\d{1,13})?$`,
  maxLength: 80,
})

/** On every response, whatever its status. */
const common: Record<string, Header> = {
  'X-RateLimit-Limit': integer(
    'The limit that applies to the client: of its two windows, the one with the fewest requests remaining.',
    examples['x-ratelimit-limit'],
    1,
    MAX_INT,
  ),
  'X-RateLimit-Remaining': integer('Requests remaining in that window.', examples['x-ratelimit-remaining'], 0, MAX_INT),
  'X-RateLimit-Reset': integer(
    'Unix timestamp, in seconds, at which that limit resets.',
    examples['x-ratelimit-reset'],
    0,
    LAST_SECOND,
  ),
  'X-RateLimit-Cost': integer(
    'What the request took out of each window: 1 for a request of REST; 0 if it was refused, or is free.',
    examples['x-ratelimit-cost'],
    0,
    MAX_INT,
  ),
  RateLimit: text(
    'What is left of each window (`r`), and in how many seconds it resets (`t`): draft-ietf-httpapi-ratelimit-headers-10.',
    examples.ratelimit,
    perWindow('r', 't'),
  ),
  'RateLimit-Policy': text(
    "Each window's quota (`q`) and its length in seconds (`w`): draft-ietf-httpapi-ratelimit-headers-10. " +
      'A request without a valid key is counted in a window named `address`.',
    examples['ratelimit-policy'],
    perWindow('q', 'w'),
  ),
  'X-Request-Id': text(
    "Names the request, for questions to support: the request's own `X-Request-Id` where it sent a usable one.",
    '5f1f9c1e-6a52-4d0b-9e0a-3c8f0a0f7a11',
    { pattern: '^[!-~]+$', minLength: 1, maxLength: 128 },
  ),
  traceparent: optional(
    text(
      'The span of this request in the trace that its own `traceparent` named (W3C Trace Context). Absent if it named none.',
      '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      { pattern: '^00-[\\da-f]{32}-[\\da-f]{16}-[\\da-f]{2}$', minLength: 55, maxLength: 55 },
    ),
  ),
  'Access-Control-Allow-Origin': optional(
    text('Any origin, unless the service is configured to name some.', '*', {
      pattern: '^(\\*|https?://[^/]+)$',
      maxLength: MAX_HEAD,
    }),
  ),
  'Access-Control-Expose-Headers': text('The headers that scripts in browsers may read.', EXPOSED, {
    pattern: '^[A-Za-z-]+(, [A-Za-z-]+)*$',
    maxLength: 1_024,
  }),
  Vary: optional(constant('Where the service is configured to name origins, the answer depends on them.', 'Origin')),
}

export const headers: Record<string, Header> = {
  ...common,
  'Retry-After': integer('Whole seconds to wait before the next attempt.', 60, 1, LAST_SECOND),
  'WWW-Authenticate': constant('How to authenticate (RFC 9110).', 'Bearer'),
}

const headerRefs = (names: string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

export const commonHeaders = headerRefs(Object.keys(common))

const byStatus: Record<number, string[]> = { 401: ['WWW-Authenticate'], 429: ['Retry-After'], 503: ['Retry-After'] }

/** `rate_limited` and `key_banned` share 429: one response, `RateLimited`, named after the first code of the status. */
export const responseName = (status: number) => {
  const [code = ''] = Object.entries(catalogue).find(([, entry]) => entry.status === status) ?? []
  return code.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase())
}

/** Error bodies that share a status, each as an example. */
export const errorContent = (errors: { code: ErrorCode; status: number; message: string }[]) => {
  const examples = errors.map(({ code, message, status }) => [code, { value: { code, message, status } }])
  return { 'application/json': { schema: schemaRef('Error'), examples: Object.fromEntries(examples) } }
}

/** The error responses for these codes, one for each status. */
export const errorResponses = (codes: ErrorCode[]) =>
  [...new Set(codes.map((code) => catalogue[code].status))].sort().map((status): [number, ResponseObject] => {
    const errors = codes.flatMap((code) => (catalogue[code].status === status ? [{ code, ...catalogue[code] }] : []))
    const response = {
      description: errors.map(({ code, description }) => `\`${code}\`: ${description}`).join('\n\n'),
      headers: { ...commonHeaders, ...headerRefs(byStatus[status] ?? []) },
      content: errorContent(errors),
    }
    return [status, response]
  })
