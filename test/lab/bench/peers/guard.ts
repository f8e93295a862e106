import { hash } from 'node:crypto'
import { Redis } from 'ioredis'
import { LRUCache } from 'lru-cache'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { ApiKey, PrismaClient } from '../../../../prisma/generated/client/client.js'

const plans = {
  Free: { minute: 60, day: 1_000 },
  Pro: { minute: 300, day: 10_000 },
  Business: { minute: 1_000, day: 100_000 },
}

export interface Guarded {
  /** The request may go on when there is no status. */
  status?: 401 | 429
  code?: 'unauthorized' | 'rate_limited'
  message?: string
  headers: Record<string, string>
  /** Of the key, for the log. */
  prefix?: string
}

const unauthorized: Guarded = {
  status: 401,
  code: 'unauthorized',
  message: 'A valid API key is required.',
  headers: { 'www-authenticate': 'Bearer' },
}

/**
 * The key check and the rate limits of the peers: a key cache, and the windows of a minute and a day in Redis, consumed
 * in parallel, by rate-limiter-flexible as its documentation shows it.
 */
export function createGuard(prisma: PrismaClient) {
  const redis = new Redis(process.env.REDIS_URL as string, { enableOfflineQueue: false, lazyConnect: true })
  redis.on('error', (error) => process.stderr.write(`Redis: ${error.message}\n`))
  const keys = new LRUCache<string, ApiKey>({ max: 10_000, ttl: 5_000 })
  const limiters = new Map<string, RateLimiterRedis>()

  async function findKey(secret: string) {
    const digest = hash('sha256', secret, 'hex')
    const cached = keys.get(digest)
    if (cached) return cached
    const key = await prisma.apiKey.findUnique({ where: { hash: digest } })
    if (key) keys.set(digest, key)
    return key
  }

  function limiter(window: string, points: number, duration: number) {
    const name = `peer:${window}:${points}`
    let found = limiters.get(name)
    if (!found) {
      const options = { keyPrefix: name, points, duration }
      found = new RateLimiterRedis({
        ...options,
        storeClient: redis,
        insuranceLimiter: new RateLimiterMemory(options),
      })
      limiters.set(name, found)
    }
    return found
  }

  async function guard(authorization: string | undefined): Promise<Guarded> {
    const key = authorization?.startsWith('Bearer ') ? await findKey(authorization.slice(7)) : undefined
    const now = Date.now()
    if (!key || key.revokedAt || (key.expiresAt && key.expiresAt.getTime() <= now)) return unauthorized
    const { minute: perMinute, day: perDay } =
      key.plan === 'Enterprise' ? { minute: key.minuteLimit ?? 0, day: key.dayLimit ?? 0 } : plans[key.plan]
    try {
      const [minute, day] = await Promise.all([
        limiter('minute', perMinute, 60).consume(key.id),
        limiter('day', perDay, 86_400).consume(key.id),
      ])
      const [window, limit] = minute.remainingPoints <= day.remainingPoints ? [minute, perMinute] : [day, perDay]
      return { headers: rateLimitHeaders(window, limit, now), prefix: key.prefix }
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal
      const wait = Math.ceil(refusal.msBeforeNext / 1000)
      const headers = { ...rateLimitHeaders(refusal, perMinute, now), 'retry-after': String(wait) }
      return { status: 429, code: 'rate_limited', message: `Retry after ${wait} seconds.`, headers, prefix: key.prefix }
    }
  }

  return { guard, open: () => redis.connect(), close: () => redis.disconnect() }
}

const rateLimitHeaders = (window: RateLimiterRes, limit: number, now: number) => ({
  'x-ratelimit-limit': String(limit),
  'x-ratelimit-remaining': String(window.remainingPoints),
  'x-ratelimit-reset': String(Math.ceil((now + window.msBeforeNext) / 1000)),
})
