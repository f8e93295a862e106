import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { Query } from '../query.js'
import type { Statement } from '../statement.js'
import { type Bulkhead, Bulkheads, MAX_WITH_STALLED, type OnBulkheadChange } from './bulkheads.js'
import { conflictDelay, isCanceled, isConflict, isRefusal, MAX_REPEATS, OutOfTime } from './errors.js'
import { GatheringSocket } from './gathering-socket.js'
import { type Connection, Lease, type LeaseSource, MARGIN_MS } from './lease.js'
import { type Ask, OrphanedBackends, OrphanedConnections } from './orphans.js'
import { RowBytesClient } from './row-bytes.js'
import { SET_SESSION } from './session.js'
import { inStatementSpan, rowsOf, type Shape, Shapes } from './shapes.js'
import { Transaction, type Undo } from './transaction.js'

/** The most statements that share a connection. Each one waits for those before it, and for the disk if they write. */
const MAX_SHARED_READS = 16
const MAX_SHARED_WRITES = 8

/** For how long a pool that has answered counts as reachable while it has nothing to do. */
const RECENT_MS = 5_000

export interface ConnectionPoolOptions extends Pick<LeaseSource, 'kind' | 'onStatement'> {
  connectionString: string
  /** How long a statement or a transaction may take, the wait for a connection included, in milliseconds. */
  timeoutMs: number
  ask: Ask
  /** The text of a statement as it is sent. */
  textOf?: (sql: string) => string
  onBulkheadChange?: OnBulkheadChange
}

// Lists are read in the order of their indexes, which PostgreSQL gives up for a sort where it expects few rows and there are
// many. A plan that it makes once for all values is not misled by the last values of a column either. Starting parallel
// workers takes longer than reading any page.
const PLANNING =
  '-c plan_cache_mode=force_generic_plan -c enable_sort=off -c enable_incremental_sort=off -c enable_bitmapscan=off -c enable_seqscan=off -c jit=off -c max_parallel_workers_per_gather=0'

export interface TransactionOptions {
  /** As in Query. */
  endsAt?: number | undefined
  /** What it writes beside what its first statement names (`rowName`). */
  rows?: readonly string[]
  /** What its bulkhead is called; default: the kind of its first statement and the tables. */
  bulkhead?: string
  /** It only reads, and all its reads see the same rows, whatever others change. */
  isAtOneMoment?: boolean
}

interface PendingStatement {
  statement: Statement
  shape: Shape
  values: unknown[]
  repeats: number
  /** The rows that it writes. */
  rows: readonly string[]
  /** It waits for a lock, so others must not wait behind it. */
  isAlone: boolean
  /** By performance.now(). */
  endsAt: number
  resolve: (result: pg.QueryResult) => void
  reject: (error: unknown) => void
}

/**
 * A pool in which statements that arrive together share a connection, which sends them without waiting for each result
 * (`pipeline` of pg): reads of the same tables, which only a lock on one of these tables can block, and equal writes to
 * different rows. Transactions have their own connection.
 *
 * Every statement and transaction has a deadline that does not depend on the server, and bulkheads without answers leave
 * connections to the others.
 */
export class ConnectionPool {
  readonly #pool: pg.Pool
  readonly #timeoutMs: number
  readonly #leases: LeaseSource
  /** What can still be joined: reads by bulkhead, equal writes. */
  readonly #open = new Map<Bulkhead | Shape, PendingStatement[]>()

