import type { IncomingMessage } from 'node:http'
import { ApiError, invalidRequest } from '../../../schema/kit/errors.js'
import { wrongValue } from '../../../schema/kit/input/problems.js'
import { parseJson } from './json.js'
import type { Holding, MemoryBudget } from './memory-budget.js'
import type { HttpRequest } from './request.js'

/** The bytes of a body, or why it could not be read. */
export type Body = Buffer | ApiError

export const noBody: Buffer = Buffer.alloc(0)

// The rest of the body is not read, so the connection cannot serve another request.
const CLOSE = { connection: 'close' }

const tooLarge = (max: number) =>
  new ApiError('payload_too_large', `The body must not be larger than ${max} bytes.`, CLOSE)

const incompleteBody = () => invalidRequest('The body is incomplete: the connection closed before its end.')

/** What all bodies that are arriving may take together, in bytes. */
export const UPLOAD_BUDGET = 67_108_864
/** A body counts as at least this many bytes, so that the budget also bounds how many there are. */
const LEAST_BYTES = 32_768

/** One object for all, because creating an error costs more than refusing a request. */
const noMemory = new ApiError(
  'unavailable',
  'The service is receiving more bodies than it has memory for. This request was not processed and cost nothing. Send its body faster, or retry after the seconds in Retry-After.',
  { 'retry-after': '1', ...CLOSE },
)

/**
 * How many pieces a body may arrive in: so many, and one more for each 64 bytes. A piece is a chunk of the transfer coding
 * or what one read of the socket returned, and takes more time than its bytes.
 */
const FREE_PIECES = 1_024
const BYTES_PER_PIECE = 64

const isTooMany = (pieces: number, bytes: number) => pieces > FREE_PIECES + bytes / BYTES_PER_PIECE

const tooManyPieces = (pieces: number, bytes: number) =>
  new ApiError(
    'payload_too_large',
    `The body arrives in too many pieces: the first ${bytes} bytes in ${pieces}. Send it in larger chunks.`,
    CLOSE,
  )

const floods = new WeakSet<IncomingMessage>()

/** Whether the body of a request came in too many pieces. */
export const isFlood = (req: IncomingMessage): boolean => floods.has(req)

/** Drops what has arrived of a body, and reads no more of it. */
function endFlood(req: IncomingMessage): void {
  floods.add(req)
  // Node resumes the socket whenever the request is read.
  req._read = () => {}
  req.resume()
  process.nextTick(() => req.socket.pause())
}

/**
 * Collects the body of a request, counted whether or not it declares a length. What is wrong with it is returned, for the
 * step that needs it: other refusals come first. Its memory depends on its bytes alone: each piece, which Node keeps in a
 * larger buffer, is copied immediately.
 *
 * @param holder the key that sends it
 * @throws ApiError unavailable (other bodies have taken the memory)
 */
export function readBody(request: HttpRequest, max: number, uploads: MemoryBudget, holder: string) {
  const req = request.head as IncomingMessage
  const declared = Number(req.headers['content-length'] ?? Number.NaN)
  if (declared === 0) return noBody
  if (declared > max) return tooLarge(max)
  // The client left while its key was looked up. There will be no event.
  if (req.destroyed) return incompleteBody()
  request.head.invite?.()
  return new Promise<Body>((resolve, reject) => {
    let body = noBody
    let [size, pieces] = [0, 0]
    let upload: Holding | undefined
    const stop = () => {
      req.off('data', collect).off('end', end).off('error', incomplete).off('close', incomplete)
      if (upload) uploads.release(upload)
    }
    const giveUp = () => {
      stop()
      reject(noMemory)
    }
    const finish = (result: Body) => {
      stop()
      resolve(result)
    }
    const end = () => finish(body.subarray(0, size))
    // Every request emits `close`, nearly all after their end, and creating an error that is not used is slow.
    const incomplete = () => finish(incompleteBody())
    function grow(bytes: number) {
      upload ??= { holders: [request.address, holder], bytes: 0, giveUp }
      uploads.hold(upload, Math.max(LEAST_BYTES, bytes))
      const larger = Buffer.allocUnsafe(bytes)
      body.copy(larger, 0, 0, size)
      body = larger
    }
    function collect(piece: Buffer) {
      const total = size + piece.length
      if (total > max) return finish(tooLarge(max))
      if (isTooMany(++pieces, total)) {
        endFlood(req)
        return finish(tooManyPieces(pieces, total))
      }
      // Most bodies arrive in one piece.
      if (size === 0 && total === declared) body = piece
      else {
        if (total > body.length) grow(Number.isNaN(declared) ? Math.min(max, 2 * total) : declared)
        piece.copy(body, size)
      }
      size = total
    }
    req.on('data', collect).on('end', end).on('error', incomplete).on('close', incomplete)
  })
}

