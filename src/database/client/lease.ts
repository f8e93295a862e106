import type { Socket } from 'node:net'
import type pg from 'pg'
import { isCanceled, isRefusal, isStale, OutOfTime } from './errors.js'
import type { Lane, Lanes, Waiting } from './lanes.js'
import type { LostBackends } from './lost-backends.js'

/** PostgreSQL ends a statement this long before the client gives up, so that what returned 503 is not performed later. */
export const MARGIN_MS = 400
/** Timeouts are multiples of this, so that the statements of a batch have the same one. */
const STEP_MS = 50

/** What all leases of a pool share. */
export interface LeaseSource {
  lanes: Lanes
  /** Undefined for the embedded database, whose clients share one session: its statements have no timeout of their own. */
  backends: LostBackends | undefined
  /** The `statement_timeout` of each connection, in milliseconds. */
  statementTimeoutMs: number
  /** That of writes which share a connection: so that all of them end before the client of the first one gives up. */
  sharedTimeoutMs: number
  connect(): Promise<pg.PoolClient>
}

export interface LeaseOptions {
  lane: Lane
  rows: readonly string[]
  isRead?: boolean
  /** By performance.now(). */
  endsAt: number
  /** Whether its statements take the shared timeout. A write that is alone takes what the connection has: to set it costs. */
  takesSharedTimeout?: 'always' | 'ifSet'
}

type Connection = pg.PoolClient & { processID?: number | null }

/** The `statement_timeout` of connections, where it is not that of the source; NaN if it is unknown. */
const timeouts = new WeakMap<Connection, number>()

/** A connection for a limited time. When the time is over, the connection is closed. */
export class Lease {
  readonly client: Promise<pg.PoolClient>
  /** Its statements may be sent again alone, with more time. */
  hasSharedTimeout = false
  readonly #source: LeaseSource
  readonly #options: LeaseOptions
  readonly #waiting: Waiting
  readonly #timer: NodeJS.Timeout
  #connected: Connection | undefined
  #late = false
  /** Why the connection cannot be used again. */
  #lost: Error | undefined
  #failed = false

  constructor(source: LeaseSource, options: LeaseOptions) {
    this.#source = source
    this.#options = options
    const { lanes, backends } = source
    const { lane, rows, isRead, endsAt } = options
    let giveUp = (_: Error) => {}
    let start = () => {}
    this.client = new Promise((resolve, reject) => {
      giveUp = reject
      start = () => {
        source.connect().then(
          (client) => {
            this.#connected = client.on('error', this.#onError)
            if (this.#late) this.release()
            else resolve(client)
          },
          (error) => {
            this.#fail(error)
            this.release()
            reject(error)
          },
        )
      }
    })
    this.#waiting = { rows, start }
    this.#timer = setTimeout(
      () => {
        this.#late = true
        giveUp(new OutOfTime())
        if (!lanes.cancel(lane, this.#waiting)) this.#close()
      },
      Math.max(0, endsAt - performance.now()),
    )
    const writing = isRead ? undefined : backends?.writing
    if (writing) void writing.then(() => this.#late || lanes.enter(lane, this.#waiting))
    else lanes.enter(lane, this.#waiting)
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
    this.#fail(error)
  }

  #fail(error: unknown): void {
    this.#failed = true
    this.#options.lane.failed(error)
  }

  /** Late statements get less time, so that they end before the lease does. */
  #setTimeout(client: Connection): void {
    const { backends, statementTimeoutMs: usual, sharedTimeoutMs: shared } = this.#source
    const { endsAt, takesSharedTimeout } = this.#options
    if (!backends) return
    const current = timeouts.get(client) ?? usual
    this.hasSharedTimeout = takesSharedTimeout === 'always' || (takesSharedTimeout === 'ifSet' && current === shared)
    const most = this.hasSharedTimeout ? shared : usual
    const left = endsAt - performance.now() - MARGIN_MS
    const timeout = left > most - STEP_MS ? most : Math.max(1, left - (left % STEP_MS))
    if (timeout === current) return
    timeouts.set(client, timeout)
    client.query(`SET statement_timeout = ${timeout}`).catch(() => {})
  }

  run(client: pg.PoolClient, statement: pg.QueryConfig): Promise<pg.QueryResult> {
    this.#setTimeout(client)
    const { lane } = this.#options
    return client.query(statement).then(
      (result) => {
        // A rollback undoes SET, and does not show that the tables of the transaction answer.
        if (result.command !== 'ROLLBACK') lane.answered()
        else if (timeouts.has(client)) timeouts.set(client, Number.NaN)
        return result
      },
      (error) => {
        if (!isRefusal(error) || isStale(error)) this.#onError(error as Error)
        else if (isCanceled(error)) this.#fail(error)
        else lane.answered()
        throw this.#late ? new OutOfTime() : error
      },
    )
  }

  /** Returns the connection. One that was lost counts as in use until PostgreSQL has ended its backend. */
  release(): void {
    clearTimeout(this.#timer)
    const { lanes, backends } = this.#source
    const { lane, isRead } = this.#options
    const client = this.#connected
    const leave = () => lanes.leave(lane, this.#waiting, this.#failed)
    client?.off('error', this.#onError).release(this.#lost)
    if (client?.processID && backends && this.#lost) backends.ended(client.processID, !isRead).then(leave)
    else leave()
  }
}
