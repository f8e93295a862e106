import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type pg from 'pg'
import { getOrCreate } from '../../../../schema/kit/get-or-create.js'
import { describeStatement, inSpan } from '../../observe/index.js'
import type { Bulkhead, Bulkheads } from './bulkheads.js'
import { isMissing, isOutdated, isRefusal } from './errors.js'
import { type Description, PreparedQuery, valuesOfPrisma } from './prepared-query.js'

// What the text of a statement says about it. Texts come from our own code, never from a client.

/** A comment in which a statement names its bulkhead. The rows for which its transaction may wait are named beside it. */
export const bulkheadComment = (bulkhead: string) => `/* bulkhead: ${bulkhead} */`
const NAMED = /^\/\* bulkhead: (.+?) \*\//

const TABLES = /\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:"\w+"\.)?"(\w+)"/g
const PARTS = /"(\w+)" AS (?:MATERIALIZED )?\(/g
/** What a statement writes that begins with WITH. */
const WRITES = [/\b(INSERT) INTO (?:"\w+"\.)?"(\w+)"/, /\b(UPDATE) (?:"\w+"\.)?"(\w+)"/]
const LOCKS = /\bFOR\s+(?:NO\s+KEY\s+)?UPDATE\b/
/** The first column that is compared with a parameter. */
const ROW = /\bWHERE\b[^$]*"\w+"\s*=\s*\$(\d+)/

/** A comment in which a statement says which rows it writes or locks: of a table, and the parameter with the id or the ids. */
export const rowsComment = (table: string, ids: number) => `/* rows: ${table}, ids: $${ids} */`
const ROWS = /^\/\* rows: (\w+), ids: \$(\d+) \*\//

/** How a row is named. */
export const rowName = (table: string, id: unknown) => `${table} ${id}`

/** The comment of the last statement of a transaction: COMMIT is sent with it. If it fails, nothing is committed. */
export const LAST_COMMENT = '/* last */'
export const isLast = (sql: string): boolean => sql.startsWith(LAST_COMMENT)

/** Whether it may share a connection with others, and may be sent again if its connection was lost. */
export const isRead = (sql: string): boolean => /^\s*SELECT\b/.test(sql) && !LOCKS.test(sql)

/** The tables, but not the parts of WITH. */
function tablesOf(sql: string): string[] {
  const tables = new Set(Array.from(sql.matchAll(TABLES), ([, table = '']) => table))
  for (const [, part = ''] of sql.matchAll(PARTS)) tables.delete(part)
  return [...tables]
}

/** The name of its bulkhead: `SELECT Category Pet`. One that locks rows may wait for others, so reads do not wait for it. */
function bulkheadOf(sql: string): string {
  const [, named] = NAMED.exec(sql) ?? []
  if (named) return named
  const verb = LOCKS.test(sql) ? 'LOCK' : /\w+/.exec(sql.replace(ROWS, ''))?.[0]
  return [verb, ...tablesOf(sql).sort()].join(' ')
}

function describe(sql: string) {
  const verb = /^(?:\/\*.*?\*\/)?\s*(\w+)/.exec(sql)?.[1] ?? ''
  const tables = tablesOf(sql)
  if (verb !== 'WITH') return describeStatement(verb, tables)
  const [, writing = 'SELECT', ...written] = WRITES.map((pattern) => pattern.exec(sql)).find(Boolean) ?? []
  return describeStatement(writing, [...new Set([...written, ...tables])])
}

/** Sends it in a span that its verb and tables name, the one that it writes first. */
export const inStatementSpan = <T>(sql: string, send: () => T): T => inSpan(() => describe(sql), send)

/** A statement as it is asked for. One without values, such as COMMIT, is not prepared. */
export interface Sent {
  text: string
  values?: unknown[]
}

type Values = readonly unknown[]

/** Returns what names the rows that a statement writes or locks, as far as its text and its values do. */
function createRows(sql: string): (values: Values) => readonly string[] {
  if (isRead(sql)) return () => []
  const [, table, ids] = ROWS.exec(sql) ?? []
  if (table) return (values) => [values[Number(ids) - 1]].flat().map((id) => rowName(table, id))
  const [, number] = ROW.exec(sql) ?? []
  if (number === undefined || NAMED.test(sql)) return () => []
  const [written = ''] = tablesOf(sql)
  return (values) => {
    const id = values[Number(number) - 1]
    return id === undefined || id === null ? [] : [rowName(written, id)]
  }
}

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
  rowsIn: (values: Values) => readonly string[]
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
  readonly #kept = new LRUCache<string, Shape>({ max: MAX_KEPT })
  /** A part of all names. */
  #generation = 0

  /** @param areNamed in the one session of the embedded database, and in those of a pooler, names would collide */
  constructor(
    private readonly bulkheads: Bulkheads,
    private readonly textOf: (sql: string) => string,
    private readonly areNamed: boolean,
  ) {}

  of(sql: string): Shape {
    return getOrCreate<string, Shape>(this.#kept, sql, () => ({
      text: this.textOf(sql),
      hash: this.areNamed ? hash('sha256', sql, 'hex').slice(0, 32) : undefined,
      bulkhead: this.bulkheads.get(bulkheadOf(sql)),
      isRead: isRead(sql),
      rowsIn: createRows(sql),
      description: {},
    }))
  }

  /** Sends a statement. */
  query(client: pg.PoolClient, { text: sql, values }: Sent): Promise<pg.QueryResult> {
    if (!values) return client.query(sql)
    const { text, hash, description } = this.of(sql)
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
