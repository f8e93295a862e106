import { ApiError, invalidRequest } from '../../../schema/kit/errors.js'
import { inTime } from '../../deadline.js'
import { type RateLimiter, type RateLimitResult, refusalMessage, type Subject } from '../../engines/rate-limit/index.js'
import { type HttpRequest, type RequestHead, unavailable } from '../http/index.js'
import { addressSubject, hasForm, isSecret, type Key, keySubject, type windowSeconds } from './api-key.js'
import type { ApiKeyCache, Found } from './api-key-cache.js'
import { missingKey, noKey } from './missing-key.js'
import { Throttle } from './throttle.js'

/** Who sends a request. */
export interface Caller {
  readonly key: Key
  readonly subject: Subject
  /** How long the request has waited for its key, in milliseconds. */
  readonly waitedMs: number
}

/** @throws ApiError forbidden, if the key may only read */
export function requireWriteAccess({ key }: Caller): void {
  if (key.access !== 'write') throw new ApiError('forbidden')
}

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
function invalidKey(secret: string): string {
  if (isSecret(secret)) return 'The API key is unknown, revoked or expired.'
  if (hasForm(secret)) return 'The check digits of the API key do not match: it was altered, or not copied whole.'
  return noKey(secret) ?? 'The API key is incomplete or mistyped: a key is "petstore_" and 48 hexadecimal digits.'
}

/**
 * The step that finds the key of a request. A request without a valid one counts against its address.
 *
 * @param timeoutMs how long a request may wait for its key
 */
export function createAuthentication(
  apiKeys: ApiKeyCache,
  rateLimiter: RateLimiter,
  timeoutMs: number,
  seconds: typeof windowSeconds,
) {
  const look = (address: string) => rateLimiter.consume(addressSubject(address, seconds), 0)
  const throttle = new Throttle<Found>(
    async (address) => (await look(address)).windows.some(({ remaining }) => remaining === 0),
    async (address) => {
      throw new ApiError('rate_limited', refusalMessage(await look(address)))
    },
  )

  function refusalOf(request: HttpRequest, [secret, ...others]: string[], decision: RateLimitResult): ApiError {
    if (decision.outcome !== 'allowed') return new ApiError('rate_limited', refusalMessage(decision))
    if (others.length > 0) return invalidRequest('The request carries two different API keys; send one.')
    return new ApiError('unauthorized', secret ? invalidKey(secret) : missingKey(request), {
      'www-authenticate': 'Bearer',
    })
  }

  /** @throws ApiError rate_limited (too many look-ups of its address wait), unavailable */
  return async function authenticate(request: HttpRequest) {
    const secrets = readSecrets(request.head)
    const [secret = ''] = secrets
    const lookUp = (read: () => Promise<Found>) => throttle.run(request.address, secret, read)
    let key = secrets.length === 1 ? apiKeys.find(secret, lookUp) : undefined
    let waitedMs = 0
    if (key instanceof Promise) {
      const startedAt = performance.now()
      key = await inTime(key, timeoutMs, unavailable)
      waitedMs = performance.now() - startedAt
    }
    if (key) return { caller: { key, subject: keySubject(key, seconds), waitedMs } }
    const decision = await rateLimiter.consume(addressSubject(request.address, seconds), 1)
    return { refusal: refusalOf(request, secrets, decision), decision }
  }
}
