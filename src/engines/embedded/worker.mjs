import { createServer } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'

// The embedded database: PGlite, which is PostgreSQL in WebAssembly with one session, behind PostgreSQL's protocol. It has
// its own thread because a query blocks the thread it runs on. This file is JavaScript because tests and `npm run dev` run
// it without a build, and worker threads of Node 20 do not load TypeScript.
//
// The clients share the session. It processes one group of messages at a time, up to a Sync or a simple query, never a
// single message: another client's Parse between Parse and Bind would change the statement that is bound. While a
// transaction is open, only its client's groups are processed. If that client disconnects, the transaction is rolled back.

/**
 * @typedef {import('node:net').Socket} Socket
 * @typedef {{ socket: Socket, bytes: Buffer, open?: boolean }} MessageGroup an open one ends with a Flush and continues
 */

/** @type {MessageGroup[]} */
const groups = []
/** The client whose transaction or message group is open. @type {Socket | undefined} */
let owner
let running = false
let closing = false

/** After such a time a client may have given up, in milliseconds. */
const LONG_MS = 50

async function processGroups() {
  if (running) return
  running = true
  for (;;) {
    const index = owner ? groups.findIndex(({ socket }) => socket === owner) : 0
    const [group] = index < 0 ? [] : groups.splice(index, 1)
    if (!group) break
    const { socket, bytes, open } = group
    if (bytes === RESET && owner !== socket) continue
    let end = Buffer.alloc(0)
    const onRawData = (/** @type {Uint8Array} */ data) => {
      const copy = Buffer.from(data)
      if (socket.writable) socket.write(copy)
      end = Buffer.concat([end, copy.subarray(-READY.length - 1)]).subarray(-READY.length - 1)
    }
    const startedAt = performance.now()
    await db.execProtocolRawStream(bytes, { onRawData })
    // Nothing ends a statement of PGlite, and meanwhile no socket is heard. What waits for a client that has given up by now
    // is not started: its socket closes in these turns.
    if (performance.now() - startedAt > LONG_MS) for (let turns = 3; turns--; ) await new Promise(setImmediate)
    const ready = end.subarray(0, -1).equals(READY)
    // After a crash, PGlite does not respond anymore.
    if (!ready && !open) throw new Error('PostgreSQL has crashed')
    owner = ready && end.at(-1) === IDLE ? undefined : socket
  }
  running = false
}

/** ReadyForQuery, up to the byte that says whether a transaction is open. */
const READY = Buffer.from('Z\0\0\0\x05')
const IDLE = 'I'.charCodeAt(0)
/** ROLLBACK, Sync, ROLLBACK: ends whatever a disconnected client left open. */
const ROLLBACK = 'Q\0\0\0\x0dROLLBACK\0'
const RESET = Buffer.from(`${ROLLBACK}S\0\0\0\x04${ROLLBACK}`, 'latin1')
const SSL_REQUEST = 80877103
const GSS_REQUEST = 80877104
/** Messages that clients may send. Any other crashes PGlite. */
const KINDS = Buffer.from('QSFHPBDECX')
/** Simple query, Sync and function call: PostgreSQL replies to them with ReadyForQuery. */
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
    for (let index = groups.length; index--; ) if (groups[index]?.socket === socket) groups.splice(index, 1)
    enqueue({ socket, bytes: RESET })
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
        enqueue({ socket, bytes: bytes.subarray(0, done), open: kind === FLUSH })
      } else if (kind === SSL_REQUEST || kind === GSS_REQUEST) {
        socket.write('N')
      } else {
        if (kind >>> 16 !== 3) return socket.destroy()
        enqueue({ socket, bytes: bytes.subarray(0, done) })
        started = true
      }
      bytes = bytes.subarray(done)
      done = 0
    }
  })
}

/** @param {MessageGroup} group */
function enqueue(group) {
  if (closing) return
  groups.push(group)
  // An unhandled failure ends this thread, which tells the parent that the database has crashed.
  if (db) void processGroups()
}

/** @type {PGlite} */
let db
const server = createServer(serve)
server.maxConnections = 100
// Before the database is opened, so that a port in use fails early. Clients that connect now wait.
await new Promise((listening, failed) =>
  server.once('error', failed).listen(workerData.port, '127.0.0.1', () => listening(undefined)),
)
db = await PGlite.create({
  dataDir: workerData.directory,
  relaxedDurability: false,
  // PostgreSQL fills all of them with zeros as it starts, which took a seventh of a start with its default of 128 MB.
  startParams: [...PGlite.defaultStartParams, '-c', 'shared_buffers=32MB'],
})
// As connections to a server have it (PLANNING in ../postgres/pool/pool.ts). It compiles no plans, and has no parallel workers.
await db.exec(
  'SET plan_cache_mode = force_generic_plan; SET enable_sort = off; SET enable_incremental_sort = off; SET enable_bitmapscan = off; SET enable_seqscan = off',
)
void processGroups()

parentPort?.on('message', async () => {
  closing = true
  groups.length = 0
  server.close()
  await db.close()
  process.exit(0)
})
parentPort?.postMessage(/** @type {import('node:net').AddressInfo} */ (server.address()).port)
