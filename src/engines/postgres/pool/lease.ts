import type { Socket } from 'node:net'
import type pg from 'pg'
import type { Statement } from '../statement.js'
import type { Bulkhead, Bulkheads, Waiting } from './bulkheads.js'
import { isCanceled, isRefusal, isStale, OutOfTime } from './errors.js'
import type { OrphanedBackends } from './orphans.js'
import { BEGIN, SET_TRANSACTION } from './session.js'
import type { Shapes } from './shapes.js'

/** PostgreSQL ends a statement this long before the client gives up, so that what returned 503 is not performed later. */
export const MARGIN_MS = 400
/** Timeouts are multiples of this, so that the statements of a batch have the same one. */
const STEP_MS = 50
/**
 * The shortest timeout of a connection. `SET`, which replaces it for the next statement, runs within it: a busy server would
 * cancel that after less. Behind a pooler, a timeout ends with its transaction, and may be as short as needed.
 */
const SHORTEST_MS = 200

/** Called for each statement when it ends, and for each connection that could not be had. */
export type OnStatement = (operation: 'read' | 'write' | 'commit' | 'connect', seconds: number, error?: unknown) => void

/** How a transaction ends. */
export type How = 'COMMIT' | 'ROLLBACK' | 'ROLLBACK AND CHAIN'

/** What all leases of a pool share. */
export interface LeaseSource {
  onStatement?: OnStatement
  bulkheads: Bulkheads
  shapes: Shapes
  /**
   * Clients of the embedded database share one session: its statements have no timeout of their own. Those of a pooler
   * share many, so a timeout must end with a transaction.
   */
  kind: 'server' | 'pooler' | 'embedded'
  backends: Pick<OrphanedBackends, 'writing' | 'ended'> | undefined
  /** The `statement_timeout` of each connection, in milliseconds. */
  statementTimeoutMs: number
  /** That of writes which share a connection: so that all of them end before the client of the first one gives up. */
  sharedTimeoutMs: number
  connect(): Promise<pg.PoolClient>
}

export interface LeaseOptions {
  bulkhead: Bulkhead
  rows: readonly string[]
  /** As in Waiting. */
  isWide?: boolean
  isRead?: boolean
  /** By performance.now(). */
  endsAt: number
  /** Whether its statements take the shared timeout. A write that is alone takes what the connection has: to set it costs. */
  takesSharedTimeout?: 'always' | 'ifSet'
}

export type Connection = pg.PoolClient & { processID?: number | null }

/** The `statement_timeout` of connections or transactions, where it is not that of the source; NaN if it is unknown. */
const timeouts = new WeakMap<Connection | Lease, number>()

/** A connection for a limited time. When the time is over, the connection is closed. */
export class Lease {
  readonly client: Promise<pg.PoolClient>
  /** Its statements may be sent again alone, with more time. */
  hasSharedTimeout = false
  readonly #waiting: Waiting
  readonly #timer: NodeJS.Timeout
  #connected: Connection | undefined
  #late = false
  /** Why the connection cannot be used again. */
  #lost: Error | undefined
  #failed = false

