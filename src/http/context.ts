import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { ServerAdapterPlugin } from '@whatwg-node/server'
import ipaddr from 'ipaddr.js'
import type { ApiKey } from '../../prisma/generated/client/client.js'
import { ApiError } from '../../schema/errors.js'
import type { RateLimitResult, Subject } from '../rate-limit/index.js'
import type { Operation } from '../rest/operations.js'

/** What is known of one request, filled in by the plugins as it passes them. */
export interface Exchange {
  /** X-Request-Id. */
  id: string
  started: number
  /** HEAD is answered as GET, without the body. */
  method: string
  /** The path below the base URL; null for one that lies outside of it. */
  path: string | null
  query: URLSearchParams
  /** The client's address as far as TRUST_PROXY says that it can be believed. */
  readonly address: string
  /** Not part of an API surface: neither counted nor marked. */
  operational?: true
  /** The REST operation that the path and the method name, and the text in the path's places. */
  operation?: Operation
  params?: Record<string, string>
  /** The methods of a known path that is no operation. */
  allow?: string
  key?: ApiKey
  client?: Subject
  verdict?: RateLimitResult
}

/** What the HTTP adapter hands from plugin to plugin. `req` is absent where `fetch` was called without a socket. */
export interface ServerContext {
  req?: IncomingMessage
  /** What arrived on this connection was no HTTP. */
  malformed?: { remoteAddress: string | undefined }
  exchange: Exchange
}

/** One behaviour of the gateway. The plugins' order, in app.ts, is the architecture. */
export type GatewayPlugin = ServerAdapterPlugin<ServerContext>

const printable = /^[\x21-\x7e]{1,128}$/

/** The address to count, whole for IPv4, by /64 for IPv6, where a client holds at least that much. */
export function countedAddress(text: string | undefined): string {
  if (!text || !ipaddr.isValid(text)) return 'unknown'
  const address = ipaddr.process(text)
  if (address.kind() === 'ipv4') return address.toString()
  const network = address.toByteArray().fill(0, 8)
  return `${ipaddr.fromByteArray(network).toString()}/64`
}

/** The nearest address that `hops` trusted proxies do not answer for. */
function clientAddress(req: IncomingMessage | undefined, hops: number) {
  const forwarded = hops > 0 ? String(req?.headers['x-forwarded-for'] ?? '').split(',') : []
  const chain = [req?.socket.remoteAddress, ...forwarded.map((part) => part.trim()).reverse()]
  return countedAddress(chain.filter(Boolean)[Math.min(hops, chain.filter(Boolean).length - 1)])
}

/** Where the request goes. A target keeps leading slashes, which a URL would read as a host. */
const target = (request: Request, req: IncomingMessage | undefined) =>
  new URL(req?.url ? `http://localhost${req.url}` : request.url)

/** Begins each exchange: its id, where it goes, who sent it. */
export function useExchange({ basePath, trustProxy }: { basePath: string; trustProxy: number }): GatewayPlugin {
  return {
    onRequest({ request, serverContext }) {
      const { req, malformed } = serverContext
      const given = request.headers.get('x-request-id')
      const exchange: Exchange = {
        id: given && printable.test(given) ? given : randomUUID(),
        started: performance.now(),
        method: request.method === 'HEAD' ? 'GET' : request.method,
        path: null,
        query: new URLSearchParams(),
        get address() {
          return malformed ? countedAddress(malformed.remoteAddress) : clientAddress(req, trustProxy)
        },
      }
      serverContext.exchange = exchange
      if (malformed) throw new ApiError('invalid_request', 'This is not valid HTTP.', { connection: 'close' })
      const { pathname, searchParams } = target(request, req)
      exchange.query = searchParams
      if (pathname === basePath) exchange.path = '/'
      else if (pathname.startsWith(`${basePath}/`)) exchange.path = pathname.slice(basePath.length)
      if (!basePath) exchange.path = pathname
    },
    onResponse({ request, response, serverContext, setResponse, fetchAPI }) {
      response.headers.set('x-request-id', serverContext.exchange.id)
      if (request.method === 'HEAD') setResponse(new fetchAPI.Response(null, response))
    },
  }
}
