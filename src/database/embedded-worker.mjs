import { createServer } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'

// The embedded database: PGlite, which is PostgreSQL as one WebAssembly process with one session, behind PostgreSQL's
// protocol. It has a thread of its own, because a query blocks the thread it runs on. This file is JavaScript because
// tests and `npm run dev` run it unbuilt, and a worker thread of Node 20 loads no TypeScript.
//
// The clients share the session by turns. A turn is everything up to a Sync or a simple query, never a single message:
// between one client's Parse and Bind another's Parse would change the statement that is bound. While a transaction is
// open all turns are its client's, and one that leaves is rolled back.

/**
 * @typedef {import('node:net').Socket} Socket
 * @typedef {{ socket: Socket, bytes: Buffer, open?: boolean }} Turn an open one ends in a Flush, and goes on
 */

/** @type {Turn[]} */
const turns = []
/** The client that nobody may interrupt. @type {Socket | undefined} */
let owner
let running = false
let closing = false

async function runTurns() {
  if (running) return
  running = true
  for (;;) {
    const index = owner ? turns.findIndex(({ socket }) => socket === owner) : 0
    const [turn] = index < 0 ? [] : turns.splice(index, 1)
    if (!turn) break
    const { socket, bytes, open } = turn
    if (bytes === LEAVE && owner !== socket) continue
    let end = Buffer.alloc(0)
    const onRawData = (/** @type {Uint8Array} */ data) => {
      const copy = Buffer.from(data)
      if (socket.writable) socket.write(copy)
      end = Buffer.concat([end, copy.subarray(-READY.length - 1)]).subarray(-READY.length - 1)
    }
    await db.execProtocolRawStream(bytes, { onRawData })
    const ready = end.subarray(0, -1).equals(READY)
    // PGlite that crashed answers nothing from then on.
    if (!ready && !open) throw new Error('PostgreSQL has crashed')
    owner = ready && end.at(-1) === IDLE ? undefined : socket
  }
  running = false
}

/** "Ready for query", up to the byte that tells whether a transaction is open. */
const READY = Buffer.from('Z\0\0\0\x05')
const IDLE = 'I'.charCodeAt(0)
/** ROLLBACK, Sync, ROLLBACK: whatever state a client leaves the session in, this ends it. */
const ROLLBACK = 'Q\0\0\0\x0dROLLBACK\0'
const LEAVE = Buffer.from(`${ROLLBACK}S\0\0\0\x04${ROLLBACK}`, 'latin1')
const SSL_REQUEST = 80877103
const GSS_REQUEST = 80877104
/** What a client may send: PGlite does not survive anything else. */
const KINDS = Buffer.from('QSFHPBDECX')
/** Simple query, Sync, function call: what is answered with "ready for query". */
const ENDS = Buffer.from('QSF')
const FLUSH = 'H'.charCodeAt(0)
const TERMINATE = 'X'.charCodeAt(0)

/** @param {Socket} socket */
function serve(socket) {
  let started = false
  let bytes = Buffer.alloc(0)
  let done = 0
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.on('close', () => {
    for (let index = turns.length; index--; ) if (turns[index]?.socket === socket) turns.splice(index, 1)
    take({ socket, bytes: LEAVE })
  })
  socket.on('data', (data) => {
    bytes = bytes.length ? Buffer.concat([bytes, data]) : data
    for (;;) {
      const header = started ? 1 : 0
      if (bytes.length < done + header + 4) return
      const length = bytes.readUInt32BE(done + header)
      if (length < (started ? 4 : 8) || (!started && length > 10_000)) return socket.destroy()
      if (bytes.length < done + header + length) return
      const kind = started ? bytes.readUInt8(done) : bytes.readUInt32BE(4)
      done += header + length
      if (started) {
        if (kind === TERMINATE || !KINDS.includes(kind)) return socket.destroy()
        if (kind !== FLUSH && !ENDS.includes(kind)) continue
        take({ socket, bytes: bytes.subarray(0, done), open: kind === FLUSH })
      } else if (kind === SSL_REQUEST || kind === GSS_REQUEST) {
        socket.write('N')
      } else {
        if (kind >>> 16 !== 3) return socket.destroy()
        take({ socket, bytes: bytes.subarray(0, done) })
        started = true
      }
      bytes = bytes.subarray(done)
      done = 0
    }
  })
}

/** @param {Turn} turn */
function take(turn) {
  if (closing) return
  turns.push(turn)
  // A failure here is the database's own end: let it end the thread, and the parent know.
  if (db) void runTurns()
}

/** @type {PGlite} */
let db
const server = createServer(serve)
server.maxConnections = 100
// Before the database is touched, so that a port that is taken costs nothing. Who connects early waits.
await new Promise((listening, failed) =>
  server.once('error', failed).listen(workerData.port, '127.0.0.1', () => listening(undefined)),
)
db = await PGlite.create({ dataDir: workerData.directory, relaxedDurability: false })
void runTurns()

parentPort?.on('message', async () => {
  closing = true
  turns.length = 0
  server.close()
  await db.close()
  process.exit(0)
})
parentPort?.postMessage(/** @type {import('node:net').AddressInfo} */ (server.address()).port)
