import { createHash } from 'node:crypto'
import { Socket } from 'node:net'
import pg from 'pg'
import { isConflict, isRefusal, OutOfTime } from './errors.js'
import { type Lane, Lanes, laneOf, MAX_WITH_STALLED, type OnLaneChange } from './lanes.js'
import { Lease } from './lease.js'
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
    const [group, most] = isRead(text) ? [this.#shapeOf(text).lane, MAX_SHARED_READS] : [text, MAX_SHARED_WRITES]
    const open = this.#open.get(group)
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

/**
 * A statement that is a transaction of its own may run again if PostgreSQL rolled it back, because of a deadlock or a
 * serialization failure, and one that only reads also if its connection was lost.
 */
const isRepeatable = (error: unknown, text: string) =>
  isRefusal(error) ? isConflict(error) : isRead(text) && !(error instanceof OutOfTime)
