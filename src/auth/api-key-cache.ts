import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { ApiKey, PrismaClient } from '../../prisma/generated/client/client.js'
import type { Logger } from '../log.js'
import { hashSecret, isSecret } from './api-key.js'
import { writeKeys } from './history.js'

export interface ApiKeyCacheOptions {
  /** Reads of single keys that arrive together should share a query. */
  prisma: PrismaClient
  log: Logger
  /** How long a row is trusted, in milliseconds. A change in the database takes effect on every gateway after this. */
  ttlMs?: number
}

/** How long a row is trusted while it cannot be read, in milliseconds. */
const STALE_MS = 300_000
/** How long a request waits for a row to be read again, and how often that is tried while it fails, in milliseconds. */
const PATIENCE_MS = 250
const RETRY_MS = 1_000
/** How long after its last valid use a key is looked up without delay, in milliseconds. */
const KNOWN_MS = 3_600_000

const MAX_ROWS = 10_000

export type Found = ApiKey | undefined
interface Known {
  row: ApiKey
  /** When the read began. */
  readAt: number
}

const after = <T>(ms: number, value: T): Promise<T> => sleep(ms, value, { ref: false })

function isUsable({ revokedAt, expiresAt }: ApiKey): boolean {
  const now = Date.now()
  return !(revokedAt && revokedAt.getTime() <= now) && !(expiresAt && expiresAt.getTime() <= now)
}

/** The keys that this gateway has seen recently: at most one database read per key in `ttlMs`. */
export class ApiKeyCache {
  readonly #prisma: PrismaClient
  readonly #log: Logger
  readonly #ttlMs: number
  readonly #rows = new LRUCache<string, Known>({ max: MAX_ROWS })
  // A separate cache, so that a flood of invented keys cannot evict the real ones.
  readonly #unknown: LRUCache<string, true>
  readonly #reads = new Map<string, Promise<Found>>()
  /** While rows cannot be read: when to try again. */
  #retryAt: number | undefined
  /** The hashes of the secrets of these rows: hashing is slower than looking up. */
  readonly #hashes = new LRUCache<string, string>({ max: MAX_ROWS })

  constructor({ prisma, log, ttlMs = 4_000 }: ApiKeyCacheOptions) {
    this.#prisma = prisma
    this.#log = log
    this.#ttlMs = ttlMs
    this.#unknown = new LRUCache({ max: MAX_ROWS, ttl: ttlMs })
  }

  /**
   * The row of a secret that may be used now; undefined for one that is unknown, revoked or expired. A promise only if
   * the row has to be read.
   *
   * @param lookUp may delay or refuse the first read of a secret, and that of one that was not valid within the last hour
   */
  find(secret: string, lookUp = (_hash: string, read: () => Promise<Found>) => read()): Found | Promise<Found> {
    const hashed = this.#hashes.get(secret)
    if (!hashed && !isSecret(secret)) return undefined
    const hash = hashed ?? hashSecret(secret)
    if (this.#unknown.has(hash)) return undefined
    const known = this.#rows.get(hash)
    const now = Date.now()
    const age = known ? now - known.readAt : Number.POSITIVE_INFINITY
    const row = known && isUsable(known.row) ? known.row : undefined
    if (age <= this.#ttlMs) return row
    const read = () => this.#read(hash).then((found) => (found && isUsable(found) ? found : undefined))
    if (!row || age > KNOWN_MS)
      return lookUp(hash, read).then((found) => {
        if (found) this.#hashes.set(secret, hash)
        return found
      })
    if (age > STALE_MS) return read()
    if (this.#retryAt === undefined) return Promise.race([read().catch(() => row), after(PATIENCE_MS, row)])
    if (now >= this.#retryAt) {
      this.#retryAt = now + RETRY_MS
      read().catch(() => {})
    }
    return row
  }

  /** Reads a row. Requests that ask for the same one at the same time share the read. */
  #read(hash: string): Promise<Found> {
    let read = this.#reads.get(hash)
    if (!read) {
      const readAt = Date.now()
      const overdue = setTimeout(() => this.#unreadable(), PATIENCE_MS).unref()
      read = this.#prisma.apiKey
        .findUnique({ where: { hash } })
        .then(
          (row) => {
            this.#retryAt = undefined
            // A ban may have been written since the read began.
            if (row && (this.#rows.peek(hash)?.readAt ?? 0) <= readAt) this.#rows.set(hash, { row, readAt })
            if (!row) {
              this.#rows.delete(hash)
              this.#unknown.set(hash, true)
            }
            return this.#rows.peek(hash)?.row
          },
          (error) => {
            this.#unreadable()
            throw error
          },
        )
        .finally(() => {
          clearTimeout(overdue)
          this.#reads.delete(hash)
        })
      this.#reads.set(hash, read)
    }
    return read
  }

  #unreadable(): void {
    this.#retryAt ??= Date.now() + RETRY_MS
  }

  /** Writes a ban into the key's row, from which other gateways and admins read it. */
  async ban(key: ApiKey, until: number): Promise<void> {
    try {
      const row = await writeKeys(this.#prisma, 'gateway', ({ apiKey }) =>
        apiKey.update({ where: { id: key.id }, data: { bannedUntil: new Date(until) } }),
      )
      this.#rows.set(key.hash, { row, readAt: Date.now() })
      this.#log.warn({ key: key.prefix, until: row.bannedUntil }, 'key banned')
    } catch (error) {
      this.#log.error({ err: error, key: key.prefix }, 'failed to write a ban')
    }
  }
}
