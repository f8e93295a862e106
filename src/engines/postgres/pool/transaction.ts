import { EventEmitter } from 'node:events'
import type pg from 'pg'
import { isConflict } from './errors.js'
import type { Lease } from './lease.js'
import { inStatementSpan, isLast } from './shapes.js'

const NO_ROWS: pg.QueryResult = { command: '', rows: [], fields: [], rowCount: 0, oid: 0 }

/**
 * The connection of a transaction. It is taken for the first statement after BEGIN, which tells the bulkhead; both are sent
 * together. So are COMMIT and a statement that says it is the last one.
 */
export class TransactionClient extends EventEmitter {
  readonly #begin: pg.QueryConfig[] = []
  #lease: Lease | undefined
  /** The first error: why PostgreSQL refuses all statements that follow. */
  #error: unknown
  /** COMMIT, once it was sent with the last statement. */
  #ended: Promise<pg.QueryResult> | undefined
  #isOver = false

  constructor(private readonly createLease: (first: pg.QueryConfig) => Lease) {
    super()
  }

  /** BEGIN has no span, because it is sent with the statement that follows. */
  query(statement: pg.QueryConfig) {
    const { text } = statement
    if (/^(BEGIN|SET)\b/.test(text)) return this.#query(statement)
    return inStatementSpan(text, () => this.#query(statement))
  }

  async #query(statement: pg.QueryConfig) {
    // Nothing waits for this operation anymore. Its connection may belong to another transaction by now.
    if (this.#isOver) throw new Error('The transaction has ended.')
    if (this.#ended) return statement.text === 'ROLLBACK' ? this.#ended.catch(() => NO_ROWS) : this.#ended
    if (!this.#lease) {
      if (/^(BEGIN|SET)\b/.test(statement.text)) this.#begin.push(statement)
      if (/^(BEGIN|SET|COMMIT|ROLLBACK)\b/.test(statement.text)) return NO_ROWS
      this.#lease = this.createLease(statement)
    }
    // The whole transaction must be repeated, so no part of it goes on.
    if (isConflict(this.#error) && /^ROLLBACK (TO|AND)\b/.test(statement.text)) throw this.#error
    const client = await this.#lease.client
    // An error that ends these also ends the statement that follows.
    for (const { text } of this.#begin.splice(0)) client.query(text).catch(() => {})
    const answer = this.#send(this.#lease, client, statement)
    if (isLast(statement.text)) {
      this.#ended = this.#send(this.#lease, client, { text: 'COMMIT' })
      // commit and rollback report its error.
      this.#ended.catch(() => {})
    }
    return answer
  }

  async #send(lease: Lease, client: pg.PoolClient, statement: pg.QueryConfig) {
    const result = await lease.run(client, statement).catch((error) => {
      this.#error ??= error
      throw this.#error
    })
    if (result.command === 'ROLLBACK') {
      // What has caught the error must not take it for committed.
      if (statement.text === 'COMMIT') throw this.#error
      this.#error = undefined
    }
    return result
  }

  /** Begins, calls `work` and commits; rolls back if it throws. */
  async complete<T>(work: (client: TransactionClient) => Promise<T>): Promise<T> {
    try {
      await this.query({ text: 'BEGIN' })
      const result = await work(this)
      await this.query({ text: 'COMMIT' })
      return result
    } catch (error) {
      await this.query({ text: 'ROLLBACK' }).catch(() => {})
      throw error
    } finally {
      this.release()
    }
  }

  release(): void {
    this.#isOver = true
    // Without a connection there is nothing to return.
    this.#lease?.client.then(() => this.#lease?.release()).catch(() => {})
  }
}