/** How much of a body that nobody needs is read, in bytes, and for how long, in milliseconds. */
const MAX_DISCARDED = 16_777_216
const DISCARD_MS = 2_000

/**
 * Reads the rest of a body that nobody needs, so that a client which sends all of it before it reads gets its response.
 * Resolves when it has ended, to false if it is too much.
 */
export function discardBody(req: IncomingMessage): Promise<boolean> {
  return new Promise((resolve) => {
    if (isFlood(req)) return resolve(false)
    let [size, pieces] = [0, 0]
    const finish = (isWhole: boolean) => {
      clearTimeout(timer)
      req.off('data', count).off('end', end).off('close', end)
      resolve(isWhole)
    }
    const end = () => finish(true)
    const timer = setTimeout(() => finish(false), DISCARD_MS)
    const count = (piece: Buffer) => {
      size += piece.length
      if (isTooMany(++pieces, size)) endFlood(req)
      if (size > MAX_DISCARDED || isFlood(req)) finish(false)
    }
    req.on('data', count).on('end', end).on('close', end).resume()
  })
}

/** The media types of a body by method: RFC 8259, and RFC 7396 for changes. */
export const MEDIA_TYPES: Record<string, string[]> = {
  POST: ['application/json'],
  PATCH: ['application/json', 'application/merge-patch+json'],
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** What a body may be, for a client whose body has another type (RFC 5789, W3C Linked Data Platform). */
const acceptedTypes = (method: string, types: readonly string[]) => ({
  [method === 'PATCH' ? 'accept-patch' : 'accept-post']: types.join(', '),
})

/**
 * Whether a body has arrived that may be JSON, by its size and its headers.
 *
 * @param types the media types that are accepted
 * @throws ApiError payload_too_large, unsupported_media_type, invalid_request
 */
export function assertJson(
  { method, head: { headers } }: HttpRequest,
  body: Body,
  types: readonly string[],
): asserts body is Buffer {
  if (body instanceof ApiError) throw body
  const contentType = headers['content-type'] ?? ''
  if (!types.includes(contentType)) {
    const [type = '', ...parameters] = contentType.toLowerCase().split(';')
    const charset = parameters.map((parameter) => /^charset="?([^"]*)/.exec(parameter.trim())?.[1]).find(Boolean)
    if (body.length === 0 && !type) throw invalidRequest('A JSON body is required.')
    if (!types.includes(type.trim()) || (charset && charset !== 'utf-8' && charset !== 'utf8'))
      throw new ApiError(
        'unsupported_media_type',
        wrongValue('The Content-Type', contentType || undefined, `must be ${types.join(' or ')}, in UTF-8`),
        acceptedTypes(method, types),
      )
  }
  const encoding = headers['content-encoding']
  if (encoding && encoding.toLowerCase() !== 'identity')
    throw new ApiError(
      'unsupported_media_type',
      `${wrongValue('The Content-Encoding', encoding, 'must be left out')} Send the body uncompressed.`,
      { 'accept-encoding': 'identity' },
    )
}

/** @throws ApiError invalid_request */
export function parseBody(body: Buffer): unknown {
  try {
    return parseJson(utf8.decode(body))
  } catch (error) {
    if (body.length === 0) throw invalidRequest('The body is empty; it must be JSON.')
    if (error instanceof RangeError) throw invalidRequest('The body is nested too deeply.')
    const reason = error instanceof SyntaxError ? error.message : 'it is not UTF-8 text'
    throw invalidRequest(`The body is not valid JSON: ${reason}.`)
  }
}
