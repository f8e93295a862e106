import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import ipaddr from 'ipaddr.js'
import type { ApiKey } from '../../prisma/generated/client/client.js'
import { ApiError, type ErrorCode } from '../../schema/errors.js'
import type { RateLimitResult, Subject } from '../rate-limit/index.js'
import type { Operation } from '../rest/operations.js'
import type { Place } from './admission.js'
import { readTrace, type Trace } from './trace.js'

/** The head of a request: as much of Node's IncomingMessage as the steps read. */
export interface RequestHead {
  method?: string
  url?: string
  httpVersion?: string
  headers: IncomingHttpHeaders
  /** Names and values in turn, as they arrived: here a header that was sent twice is seen twice. */
  rawHeaders: string[]
  socket: { remoteAddress?: string; destroyed?: boolean }
}

const noBody = Buffer.alloc(0)
const printable = /^[\x21-\x7e]{1,128}$/

/** The data of one request. The steps in app.ts fill it in, in their order. */
export class RequestContext {
  readonly head: RequestHead
  /** X-Request-Id. */
  readonly id: string
  readonly trace: Trace | undefined
  /** By performance.now(). */
  readonly startedAt = performance.now()
  /** HEAD is answered like GET, without the body. */
  readonly method: string
  /** The path below the base URL; null for one outside of it. */
  path: string | null = null
  /** The path as it was sent, at the root of the server. */
  pathname = ''
  /** The query string, without the question mark. */
  search = ''
  /** Not part of an API: not counted, and without rate limit headers. */
  operational = false
  /** The REST operation that path and method name, and the text in the path's parameters. */
  operation: Operation | undefined = undefined
  params: Record<string, string | undefined> | undefined = undefined
  /** The methods of a path that is no REST operation. */
  allow: string | undefined = undefined
  /** The name in logs and metrics: the operationId; in GraphQL that of each root field, separated by commas. */
  operationName: string | undefined = undefined
  key: ApiKey | undefined = undefined
  subject: Subject | undefined = undefined
  /** The bytes of the body, or why it could not be read. Empty for requests whose body is not used. */
  body: Buffer | ApiError = noBody
  /** What it occupies while it is at work (see Admission). */
  place: Place | undefined = undefined
  rateLimit: RateLimitResult | undefined = undefined
  /** How long the request has waited for its key, in milliseconds. */
  waitedMs = 0
  /** Why the request was refused: the code of its first error. */
  refusal: ErrorCode | undefined = undefined
  readonly #trustProxy: number

  constructor(head: RequestHead, trustProxy: number) {
    const given = head.headers['x-request-id']
    this.head = head
    this.id = typeof given === 'string' && printable.test(given) ? given : randomUUID()
    this.trace = readTrace(head.headers.traceparent)
    this.method = head.method === 'HEAD' ? 'GET' : (head.method ?? 'GET')
    this.#trustProxy = trustProxy
  }

  get surface(): 'rest' | 'graphql' | 'other' {
    return this.path === '/graphql' ? 'graphql' : this.operation ? 'rest' : 'other'
  }

  /** What was taken from the quota. */
  get cost(): number {
    return this.rateLimit?.cost ?? 0
  }

  /** Milliseconds since the head of the request arrived. */
  get elapsedMs(): number {
    return performance.now() - this.startedAt
  }

  /** The client's address, as far as TRUST_PROXY allows to believe it. */
  get address(): string {
    return clientAddress(this.head, this.#trustProxy)
  }
}

/** The address to count: whole for IPv4, by /64 for IPv6, where a client holds at least that much. */
export function countedAddress(text: string | undefined): string {
  if (!text || !ipaddr.isValid(text)) return 'unknown'
  const address = ipaddr.process(text)
  if (address.kind() === 'ipv4') return address.toString()
  const network = address.toByteArray().fill(0, 8)
  return `${ipaddr.fromByteArray(network).toString()}/64`
}

/** Some proxies add the client's port: `203.0.113.7:1234`, `[2001:db8::1]:443`. */
function withoutPort(text: string): string {
  const [, bracketed, ipv4] = /^\s*(?:\[(.*)\](?::\d+)?|([\d.]+):\d+)\s*$/.exec(text) ?? []
  return bracketed ?? ipv4 ?? text.trim()
}

/** The nearest address that none of `hops` trusted proxies added. */
function clientAddress({ headers, socket }: RequestHead, hops: number) {
  const forwarded = hops > 0 ? String(headers['x-forwarded-for'] ?? '').split(',') : []
  const chain = [socket.remoteAddress, ...forwarded.map(withoutPort).reverse()].filter(Boolean)
  return countedAddress(chain[Math.min(hops, chain.length - 1)])
}

const isHost = (text: string) => /^[^\s/?#@\\]+$/.test(text) && URL.canParse(`http://${text}`)
const sameHost = { valid: '' }

/** Exactly one Host, which HTTP/1.0 alone may leave out (RFC 9112, section 3.2). */
function hasHost({ headers: { host }, rawHeaders, httpVersion }: RequestHead): boolean {
  if (host === undefined) return httpVersion === '1.0'
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]?.toLowerCase() === 'host') count++
  if (count > 1) return false
  if (host === sameHost.valid) return true
  if (!isHost(host)) return false
  // Nearly all requests name the same one, and parsing a URL is slow.
  sameHost.valid = host
  return true
}

/** A target in origin form, or in absolute form, as a proxy sends it: its host, path and query string. */
const target = /^(?:https?:\/\/([^/?#]+))?(\/[^?#]*)?(?:\?([^#]*))?$/i

/**
 * Where the request goes. The path counts as it was sent: with `..` resolved, it could lead to where a proxy in front
 * of the gateway lets nobody go.
 *
 * @throws ApiError invalid_request
 */
export function readTarget(context: RequestContext, basePath: string): void {
  const { head } = context
  const [, host, path, search = ''] = target.exec(head.url ?? '') ?? []
  if (!hasHost(head)) throw notHttp('it must have exactly one Host header, with a valid host')
  if (host === undefined ? !path : !isHost(host)) throw notHttp('its target is neither a path nor an http URL')
  const pathname = path ?? '/'
  context.pathname = pathname
  context.search = search
  if (!basePath) context.path = pathname
  else if (pathname === basePath) context.path = '/'
  else if (pathname.startsWith(`${basePath}/`)) context.path = pathname.slice(basePath.length)
}

export const notHttp = (reason: string) =>
  new ApiError('invalid_request', `The request is not valid HTTP: ${reason}.`, { connection: 'close' })
