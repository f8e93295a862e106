import { ApiError } from '../../schema/errors.js'
import type { Exchange } from '../http/context.js'
import type { RateLimiter } from '../rate-limit/index.js'
import { addressClient, type KeyRing, keyClient, windowSeconds } from './api-keys.js'

/** What a refusal says to those who have no valid key. */
export const ADDRESS_LIMITED = 'Too many requests without a valid key. Wait for the time in Retry-After.'

/** The keys that a request carries. A header that was sent twice counts twice. */
function credentials(request: Request, { req }: { req?: { headersDistinct: NodeJS.Dict<string[]> } }): string[] {
  const all = (name: string) => req?.headersDistinct[name] ?? [request.headers.get(name) ?? '']
  const bearer = all('authorization').flatMap((value) => /^Bearer +(\S.*)$/i.exec(value)?.[1]?.trim() ?? [])
  return [...new Set([...bearer, ...all('x-api-key').map((value) => value.trim())])].filter(Boolean)
}

/** Who may come in, and for how much: the same for both surfaces. */
export class Admission {
  readonly #keys: KeyRing
  readonly #limits: RateLimiter
  readonly #seconds: typeof windowSeconds

  constructor(keys: KeyRing, limits: RateLimiter, seconds = windowSeconds) {
    this.#keys = keys
    this.#limits = limits
    this.#seconds = seconds
  }

  /**
   * Finds out whose request it is. One without a valid key is counted against its address.
   *
   * @throws ApiError invalid_request (two different keys), unauthorized, rate_limited
   */
  async identify(request: Request, context: { req?: { headersDistinct: NodeJS.Dict<string[]> }; exchange: Exchange }) {
    const { exchange } = context
    const secrets = credentials(request, context)
    const key = secrets.length === 1 ? await this.#keys.find(secrets[0] as string) : undefined
    if (key) {
      exchange.key = key
      exchange.client = keyClient(key, this.#seconds)
      return
    }
    exchange.verdict = await this.#limits.consume(addressClient(exchange.address, this.#seconds), 1)
    if (exchange.verdict.outcome !== 'allowed') throw new ApiError('rate_limited', ADDRESS_LIMITED)
    if (secrets.length > 1) throw new ApiError('invalid_request', 'The request carries two different API keys.')
    throw new ApiError('unauthorized', undefined, { 'www-authenticate': 'Bearer' })
  }

  /**
   * Takes `cost` requests out of both windows of the key, or out of neither.
   *
   * @param onlyQuota the request asks for nothing but the quota, which a banned key may do too
   * @throws ApiError key_banned, rate_limited, invalid_request (dearer than a whole window)
   */
  async admit(exchange: Exchange, cost: number, onlyQuota = false) {
    const { key, client } = exchange
    if (!key || !client) throw new ApiError('unauthorized')
    const bannedUntil = key.bannedUntil?.getTime() ?? 0
    const narrowest = Math.min(...client.windows.map(({ limit }) => limit))
    const tooDear = cost > narrowest
    const banned = bannedUntil > Date.now()
    const verdict = await this.#limits.consume(client, banned || tooDear ? 0 : cost)
    exchange.verdict = banned ? { ...verdict, outcome: 'banned', bannedUntil } : verdict
    if (exchange.verdict.outcome === 'banned') {
      if (!onlyQuota) throw new ApiError('key_banned')
    } else if (tooDear) {
      throw new ApiError(
        'invalid_request',
        `The operation costs ${cost} requests; the key's plan never allows more than ${narrowest} at once.`,
      )
    } else if (verdict.outcome === 'limited') {
      if (verdict.bannedUntil) void this.#keys.ban(key, verdict.bannedUntil)
      const left = Math.min(...verdict.windows.map(({ remaining }) => remaining))
      throw new ApiError(
        'rate_limited',
        cost > 1
          ? `The operation costs ${cost} requests, and ${left} are left. Wait for the time in Retry-After.`
          : undefined,
      )
    }
  }
}
