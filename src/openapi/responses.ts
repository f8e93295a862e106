import { catalogue, type ErrorCode } from '../../schema/errors.js'
import { EXPOSED, rateLimitHeaders } from '../headers.js'
import { type Header, type Reference, type ResponseObject, schemaRef } from './document.js'
import { NOW, windows } from './samples.js'

const sent = rateLimitHeaders({ at: NOW, outcome: 'allowed', windows })

const text = (description: string, example?: string): Header => ({
  description,
  required: true,
  schema: { type: 'string' },
  example,
})

const integer = (description: string, example: unknown, minimum = 0): Header => ({
  description,
  required: true,
  schema: { type: 'integer', format: 'int64', minimum },
  example: Number(example),
})

/** On every response, whatever its status. */
const common: Record<string, Header> = {
  'X-RateLimit-Limit': integer(
    'The limit that applies to the client: of its two windows, the one with the fewest requests remaining.',
    sent['x-ratelimit-limit'],
  ),
  'X-RateLimit-Remaining': integer('Requests remaining in that window.', sent['x-ratelimit-remaining']),
  'X-RateLimit-Reset': integer('Unix timestamp, in seconds, at which that limit resets.', sent['x-ratelimit-reset']),
  RateLimit: text(
    'What is left of each window (`r`), and in how many seconds it resets (`t`): draft-ietf-httpapi-ratelimit-headers-10.',
    sent.ratelimit,
  ),
  'RateLimit-Policy': text(
    "Each window's quota (`q`) and its length in seconds (`w`): draft-ietf-httpapi-ratelimit-headers-10. " +
      'A request without a valid key is counted in a window named `address`.',
    sent['ratelimit-policy'],
  ),
  'X-Request-Id': text(
    "Names the request, for questions to support: the request's own `X-Request-Id` where it sent a usable one.",
    '5f1f9c1e-6a52-4d0b-9e0a-3c8f0a0f7a11',
  ),
  'Access-Control-Allow-Origin': {
    ...text('Any origin, unless the service is configured to name some.', '*'),
    required: undefined,
  },
  'Access-Control-Expose-Headers': text('The headers that scripts in browsers may read.', EXPOSED),
}

const particular: Record<string, Header> = {
  'Retry-After': integer('Whole seconds to wait before the next attempt.', 60, 1),
  'WWW-Authenticate': text('How to authenticate (RFC 9110).', 'Bearer'),
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

/** The responses to refusals with these codes, one for each status. */
export const errorResponses = (codes: ErrorCode[]) =>
  [...new Set(codes.map((code) => catalogue[code].status))].sort().map((status) => {
    const entries = codes.flatMap((code) => (catalogue[code].status === status ? [{ code, ...catalogue[code] }] : []))
    const examples = entries.map(({ code, message, description }) => [
      code,
      { summary: description, value: { code, message, status } },
    ])
    const response: ResponseObject = {
      description: entries.map(({ code, description }) => `\`${code}\`: ${description}`).join('\n\n'),
      headers: { ...commonHeaders, ...refer(byStatus[status] ?? []) },
      content: { 'application/json': { schema: schemaRef('Error'), examples: Object.fromEntries(examples) } },
    }
    return { status, name: responseName(status), response }
  })
