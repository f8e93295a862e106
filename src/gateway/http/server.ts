import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { ApiError } from '../../../schema/kit/errors.js'
import { StartupError } from '../../startup-error.js'
import { MAX_HEAD_READ, noTunnel, type RequestHead, refusalOf } from './head.js'
import type { HttpResponse } from './response.js'

/** How long requests in flight may take to finish once no new ones are accepted. */
const GRACE_MS = 10_000
/** How often a stop checks the connections that it waits for. */
const IDLE_MS = 50

/** What answers the requests of a port. */
export interface Handlers {
  handle(req: IncomingMessage, res: ServerResponse): Promise<void>
  /** The response to input that is not HTTP. */
  malformed(remoteAddress: string | undefined, refusal: ApiError): Promise<HttpResponse>
  /** Is called for each new connection. */
  connected(): void
}

/** Connections that may wait to be accepted: many clients may connect together, for example after a restart. */
const BACKLOG = 4_096
/** Above this number, idle connections are closed to make room for new ones. */
const MAX_CONNECTIONS = 10_000

/** Requests that may wait on a connection for the answer to the one before. */
const MAX_PIPELINED = 100
const pipelined = new WeakMap<Socket, number>()
/** Connections on which something has arrived that is not HTTP. */
const broken = new WeakSet<Socket>()

/** Responds after the responses to the connection's earlier requests are written. */
function pipeline(socket: Socket, res: ServerResponse, answer: () => void) {
  const waiting = pipelined.get(socket) ?? 0
  if (waiting >= MAX_PIPELINED) return socket.destroy()
  pipelined.set(socket, waiting + 1)
  res.once('socket', () => {
    pipelined.set(socket, (pipelined.get(socket) ?? 0) - 1)
    // The rest of a broken request will not arrive: the error is its response.
    if (res.req.complete || !broken.has(socket)) answer()
  })
}

/** The responses to the last two requests of each connection. */
const responses = new WeakMap<Socket, [latest: ServerResponse, previous?: ServerResponse]>()

/**
 * How often a client is probed that has sent FIN while its request is at work, in milliseconds. Nearly all requests are
 * shorter.
 */
const PROBE_MS = 500

/**
 * FIN may mean that the client has sent all that it will send, and waits, or that it is gone. What is written to it tells: a
 * client that is gone resets the connection, and the next write finds that. 102 may be sent at any time.
 */
function probe(socket: Socket) {
  const [latest] = responses.get(socket) ?? []
  if (!latest || latest.headersSent || latest.req.httpVersion !== '1.1') return
  const timer = setInterval(() => {
    if (latest.headersSent || socket.destroyed) clearInterval(timer)
    else latest.writeProcessing()
  }, PROBE_MS).unref()
}

/** How long more is read of a connection on which something has arrived that is not HTTP, in milliseconds. */
const LINGER_MS = 2_000

/** Ends a connection. If it were closed with unread bytes, it would be reset, and the client could lose the response. */
function endSlowly(socket: Socket, response = '') {
  socket.end(response)
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}

