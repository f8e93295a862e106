import { randomUUID } from 'node:crypto'
import { createLog } from '../../src/engines/observe/log.js'
import {
  openRateLimiter,
  type RateLimiter,
  type RateLimiterOptions,
  type RateLimitResult,
  type Subject,
} from '../../src/engines/rate-limit/index.js'

// The counters of a gateway without the gateway.

const opened: RateLimiter[] = []

/** Opens counters that are closed after the file. */
export async function openLimits(options: Partial<RateLimiterOptions> = {}): Promise<RateLimiter> {
  const limits = await openRateLimiter({
    banAfter: 10,
    banSeconds: 300,
    log: createLog('silent'),
    keyPrefix: randomUUID(),
    // A slow machine must not make Redis look unreachable.
    redisTimeoutMs: 2_000,
    ...options,
  })
  opened.push(limits)
  return limits
}

export const closeLimits = () => Promise.all(opened.splice(0).map((limits) => limits.close()))

/** A new key with its windows. */
export const subjectOf = (minute = 60, day = 1000, seconds = 60): Subject => ({
  id: `key:${randomUUID()}`,
  windows: [
    { name: 'minute', limit: minute, seconds },
    { name: 'day', limit: day, seconds: 86_400 },
  ],
  bannable: true,
})

export const remaining = (result: RateLimitResult) => result.windows.map((window) => window.remaining)
export const admitted = (results: RateLimitResult[]) => results.filter(({ outcome }) => outcome === 'allowed').length
