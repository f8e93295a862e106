import { ApiError } from '../../schema/errors.js'
import type { RequestContext, RequestHead } from '../http/context.js'
import { inTime } from '../http/deadline.js'
import { type RateLimiter, refusalMessage } from '../rate-limit/index.js'
import { addressSubject, isSecret, keySubject, windowSeconds } from './api-key.js'
import type { ApiKeyCache, Found } from './api-key-cache.js'
import { Lookups } from './lookups.js'

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

/** Why a key is not valid, without a hint that would help to guess one. */
const invalidKey = (secret: string) =>
  isSecret(secret)
    ? 'The API key is unknown, revoked or expired.'
    : 'The API key is incomplete or mistyped: a key is "petstore_" and 48 hexadecimal digits.'

export interface AuthenticationOptions {
  apiKeys: ApiKeyCache
  rateLimiter: RateLimiter
  /** How long a request may wait for its key, in milliseconds. */
  timeoutMs: number
  seconds?: typeof windowSeconds
}

/** The step that finds the key of a request. A request without a valid one counts against its address. */
export function createAuthentication({
  apiKeys,
  rateLimiter,
  timeoutMs,
  seconds = windowSeconds,
}: AuthenticationOptions) {
  const look = (address: string) => rateLimiter.consume(addressSubject(address, seconds), 0)
  const lookups = new Lookups<Found>(
    async (address) => (await look(address)).windows.some(({ remaining }) => remaining === 0),
    async (address) => {
      throw new ApiError('rate_limited', refusalMessage(await look(address)))
    },
  )

  /** @throws ApiError invalid_request (two different keys), unauthorized, rate_limited, unavailable */
  return async function authenticate(context: RequestContext): Promise<void> {
    const secrets = readSecrets(context.head)
    let key =
      secrets.length === 1
        ? apiKeys.find(secrets[0] as string, (hash, read) => lookups.run(context.address, hash, read))
        : undefined
    if (key instanceof Promise) {
      const startedAt = performance.now()
      key = await inTime(key, timeoutMs)
      context.waitedMs = performance.now() - startedAt
    }
    if (key) {
      context.key = key
      context.subject = keySubject(key, seconds)
      return
    }
    context.rateLimit = await rateLimiter.consume(addressSubject(context.address, seconds), 1)
    if (context.rateLimit.outcome !== 'allowed') throw new ApiError('rate_limited', refusalMessage(context.rateLimit))
    if (secrets.length > 1)
      throw new ApiError('invalid_request', 'The request carries two different API keys; send one.')
    throw new ApiError('unauthorized', secrets[0] && invalidKey(secrets[0]), { 'www-authenticate': 'Bearer' })
  }
}
