import { LRUCache } from 'lru-cache'
import type { ApiKey, PrismaClient } from '../../prisma/generated/client/client.js'
import type { Logger } from '../log.js'
import { hashSecret, isSecret } from './api-key.js'

export interface ApiKeyCacheOptions {
  prisma: PrismaClient
  log: Logger
  /** How long a row is trusted, in milliseconds. A change in the database takes effect on every gateway after this. */
  ttlMs?: number
}

/** How often the last use of keys is written, in milliseconds. */
const FLUSH_MS = 5_000

const MAX_ROWS = 10_000

/** The keys that this gateway has seen lately: at most one database read per key and `ttlMs`. */
export class ApiKeyCache {
  readonly #prisma: PrismaClient
  readonly #log: Logger
  readonly #rows: LRUCache<string, ApiKey>
  // Apart, so that a flood of invented keys cannot push the real ones out.
  readonly #unknown: LRUCache<string, true>
  /** The hashes of the secrets of these rows: hashing is slower than looking up. */
  readonly #hashes = new LRUCache<string, string>({ max: MAX_ROWS })
  readonly #used = new Set<number>()
  readonly #flushing: NodeJS.Timeout

  constructor({ prisma, log, ttlMs = 4_000 }: ApiKeyCacheOptions) {
    this.#prisma = prisma
    this.#log = log
    this.#unknown = new LRUCache({ max: MAX_ROWS, ttl: ttlMs })
    this.#rows = new LRUCache({
      max: MAX_ROWS,
      ttl: ttlMs,
      noDeleteOnStaleGet: true,
      // A request that waits for a row gets it, even if a ban has replaced it in the meantime.
      ignoreFetchAbort: true,
      fetchMethod: async (hash, stale) => {
        const row = await prisma.apiKey.findUnique({ where: { hash } }).catch((error) => {
          // While the database is unreachable, a key that was good stays good; what needs the database says so itself.
          if (stale) return stale
          throw error
        })
        if (!row) this.#unknown.set(hash, true)
        return row ?? undefined
      },
    })
    this.#flushing = setInterval(() => this.flush(), FLUSH_MS).unref()
  }

  /**
   * The row of a secret that may be used now; undefined for one that is unknown, revoked or expired. A promise only
   * where the row has to be read.
   */
  find(secret: string): ApiKey | undefined | Promise<ApiKey | undefined> {
    const known = this.#hashes.get(secret)
    if (!known && !isSecret(secret)) return undefined
    const hash = known ?? hashSecret(secret)
    if (this.#unknown.has(hash)) return undefined
    const row = this.#rows.get(hash)
    if (row) return this.#usable(row)
    return this.#rows.fetch(hash).then((read) => {
      if (read) this.#hashes.set(secret, hash)
      return this.#usable(read)
    })
  }

  #usable(row: ApiKey | undefined): ApiKey | undefined {
    const now = Date.now()
    if (!row || (row.revokedAt && row.revokedAt.getTime() <= now)) return undefined
    if (row.expiresAt && row.expiresAt.getTime() <= now) return undefined
    this.#used.add(row.id)
    return row
  }

  /** Writes a ban into the key's row, which other gateways and admins go by. */
  async ban(key: ApiKey, until: number): Promise<void> {
    try {
      const row = await this.#prisma.apiKey.update({ where: { id: key.id }, data: { bannedUntil: new Date(until) } })
      this.#rows.set(key.hash, row)
      this.#log.warn({ key: key.prefix, until: row.bannedUntil }, 'key banned')
    } catch (error) {
      this.#log.error({ err: error, key: key.prefix }, 'failed to write a ban')
    }
  }

  /** Writes which keys were used since the last time. */
  async flush(): Promise<void> {
    if (this.#used.size === 0) return
    const ids = [...this.#used]
    this.#used.clear()
    try {
      await this.#prisma.apiKey.updateMany({ where: { id: { in: ids } }, data: { lastUsedAt: new Date() } })
    } catch (error) {
      this.#log.warn({ err: error }, 'failed to write the last use of keys')
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#flushing)
    await this.flush()
  }
}