/** Responds to input that Node itself refuses, with the body and headers of every other error. */
async function refuseMalformed(app: Handlers, socket: Socket, refusal: ApiError) {
  if (broken.has(socket)) return
  broken.add(socket)
  const [latest, previous] = responses.get(socket) ?? []
  const isWhole = latest?.req.complete
  // Complete requests get their responses first: otherwise the client would take this error for one of them.
  const before = isWhole ? latest : previous
  if (before && !before.writableFinished) await Promise.race([once(before, 'close'), once(socket, 'close')])
  // The connection is ending anyway, or the broken request has its response already.
  if (socket.writableEnded || (!isWhole && latest?.headersSent)) return endSlowly(socket)
  if (!socket.writable || socket.writableLength > 0) return socket.destroy()
  const { status, headers, body = '' } = await app.malformed(socket.remoteAddress, refusal)
  headers['content-length'] = String(Buffer.byteLength(body))
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  endSlowly(socket, `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
}

export interface ListenOptions {
  port: number
  host: string
  /** What sets the port, for messages. */
  setting?: 'PORT' | 'ADMIN_PORT'
  /** Only tests set it. */
  maxConnections?: number
}

export async function listen(
  app: Handlers,
  { port, host, setting = 'PORT', maxConnections = MAX_CONNECTIONS }: ListenOptions,
) {
  const server = createServer(
    // A missing Host is refused here instead, with the headers that every response carries.
    {
      requireHostHeader: false,
      maxHeaderSize: MAX_HEAD_READ,
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 65_000,
      connectionsCheckingInterval: 1_000,
    },
    (req, res) => {
      responses.set(req.socket, [res, responses.get(req.socket)?.[0]])
      // Node would go on to read chunks, however small, until they have as many bytes as its buffer. What reads the
      // body resumes the socket.
      if (req.headers['transfer-encoding']) req.socket.pause()
      const answer = () => void app.handle(req, res).catch(() => req.socket.destroy())
      // A client that reuses the connection learns now that it will close.
      if (!server.listening) res.shouldKeepAlive = false
      // An answer has no socket while the one before it is not written: a connection has one request at work.
      if (res.socket) answer()
      else pipeline(req.socket, res, answer)
    },
  )
  let connections = 0
  server.on('connection', (socket: Socket) => {
    // Node's own limit would pass a connection on to the other processes of a cluster, in a circle if all are full.
    if (connections >= maxConnections) {
      server.closeIdleConnections()
      return void socket.destroy()
    }
    connections++
    socket.once('close', () => connections--)
    app.connected()
    socket.once('end', () => probe(socket))
  })
  // Otherwise a client that half-closes (RFC 9112, section 9.6) would get no response. Node's types lack the name.
  Object.assign(server, { httpAllowHalfOpen: true })
  // Node would drop those above a number, without a word. The size of a head bounds them.
  server.maxHeadersCount = 0
  const refuse = (socket: Socket, refusal: ApiError) =>
    void refuseMalformed(app, socket, refusal).catch(() => socket.destroy())
  server.on('clientError', (error, socket: Socket) => {
    // Clients and browsers open connections early. An answer to nothing would be taken for that to their next request.
    if (socket.bytesRead === 0) socket.destroy()
    else refuse(socket, refusalOf(error))
  })
  server.on('connect', (_request, socket: Socket) => refuse(socket, noTunnel()))
  // The client waits for a word before it sends the body. If it is refused by its head, it need not send it.
  server.on('checkContinue', (req: IncomingMessage & RequestHead, res: ServerResponse) => {
    const { shouldKeepAlive } = res
    res.shouldKeepAlive = false
    req.invite = () => {
      res.shouldKeepAlive = shouldKeepAlive && server.listening
      res.writeContinue()
    }
    server.emit('request', req, res)
  })
  // An expectation other than 100-continue: nothing here depends on it, so the request is simply answered.
  server.on('checkExpectation', (req, res) => server.emit('request', req, res))

  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason =
        error.code === 'EADDRINUSE'
          ? `port ${port} is already in use; set ${setting} to another`
          : `${error.message}; see HOST and ${setting}`
      reject(new StartupError(`Cannot listen on ${host}:${port}: ${reason}`))
    })
    server.listen({ port, host, backlog: BACKLOG }, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    /** Accepts nothing new, lets requests in flight finish, and resolves when all connections are closed. */
    close: () =>
      new Promise<void>((resolve) => {
        // A connection whose last request has finished is idle only then.
        const idle = setInterval(() => server.closeIdleConnections(), IDLE_MS)
        server.close(() => {
          clearInterval(idle)
          resolve()
        })
        setTimeout(() => server.closeAllConnections(), GRACE_MS).unref()
      }),
  }
}

export type Server = Awaited<ReturnType<typeof listen>>
