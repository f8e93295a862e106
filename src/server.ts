import { createServer, type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { App } from './app.js'
import { StartupError } from './config.js'

/** How long requests in flight may take to finish once no new ones are accepted. */
const GRACE_MS = 10_000

/** A request target of absolute form (RFC 9112, 3.2.2), as a proxy sends it, counts by its path. */
function toOriginForm(req: IncomingMessage) {
  const url = req.url ?? '/'
  if (url.startsWith('/') || !URL.canParse(url)) return
  const { pathname, search } = new URL(url)
  req.url = pathname + search
}

/** Node's own refusals of malformed HTTP pass no plugin: they are answered here, in the shape of all others. */
async function refuseMalformed(app: App, socket: Socket) {
  if (!socket.writable || socket.writableLength > 0) return socket.destroy()
  const response = await app.malformed(socket.remoteAddress)
  const body = await response.text()
  const headers = [...response.headers, ['content-length', String(Buffer.byteLength(body))]]
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.end(`HTTP/1.1 ${response.status} ${STATUS_CODES[response.status]}\r\n${lines}\r\n${body}`)
}

export interface Server {
  port: number
  /** Accepts nothing new, lets requests in flight finish, and resolves when all connections are closed. */
  close(): Promise<void>
}

/** Listens. */
export async function listen(app: App, { port, host }: { port: number; host: string }): Promise<Server> {
  const server = createServer(
    // A missing Host is refused by the gateway, with the headers that every response carries.
    { requireHostHeader: false, requestTimeout: 30_000, headersTimeout: 15_000, keepAliveTimeout: 65_000 },
    (req, res) => {
      toOriginForm(req)
      app.listener(req, res)
    },
  )
  server.on(
    'clientError',
    (_error, socket) => void refuseMalformed(app, socket as Socket).catch(() => socket.destroy()),
  )
  server.on('connect', (_request, socket) => void refuseMalformed(app, socket as Socket).catch(() => socket.destroy()))
  // An expectation other than 100-continue: nothing here depends on it, so the request is simply answered.
  server.on('checkExpectation', (req, res) => server.emit('request', req, res))

  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason =
        error.code === 'EADDRINUSE'
          ? `port ${port} is already in use; set PORT to another`
          : `${error.message}; see HOST and PORT`
      reject(new StartupError(`Cannot listen on ${host}:${port}: ${reason}`))
    })
    server.listen(port, host, resolve)
  })
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
        setTimeout(() => server.closeAllConnections(), GRACE_MS).unref()
      }),
  }
}
