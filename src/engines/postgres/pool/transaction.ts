import type pg from 'pg'
import type { Query } from '../query.js'
import { isConflict } from './errors.js'
import type { Lease } from './lease.js'
import { BEGIN, BEGIN_AT_ONE_MOMENT } from './session.js'
import { inStatementSpan, isLast, type Sent } from './shapes.js'

/** Undoes what a transaction has changed. It goes on. */
export const UNDO = 'ROLLBACK AND CHAIN'

/**
 * A transaction. Its connection is taken for the first statement, which tells the bulkhead; BEGIN is sent with it. So is COMMIT
 * with a statement that says it is the last one.
 */
export class Transaction {
  #lease: Lease | undefined
  #client: Promise<pg.PoolClient> | undefined
  /** The first error since UNDO was last sent: why PostgreSQL refuses all statements that follow. */
  #error: unknown
  /** How often UNDO was sent. */
  #undone = 0
  /** COMMIT, once it was sent. */
  #committed: Promise<void> | undefined
  #isOver = false

  constructor(
    private readonly createLease: (first: Sent) => Lease,
    private readonly isAtOneMoment: boolean,
  ) {}

  /** Calls `work` and commits; rolls back if it throws. What `work` sends after its end is refused. */
  async complete<T>(work: (query: Query) => Promise<T>): Promise<T> {
    try {
      const result = await work(this.#query).finally(() => {
        this.#isOver = true
      })
      await this.#end('COMMIT')
      return result
    } catch (error) {
      await this.#end('ROLLBACK').catch(() => {})
      throw error
    } finally {
      // Without a connection there is nothing to return.
      this.#lease?.client.then(() => this.#lease?.release()).catch(() => {})
    }
  }

  readonly #query: Query = (text, values) =>
    inStatementSpan(text, async () => {
      // Its connection may belong to another transaction by now.
      if (this.#isOver || this.#committed) throw new Error('The transaction has ended.')
      if (text === UNDO) return this.#undo()
      this.#lease ??= this.createLease({ text, values })
      const answer = this.#send(this.#lease, { text, values })
      if (isLast(text)) this.#commit(this.#lease).catch(() => {})
      return (await answer).rows
    })

  async #undo(): Promise<never[]> {
    // The whole transaction must be repeated, so no part of it goes on.
    if (isConflict(this.#error)) throw this.#error
    if (!this.#lease) return []
    this.#undone++
    this.#error = undefined
    await this.#send(this.#lease, { text: UNDO })
    return []
  }

  async #end(text: 'COMMIT' | 'ROLLBACK'): Promise<void> {
    const lease = this.#lease
    if (!lease) return
    const send = () => (text === 'COMMIT' ? this.#commit(lease) : this.#send(lease, { text }))
    await inStatementSpan<Promise<unknown>>(text, () => this.#committed ?? send())
  }

  #commit(lease: Lease): Promise<void> {
    this.#committed = this.#send(lease, { text: 'COMMIT' }).then(({ command }) => {
      // What has caught the error must not take it for committed.
      if (command === 'ROLLBACK') throw this.#error ?? new Error('PostgreSQL has rolled back the transaction.')
    })
    return this.#committed
  }

  async #send(lease: Lease, statement: Sent): Promise<pg.QueryResult> {
    this.#client ??= this.#begin(lease)
    const undone = this.#undone
    try {
      return await lease.run(await this.#client, statement)
    } catch (error) {
      // Undone meanwhile, it does not concern what follows.
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
