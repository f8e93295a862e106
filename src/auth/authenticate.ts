import { ApiError } from '../../schema/errors.js'
import type { RequestContext, RequestHead } from '../http/context.js'
import type { RateLimiter } from '../rate-limit/index.js'
import { addressSubject, keySubject, windowSeconds } from './api-key.js'
import type { ApiKeyCache } from './api-key-cache.js'

/** The message of a 429 to a client without a valid key. */
export const ADDRESS_LIMITED = 'Too many requests without a valid key. Wait for the time in Retry-After.'

const bearer = /^Bearer +(\S.*)$/i

/** The keys that a request carries, each once. */
function readSecrets({ rawHeaders }: RequestHead): string[] {
  const secrets: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length !== 13 && name.length !== 9) continue
    const value = rawHeaders[i + 1] as string
    const lower = name.toLowerCase()
    const secret = lower === 'authorization' ? bearer.exec(value)?.[1]?.trim() : lower === 'x-api-key' && value.trim()
    if (secret && !secrets.includes(secret)) secrets.push(secret)
  }
  return secrets
}

export interface AuthenticationOptions {
  apiKeys: ApiKeyCache
  rateLimiter: RateLimiter
  seconds?: typeof windowSeconds
}

/** The step that finds the key of a request. A request without a valid one counts against its address. */
export function createAuthentication({ apiKeys, rateLimiter, seconds = windowSeconds }: AuthenticationOptions) {
  /** @throws ApiError invalid_request (two different keys), unauthorized, rate_limited */
  return async function authenticate(context: RequestContext): Promise<void> {
    const secrets = readSecrets(context.head)
    const found = secrets.length === 1 ? apiKeys.find(secrets[0] as string) : undefined
    const key = found instanceof Promise ? await found : found
    if (key) {
      context.key = key
      context.subject = keySubject(key, seconds)
      return
    }
    context.rateLimit = await rateLimiter.consume(addressSubject(context.address, seconds), 1)
    if (context.rateLimit.outcome !== 'allowed') throw new ApiError('rate_limited', ADDRESS_LIMITED)
    if (secrets.length > 1) throw new ApiError('invalid_request', 'The request carries two different API keys.')
    throw new ApiError('unauthorized', undefined, { 'www-authenticate': 'Bearer' })
  }
}
