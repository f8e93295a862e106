import { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'
import pg from 'pg'

// Rows are read from the bytes that PostgreSQL sends. `pg` makes a message, an array and a text for each value of them first,
// and asks for values as texts, which PostgreSQL writes and we read: digits of a number, for example.

/** What begins a message: its kind, and the length of the rest (PostgreSQL, "Message Formats"). */
const HEAD = 5
const DATA_ROW = 'D'.charCodeAt(0)

const NOTHING: Buffer = Buffer.alloc(0)

/** A row that has arrived. `pg` passes it to its query, which must read it before it returns: the next row takes its place. */
export class RowMessage {
  bytes = NOTHING
  /** Where its first value begins: four bytes with the length, -1 for null, and the value. */
  at = 0

  /** The values as `pg` has them. */
  get fields(): (string | null)[] {
    const { bytes } = this
    const fields = new Array<string | null>(bytes.readInt16BE(this.at - 2))
    let { at } = this
    for (let i = 0; i < fields.length; i++) {
      const length = bytes.readInt32BE(at)
      at += 4
      fields[i] = length < 0 ? null : bytes.toString('utf8', at, at + length)
      if (length > 0) at += length
    }
    return fields
  }
}

/** `pg` does not declare, or document, that a connection attaches itself to its stream, after a handshake for TLS. */
interface Connection extends EventEmitter {
  attachListeners(stream: EventEmitter): void
}

const connections = new WeakSet<object>()

/** Whether rows arrive as a RowMessage over a connection. */
export const sendsBytes = (connection: object) => connections.has(connection)

/** A client of `pg` to which rows arrive as a RowMessage. All other messages are read by `pg`. */
export class RowBytesClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config)
    const connection = (this as unknown as { connection: Connection }).connection
    const attach = connection.attachListeners.bind(connection)
    connection.attachListeners = (stream) => {
      connections.add(connection)
      attach(withoutRows(stream as Duplex, (row) => connection.emit('dataRow', row)))
    }
  }
}

/** Calls `onRow` with the rows of a stream. Returns the rest of it, in whole messages and in their order. */
function withoutRows(stream: Duplex, onRow: (row: RowMessage) => void): EventEmitter {
  const rest = new EventEmitter()
  const row = new RowMessage()
  /** The beginning of a message, and how many bytes it needs at least before it can be read. */
  let held: Buffer[] = []
  let needed = 0
  stream.on('data', (data: Buffer) => {
    needed -= data.length
    held.push(data)
    if (needed > 0) return
    const bytes = held.length === 1 ? data : Buffer.concat(held)
    row.bytes = bytes
    /** Where what is not passed on yet begins. */
    let from = 0
    let at = 0
    let end = endOf(bytes, at)
    while (end <= bytes.length) {
      if (bytes[at] === DATA_ROW) {
        if (from < at) rest.emit('data', bytes.subarray(from, at))
        from = end
        row.at = at + HEAD + 2
        onRow(row)
      }
      at = end
      end = endOf(bytes, at)
    }
    if (from < at) rest.emit('data', bytes.subarray(from, at))
    held = at < bytes.length ? [bytes.subarray(at)] : []
    needed = at < bytes.length ? end - bytes.length : 0
    // A connection that is idle must not keep what it has received.
    row.bytes = NOTHING
  })
  return rest
}

/** Where a message ends, or at least its head. */
const endOf = (bytes: Buffer, at: number) => at + (at + HEAD <= bytes.length ? 1 + bytes.readUInt32BE(at + 1) : HEAD)
