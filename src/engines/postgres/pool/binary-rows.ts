import pg from 'pg'
import { Unreadable } from './errors.js'
import type { RowMessage } from './row-bytes.js'

// PostgreSQL's binary format. It has no settings, such as DateStyle, and no text that one side writes and the other reads.

/** A column, as PostgreSQL describes it. */
export interface Field {
  name: string
  dataTypeID: number
  /** In bytes; -1 if its values have different sizes. */
  dataTypeSize: number
}

type ReadValue = (bytes: Buffer, at: number, length: number) => unknown

/** Moments are counted from the year 2000. */
const EPOCH_MS = Date.UTC(2000, 0)
const DAY_MS = 86_400_000

/** Refuses a moment that no `Date` has. */
export function dated(date: Date): Date {
  if (Number.isNaN(date.getTime()))
    throw new Unreadable('PostgreSQL has sent a moment that is infinite, or too far away.')
  return date
}

const moment = (ms: number) => dated(new Date(EPOCH_MS + ms))

/** Rounded down, also before 2000. */
function millisecondsOf(microseconds: bigint): number {
  return Number(microseconds / 1000n) - (microseconds % 1000n < 0n ? 1 : 0)
}

const text = (bytes: Buffer, at: number, length: number) => bytes.toString('utf8', at, at + length)

const { builtins } = pg.types

const readers: { [type: number]: ReadValue } = {
  // Most fit into four bytes, which takes a third of the time.
  [builtins.INT8]: (bytes, at) =>
    bytes.readInt32BE(at) === 0 ? BigInt(bytes.readUInt32BE(at + 4)) : bytes.readBigInt64BE(at),
  [builtins.INT4]: (bytes, at) => bytes.readInt32BE(at),
  [builtins.BOOL]: (bytes, at) => bytes[at] === 1,
  [builtins.TEXT]: text,
  [builtins.TIMESTAMPTZ]: (bytes, at) => moment(millisecondsOf(bytes.readBigInt64BE(at))),
  [builtins.DATE]: (bytes, at) => moment(bytes.readInt32BE(at) * DAY_MS),
  // Behind a byte with its version.
  [builtins.JSONB]: (bytes, at, length) => JSON.parse(text(bytes, at + 1, length - 1)),
}

/** The lowest number of a type that was made in a database: PostgreSQL's FirstNormalObjectId. */
const FIRST_MADE = 16_384

/** An enum has four bytes, and its values are sent as text. Our statements have no other type of four bytes that was made. */
const readerOf = ({ dataTypeID, dataTypeSize }: Field) =>
  readers[dataTypeID] ?? (dataTypeID >= FIRST_MADE && dataTypeSize === 4 ? text : undefined)

/** Returns what reads rows in the binary format; undefined if one of their types is not known here. */
export function binaryReader(fields: readonly Field[]) {
  const columns = fields.flatMap((field) => {
    const read = readerOf(field)
    return read ? { name: field.name, read } : []
  })
  if (columns.length < fields.length) return
  return ({ bytes, at }: RowMessage) => {
    const row: Record<string, unknown> = {}
    for (const { name, read } of columns) {
      const length = bytes.readInt32BE(at)
      at += 4
      if (length < 0) row[name] = null
      else {
        row[name] = read(bytes, at, length)
        at += length
      }
    }
    return row
  }
}