  constructor(options: ConnectionPoolOptions) {
    const { timeoutMs, kind, ask, textOf = (sql) => sql, onStatement, onBulkheadChange, connectionString } = options
    const url = new URL(connectionString)
    // PostgreSQL cuts names at 63 bytes, and this one must be unique.
    const given = Buffer.from(url.searchParams.get('application_name') ?? 'petstore').subarray(0, 54)
    const applicationName = `${given} ${randomUUID().slice(0, 8)}`
    url.searchParams.set('application_name', applicationName)
    if (kind === 'server') url.searchParams.set('options', `${PLANNING} ${url.searchParams.get('options') ?? ''}`)
    // Before the pool closes the connection, so that a statement that waits for a lock costs none.
    const statementTimeoutMs = timeoutMs - MARGIN_MS
    const pool = new pg.Pool({
      keepAlive: true,
      connectionString: url.href,
      max: MAX_WITH_STALLED,
      connectionTimeoutMillis: timeoutMs,
      // A pooler refuses startup parameters: its connections are shared.
      ...(kind !== 'pooler' && { statement_timeout: statementTimeoutMs }),
      // If the gateway is out of reach, its locks are released. The one session of the embedded database must not end.
      ...(kind === 'server' && { idle_in_transaction_session_timeout: timeoutMs }),
      ...(kind !== 'embedded' && { pipeline: true, stream: () => new GatheringSocket(), Client: RowBytesClient }),
    } as pg.PoolConfig)
    // A connection that breaks while nobody has it must not end the process.
    pool.on('error', () => {}).on('connect', (client) => client.on('error', () => {}))
    if (kind === 'pooler') pool.on('connect', (client) => void client.query(SET_SESSION).catch(() => {}))
    this.#pool = pool
    this.#timeoutMs = timeoutMs
    const bulkheads = new Bulkheads(onBulkheadChange)
    // How connections that are given up are followed. Those of the embedded database end with its one session.
    const backends = {
      server: () => {
        const backends = new OrphanedBackends(ask, applicationName, statementTimeoutMs)
        pool.on('connect', ({ processID }: Connection) => backends.opened(processID))
        return backends
      },
      pooler: () => new OrphanedConnections(ask, applicationName),
      embedded: () => undefined,
    }
    this.#leases = {
      bulkheads,
      shapes: new Shapes(bulkheads, textOf, kind === 'server'),
      onStatement,
      backends: backends[kind](),
      kind,
      statementTimeoutMs,
      sharedTimeoutMs: Math.floor(statementTimeoutMs / MAX_SHARED_WRITES),
      connect: () => pool.connect(),
    }
  }

  /** Connections, and how many statements and transactions wait for one. */
  get state() {
    const { totalCount: total, idleCount: idle } = this.#pool
    return { inUse: total - idle, idle, waiting: this.#leases.bulkheads.waiting }
  }

  /**
   * Whether requests are answered: since a moment, by performance.now(), or if there are none now, within the last seconds.
   */
  answersSince(moment: number): boolean {
    const { answeredAt, lostAt, isBusy } = this.#leases.bulkheads
    return answeredAt > moment || (!isBusy && answeredAt > Math.max(lostAt, performance.now() - RECENT_MS))
  }

  /** Opens the first connection. Its backend is not the one that its server has named if a pooler is between. */
  async open(table: string): Promise<{ isShared: boolean }> {
    const client = (await this.#pool.connect()) as Connection
    try {
      const { rows } = await client.query(`SELECT pg_backend_pid() AS pid, EXISTS (SELECT FROM ${table})`)
      return { isShared: rows[0].pid !== client.processID }
    } finally {
      client.release()
    }
  }

  /** Closes all connections, those in use once they are returned. */
  end(): Promise<void> {
    return this.#pool.end()
  }

  /** Sends a statement that is a transaction of its own. */
  readonly query: Query = async (statement, values, endsAt) => {
    const asked = { statement, values, shape: this.#leases.shapes.of(statement), rows: rowsOf(statement, values) }
    const pending = { ...asked, repeats: 0, isAlone: false, endsAt: this.#endOf(endsAt) }
    const send = () => new Promise<pg.QueryResult>((resolve, reject) => this.#add({ resolve, reject, ...pending }))
    return (await inStatementSpan(statement, send)).rows
  }

  /**
   * Calls `work` with what sends the statements of one transaction, and commits. If it throws, nothing has changed, unless it has
   * sent a statement that says it is the last one.
   */
  transaction<T>(work: (query: Query, undo: Undo) => Promise<T>, options: TransactionOptions = {}): Promise<T> {
    const { rows: more = [], bulkhead: name, isAtOneMoment = false } = options
    const { bulkheads, shapes } = this.#leases
    const endsAt = this.#endOf(options.endsAt)
    const createLease = (first: Statement, values: unknown[]) => {
      const bulkhead = name ? bulkheads.get(name) : shapes.of(first).bulkhead
      const rows = [...new Set([...more, ...rowsOf(first, values)])]
      return new Lease(this.#leases, { bulkhead, rows, isWide: rows.length > 1, endsAt })
    }
    return new Transaction(createLease, isAtOneMoment).complete(work)
  }

  /** When something that begins now must have ended. */
  #endOf(endsAt = Number.POSITIVE_INFINITY): number {
    return Math.min(endsAt, performance.now() + this.#timeoutMs)
  }

  #add(pending: PendingStatement): void {
    const { rows, isAlone, shape } = pending
    const { kind, bulkheads } = this.#leases
    const { bulkhead, isRead } = shape
    if (kind === 'embedded' || isAlone || rows.length > 1 || rows.some((row) => bulkheads.isWritten(row)))
      return void this.#send([pending])
    const [group, max] = isRead ? [bulkhead, MAX_SHARED_READS] : [shape, MAX_SHARED_WRITES]
    const open = this.#open.get(group)
    if (open && open.length < max && !open.some((other) => rows.some((row) => other.rows.includes(row))))
      return void open.push(pending)
    const batch = [pending]
    this.#open.set(group, batch)
    // Reads were gathered before (../reads.ts): all of them are there when this callback ends. Further writes may arrive until
    // the end of the turn.
    const collect = isRead ? process.nextTick : setImmediate
    collect(() => {
      if (this.#open.get(group) === batch) this.#open.delete(group)
      void this.#send(batch)
    })
  }

  async #send(batch: PendingStatement[]): Promise<void> {
    const [{ shape, isAlone, rows }] = batch as [PendingStatement]
    const { bulkhead, isRead } = shape
    const lease = new Lease(this.#leases, {
      bulkhead,
      rows: batch.flatMap(({ rows }) => rows),
      isWide: batch.length === 1 && rows.length > 1,
      isRead,
      endsAt: Math.min(...batch.map(({ endsAt }) => endsAt)),
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
    const { statement, values, repeats, resolve, reject } = pending
    try {
      resolve(await lease.runAlone(client, statement, values))
    } catch (error) {
      if (lease.hasSharedTimeout && isRefusal(error) && isCanceled(error)) this.#add({ ...pending, isAlone: true })
      else if (repeats < MAX_REPEATS && isRepeatable(error, pending.shape.isRead)) this.#repeat(pending)
      else reject(error)
    }
  }

  #repeat(pending: PendingStatement): void {
    pending.repeats++
    setTimeout(() => this.#add(pending), conflictDelay(pending.repeats))
  }
}

/**
 * A statement that is a transaction of its own may run again if PostgreSQL rolled it back, because of a deadlock or a
 * serialization failure, and one that only reads also if its connection was lost.
 */
const isRepeatable = (error: unknown, isRead: boolean) =>
  isRefusal(error) ? isConflict(error) : isRead && !(error instanceof OutOfTime)
