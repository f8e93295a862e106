import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bindingWindow, type RateLimitResult, setRateLimitHeaders, type WindowState } from '../src/rate-limit/index.js'
import { setDeprecationHeaders } from '../src/rest/deprecation.js'

function rateLimitHeaders(result: RateLimitResult) {
  const headers: Record<string, string> = {}
  setRateLimitHeaders(headers, result, result.outcome !== 'allowed')
  return headers
}

const now = 1_800_000_000_000
const minute = (remaining: number, resetAt = now + 30_000): WindowState => ({
  name: 'minute',
  limit: 60,
  seconds: 60,
  remaining,
  resetAt,
})
const day = (remaining: number, resetAt = now + 3_600_000): WindowState => ({
  name: 'day',
  limit: 1000,
  seconds: 86_400,
  remaining,
  resetAt,
})
const allowed = (...windows: WindowState[]): RateLimitResult => ({
  at: now,
  outcome: 'allowed',
  cost: 1,
  windows,
  refusedBy: [],
})
const limited = (refusedBy: ('minute' | 'day')[], ...windows: WindowState[]): RateLimitResult => ({
  at: now,
  outcome: 'limited',
  cost: 0,
  windows,
  refusedBy,
})
const banned = (bannedUntil: number, ...windows: WindowState[]): RateLimitResult => ({
  at: now,
  outcome: 'banned',
  cost: 0,
  windows,
  refusedBy: [],
  bannedUntil,
})

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

  test('are whole numbers, and Retry-After never ends before the reset', () => {
    const window = (name: 'minute' | 'day') =>
      fc.record({
        name: fc.constant(name),
        limit: fc.integer({ min: 1, max: 2_147_483_647 }),
        seconds: fc.constantFrom(60, 86_400),
        remaining: fc.nat(),
        resetAt: fc.integer({ min: now - 1000, max: now + 86_400_000 }),
      })
    const result = fc.tuple(window('minute'), window('day')).chain((windows) =>
      fc.oneof(
        fc.constant<RateLimitResult>({ at: now, outcome: 'allowed', cost: 1, windows, refusedBy: [] }),
        fc
          .subarray(['minute', 'day'] as const, { minLength: 1 })
          .map((refusedBy): RateLimitResult => ({ at: now, outcome: 'limited', cost: 0, windows, refusedBy })),
        fc.integer({ min: now, max: now + 86_400_000 }).map(
          (bannedUntil): RateLimitResult => ({
            at: now,
            outcome: 'banned',
            cost: 0,
            windows,
            refusedBy: [],
            bannedUntil,
          }),
        ),
      ),
    )
    fc.assert(
      fc.property(result, fc.integer({ min: 0, max: 999 }), (given, offset) => {
        const at = now + offset
        const headers = rateLimitHeaders({ ...given, at })
        for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'])
          expect(headers[name]).toMatch(/^\d+$/)
        expect(headers.ratelimit).toMatch(/^"minute";r=\d+;t=\d+, "day";r=\d+;t=\d+$/)
        expect('retry-after' in headers).toBe(given.outcome !== 'allowed')
        if (given.outcome === 'allowed') return
        const end = given.outcome === 'banned' ? (given.bannedUntil ?? 0) : bindingWindow(given).resetAt
        expect(headers['retry-after']).toMatch(/^[1-9]\d*$/)
        expect(at + Number(headers['retry-after']) * 1000).toBeGreaterThanOrEqual(end)
        expect(Number(headers['x-ratelimit-reset']) * 1000).toBeGreaterThanOrEqual(end)
      }),
    )
  })
})

test('deprecation headers follow RFC 9745 and RFC 8594', () => {
  const deprecation = {
    since: new Date('2025-12-05'),
    sunset: 'PET_BY_ID_SUNSET',
    successor: '/pets?id={petId}',
  } as const
  const options = { baseUrl: 'https://api.example.com/v1', sunset: new Date('2030-12-05') }
  const headers: Record<string, string> = {}
  const rest = { method: 'GET', path: '/pets/{petId}', tag: 'Pets', summary: 'Get a pet', deprecation } as const
  setDeprecationHeaders(headers, { rest }, { petId: '7&x=1' }, options)
  expect(headers).toEqual({
    deprecation: '@1764892800',
    sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
    link: '<https://api.example.com/v1/docs>; rel="deprecation"; type="text/html", <https://api.example.com/v1/pets?id=7%26x%3D1>; rel="successor-version"',
  })
})
