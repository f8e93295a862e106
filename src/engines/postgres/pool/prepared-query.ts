import pg from 'pg'
import { binaryReader, dated, type Field } from './binary-rows.js'
import { Unreadable } from './errors.js'
import { type RowMessage, sendsBytes } from './row-bytes.js'

const { builtins, getTypeParser } = pg.types

/** A moment without a time zone is in UTC, for Prisma. */
const utc = (text: string) => new Date(text.length > 10 ? `${text}Z` : text)

/** Years of four digits or more come first in no other style. */
const ISO = /^\d{4,}-\d\d-\d\d(?: |$)/

/** Refuses what `pg` takes for null: a moment in another style than sessions are set to. */
const moment = (parse: (text: string) => Date) => (text: string) => {
  if (!ISO.test(text)) throw new Unreadable(`PostgreSQL has sent a moment that is not in the DateStyle ISO: ${text}`)
  return dated(parse(text))
}

const parsers: { [oid: number]: (text: string) => unknown } = {
  [builtins.INT8]: BigInt,
  [builtins.DATE]: moment(utc),
  [builtins.TIMESTAMP]: moment(utc),
  [builtins.TIMESTAMPTZ]: moment(getTypeParser(builtins.TIMESTAMPTZ, 'text')),
}

const parserOf = (oid: number) => parsers[oid] ?? getTypeParser(oid, 'text')

/** Values of own statements, as Prisma would return them. */
export const valuesOfPrisma: pg.CustomTypesConfig = { getTypeParser: parserOf as never }

// `pg` asks PostgreSQL to describe the rows of a prepared statement with each execution, makes parsers from that, and copies
// an empty object for each row. Here PostgreSQL is asked once, and then for the binary format (docs/architecture.md has what
// that saves).

type Row = Record<string, unknown>

type ReadRow = (message: RowMessage) => Row

/** How the rows of a statement are read, as soon as PostgreSQL has described them. */
export interface Description {
  text?: ReadRow
  /** Undefined if there is a column whose type has no reader. */
  binary?: ReadRow | undefined
}

function textReader(fields: readonly Field[]): ReadRow {
  const columns = fields.map(({ name, dataTypeID }) => ({ name, parse: parserOf(dataTypeID) }))
  return ({ fields: texts }) => {
    const row: Row = {}
    for (const [i, { name, parse }] of columns.entries()) {
      const text = texts[i]
      row[name] = typeof text === 'string' ? parse(text) : null
    }
    return row
  }
}

/** What `pg` calls, as its own classes of queries do; its types do not say so. */
interface Connection {
  parsedStatements: Record<string, string>
  bind(message: {
    statement: string
    values: readonly unknown[]
    binary: boolean
    valueMapper: (value: unknown) => unknown
  }): void
  execute(message: object): void
  sync(): void
}
interface PgQuery extends Required<pg.QueryConfig> {
  _result: pg.QueryResult
  /** With this error the query ends, when the connection is ready for the next one. */
  _canceledDueToError: unknown
  prepare(connection: Connection): void
}
const { prepareValue } = (pg as unknown as { utils: { prepareValue(value: unknown): unknown } }).utils
type Callback = (error: Error | undefined, result: pg.QueryResult) => void
const PgQuery = pg.Query as unknown as new (text: string, values: unknown[], callback: Callback) => PgQuery

/** A named statement of our own. */
export class PreparedQuery extends PgQuery {
  readonly #description: Description
  #read: ReadRow | undefined

  constructor({ text, name, values = [] }: pg.QueryConfig, description: Description, callback: Callback) {
    super(text, values, callback)
    this.name = name as string
    this.#description = description
  }

  override prepare(connection: Connection): void {
    const { name, values } = this
    const { text, binary } = this.#description
    if (!text || connection.parsedStatements[name] === undefined) return void super.prepare(connection)
    const isBinary = binary !== undefined && sendsBytes(connection)
    this.#read = isBinary ? binary : text
    connection.bind({ statement: name, values, binary: isBinary, valueMapper: prepareValue })
    connection.execute({})
    connection.sync()
  }

  handleRowDescription({ fields }: { fields: readonly Field[] }): void {
    this.#read = textReader(fields)
    this.#description.text = this.#read
    this.#description.binary = binaryReader(fields)
  }

  handleDataRow(message: RowMessage): void {
    if (this._canceledDueToError) return
    try {
      this._result.rows.push((this.#read as ReadRow)(message))
    } catch (error) {
      this._canceledDueToError = error
    }
  }
}
