import { beforeAll, describe, expect, test } from 'vitest'
import { operations } from '../schema/index.js'
import {
  bindingWindow,
  type RateLimitResult,
  setRateLimitHeaders,
  type WindowState,
} from '../src/engines/rate-limit/index.js'
import { setDeprecationHeaders } from '../src/gateway/reply/headers.js'
import { preflight, times } from './support/calls.js'
import { type Answer, sharedGateway } from './support/gateway.js'

const gateway = await sharedGateway({ env: { CORS_ORIGINS: 'https://a.example' } })

function rateLimitHeaders(result: RateLimitResult) {
  const headers: Record<string, string> = {}
  setRateLimitHeaders(headers, result, result.outcome !== 'allowed')
  return headers
}

const now = 1_800_000_000_000
const window =
  (name: 'minute' | 'day', limit: number, seconds: number, untilReset: number) =>
  (remaining: number, resetAt = now + untilReset): WindowState => ({ name, limit, seconds, remaining, resetAt })
const minute = window('minute', 60, 60, 30_000)
const day = window('day', 1000, 86_400, 3_600_000)
const result = (outcome: RateLimitResult['outcome'], windows: WindowState[], more: Partial<RateLimitResult> = {}) => ({
  ...{ at: now, outcome, cost: outcome === 'allowed' ? 1 : 0, windows, refusedBy: [] },
  ...more,
})
const allowed = (...windows: WindowState[]) => result('allowed', windows)
const limited = (refusedBy: ('minute' | 'day')[], ...windows: WindowState[]) =>
  result('limited', windows, { refusedBy })
const banned = (bannedUntil: number, ...windows: WindowState[]) => result('banned', windows, { bannedUntil })

describe('the binding window', () => {
  test.each([
    ['has the fewest requests remaining', allowed(minute(5), day(900)), 'minute'],
    ['has the fewest requests remaining, whichever it is', allowed(minute(60), day(3)), 'day'],
    ['on a tie resets last', allowed(minute(5), day(5)), 'day'],
    ['on a tie resets last, whichever it is', allowed(minute(5, now + 60_000), day(5, now + 1000)), 'minute'],
    ['after a refusal is the one that refused', limited(['minute'], minute(2), day(1)), 'minute'],
    ['after a refusal is the one that refused, whichever it is', limited(['day'], minute(0), day(1)), 'day'],
    ['after a refusal by both resets last', limited(['minute', 'day'], minute(0), day(2)), 'day'],
    [
      'after a refusal by both resets last, whichever it is',
      limited(['minute', 'day'], minute(2), day(0, now + 1000)),
      'minute',
    ],
  ])('%s', (_, result, name) => {
    expect(bindingWindow(result).name).toBe(name)
    expect(bindingWindow({ ...result, windows: result.windows.toReversed() }).name).toBe(name)
  })
})

describe('rate limit headers', () => {
  test('show the binding window, and both windows as policies', () => {
    expect(rateLimitHeaders(allowed(minute(59, now + 60_000), day(999)))).toEqual({
      'x-ratelimit-limit': '60',
      'x-ratelimit-remaining': '59',
      'x-ratelimit-reset': '1800000060',
      'x-ratelimit-cost': '1',
      'ratelimit-policy': '"minute";q=60;w=60, "day";q=1000;w=86400',
      ratelimit: '"minute";r=59;t=60, "day";r=999;t=3600',
    })
  })

  test.each([
    [now + 1, 1_800_000_001, 1],
    [now + 1000, 1_800_000_001, 1],
    [now + 1001, 1_800_000_002, 2],
    [now, 1_800_000_000, 1],
    [now - 5000, 1_799_999_995, 1],
  ])('round up: a reset at %i ms is shown as %i, with Retry-After: %i', (resetAt, reset, retryAfter) => {
    const headers = rateLimitHeaders(limited(['minute'], minute(0, resetAt), day(5)))
    expect(headers).toMatchObject({ 'x-ratelimit-reset': String(reset), 'retry-after': String(retryAfter) })
    expect(headers.ratelimit).toMatch(/^"minute";r=0;t=\d+, /)
  })

  test('of a ban show 0 remaining until its end', () => {
    expect(rateLimitHeaders(banned(now + 300_000, minute(60), day(900)))).toEqual({
      'x-ratelimit-limit': '60',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '1800000300',
      'x-ratelimit-cost': '0',
      'ratelimit-policy': '"minute";q=60;w=60, "day";q=1000;w=86400',
      ratelimit: '"minute";r=0;t=300, "day";r=0;t=300',
      'retry-after': '300',
    })
  })
})

