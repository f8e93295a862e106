import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import ipaddr from 'ipaddr.js'
import Negotiator from 'negotiator'
import { attempt } from '../../schema/attempt.js'
import { ApiError, invalidRequest } from '../../schema/errors.js'
import { shownName } from '../../schema/input/problems.js'
import { openTrace, readTrace, type Trace } from '../observe/tracing.js'

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

const printable = /^[\x21-\x7e]{1,128}$/

/** What a client has asked, without the body. It is read once and never changes. */
export class HttpRequest {
  /** X-Request-Id. */
  readonly id: string
  readonly trace: Trace | undefined
  /** By performance.now(). */
  readonly startedAt = performance.now()
  /** HEAD is answered like GET, without the body. */
  readonly method: string
  /** Why it is not valid HTTP. */
  readonly malformed: string | undefined
  /** The path as it was sent, at the root of the server. */
  readonly pathname: string
  /** The path below the base URL; null for one outside of it. */
  readonly path: string | null
  /** The query string, without the question mark. */
  readonly search: string
  #query: URLSearchParams | undefined

  /**
   * @param trustProxy how many proxies may name the client's address
   * @param basePath the path of the base URL, without a slash at its end; undefined if nothing is below one
   */
  constructor(
    readonly head: RequestHead,
    private readonly trustProxy: number,
    basePath: string | undefined,
  ) {
    const given = head.headers['x-request-id']
    this.id = typeof given === 'string' && printable.test(given) ? given : randomUUID()
    // What is asked of the operators' port has no span.
    this.trace = basePath === undefined ? readTrace(head.headers.traceparent) : openTrace(head.method, head.headers)
    this.method = head.method === 'HEAD' ? 'GET' : (head.method ?? 'GET')
    const [, host, path, search = ''] = target.exec(head.url ?? '') ?? []
    this.malformed = malformation(head, host, path)
    this.pathname = path ?? '/'
    this.path = this.malformed || basePath === undefined ? null : pathBelow(basePath, this.pathname)
    this.search = search
  }

  /** Milliseconds since the head of the request arrived. */
  get elapsedMs(): number {
    return performance.now() - this.startedAt
  }

  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(this.search)
    return this.#query
  }

  /** Otherwise U+FFFD would replace what was sent, and `%zz` would count as a text. */
  assertDecodable(): void {
    if (decoded(this.search) !== undefined) return
    const pair = this.search.split('&').find((pair) => decoded(pair) === undefined)
    const [name = ''] = pair?.split('=') ?? []
    throw invalidRequest(
      `The query parameter ${shownName(decoded(name) ?? name)} must be percent-encoded UTF-8: %C3%A9 for é, %25 for a percent sign.`,
    )
  }

  /** The client's address, as far as TRUST_PROXY allows to believe it. */
  get address(): string {
    return clientAddress(this.head, this.trustProxy)
  }
}

const decoded = (text: string) => attempt(() => decodeURIComponent(text))

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

/** What is wrong with the head of a request, in words that follow "it is not valid HTTP". */
function malformation(head: RequestHead, host: string | undefined, path: string | undefined): string | undefined {
  if (!hasHost(head)) return 'it must have exactly one Host header, with a valid host'
  const isTarget = host === undefined ? path !== undefined : isHost(host)
  return isTarget ? undefined : 'its target is neither a path nor an http URL'
}

/** The path counts as it was sent: with `..` resolved, it could name a path that a proxy in front denies. */
function pathBelow(basePath: string, path: string): string | null {
  if (!path.startsWith(basePath)) return null
  const below = path.slice(basePath.length)
  return below === '' ? '/' : below.startsWith('/') ? below : null
}

export const notHttp = (reason: string) =>
  new ApiError('invalid_request', `The request is not valid HTTP: ${reason}.`, { connection: 'close' })

/** Whether Accept names a media type, and does not prefer JSON. A client that accepts everything has not asked for it. */
export function prefersType({ head }: HttpRequest, type: string): boolean {
  const ranges = head.headers.accept?.toLowerCase().split(',') ?? []
  if (!ranges.some((range) => range.includes(type))) return false
  // Of those that a client accepts equally, the first one wins.
  const accept = ranges.sort((a, b) => Number(b.includes(type)) - Number(a.includes(type))).join()
  const offered = [type, 'application/json'].map((one) => `${one}; charset=utf-8`)
  return new Negotiator({ headers: { accept } }).mediaType(offered) === offered[0]
}

/** The first of the codings that the client accepts. */
export function acceptedCoding<Coding extends string>({ head }: HttpRequest, codings: Coding[]): Coding | 'identity' {
  const accepted = new Negotiator(head).encodings(codings)
  return codings.find((coding) => accepted.includes(coding)) ?? 'identity'
}
