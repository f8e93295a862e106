import { createHash, randomUUID } from 'node:crypto'
import { Socket } from 'node:net'
import pg from 'pg'
import { isCanceled, isConflict, isRefusal, OutOfTime } from './errors.js'
import { type Lane, Lanes, MAX_WITH_STALLED, type OnLaneChange } from './lanes.js'
import { Lease, type LeaseSource, MARGIN_MS } from './lease.js'
import { LostBackends, type LostBackendsOptions } from './lost-backends.js'
import { isRead, laneOf, rowIndexOf } from './statement.js'
import { TransactionClient } from './transaction.js'

/** The most statements that share a connection. Each one waits for those before it, and for the disk if they write. */
const MAX_SHARED_READS = 16
const MAX_SHARED_WRITES = 8

/** How often a statement or a transaction is repeated that PostgreSQL rolled back because of a conflict with another. */
export const MAX_REPEATS = 4

export interface ConnectionPoolOptions extends pg.PoolConfig {
  connectionString: string
  /** How long a statement or a transaction may take, the wait for a connection included, in milliseconds. */
  timeoutMs: number
  /** For a server: asks it over a connection that is not of this pool. Undefined: the embedded database. */
  ask?: LostBackendsOptions['query']
  onLaneChange?: OnLaneChange
}

interface PendingStatement {
  statement: pg.QueryConfig
  repeats: number
  /** The row that it writes. */
  row: string | undefined
  /** It waits for a lock, so others must not wait behind it. */
  isAlone: boolean
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
  isRead: boolean
  rowIndex: number | undefined
}

/**
 * A pool in which statements that arrive together share a connection, which sends them without waiting for each result
 * (`pipeline` of pg): reads of the same tables, which only a lock on one of these tables can block, and equal writes to
 * different rows. Transactions have their own connection.
 *
 * Every statement and transaction has a deadline that does not depend on the server, and lanes without answers leave
 * connections to the others.
 */
export class ConnectionPool extends pg.Pool {
  readonly #timeoutMs: number
  readonly #isServer: boolean
  readonly #lanes: Lanes
  readonly #leases: LeaseSource
  readonly #shapes = new Map<string, Shape>()
  /** What can still be joined in this turn of the event loop: reads by lane, writes by text. */
  readonly #open = new Map<Lane | string, PendingStatement[]>()

  constructor({ timeoutMs, ask, onLaneChange, connectionString, ...config }: ConnectionPoolOptions) {
    const url = new URL(connectionString)
    const applicationName = `${url.searchParams.get('application_name') ?? 'petstore'} ${randomUUID().slice(0, 8)}`
    url.searchParams.set('application_name', applicationName)
    // Before the pool closes the connection, so that a statement that waits for a lock costs none.
    const statementTimeoutMs = timeoutMs - MARGIN_MS
    super({
      ...config,
      connectionString: url.href,
      max: MAX_WITH_STALLED,
      connectionTimeoutMillis: timeoutMs,
      statement_timeout: statementTimeoutMs,
      // If the gateway is out of reach, its locks are released. The one session of the embedded database must not end.
      ...(ask && {
        idle_in_transaction_session_timeout: timeoutMs,
        pipeline: true,
        stream: () => new GatheringSocket(),
      }),
    } as pg.PoolConfig)
    // A connection that breaks before it is handed over must not end the process.
    this.on('connect', (client) => client.on('error', () => {}))
    this.#timeoutMs = timeoutMs
    this.#isServer = ask !== undefined
    this.#lanes = new Lanes(onLaneChange)
    this.#leases = {
      lanes: this.#lanes,
      backends: ask && new LostBackends({ query: ask, applicationName, statementTimeoutMs }),
      statementTimeoutMs,
      sharedTimeoutMs: Math.floor(statementTimeoutMs / MAX_SHARED_WRITES),
      connect: () => super.connect(),
    }
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
    return this.#isServer ? this.#shapeOf(sql).name : undefined
  }

  #shapeOf(sql: string): Shape {
    let shape = this.#shapes.get(sql)
    if (!shape) {
      const named = this.#shapes.size < 1000
      const name = named ? createHash('sha256').update(sql).digest('hex').slice(0, 32) : ''
      shape = { name, lane: this.#lanes.get(laneOf(sql)), isRead: isRead(sql), rowIndex: rowIndexOf(sql) }
      if (named) this.#shapes.set(sql, shape)
    }
    return shape
  }

  #rowOf({ text, values }: pg.QueryConfig): string | undefined {
    const { lane, rowIndex } = this.#shapeOf(text)
    const row = rowIndex === undefined ? undefined : values?.[rowIndex]
    return row === undefined || row === null ? undefined : `${lane.name} ${row}`
  }

  /** For transactions. */
  override connect() {
    const endsAt = performance.now() + this.#timeoutMs
    const lease = (first: pg.QueryConfig) => {
      const row = this.#rowOf(first)
      const { lane } = this.#shapeOf(first.text)
      return new Lease(this.#leases, { lane, rows: row === undefined ? [] : [row], endsAt })
    }
    return Promise.resolve(new TransactionClient(lease) as unknown as pg.PoolClient)
  }

  override query(statement: pg.QueryConfig | string, values?: unknown) {
    return new Promise<never>((resolve, reject) => {
      const config = typeof statement === 'string' ? { text: statement, values: values as unknown[] } : statement
      const [row, arrivedAt] = [this.#rowOf(config), performance.now()]
      this.#add({ statement: config, repeats: 0, row, isAlone: false, arrivedAt, resolve, reject })
    })
  }

  #add(pending: PendingStatement): void {
    const { row, isAlone, statement } = pending
    const { lane, isRead } = this.#shapeOf(statement.text)
    if (!this.#isServer || isAlone || (row !== undefined && this.#lanes.isWritten(row)))
      return void this.#send([pending])
    const [group, most] = isRead ? [lane, MAX_SHARED_READS] : [statement.text, MAX_SHARED_WRITES]
    const open = this.#open.get(group)
    if (open && open.length < most && !open.some((other) => row !== undefined && other.row === row)) {
      open.push(pending)
      return
    }
    const batch = [pending]
    this.#open.set(group, batch)
    setImmediate(() => {
      if (this.#open.get(group) === batch) this.#open.delete(group)
      void this.#send(batch)
    })
  }

  async #send(batch: PendingStatement[]): Promise<void> {
    const [{ statement, arrivedAt, isAlone }] = batch as [PendingStatement]
    const { lane, isRead } = this.#shapeOf(statement.text)
    const lease = new Lease(this.#leases, {
      lane,
      rows: batch.flatMap(({ row }) => row ?? []),
      isRead,
      endsAt: arrivedAt + this.#timeoutMs,
      takesSharedTimeout: isRead || isAlone ? undefined : batch.length > 1 ? 'always' : 'ifSet',
    })
    try {
      const client = await lease.client
      await Promise.all(batch.map((pending) => this.#run(lease, client, pending)))
      lease.release()
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  async #run(lease: Lease, client: pg.PoolClient, pending: PendingStatement): Promise<void> {
    const { statement, repeats, resolve, reject } = pending
    try {
      resolve((await lease.run(client, statement)) as never)
    } catch (error) {
      if (lease.hasSharedTimeout && isRefusal(error) && isCanceled(error)) this.#add({ ...pending, isAlone: true })
      else if (repeats < MAX_REPEATS && isRepeatable(error, statement.text)) this.#repeat(pending)
      else reject(error)
    }
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
