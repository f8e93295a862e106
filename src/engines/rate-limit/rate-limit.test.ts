import { expect, test } from 'vitest'
import { createLog } from '../observe/index.js'
import { openRateLimiter, type Subject, setRateLimitHeaders } from './index.js'

const log = createLog('silent')

test('does what its README shows', async () => {
  const limiter = await openRateLimiter({ banAfter: 10, banSeconds: 300, log })
  const windows: Subject['windows'] = [{ name: 'minute', limit: 2, seconds: 60 }]
  const reader = { id: 'key:12', windows, bannable: true }

  const allowed = await limiter.consume(reader, 2) // { outcome: 'allowed', cost: 2, windows: [{ remaining: 0, … }], … }
  const refused = await limiter.consume(reader, 1) // { outcome: 'limited', cost: 0, refusedBy: ['minute'], … }
  const headers: Record<string, string> = {}
  setRateLimitHeaders(headers, refused, true) // x-ratelimit-remaining: 0, retry-after: 60, …
  await limiter.close()

  expect(allowed).toMatchObject({ outcome: 'allowed', cost: 2, windows: [{ remaining: 0 }] })
  expect(refused).toMatchObject({ outcome: 'limited', cost: 0, refusedBy: ['minute'] })
  expect(headers).toMatchObject({ 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '0' })
  expect(Number(headers['retry-after'])).toBeGreaterThan(0)
})
