import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import type { ApiKey, PrismaClient } from '../../prisma/generated/client/client.js'
import type { Logger } from '../log.js'
import type { Subject } from '../rate-limit/index.js'

/** The lengths of the windows. Only tests have others. */
export const windowSeconds = { minute: 60, day: 86_400, address: 60 }

/** Requests by plan (specification, Limits). Enterprise keys carry their own. */
export const plans = {
  Free: { minute: 60, day: 1_000 },
  Pro: { minute: 300, day: 10_000 },
  Business: { minute: 1_000, day: 100_000 },
} as const

const checksum = (text: string) => crc32(text).toString(16).padStart(8, '0')

/**
 * A new secret: `petstore_`, 160 random bits and a CRC-32 in hexadecimal, so that secret scanners know one when they
 * see it and a mistyped one is refused without a look-up. The prefix tells keys apart in lists.
 */
export function createSecret() {
  const random = `petstore_${randomBytes(20).toString('hex')}`
  const key = random + checksum(random)
  return { key, prefix: key.slice(0, 17), hash: hashOf(key) }
}

const hashOf = (secret: string) => hash('sha256', secret, 'hex')

const isSecret = (text: string) =>
  /^petstore_[0-9a-f]{48}$/.test(text) && checksum(text.slice(0, -8)) === text.slice(-8)

/** Who is counted when a key calls, and in which windows. */
export function keyClient({ id, plan, minuteLimit, dayLimit }: ApiKey, seconds = windowSeconds): Subject {
  const { minute, day } = plan === 'Enterprise' ? { minute: minuteLimit ?? 0, day: dayLimit ?? 0 } : plans[plan]
  return {
    id: `key:${id}`,
    bannable: true,
    windows: [
      { name: 'minute', limit: minute, seconds: seconds.minute },
      { name: 'day', limit: day, seconds: seconds.day },
    ],
  }
}

/** Requests that need a key and have none are counted by address, so that keys cannot be guessed at speed. */
export const addressClient = (address: string, seconds = windowSeconds): Subject => ({
  id: `address:${address}`,
  bannable: false,
  windows: [{ name: 'address', limit: 60, seconds: seconds.address }],
})

export interface KeyRingOptions {
  prisma: PrismaClient
  log: Logger
  /** How long a row is believed. A change in the database holds on every gateway after this. */
  ttlMs?: number
}

/** The keys that this gateway has lately seen, at most one database read per key and `ttlMs`. */
export class KeyRing {
  readonly #prisma: PrismaClient
  readonly #log: Logger
  readonly #rows: LRUCache<string, ApiKey>
  // Apart, so that a flood of invented keys cannot push the real ones out.
  readonly #unknown: LRUCache<string, true>
  readonly #used = new Set<number>()
  readonly #flushing: NodeJS.Timeout

  constructor({ prisma, log, ttlMs = 4_000 }: KeyRingOptions) {
    this.#prisma = prisma
    this.#log = log
    this.#unknown = new LRUCache({ max: 10_000, ttl: ttlMs })
    this.#rows = new LRUCache({
      max: 10_000,
      ttl: ttlMs,
      noDeleteOnStaleGet: true,
      // Whoever waits for a row gets it, though a ban may have put a newer one in its place meanwhile.
      ignoreFetchAbort: true,
      fetchMethod: async (hash, stale) => {
        const row = await prisma.apiKey.findUnique({ where: { hash } }).catch((error) => {
          // While the database is away, a key that was good stays good; what needs the database says so itself.
          if (stale) return stale
          throw error
        })
        if (!row) this.#unknown.set(hash, true)
        return row ?? undefined
      },
    })
    this.#flushing = setInterval(() => this.flush(), 5_000).unref()
  }

  /** The row of a secret that may be used now; undefined for one that is unknown, revoked or expired. */
  async find(secret: string): Promise<ApiKey | undefined> {
    if (!isSecret(secret)) return undefined
    const hash = hashOf(secret)
    if (this.#unknown.has(hash)) return undefined
    const row = this.#rows.get(hash) ?? (await this.#rows.fetch(hash))
    const now = Date.now()
    if (!row || (row.revokedAt && row.revokedAt.getTime() <= now)) return undefined
    if (row.expiresAt && row.expiresAt.getTime() <= now) return undefined
    this.#used.add(row.id)
    return row
  }

  /** Writes a ban into the key's row, which is what the other gateways and the admins go by. */
  async ban(key: ApiKey, until: number): Promise<void> {
    try {
      const row = await this.#prisma.apiKey.update({ where: { id: key.id }, data: { bannedUntil: new Date(until) } })
      this.#rows.set(key.hash, row)
      this.#log.warn({ key: key.prefix, until: row.bannedUntil }, 'key banned')
    } catch (error) {
      this.#log.error({ err: error, key: key.prefix }, 'a ban could not be written')
    }
  }

  /** Writes down which keys were used since the last time. */
  async flush(): Promise<void> {
    if (this.#used.size === 0) return
    const ids = [...this.#used]
    this.#used.clear()
    try {
      await this.#prisma.apiKey.updateMany({ where: { id: { in: ids } }, data: { lastUsedAt: new Date() } })
    } catch (error) {
      this.#log.warn({ err: error }, 'the last use of keys could not be written')
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#flushing)
    await this.flush()
  }
}
