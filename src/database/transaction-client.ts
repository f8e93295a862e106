import { EventEmitter } from 'node:events'
import type pg from 'pg'
import type { Lease } from './lease.js'
import type { ConnectionPool } from './pool.js'
import type { TransactionLane } from './transactions.js'

const NO_ROWS: Pick<pg.QueryArrayResult, 'command' | 'rows' | 'fields' | 'rowCount'> = {
  command: '',
  rows: [],
  fields: [],
  rowCount: 0,
}

/**
 * The connection of a transaction. It is taken for the first statement after BEGIN, whose tables tell the lane; both are
 * sent together.
 */
export class TransactionClient extends EventEmitter {
  /** Of the statements that failed: after the first, PostgreSQL refuses those that follow. */
  readonly errors: unknown[] = []
  readonly #pool: ConnectionPool
  /** By performance.now(). */
  readonly #arrivedAt: number
  readonly #begin: pg.QueryConfig[] = []
  readonly #lane: TransactionLane | undefined
  #lease: Lease | undefined

  /** @param lane default: by the first statement */
  constructor(pool: ConnectionPool, arrivedAt: number, lane?: TransactionLane) {
    super()
    this.#pool = pool
    this.#arrivedAt = arrivedAt
    this.#lane = lane
  }

  async query(statement: pg.QueryConfig) {
    if (!this.#lease) {
      if (/^(BEGIN|SET)\b/.test(statement.text)) this.#begin.push(statement)
      if (/^(BEGIN|SET|COMMIT|ROLLBACK)\b/.test(statement.text)) return NO_ROWS
      this.#lease = this.#pool.lease(statement, this.#arrivedAt, this.#lane)
    }
    const client = await this.#lease.client
    // An error that ends these also ends the statement that follows.
    for (const begin of this.#begin.splice(0)) client.query(begin).catch(() => {})
    try {
      return await this.#lease.run(client, statement)
    } catch (error) {
      this.errors.push(error)
      throw error
    }
  }

  release(): void {
    // Without a connection there is nothing to return.
    this.#lease?.client.then(() => this.#lease?.release()).catch(() => {})
  }
}
