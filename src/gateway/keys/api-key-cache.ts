import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { ApiKey, PrismaClient } from '../../../prisma/generated/client/client.js'
import type { Reads } from '../../../schema/kit/context.js'
import { getOrCreate } from '../../../schema/kit/get-or-create.js'
import type { Logger } from '../../engines/observe/index.js'
import { Unreadable } from '../../engines/postgres/index.js'
import { isOver, isSecret, storedSecret, writeKeys } from './api-key.js'

export interface ApiKeyCacheOptions {
  prisma: PrismaClient
  reads: Pick<Reads, 'row'>
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

/** The row, if its key may be used now. */
const usable = (row: Found): Found => (row && !isOver(row.revokedAt) && !isOver(row.expiresAt) ? row : undefined)

/** A row that is trusted while the database is away, not while it cannot be understood. */
const unlessUnreadable = (row: ApiKey) => (error: unknown) => {
  if (error instanceof Unreadable) throw error
  return row
}

/** The keys that this gateway has seen recently, by their secrets: at most one database read per key in `ttlMs`. */
export class ApiKeyCache {
  readonly #ttlMs: number
  readonly #rows = new LRUCache<string, Known>({ max: MAX_ROWS })
  // A separate cache, so that a flood of invented keys cannot evict the real ones.
  readonly #unknown: LRUCache<string, true>
  readonly #reading = new Map<string, Promise<Found>>()
  /** While rows cannot be read: when to try again. */
  #retryAt: number | undefined

  constructor(private readonly options: ApiKeyCacheOptions) {
    this.#ttlMs = options.ttlMs ?? 4_000
    this.#unknown = new LRUCache({ max: MAX_ROWS, ttl: this.#ttlMs })
  }

  /**
   * The row of a secret that may be used now; undefined for one that is unknown, revoked or expired. A promise only if
   * the row has to be read.
   *
   * @param lookUp may delay or refuse the first read of a secret, and that of one that was not valid within the last hour
   */
  find(secret: string, lookUp = (read: () => Promise<Found>) => read()): Found | Promise<Found> {
    const known = this.#rows.get(secret)
    if (!known && (!isSecret(secret) || this.#unknown.has(secret))) return undefined
    const now = Date.now()
    const age = known ? now - known.readAt : Number.POSITIVE_INFINITY
    const row = usable(known?.row)
    if (age <= this.#ttlMs) return row
    const read = () => this.#read(secret).then(usable)
    if (!row || age > KNOWN_MS) return lookUp(read)
    if (age > STALE_MS) return read()
    if (this.#retryAt === undefined)
      return Promise.race([read().catch(unlessUnreadable(row)), sleep(PATIENCE_MS, row, { ref: false })])
    if (now >= this.#retryAt) {
      this.#retryAt = now + RETRY_MS
      read().catch(() => {})
    }
    return row
  }

  /** Reads a row. Requests that ask for the same one at the same time share the read. */
  #read(secret: string): Promise<Found> {
    return getOrCreate(this.#reading, secret, () => this.#query(secret).finally(() => this.#reading.delete(secret)))
  }

  async #query(secret: string): Promise<Found> {
    const readAt = Date.now()
    const overdue = setTimeout(() => this.#unreadable(), PATIENCE_MS).unref()
    try {
      const row = await this.options.reads.row('ApiKey', 'hash', storedSecret(secret).hash)
      this.#retryAt = undefined
      // A ban may have been written since the read began.
      if (row && (this.#rows.peek(secret)?.readAt ?? 0) <= readAt) this.#rows.set(secret, { row, readAt })
      if (!row) {
        this.#rows.delete(secret)
        this.#unknown.set(secret, true)
      }
      return this.#rows.peek(secret)?.row
    } catch (error) {
      // The row is there, and may say that the key is over.
      if (error instanceof Unreadable) this.#rows.delete(secret)
      this.#unreadable()
      throw error
    } finally {
      clearTimeout(overdue)
    }
  }

  #unreadable(): void {
    this.#retryAt ??= Date.now() + RETRY_MS
  }

  /** Writes a ban into the key's row, from which other gateways and admins read it. */
  async ban(key: ApiKey, until: number): Promise<void> {
    const { prisma, log } = this.options
    try {
      const row = await writeKeys(prisma, 'gateway', ({ apiKey }) =>
        apiKey.update({ where: { id: key.id }, data: { bannedUntil: new Date(until) } }),
      )
      const known = this.#rows.find(({ row }) => row.id === key.id)
      if (known) Object.assign(known, { row, readAt: Date.now() })
      log.warn({ key: key.prefix, until: row.bannedUntil }, 'key banned')
    } catch (error) {
      log.error({ err: error, key: key.prefix }, 'failed to write a ban')
    }
  }
}
