import { createHash } from 'node:crypto'
import { Socket } from 'node:net'
import pg from 'pg'
import { type Lane, Lanes, laneOf, MAX_WITH_STALLED, type OnLaneChange } from './lanes.js'
import { TransactionClient } from './transaction-client.js'

/** The most statements that share a connection. Each one waits for those before it, and for the disk if they write. */
const MAX_SHARED_READS = 16
const MAX_SHARED_WRITES = 8

/** How often a statement or a transaction is repeated that PostgreSQL rolled back because of a conflict with another. */
export const MAX_REPEATS = 4

export interface ConnectionPoolOptions extends pg.PoolConfig {
  /** How long a statement or a transaction may take, the wait for a connection included, in milliseconds. */
  timeoutMs: number
  /** Whether connections take statements before they have answered the earlier ones. */
  pipelined: boolean
  onLaneChange?: OnLaneChange
}

interface PendingStatement {
  statement: pg.QueryConfig
  repeats: number
  /** By performance.now(). */
  arrivedAt: number
  resolve: (result: never) => void
  reject: (error: unknown) => void
}

/** A socket that sends everything written in one turn of the event loop together: system calls are expensive. */
class GatheringSocket extends Socket {
  #gathering = false

  override write = ((...args: [never]) => {
    if (!this.#gathering) {
      this.#gathering = true
      this.cork()
      setImmediate(() => {
        this.#gathering = false
        this.uncork()
      })
    }
    return super.write(...args)
  }) as Socket['write']
}

interface Shape {
  name: string
  lane: Lane
}

const isRead = (text: string) => text.startsWith('SELECT')

/**
 * A pool in which statements that arrive together share a connection, which sends them without waiting for each result
 * (`pipeline` of pg): reads of the same tables, which only a lock on one of these tables can block, and equal writes.
 * Transactions have their own connection.
 *
 * Every statement and transaction has a deadline that does not depend on the server, and lanes without answers leave
 * connections to the others.
 */
export class ConnectionPool extends pg.Pool {
  readonly #timeoutMs: number
  readonly #pipelined: boolean
  readonly #lanes: Lanes
  readonly #shapes = new Map<string, Shape>()
  /** What can still be joined in this turn of the event loop: reads by lane, writes by text. */
  readonly #open = new Map<Lane | string, PendingStatement[]>()

  constructor({ timeoutMs, pipelined, onLaneChange, ...config }: ConnectionPoolOptions) {
    super({
      ...config,
      max: MAX_WITH_STALLED,
      connectionTimeoutMillis: timeoutMs,
      ...(pipelined && { pipeline: true, stream: () => new GatheringSocket() }),
    } as pg.PoolConfig)
    // A connection that breaks before it is handed over must not end the process.
    this.on('connect', (client) => client.on('error', () => {}))
    this.#timeoutMs = timeoutMs
    this.#pipelined = pipelined
    this.#lanes = new Lanes(onLaneChange)
  }

  /** Connections, and how many statements and transactions wait for one. */
  get state() {
    return { inUse: this.totalCount - this.idleCount, idle: this.idleCount, waiting: this.#lanes.waiting }
  }

  /**
   * PostgreSQL keeps a named statement until its connection closes. Only the first thousand statements get a name,
   * because lists of ids make a different statement for each length. In the one session of the embedded database, names
   * would collide.
   */
  statementName(sql: string): string | undefined {
    return this.#pipelined ? this.#shapeOf(sql).name : undefined
  }

  #shapeOf(sql: string): Shape {
    let shape = this.#shapes.get(sql)
    if (!shape) {
      const named = this.#shapes.size < 1000
      const name = named ? createHash('sha256').update(sql).digest('hex').slice(0, 32) : ''
      shape = { name, lane: this.#lanes.get(laneOf(sql)) }
      if (named) this.#shapes.set(sql, shape)
    }
    return shape
  }

  /** A connection for this statement and those that follow it, until `timeoutMs` after it arrived. */
  lease(sql: string, arrivedAt: number): Lease {
    const left = Math.max(0, arrivedAt + this.#timeoutMs - performance.now())
    return new Lease(this.#lanes, this.#shapeOf(sql).lane, () => super.connect(), left)
  }

  /** For transactions. */
  override connect() {
    return Promise.resolve(new TransactionClient(this, performance.now()) as unknown as pg.PoolClient)
  }

  override query(statement: pg.QueryConfig | string) {
    return new Promise<never>((resolve, reject) => {
      const config = typeof statement === 'string' ? { text: statement } : statement
      this.#add({ statement: config, repeats: 0, arrivedAt: performance.now(), resolve, reject })
    })
  }

  #add(pending: PendingStatement): void {
    const { text } = pending.statement
    const group = isRead(text) ? this.#shapeOf(text).lane : text
    const open = this.#open.get(group)
    const most = isRead(text) ? MAX_SHARED_READS : MAX_SHARED_WRITES
    if (this.#pipelined && open && open.length < most) {
      open.push(pending)
      return
    }
    const batch = [pending]
    this.#open.set(group, batch)
    setImmediate(() => {
      if (this.#open.get(group) === batch) this.#open.delete(group)
      this.#send(batch).catch((error) => {
        for (const { reject } of batch) reject(error)
      })
    })
  }

  async #send(batch: PendingStatement[]): Promise<void> {
    const { statement, arrivedAt } = batch[0] as PendingStatement
    const lease = this.lease(statement.text, arrivedAt)
    const client = await lease.client
    let left = batch.length
    for (const pending of batch)
      lease
        .run(client, pending.statement)
        .then(pending.resolve, (error) => {
          if (pending.repeats < MAX_REPEATS && isRepeatable(error, pending.statement.text)) this.#repeat(pending)
          else pending.reject(error)
        })
        .then(() => {
          if (--left === 0) lease.release()
        })
  }

