import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type pg from 'pg'
import { describeStatement, inSpan } from '../../observe/index.js'
import { rowName, type Statement } from '../statement.js'
import type { Bulkhead, Bulkheads } from './bulkheads.js'
import { isMissing, isOutdated, isRefusal } from './errors.js'
import { type Description, PreparedQuery, valuesOfPrisma } from './prepared-query.js'

/** Sends it in a span that its verb and tables name, the one that it writes first. */
export const inStatementSpan = <T>({ kind, tables }: { kind: string; tables: readonly string[] }, send: () => T): T =>
  inSpan(() => describeStatement(kind === 'LOCK' ? 'SELECT' : kind, [...new Set(tables)]), send)

/** The name of its bulkhead: `SELECT Category Pet`. One that locks rows may wait for others, so reads do not wait for it. */
const bulkheadOf = ({ kind, tables }: Statement) => [kind, ...[...new Set(tables)].sort()].join(' ')

/** The names of the rows that a statement writes or locks, as far as it says so. */
export const rowsOf = ({ rows }: Statement, values: readonly unknown[]): readonly string[] =>
  rows ? [values[rows.ids - 1]].flat().map((id) => rowName(rows.table, id)) : []

/** The most statements that a connection keeps prepared: those that it was sent last. Plans take up to 200 KB each. */
export const MAX_PREPARED = 64

/** What a pool knows of a statement. */
export interface Shape {
  /** As it is sent. */
  text: string
  /** Undefined if it is not prepared. */
  hash: string | undefined
  bulkhead: Bulkhead
  /** It may share a connection with others, and may be sent again if its connection was lost. */
  isRead: boolean
  description: Description
}

type Connection = pg.PoolClient['connection'] & {
  parsedStatements: Record<string, string>
  close(what: { type: 'S'; name: string }): void
}

/** The names that connections have prepared, in the order of their last use. */
const prepared = new WeakMap<Connection, LRUCache<string, true>>()

/** Called before a connection is sent a statement, with which it also closes one. To close one that is not there is no error. */
function keepPrepared(client: pg.PoolClient, name: string): void {
  const connection = client.connection as Connection
  const forget = (_: true, name: string) => {
    delete connection.parsedStatements[name]
    connection.close({ type: 'S', name })
  }
  const names = prepared.get(connection) ?? new LRUCache({ max: MAX_PREPARED, dispose: forget })
  prepared.set(connection, names.set(name, true))
}

/** The shapes of statements, and the names under which connections prepare them. */
export class Shapes {
  readonly #kept = new WeakMap<Statement, Shape>()
  /** A part of all names. */
  #generation = 0

  /** @param areNamed in the one session of the embedded database, and in those of a pooler, names would collide */
  constructor(
    private readonly bulkheads: Bulkheads,
    private readonly textOf: (sql: string) => string,
    private readonly areNamed: boolean,
  ) {}

  of(statement: Statement): Shape {
    const known = this.#kept.get(statement)
    if (known) return known
    const { kind, text } = statement
    const shape: Shape = {
      text: this.textOf(text),
      hash: this.areNamed ? hash('sha256', text, 'hex').slice(0, 32) : undefined,
      bulkhead: this.bulkheads.get(bulkheadOf(statement)),
      isRead: kind === 'SELECT',
      description: {},
    }
    this.#kept.set(statement, shape)
    return shape
  }

  /** Sends a statement. */
  query(client: pg.PoolClient, statement: Statement, values: unknown[]): Promise<pg.QueryResult> {
    const { text, hash, description } = this.of(statement)
    if (!hash) return client.query({ text, values, types: valuesOfPrisma })
    const name = `${hash}.${this.#generation}`
    keepPrepared(client, name)
    return new Promise((resolve, reject) => {
      const done = (error: Error | undefined, result: pg.QueryResult) => {
        if (!error) return resolve(result)
        if (isRefusal(error) && isOutdated(error)) this.#renew(client, name, isMissing(error))
        reject(error)
      }
      client.query(new PreparedQuery({ name, text, values }, description, done) as never)
    })
  }

  /**
   * Called if a prepared statement cannot be used. If PostgreSQL does not have it, this connection prepares it again: it may
   * never have been prepared, because PostgreSQL canceled that while its table was locked. If its table has changed, every
   * connection prepares all of its statements again, under new names.
   */
  #renew(client: pg.PoolClient, name: string, isMissing: boolean): void {
    if (isMissing) delete (client.connection as Connection).parsedStatements[name]
    else if (name.endsWith(`.${this.#generation}`)) this.#generation++
  }
}
