import { type IncomingHttpHeaders, METHODS } from 'node:http'
import { isIPv6 } from 'node:net'
import { ApiError } from '../../../schema/kit/errors.js'
import { shownName, wrongValue } from '../../../schema/kit/input/problems.js'

/** The head of a request: as much of Node's IncomingMessage as the steps read. */
export interface RequestHead {
  method?: string
  url?: string
  httpVersion?: string
  headers: IncomingHttpHeaders
  /** Names and values in turn, as they arrived: here a header that was sent twice is seen twice. */
  rawHeaders: string[]
  /** Asks for the body, if the client waits for that (`Expect: 100-continue`). */
  invite?(): void
  socket: { remoteAddress?: string; destroyed?: boolean }
}

// What follows on the connection cannot be told from the rest of the request.
const CLOSE = { connection: 'close' }

const notHttp = (reason: string) => new ApiError('invalid_request', `The request is not valid HTTP: ${reason}.`, CLOSE)

/** The largest head that is served, in characters: its target, and the names and values of its headers. */
export const MAX_HEAD = 16_384
/** Node reads a little more than is served: of a head that it has read, it is known which part is too long. */
export const MAX_HEAD_READ = 24_576

const headTooLarge = (isTarget: boolean) =>
  new ApiError(isTarget ? 'uri_too_long' : 'headers_too_large', undefined, CLOSE)

/** A registered name, which may be anything but is never empty, or an address (RFC 3986, section 3.2), with a port. */
const host = /^(?:\[([\da-f:.]+)\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})+)(?::(\d{0,5}))?$/i

function isHost(text: string): boolean {
  const [isAny, ipv6, port = ''] = host.exec(text) ?? []
  return isAny !== undefined && (ipv6 === undefined || isIPv6(ipv6)) && Number(port) <= 65_535
}

/** Whether `OPTIONS *` asks what the server as a whole supports (RFC 9110, section 9.3.7). */
export const isServerWide = ({ method, url }: RequestHead): boolean => method === 'OPTIONS' && url === '*'

/**
 * What is wrong with the head of a request that Node has read.
 *
 * @param authority of a target in absolute form
 * @param path of the target; undefined if it has another form
 */
export function malformation(
  head: RequestHead,
  authority: string | undefined,
  path: string | undefined,
): ApiError | undefined {
  const { rawHeaders, headers, url = '' } = head
  let [size, hosts] = [0, 0]
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    size += name.length + (rawHeaders[i + 1] as string).length
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  if (url.length + size > MAX_HEAD) return headTooLarge(url.length > size)
  // Exactly one, which HTTP/1.0 alone may leave out (RFC 9112, section 3.2).
  if (hosts > 1 || !(headers.host === undefined ? head.httpVersion === '1.0' : isHost(headers.host)))
    return notHttp('it must have exactly one Host header, with a valid host')
  const isTarget = authority === undefined ? path !== undefined || isServerWide(head) : isHost(authority)
  if (!isTarget) return notHttp('its target is neither a path nor an http URL')
  const coding = headers['transfer-encoding']
  if (coding && coding.toLowerCase() !== 'chunked')
    return new ApiError('not_implemented', wrongValue('Transfer-Encoding', coding, 'must be chunked alone'), CLOSE)
}

/** Node's error about what is not HTTP. */
export interface ParseError extends Error {
  code?: string
  reason?: string
  /** What the socket had returned when the parser failed, and where in it. */
  rawPacket?: Buffer
  bytesParsed?: number
}

/** What is wrong with what Node has refused, in the words of its parser where there are none of our own. */
export function refusalOf({ code, reason, rawPacket, bytesParsed = 0 }: ParseError): ApiError {
  // The first byte of TLS.
  if (rawPacket?.[0] === 0x16) return notHttp('it is TLS, but this port speaks plain HTTP; use http://')
  const packet = rawPacket?.toString('latin1') ?? ''
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('request_timeout', undefined, CLOSE)
    case 'HPE_HEADER_OVERFLOW': {
      const [line = ''] = /^[A-Z-]+ [^\r\n]*/.exec(packet) ?? []
      return headTooLarge(line.length > packet.length / 2)
    }
    case 'HPE_PAUSED_H2_UPGRADE':
      return notHttp('it is HTTP/2, but this port speaks HTTP/1.1')
    case 'HPE_INVALID_METHOD': {
      const method = methodAt(packet, bytesParsed)
      if (method) return unknownMethod(method)
    }
  }
  return notHttp(reason?.replace(/\.$/, '') ?? 'it could not be read')
}

/** CONNECT asks for a tunnel. */
export const noTunnel = () => notHttp('CONNECT is not supported')

// The characters of a token (RFC 9110, section 5.6.2).
const tokenBefore = /[\w!#$%&'*+.^`|~-]*$/
const tokenAndSpace = /^[\w!#$%&'*+.^`|~-]+(?= )/

/** The token in which the parser failed, which is at most as far from its start as the longest method is long. */
function methodAt(packet: string, index: number): string | undefined {
  const [start = ''] = tokenBefore.exec(packet.slice(Math.max(0, index - 20), index)) ?? []
  return tokenAndSpace.exec(packet.slice(index - start.length))?.[0]
}

function unknownMethod(method: string): ApiError {
  const capitals = method.toUpperCase()
  const hint = METHODS.includes(capitals) ? ` ${capitals} is written in capitals.` : ''
  return new ApiError('not_implemented', `HTTP has no method ${shownName(method)}.${hint}`, CLOSE)
}
