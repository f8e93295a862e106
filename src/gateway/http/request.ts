import { randomUUID } from 'node:crypto'
import ipaddr from 'ipaddr.js'
import Negotiator from 'negotiator'
import { attempt } from '../../../schema/kit/attempt.js'
import { type ApiError, invalidRequest } from '../../../schema/kit/errors.js'
import { shownName } from '../../../schema/kit/input/problems.js'
import { openTrace, readTrace, type Trace } from '../../engines/observe/index.js'
import { malformation, type RequestHead } from './head.js'

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
  /** Why it is refused before anything else is asked. */
  readonly malformed: ApiError | undefined
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
    const [, authority, path, search = ''] = target.exec(head.url ?? '') ?? []
    this.malformed = malformation(head, authority, path)
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

/** A target in origin form, or in absolute form, as a proxy sends it: its host, path and query string. */
const target = /^(?:https?:\/\/([^/?#]+))?(\/[^?#]*)?(?:\?([^#]*))?$/i

/** The path counts as it was sent: with `../..` resolved, it could name a path that a proxy in front denies. */
function pathBelow(basePath: string, path: string): string | null {
  if (!path.startsWith(basePath)) return null
  const below = path.slice(basePath.length)
  return below === '' ? '/' : below.startsWith('/') ? below : null
}

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
