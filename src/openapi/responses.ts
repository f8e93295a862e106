import { catalogue, type ErrorCode } from '../../schema/errors.js'
import { EXAMPLE_TIME, exampleWindows } from '../../schema/quota.js'
import { MAX_INT } from '../../schema/validation.js'
import { EXPOSED } from '../http/cors.js'
import { setRateLimitHeaders } from '../rate-limit/index.js'
import { type Header, type Reference, type ResponseObject, type Schema, schemaRef } from './document.js'

const sent: Record<string, string> = {}
setRateLimitHeaders(sent, { at: EXAMPLE_TIME, outcome: 'allowed', windows: [...exampleWindows], refusedBy: [] }, false)

/** Node takes no longer head of a request (its own default), so nothing that is made of one is longer than that allows. */
export const MAX_HEAD = 16_384

/** The last moment that a Date can have, in Unix seconds: no ban lasts longer. */
const LAST_SECOND = 8_640_000_000_000

/** A header that is not on each of these responses. */
export const optional = (header: Header): Header => ({ ...header, required: undefined })

/** A header whose value is one and the same text for every request. */
const constant = (description: string, value: string): Header => ({
  description,
  required: true,
  schema: { type: 'string', enum: [value] },
  example: value,
})

export const text = (description: string, example: string | undefined, bounds: Schema): Header => ({
  description,
  required: true,
  schema: { type: 'string', ...bounds },
  example,
})

const integer = (description: string, example: unknown, minimum: number, maximum: number): Header => ({
  description,
  required: true,
  schema: { type: 'integer', format: 'int64', minimum, maximum },
  example: Number(example),
})

/** A structured field (RFC 9651) of one window, or of a key's two: each a name and two numbers. */
const perWindow = (first: string, second: string): Schema => ({
  pattern: `^"(minute|day|address)";${first}=\\d{1,10};${second}=\\d{1,13}(, "day";${first}=\\d{1,10};${second}=\\d{1,13})?$`,
  maxLength: 80,
})

/** On every response, whatever its status. */
const common: Record<string, Header> = {
  'X-RateLimit-Limit': integer(
    'The limit that applies to the client: of its two windows, the one with the fewest requests remaining.',
    sent['x-ratelimit-limit'],
    1,
    MAX_INT,
  ),
  'X-RateLimit-Remaining': integer('Requests remaining in that window.', sent['x-ratelimit-remaining'], 0, MAX_INT),
  'X-RateLimit-Reset': integer(
    'Unix timestamp, in seconds, at which that limit resets.',
    sent['x-ratelimit-reset'],
    0,
    LAST_SECOND,
  ),
  RateLimit: text(
    'What is left of each window (`r`), and in how many seconds it resets (`t`): draft-ietf-httpapi-ratelimit-headers-10.',
    sent.ratelimit,
    perWindow('r', 't'),
  ),
  'RateLimit-Policy': text(
    "Each window's quota (`q`) and its length in seconds (`w`): draft-ietf-httpapi-ratelimit-headers-10. " +
      'A request without a valid key is counted in a window named `address`.',
    sent['ratelimit-policy'],
    perWindow('q', 'w'),
  ),
  'X-Request-Id': text(
    "Names the request, for questions to support: the request's own `X-Request-Id` where it sent a usable one.",
    '5f1f9c1e-6a52-4d0b-9e0a-3c8f0a0f7a11',
    { pattern: '^[!-~]+$', minLength: 1, maxLength: 128 },
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

const particular: Record<string, Header> = {
  'Retry-After': integer('Whole seconds to wait before the next attempt.', 60, 1, LAST_SECOND),
  'WWW-Authenticate': constant('How to authenticate (RFC 9110).', 'Bearer'),
}

export const headers: Record<string, Header> = { ...common, ...particular }

const refer = (names: string[]): Record<string, Reference> =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

export const commonHeaders = refer(Object.keys(common))

const byStatus: Record<number, string[]> = { 401: ['WWW-Authenticate'], 429: ['Retry-After'], 503: ['Retry-After'] }

/** `rate_limited` and `key_banned` share 429: one response, `RateLimited`, named after the first code of the status. */
const responseName = (status: number) => {
  const [code = ''] = Object.entries(catalogue).find(([, entry]) => entry.status === status) ?? []
  return code.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase())
}

interface Refusal {
  code: ErrorCode
  status: number
  message: string
}

/** Bodies of refusals that share a status, each as an example. */
export const errorContent = (refusals: Refusal[]): ResponseObject['content'] => {
  const examples = refusals.map(({ code, message, status }) => [code, { value: { code, message, status } }])
  return { 'application/json': { schema: schemaRef('Error'), examples: Object.fromEntries(examples) } }
}

/** The responses to refusals with these codes, one for each status. */
export const errorResponses = (codes: ErrorCode[]) =>
  [...new Set(codes.map((code) => catalogue[code].status))].sort().map((status) => {
    const entries = codes.flatMap((code) => (catalogue[code].status === status ? [{ code, ...catalogue[code] }] : []))
    const response: ResponseObject = {
      description: entries.map(({ code, description }) => `\`${code}\`: ${description}`).join('\n\n'),
      headers: { ...commonHeaders, ...refer(byStatus[status] ?? []) },
      content: errorContent(entries),
    }
    return { status, name: responseName(status), response }
  })
