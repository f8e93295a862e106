import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Reads } from '../../../schema/kit/context.js'
import { getOrCreate } from '../../../schema/kit/get-or-create.js'
import type { Logger } from '../../engines/observe/index.js'
import { type Query, type Statement, Unreadable } from '../../engines/postgres/index.js'
import { isOver, isSecret, type Key, storedSecret } from './api-key.js'
import { KeyChanges, REMEMBERED_MS } from './key-changes.js'

export interface ApiKeyCacheOptions {
  query: Query
  reads: Pick<Reads, 'row'>
  log: Logger
  /** How long a row is trusted after it was read, or after its key was last seen not to have changed, in milliseconds. */
  ttlMs?: number
}

/** How long a row is trusted while it cannot be read, in milliseconds. */
const STALE_MS = 300_000
/** How long a request waits for a row to be read again, and how often that is tried while it fails, in milliseconds. */
const PATIENCE_MS = 250
const RETRY_MS = 1_000
/** How long a changed row is used that cannot be read, in milliseconds. */
const CHANGED_MS = 5_000
/** How long a row is trusted at most, though no change of it is seen, in milliseconds: one may have passed the trigger by. */
const RENEW_MS = 900_000

/** The history of keys shows who has written it. */
const BAN: Statement = {
  kind: 'UPDATE',
  tables: ['ApiKey'],
  text: `UPDATE "public"."ApiKey" SET "bannedUntil" = $1 FROM set_config('petstore.source', 'gateway', true)
    WHERE id = $2 RETURNING "bannedUntil"`,
  rows: { table: 'ApiKey', ids: 2 },
}

/** Whatever a gateway keeps of a key takes 1.2 KB. */
const MAX_ROWS = 200_000
const MAX_UNKNOWN = 10_000

export type Found = Key | undefined
interface Known {
  row: Key
  /** When the read began, by `performance.now()`. */
  readAt: number
}

/** The row, if its key may be used now. */
const usable = (row: Found): Found => (row && !isOver(row.revokedAt) && !isOver(row.expiresAt) ? row : undefined)

/** A row that is trusted while the database is away, not while it cannot be understood. */
const unlessUnreadable = (row: Key) => (error: unknown) => {
  if (error instanceof Unreadable) throw error
  return row
}

/**
 * The keys that this gateway has seen recently, by their secrets. A row is read once, and again when it has changed. While
 * the changes cannot be read, it is read as soon as it has been trusted for `ttlMs`.
 */
export class ApiKeyCache {
  readonly #ttlMs: number
  readonly #rows = new LRUCache<string, Known>({ max: MAX_ROWS })
  // A separate cache, so that a flood of invented keys cannot evict the real ones.
  readonly #unknown: LRUCache<string, true>
  readonly #changes: KeyChanges
  readonly #reading = new Map<string, Promise<Found>>()
  /** While rows cannot be read: when to try again. */
  #retryAt: number | undefined

  constructor(private readonly options: ApiKeyCacheOptions) {
    const { query, log, ttlMs = 4_000 } = options
    this.#ttlMs = ttlMs
    this.#unknown = new LRUCache({ max: MAX_UNKNOWN, ttl: ttlMs })
    this.#changes = new KeyChanges({ query, log, everyMs: ttlMs / 2 })
  }

  /**
   * The row of a secret that may be used now; undefined for one that is unknown, revoked or expired. A promise only if
   * the row has to be read.
   *
   * @param lookUp may delay or refuse the first read of a secret, and that of one that was not read, and valid, within an hour
   */
  find(secret: string, lookUp = (read: () => Promise<Found>) => read()): Found | Promise<Found> {
    const known = this.#rows.get(secret)
    if (!known && (!isSecret(secret) || this.#unknown.has(secret))) return undefined
    const now = performance.now()
    this.#changes.look(now)
    const read = () => this.#read(secret).then(usable)
    if (!known) return lookUp(read)
    const row = usable(known.row)
    const sinceRead = now - known.readAt
    const changedAt = this.#changes.changedAt(known.row.id, known.readAt)
    const age = now - (changedAt ?? this.#changes.knownUntil(known.readAt))
    if (changedAt === undefined && age <= this.#ttlMs && sinceRead < RENEW_MS) return row
    if (!row || sinceRead > REMEMBERED_MS) return lookUp(read)
    if (age > (changedAt === undefined ? STALE_MS : CHANGED_MS)) return read()
    // Rows that cannot be read are tried every second. So this failure is an old one.
    if (this.#retryAt !== undefined && now - this.#retryAt > this.#ttlMs) this.#retryAt = undefined
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
    const readAt = performance.now()
    const overdue = setTimeout(() => this.#unreadable(), PATIENCE_MS).unref()
    try {
      const found = await this.options.reads.row('ApiKey', 'hash', storedSecret(secret).hash)
      this.#retryAt = undefined
      if (!found) {
        this.#rows.delete(secret)
        this.#unknown.set(secret, true)
        return undefined
      }
      const { email: _email, note: _note, ...row } = found
      this.#rows.set(secret, { row, readAt })
      return row
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
    this.#retryAt ??= performance.now() + RETRY_MS
  }

  /** Writes a ban into the key's row, from which other gateways and admins read it. */
  async ban(key: Key, until: number): Promise<void> {
    const { query, log } = this.options
    try {
      const [row] = await query(BAN, [new Date(until), key.id])
      if (!row) return
      // The cache keeps this very object, so the ban is known before the row is read again.
      Object.assign(key, row)
      log.warn({ key: key.prefix, until: row.bannedUntil }, 'key banned')
    } catch (error) {
      log.error({ err: error, key: key.prefix }, 'failed to write a ban')
    }
  }
}