describe('deprecation headers', () => {
  const deprecation = {
    since: new Date('2025-12-05'),
    sunset: 'PET_BY_ID_SUNSET',
    successor: '/pets?id={petId}',
  } as const
  const options = { baseUrl: 'https://api.example.com/v1', sunset: new Date('2030-12-05') }
  const rest = {
    method: 'GET',
    path: '/pets/{petId}',
    tag: { name: 'Pets', description: '' },
    summary: 'Get a pet',
    deprecation,
  } as const
  const headersOf = (petId: string) => {
    const headers: Record<string, string> = {}
    setDeprecationHeaders(headers, { rest }, { petId }, options)
    return headers
  }

  test('follow RFC 9745 and RFC 8594', () => {
    expect(headersOf('7')).toEqual({
      deprecation: '@1764892800',
      sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
      link: '<https://api.example.com/v1/docs>; rel="deprecation"; type="text/html", <https://api.example.com/v1/pets?id=7>; rel="successor-version"',
    })
  })

  test.each([
    ['19 digits', '9'.repeat(19), `?id=${'9'.repeat(19)}`],
    ['20 digits', '9'.repeat(20), ''],
    ['a sign', '-1', ''],
    ['another text', '7&x=1', ''],
  ])('repeat no more of a path than an id: %s', (_, petId, query) => {
    expect(headersOf(petId).link).toMatch(
      new RegExp(`, <https://api\\.example\\.com/v1/pets${query.replace('?', '\\?')}>; rel="successor-version"$`),
    )
  })
})

describe('a response repeats little of its request: its head stays below 4 KiB with', () => {
  const LENGTH = 14_500
  const fill = (text: string) => text.repeat(LENGTH / text.length)
  const texts = [',', '0', '9', '%41', '%20', '+', ';', '"'].map(fill)
  beforeAll(async () => {
    const { id: categoryId } = await gateway.prisma.category.create({ data: { name: 'Cats' } })
    const names = ['Tom', 'Tom', '🐈'.repeat(100), '🐈'.repeat(100)]
    await gateway.prisma.pet.createMany({ data: names.map((name) => ({ name, categoryId })) })
  })

  const expectShort = ({ status, headers }: Answer, name: string) => {
    const bytes = [...headers].reduce(
      (sum, [name, value]) => sum + Buffer.byteLength(`${name}: ${value}\r\n`, 'latin1'),
      0,
    )
    expect([name, status < 500, bytes < 4_096 || bytes]).toEqual([name, true, true])
  }

  test.each(operations)(
    '$operationId and a long text in its path or query string',
    async ({ rest, pathArguments, queryArguments }) => {
      const path = (text: string) => rest.path.replace(/\{\w+\}/, text)
      for (const text of texts) {
        const targets = [
          ...pathArguments.flatMap(() => [path(text), path(`${text}1`)]),
          ...[...queryArguments.map(({ name }) => name), 'nonsense', text].map(
            (name) => `${path('1')}?limit=1&${name}=${text}1`,
          ),
        ]
        for (const target of targets)
          for (const key of [gateway.key, null])
            expectShort(await gateway.call(rest.method, target, { key }), target.slice(0, 40))
      }
    },
  )

  test.each([
    ...['X-Request-Id', 'traceparent', 'Origin', 'Content-Type', 'Accept', 'If-None-Match', 'If-Match'],
    ...['Idempotency-Key', 'Access-Control-Request-Method', 'Access-Control-Request-Headers', 'X-API-Key', 'Forwarded'],
  ])('a long header %s', async (name) => {
    for (const text of ['a', ',', 'a,', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-', 'W/"a", '].map(
      fill,
    ))
      for (const [method, path] of [
        ['GET', '/pets/1'],
        ['POST', '/categories'],
        ['OPTIONS', '/pets'],
        ['POST', '/graphql'],
        ['GET', '/docs'],
      ] as const) {
        const headers = { ...(method === 'OPTIONS' && preflight), [name.toLowerCase()]: text }
        expectShort(await gateway.call(method, path, { headers }), `${method} ${path}`)
      }
  })

  test.each([
    ['100 ids of 16 digits', `/pets?limit=1&id=1&id=2${times(98, (i) => `&id=${9_007_199_254_740_900 + i}`).join('')}`],
    ['a search for 100 emoji', `/pets?limit=1&sort=name&search=${encodeURIComponent('🐈'.repeat(100))}`],
    ['a search in white space', `/pets?limit=1&sort=name&search=${fill('+')}Tom`],
  ])('a link to the next page of %s', async (name, path) => {
    const answer = await gateway.get(path)
    expectShort(answer, name)
    const next = /^<http:\/\/localhost:3000([^>]+)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1] ?? ''
    const page = await gateway.get(next)
    expect([page.status, page.body.length, page.headers.get('link')]).toEqual([200, 1, null])
  })

  test.each([
    ['1,024 characters', 1_024, true],
    ['one more', 1_025, false],
  ])('a preflight that names headers with %s', async (_, length, isRepeated) => {
    const named = 'x'.repeat(length)
    const answer = await gateway.call('OPTIONS', '/pets', {
      key: null,
      headers: { ...preflight, 'access-control-request-headers': named },
    })
    expectShort(answer, 'OPTIONS')
    expect(answer.headers.get('access-control-allow-headers')).toEqual(
      isRepeated ? named : expect.stringContaining('Authorization, X-API-Key'),
    )
  })
})