  #repeat(pending: PendingStatement): void {
    pending.repeats++
    setTimeout(() => this.#add(pending), conflictDelay(pending.repeats))
  }
}

/** Random, so that conflicting statements do not conflict again; in milliseconds. */
export const conflictDelay = (repeats: number) => Math.random() * 20 * 2 ** repeats

/** Whether PostgreSQL has refused a statement and kept the connection. */
const isRefusal = (error: unknown): error is pg.DatabaseError =>
  error instanceof pg.DatabaseError && error.severity !== 'FATAL'

/** A deadlock or a serialization failure. */
export const isConflict = (error: unknown) => isRefusal(error) && (error.code === '40P01' || error.code === '40001')

/** Whether a row was refused because it is there already, by this unique constraint. */
export const isDuplicate = (error: unknown, constraint: string) =>
  isRefusal(error) && error.code === '23505' && error.constraint === constraint

/** Whether a cast failed because the text is not one of its type. */
export const isInvalidText = (error: unknown) => isRefusal(error) && error.code === '22P02'

/**
 * A statement that is a transaction of its own may run again if PostgreSQL rolled it back, because of a deadlock or a
 * serialization failure, and one that only reads also if its connection was lost.
 */
const isRepeatable = (error: unknown, text: string) =>
  isRefusal(error) ? isConflict(error) : isRead(text) && !(error instanceof OutOfTime)

/** Canceled by a timeout of the server: the connection is good, but the statement has no answer. */
const isCanceled = ({ code }: pg.DatabaseError) => code === '57014' || code === '55P03'

/** Refusals that a new connection may not have: a prepared statement that is gone, a server that is no longer the primary. */
const isStale = ({ code }: pg.DatabaseError) => code === '26000' || code === '25006'

/** In the form of a socket's error, which Prisma knows. */
class OutOfTime extends Error {
  readonly code = 'ETIMEDOUT'
  readonly errno = -110
  readonly syscall = 'read'
  override readonly message = 'the database did not answer in time'
}

/** A connection for a limited time. When the time is over, the connection is closed. */
export class Lease {
  readonly client: Promise<pg.PoolClient>
  readonly #lanes: Lanes
  readonly #lane: Lane
  readonly #timer: NodeJS.Timeout
  #connected: pg.PoolClient | undefined
  #late = false
  /** Why the connection cannot be used again. */
  #lost: Error | undefined
  #failed = false

  constructor(lanes: Lanes, lane: Lane, connect: () => Promise<pg.PoolClient>, timeoutMs: number) {
    this.#lanes = lanes
    this.#lane = lane
    let giveUp = (_: Error) => {}
    let start = () => {}
    this.client = new Promise((resolve, reject) => {
      giveUp = reject
      start = () => {
        connect().then(
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
    this.#timer = setTimeout(() => {
      this.#late = true
      giveUp(new OutOfTime())
      if (!lanes.cancel(lane, start)) this.#connected?.connection.stream.destroy()
    }, timeoutMs)
    lanes.enter(lane, start)
  }

  readonly #onError = (error: Error) => {
    this.#lost = error
    this.#fail(error)
  }

  #fail(error: unknown): void {
    this.#failed = true
    this.#lane.failed(error)
  }

  run(client: pg.PoolClient, statement: pg.QueryConfig): Promise<never> {
    return client.query(statement).then(
      (result) => {
        // A successful rollback does not show that the tables of the transaction answer.
        if (statement.text !== 'ROLLBACK') this.#lane.answered()
        return result as never
      },
      (error) => {
        if (!isRefusal(error) || isStale(error)) this.#onError(error as Error)
        else if (isCanceled(error)) this.#fail(error)
        else this.#lane.answered()
        throw this.#late ? new OutOfTime() : error
      },
    )
  }

  release(): void {
    clearTimeout(this.#timer)
    this.#connected?.off('error', this.#onError)
    this.#connected?.release(this.#lost)
    this.#lanes.leave(this.#lane, this.#failed)
  }
}
