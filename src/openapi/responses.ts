import { catalogue, type ErrorCode } from '../../schema/errors.js'
import { createEtag } from '../../schema/etag.js'
import { EXAMPLE_TIME, exampleWindows } from '../../schema/quota.js'
import { MAX_INT } from '../../schema/validation.js'
import { EXPOSED } from '../http/cors.js'
import { refusalMessage, setRateLimitHeaders } from '../rate-limit/index.js'
import { type Header, type ResponseObject, type Schema, schemaRef } from './document.js'

const examples: Record<string, string> = {}
setRateLimitHeaders(
  examples,
  { at: EXAMPLE_TIME, outcome: 'allowed', cost: 1, windows: exampleWindows, refusedBy: [] },
  false,
)

/** Node's limit for the head of a request: text that is copied from one cannot be longer. */
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
    'The limit of the binding window: of the two windows, the one with the fewest requests left.',
    examples['x-ratelimit-limit'],
    1,
    MAX_INT,
  ),
  'X-RateLimit-Remaining': integer('Requests left in that window.', examples['x-ratelimit-remaining'], 0, MAX_INT),
  'X-RateLimit-Reset': integer(
    'When that window resets, as a Unix timestamp in seconds.',
    examples['x-ratelimit-reset'],
    0,
    LAST_SECOND,
  ),
  'X-RateLimit-Cost': integer(
    'What the request cost of each window: 1 for a REST request; 0 if it was refused, or is free.',
    examples['x-ratelimit-cost'],
    0,
    MAX_INT,
  ),
  RateLimit: text(
    'The requests left in each window (`r`), and the seconds until it resets (`t`): draft-ietf-httpapi-ratelimit-headers-10.',
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
    'Identifies the request in logs. If the request sent a valid `X-Request-Id`, it is the same.',
    '5f1f9c1e-6a52-4d0b-9e0a-3c8f0a0f7a11',
    { pattern: '^[!-~]+$', minLength: 1, maxLength: 128 },
  ),
  traceparent: optional(
    text(
      'The span of this request, in the trace of the `traceparent` that it sent (W3C Trace Context). Absent if it sent none.',
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

/** An ETag for examples. */
export const exampleEtag = createEtag('')

export const headers: Record<string, Header> = {
  ...common,
  ETag: text('Changes whenever the result changes (RFC 9110).', exampleEtag, {
    pattern: '^"[\\w-]{27}"$',
    maxLength: 29,
  }),
  'Retry-After': integer('Whole seconds to wait before the next attempt.', 60, 1, LAST_SECOND),
  'WWW-Authenticate': constant('How to authenticate (RFC 9110).', 'Bearer'),
}

const headerRefs = (names: string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

export const commonHeaders = headerRefs(Object.keys(common))

/** On every result that is stored. */
export const etagHeader = headerRefs(['ETag'])

const byStatus: Record<number, string[]> = { 401: ['WWW-Authenticate'], 429: ['Retry-After'], 503: ['Retry-After'] }

/** `rate_limited` and `key_banned` share 429: one response, `RateLimited`, named after the first code of the status. */
export const responseName = (status: number) => {
  const [code = 'not_modified'] = Object.entries(catalogue).find(([, entry]) => entry.status === status) ?? []
  return code.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase())
}

export const notModified: [number, ResponseObject] = [
  304,
  {
    description: '`If-None-Match` has the `ETag` of what a 200 would return.',
    headers: { ...commonHeaders, ...etagHeader },
  },
]

const usedUp = {
  at: EXAMPLE_TIME,
  outcome: 'limited' as const,
  cost: 0,
  windows: exampleWindows.map((window) => ({ ...window, remaining: 0 })),
  refusedBy: ['minute' as const],
}
const minute = usedUp.windows.slice(0, 1)

/** Messages that name what a request was refused for. Others have the catalogue's own. */
const exampleMessages: Partial<Record<ErrorCode, string>> = {
  invalid_request: 'quantity is -1; it must be at least 0. complete is "yes"; it must be true or false.',
  rate_limited: refusalMessage(usedUp),
  key_banned: refusalMessage({ ...usedUp, outcome: 'banned', bannedUntil: EXAMPLE_TIME + 300_000 }),
}

/** The message of a 429 to a request without a valid key. */
export const addressLimited = refusalMessage({
  ...usedUp,
  windows: minute.map((window) => ({ ...window, name: 'address' })),
  refusedBy: ['address'],
})

/** Error bodies that share a status, each as an example. */
export const errorContent = (errors: { code: ErrorCode; status: number; message: string }[]) => {
  const examples = errors.map(({ code, message, status }) => [code, { value: { code, message, status } }])
  return { 'application/json': { schema: schemaRef('Error'), examples: Object.fromEntries(examples) } }
}

/** The error responses for these codes, one for each status. */
export const errorResponses = (codes: ErrorCode[]) =>
  [...new Set(codes.map((code) => catalogue[code].status))].sort().map((status): [number, ResponseObject] => {
    const errors = codes.flatMap((code) => {
      const { message, ...entry } = catalogue[code]
      return entry.status === status ? [{ code, ...entry, message: exampleMessages[code] ?? message }] : []
    })
    const response = {
      description: errors.map(({ code, description }) => `\`${code}\`: ${description}`).join('\n\n'),
      headers: { ...commonHeaders, ...headerRefs(byStatus[status] ?? []) },
      content: errorContent(errors),
    }
    return [status, response]
  })
