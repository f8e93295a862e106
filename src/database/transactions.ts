import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Prisma, PrismaClient } from '../../prisma/generated/client/client.js'
import { isConflict } from './errors.js'
import { throughEach } from './operations.js'
import { type ConnectionPool, conflictDelay, MAX_REPEATS } from './pool.js'
import { TransactionClient } from './transaction-client.js'

interface Statement {
  text: string
  values?: unknown[]
}

export interface Transaction {
  /**
   * A client whose operations are part of the transaction. They are sent without waiting for `condition`, a statement of
   * the transaction: if it fails, PostgreSQL does not perform them, and they fail with its error.
   */
  prisma(condition?: Promise<unknown>): Prisma.TransactionClient
  query<Row extends object>(statement: Statement): Promise<Row[]>
}

/** What a transaction does. Those of the same name, or row, may wait for the same locks. */
export interface TransactionLane {
  name: string
  row?: string
}

/** What a transaction has come to. `last` is sent together with COMMIT: if it fails, nothing is committed. */
interface Completed<T> {
  result: T
  last?: Statement
}

/** The pool of one Prisma client, whose statements all go to the connection of the current transaction. */
class SharedConnection extends pg.Pool {
  connection: TransactionClient | undefined

  // Both are called by the adapter only, and only in these forms.
  override query(statement: pg.QueryConfig | string) {
    return this.connection?.query(statement as pg.QueryConfig) as Promise<never>
  }

  override connect() {
    return Promise.resolve(new Savepoint(this) as unknown as pg.PoolClient)
  }
}

const SAVEPOINT: Record<string, string> = {
  BEGIN: 'SAVEPOINT prisma',
  COMMIT: 'RELEASE SAVEPOINT prisma',
  ROLLBACK: 'ROLLBACK TO SAVEPOINT prisma',
}

/** What Prisma takes for a transaction is a part of the one that runs already. */
class Savepoint extends EventEmitter {
  readonly #pool: SharedConnection

  constructor(pool: SharedConnection) {
    super()
    this.#pool = pool
  }

  query(statement: pg.QueryConfig) {
    const text = SAVEPOINT[statement.text]
    return this.#pool.query(text ? { text } : statement)
  }

  release() {}
}

interface Client {
  prisma: PrismaClient
  pool: SharedConnection
}

/**
 * Transactions with fewer round trips than Prisma's interactive ones: the first statement is sent with BEGIN, the last with
 * COMMIT, and both without Prisma, whose own work for a raw statement costs more than PostgreSQL's.
 */
export class Transactions {
  readonly #pool: ConnectionPool
  readonly #createClient: (pool: pg.Pool) => PrismaClient
  /** Creating a client takes milliseconds, so they are used again: as many as there were concurrent transactions. */
  readonly #idle: Client[] = []

  constructor(pool: ConnectionPool, createClient: (pool: pg.Pool) => PrismaClient) {
    this.#pool = pool
    this.#createClient = createClient
  }

  /** Runs `work` in a transaction, and again if PostgreSQL rolled it back because of a conflict with another. */
  async run<T>(lane: TransactionLane, work: (transaction: Transaction) => Promise<Completed<T>>): Promise<T> {
    const startedAt = performance.now()
    for (let repeats = 0; ; repeats++) {
      const connection = new TransactionClient(this.#pool, startedAt, lane)
      try {
        return await this.#attempt(connection, work)
      } catch (error) {
        if (!connection.errors.some(isConflict) || repeats === MAX_REPEATS) throw error
      }
      await sleep(conflictDelay(repeats + 1))
    }
  }

  async #attempt<T>(connection: TransactionClient, work: (transaction: Transaction) => Promise<Completed<T>>) {
    const query = async ({ text, values }: Statement) =>
      (await connection.query({ name: this.#pool.statementName(text), text, values })).rows
    let client: Client | undefined
    let isOver = false
    let settled: Promise<unknown> = Promise.resolve()
    const run = (start: () => PromiseLike<unknown>, condition: Promise<unknown> | undefined) => {
      if (isOver) return Promise.reject(new Error('The transaction has ended.'))
      const operation = Promise.resolve(start())
      settled = Promise.allSettled([settled, operation])
      return condition ? condition.then(() => operation) : operation
    }
    /** Operations that are no longer waited for must not reach the next transaction of their client. */
    const end = () => {
      isOver = true
      return settled
    }
    try {
      await connection.query({ text: 'BEGIN' })
      const { result, last } = await work({
        query: query as Transaction['query'],
        prisma: (condition) => {
          client ??= this.#idle.pop() ?? this.#create()
          client.pool.connection = connection
          return withoutTransactions(throughEach(client.prisma, (start) => run(start, condition)))
        },
      })
      await end()
      if (connection.errors.some(isConflict)) throw connection.errors[0]
      const [, ended] = await Promise.all([last && query(last), connection.query({ text: 'COMMIT' })])
      // If `work` has caught the error of a statement, PostgreSQL rolls back without another.
      if (ended.command === 'ROLLBACK') throw connection.errors[0]
      return result
    } catch (error) {
      await end()
      await connection.query({ text: 'ROLLBACK' }).catch(() => {})
      throw error
    } finally {
      connection.release()
      if (client) this.#idle.push(client)
    }
  }

  #create(): Client {
    const pool = new SharedConnection()
    return { pool, prisma: this.#createClient(pool) }
  }
}

/** Resolvers tell by `$transaction` whether they have to begin one. */
const withoutTransactions = (prisma: PrismaClient): Prisma.TransactionClient =>
  new Proxy(prisma, { has: (target, name) => name !== '$transaction' && Reflect.has(target, name) })