  constructor(
    private readonly source: LeaseSource,
    private readonly options: LeaseOptions,
  ) {
    const { bulkheads, backends } = source
    const { bulkhead, rows, isWide = false, isRead = false, endsAt } = options
    const createdAt = performance.now()
    let giveUp = (_: Error) => {}
    let start = () => {}
    this.client = new Promise((resolve, reject) => {
      giveUp = reject
      start = () => {
        const startedAt = performance.now()
        source.connect().then(
          (client) => {
            this.#connected = client.on('error', this.#onError)
            if (this.#late) this.release()
            else resolve(client)
          },
          (error) => {
            bulkheads.lostAt = performance.now()
            source.onStatement?.('connect', (bulkheads.lostAt - startedAt) / 1000, error)
            this.#fail(error)
            this.release()
            reject(error)
          },
        )
      }
    })
    this.#waiting = { rows, isWide, isRead, start }
    const end = () => {
      this.#late = true
      const late = new OutOfTime()
      giveUp(late)
      if (!bulkheads.cancel(bulkhead, this.#waiting)) this.#close()
      else source.onStatement?.('connect', (performance.now() - createdAt) / 1000, late)
    }
    this.#timer = setTimeout(end, Math.max(0, endsAt - performance.now()))
    const writing = isRead ? undefined : backends?.writing
    if (writing) void writing.then(() => this.#late || bulkheads.enter(bulkhead, this.#waiting))
    else bulkheads.enter(bulkhead, this.#waiting)
  }

  /** Without sending what PostgreSQL has not received yet. */
  #close(): void {
    const stream = this.#connected?.connection.stream as Socket | undefined
    // A TLS socket cannot reset the connection.
    if (stream && 'encrypted' in stream) stream.destroy()
    else stream?.resetAndDestroy()
  }

  readonly #onError = (error: Error) => {
    this.#lost = error
    this.source.bulkheads.lostAt = performance.now()
    this.#fail(error)
  }

  #fail(error: unknown): void {
    this.#failed = true
    this.options.bulkhead.failed(error)
  }

  /** Late statements get less time, so that they end before the lease does. */
  #setTimeout(client: Connection): void {
    const { kind, statementTimeoutMs: usual, sharedTimeoutMs: shared } = this.source
    const { endsAt, takesSharedTimeout } = this.options
    if (kind === 'embedded') return
    const isPooler = kind === 'pooler'
    const [owner, unset] = isPooler ? [this, Number.NaN] : [client, usual]
    const current = timeouts.get(owner) ?? unset
    this.hasSharedTimeout = takesSharedTimeout === 'always' || (takesSharedTimeout === 'ifSet' && current === shared)
    const most = this.hasSharedTimeout ? shared : usual
    const left = endsAt - performance.now() - MARGIN_MS
    const least = isPooler ? 1 : SHORTEST_MS
    const timeout = left > most - STEP_MS ? most : Math.max(least, left - (left % STEP_MS))
    if (timeout === current) return
    timeouts.set(owner, timeout)
    const set = isPooler
      ? `${SET_TRANSACTION}; SET LOCAL idle_in_transaction_session_timeout = ${usual + MARGIN_MS}; SET LOCAL statement_timeout = ${timeout}`
      : `SET statement_timeout = ${timeout}`
    client.query(set).catch(() => timeouts.set(owner, Number.NaN))
  }

  /**
   * A statement that is a transaction of its own. Through a pooler, a write needs one that holds its timeout. A read needs
   * none: it overwrites nothing.
   */
  async runAlone(client: pg.PoolClient, statement: Statement, values: unknown[]): Promise<pg.QueryResult> {
    const { kind, shapes } = this.source
    if (kind !== 'pooler') return this.run(client, statement, values)
    if (this.options.isRead) return this.#answered(client, shapes.query(client, statement, values))
    client.query(BEGIN).catch(() => {})
    timeouts.delete(this)
    const [result] = await Promise.all([this.run(client, statement, values), this.end(client, 'COMMIT')])
    return result
  }

  /** A statement of a transaction that has begun, or that has the whole connection. */
  run(client: pg.PoolClient, statement: Statement, values: unknown[]): Promise<pg.QueryResult> {
    this.#setTimeout(client)
    return this.#answered(client, this.source.shapes.query(client, statement, values))
  }

  /** Ends a transaction. */
  end(client: pg.PoolClient, how: How): Promise<pg.QueryResult> {
    return this.#answered(client, client.query(how), how === 'COMMIT' ? 'commit' : 'write')
  }

  /** Notes what becomes of a statement that was sent now. */
  #answered(
    client: pg.PoolClient,
    sent: Promise<pg.QueryResult>,
    operation: Parameters<OnStatement>[0] = this.options.isRead ? 'read' : 'write',
  ): Promise<pg.QueryResult> {
    const { bulkhead } = this.options
    const { bulkheads, onStatement } = this.source
    const sentAt = performance.now()
    return sent.then(
      (result) => {
        bulkheads.answeredAt = performance.now()
        onStatement?.(operation, (bulkheads.answeredAt - sentAt) / 1000)
        // A rollback undoes SET, and does not show that the tables of the transaction answer.
        if (result.command !== 'ROLLBACK') bulkhead.answered()
        else for (const owner of [client, this]) if (timeouts.has(owner)) timeouts.set(owner, Number.NaN)
        return result
      },
      (error) => {
        const reason = this.#late ? new OutOfTime() : error
        onStatement?.(operation, (performance.now() - sentAt) / 1000, reason)
        if (isRefusal(error)) bulkheads.answeredAt = performance.now()
        if (!isRefusal(error) || isStale(error)) this.#onError(error as Error)
        else if (isCanceled(error)) this.#fail(error)
        else bulkhead.answered()
        throw reason
      },
    )
  }

  /** Returns the connection. One that was lost counts as in use until PostgreSQL has ended its backend. */
  release(): void {
    clearTimeout(this.#timer)
    const { bulkheads, backends } = this.source
    const { bulkhead, isRead } = this.options
    const client = this.#connected
    const leave = () => bulkheads.leave(bulkhead, this.#waiting, this.#failed)
    client?.off('error', this.#onError).release(this.#lost)
    if (client?.processID && backends && this.#lost) backends.ended(client.processID, !isRead).then(leave)
    else leave()
  }
}
