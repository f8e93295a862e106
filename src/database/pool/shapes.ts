import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type pg from 'pg'
import type { Bulkhead, Bulkheads } from './bulkheads.js'
import { type Description, PreparedQuery } from './prepared-query.js'
import { bulkheadOf, isRead, rowIndexOf } from './statement.js'
import { valuesOfPrisma } from './values.js'

/** Lists of ids make a statement for each length. */
const MAX_KEPT = 1_000
/** The most statements that a connection keeps prepared: those that it was sent last. Plans take up to 200 KB each. */
export const MAX_PREPARED = 64

/** What a pool knows of a statement by its text. */
export interface Shape {
  /** As it is sent. */
  text: string
  /** Undefined if it is not prepared. */
  hash: string | undefined
  bulkhead: Bulkhead
  isRead: boolean
  rowIndex: number | undefined
  description: Description
}

interface ShapesOptions {
  bulkheads: Bulkheads
  /** In the one session of the embedded database, and in those of a pooler, names would collide. */
  areNamed: boolean
  textOf: (sql: string) => string
}

type Connection = pg.PoolClient['connection'] & {
  parsedStatements: Record<string, string>
  close(what: { type: 'S'; name: string }): void
}

/** The names that connections have prepared, in the order of their last use. */
const prepared = new WeakMap<Connection, LRUCache<string, true>>()

/** Called before a connection is sent a statement, with which it also closes one. To close one that is not there is no error. */
export function keepPrepared(client: pg.PoolClient, name: string): void {
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
  readonly #options: ShapesOptions
  readonly #kept = new LRUCache<string, Shape>({ max: MAX_KEPT })
  /** A part of all names. */
  #generation = 0

  constructor(options: ShapesOptions) {
    this.#options = options
  }

  of(sql: string): Shape {
    let shape = this.#kept.get(sql)
    if (!shape) {
      const { bulkheads, areNamed, textOf } = this.#options
      const hash = areNamed ? createHash('sha256').update(sql).digest('hex').slice(0, 32) : undefined
      shape = {
        text: textOf(sql),
        hash,
        bulkhead: bulkheads.get(bulkheadOf(sql)),
        isRead: isRead(sql),
        rowIndex: rowIndexOf(sql),
        description: {},
      }
      this.#kept.set(sql, shape)
    }
    return shape
  }

  /** Sends a statement. BEGIN and the like have no shape. */
  query(client: pg.PoolClient, statement: pg.QueryConfig): Promise<pg.QueryResult> {
    const shape = this.#kept.get(statement.text)
    const text = shape?.text ?? this.#options.textOf(statement.text)
    if (!shape || !statement.name || statement.types !== valuesOfPrisma) return client.query({ ...statement, text })
    return new Promise((resolve, reject) => {
      const done = (error: Error | undefined, result: pg.QueryResult) => (error ? reject(error) : resolve(result))
      client.query(new PreparedQuery({ ...statement, text }, shape.description, done) as never)
    })
  }

  nameOf(sql: string): string | undefined {
    const { hash } = this.of(sql)
    return hash && `${hash}.${this.#generation}`
  }

  /** Called if a statement cannot be used anymore: every connection prepares its statements again, under new names. */
  renew(outdated: string | undefined): void {
    if (outdated?.endsWith(`.${this.#generation}`)) this.#generation++
  }
}
