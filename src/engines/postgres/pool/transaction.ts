import type pg from 'pg'
import type { Query } from '../query.js'
import type { Statement } from '../statement.js'
import { isConflict } from './errors.js'
import type { How, Lease } from './lease.js'
import { BEGIN, BEGIN_AT_ONE_MOMENT } from './session.js'
import { inStatementSpan } from './shapes.js'

/** Undoes what a transaction has changed. It goes on. */
export type Undo = () => Promise<void>

/**
 * A transaction. Its connection is taken for the first statement, which tells the bulkhead; BEGIN is sent with it. So is COMMIT
 * with a statement that says it is the last one.
 */
export class Transaction {
  #lease: Lease | undefined
  #client: Promise<pg.PoolClient> | undefined
  /** The first error since it was last undone: why PostgreSQL refuses all statements that follow. */
  #error: unknown
  /** How often it was undone. */
  #undone = 0
  /** COMMIT, once it was sent. */
  #committed: Promise<void> | undefined
  #isOver = false

  constructor(
    private readonly createLease: (first: Statement, values: unknown[]) => Lease,
    private readonly isAtOneMoment: boolean,
  ) {}

  /** Calls `work` and commits; rolls back if it throws. What `work` sends after its end is refused. */
  async complete<T>(work: (query: Query, undo: Undo) => Promise<T>): Promise<T> {
    try {
      const result = await work(this.#query, this.#undo)
      this.#isOver = true
      await this.#end('COMMIT')
      return result
    } catch (error) {
      this.#isOver = true
      await this.#end('ROLLBACK').catch(() => {})
      throw error
    } finally {
      // Without a connection there is nothing to return.
      this.#lease?.client.then(() => this.#lease?.release()).catch(() => {})
    }
  }

  readonly #query: Query = (statement, values) =>
    inStatementSpan(statement, async () => {
      this.#assertOpen()
      this.#lease ??= this.createLease(statement, values)
      const lease = this.#lease
      const answer = this.#send(lease, (client) => lease.run(client, statement, values))
      if (statement.isLast) this.#commit(lease).catch(() => {})
      return (await answer).rows
    })

  readonly #undo: Undo = async () => {
    this.#assertOpen()
    // The whole transaction must be repeated, so no part of it goes on.
    if (isConflict(this.#error)) throw this.#error
    if (!this.#lease) return
    this.#undone++
    this.#error = undefined
    await this.#end('ROLLBACK AND CHAIN')
  }

  /** Refuses what comes after the end: the connection may belong to another transaction by then. */
  #assertOpen(): void {
    if (this.#isOver || this.#committed) throw new Error('The transaction has ended.')
  }

  async #end(how: How): Promise<void> {
    const lease = this.#lease
    if (!lease) return
    const end = () => (how === 'COMMIT' ? this.#commit(lease) : this.#send(lease, (client) => lease.end(client, how)))
    await inStatementSpan<Promise<unknown>>({ kind: how, tables: [] }, () => this.#committed ?? end())
  }

  #commit(lease: Lease): Promise<void> {
    this.#committed = this.#send(lease, (client) => lease.end(client, 'COMMIT')).then(({ command }) => {
      // What has caught the error must not take it for committed.
      if (command === 'ROLLBACK') throw this.#error ?? new Error('PostgreSQL has rolled back the transaction.')
    })
    return this.#committed
  }

  async #send(lease: Lease, send: (client: pg.PoolClient) => Promise<pg.QueryResult>): Promise<pg.QueryResult> {
    this.#client ??= this.#begin(lease)
    const undone = this.#undone
    try {
      return await send(await this.#client)
    } catch (error) {
      // It was undone, so it does not concern what follows.
      if (undone < this.#undone) throw error
      this.#error ??= error
      throw this.#error
    }
  }

  async #begin({ client }: Lease): Promise<pg.PoolClient> {
    const connection = await client
    // An error that ends it also ends the statement that follows.
    connection.query(this.isAtOneMoment ? BEGIN_AT_ONE_MOMENT : BEGIN).catch(() => {})
    return connection
  }
}
