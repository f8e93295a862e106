import type { IncomingMessage } from 'node:http'
import { parse as parseLossless } from 'lossless-json'
import { ApiError } from '../../schema/errors.js'
import type { RequestContext } from './context.js'

const tooLarge = (max: number) =>
  // The rest of the body is not read, so the connection cannot serve another request.
  new ApiError('payload_too_large', `The body must not be larger than ${max} bytes.`, { connection: 'close' })

/** The bytes of a body, counted whether or not it declares a length. */
function readBytes(req: IncomingMessage, max: number): Promise<Buffer> {
  if (Number(req.headers['content-length']) > max) return Promise.reject(tooLarge(max))
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    // Every request closes, nearly all after their end, and an error that nobody sees is slow to make.
    const incomplete = () => {
      if (!req.readableEnded) reject(new ApiError('invalid_request', 'The body could not be read to its end.'))
    }
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
      chunks.push(chunk)
      if (size <= max) return
      req.pause()
      reject(tooLarge(max))
    })
    req.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)))
    req.on('error', incomplete)
    req.on('close', incomplete)
  })
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

const lossless = {
  /** Integers past 2^53 stay exact, as bigint: rounded, an id would name another row. An id has at most 19 digits. */
  parseNumber(text: string) {
    const value = Number(text)
    return Number.isSafeInteger(value) || !/^-?\d{1,19}$/.test(text) ? value : BigInt(text)
  },
  /** The last one counts, as it does for JSON.parse. */
  onDuplicateKey: ({ newValue }: { newValue: unknown }) => newValue,
}

/** Throws a SyntaxError as JSON.parse does. */
export function parseJson(text: string): unknown {
  // Only a number of many digits can lose any, and the exact parser is slower.
  return /\d{16}/.test(text) ? parseLossless(text, undefined, lossless) : JSON.parse(text)
}

/** @throws ApiError unsupported_media_type, invalid_request */
function assertJson({ headers }: IncomingMessage, empty: boolean, types: readonly string[]) {
  const contentType = headers['content-type'] ?? ''
  if (!types.includes(contentType)) {
    const [type = '', ...parameters] = contentType.toLowerCase().split(';')
    const charset = parameters.map((parameter) => /^\s*charset="?([^"]*?)"?\s*$/.exec(parameter)?.[1]).find(Boolean)
    if (empty && !type) throw new ApiError('invalid_request', 'A JSON body is required.')
    if (!types.includes(type.trim()) || (charset && charset !== 'utf-8' && charset !== 'utf8'))
      throw new ApiError('unsupported_media_type', `The Content-Type must be ${types.join(' or ')}, in UTF-8.`)
  }
  const encoding = headers['content-encoding']
  if (encoding && encoding.toLowerCase() !== 'identity')
    throw new ApiError('unsupported_media_type', 'The body must not have a Content-Encoding.')
}

/**
 * The JSON body of a request.
 *
 * @param types the media types that are accepted
 * @throws ApiError payload_too_large, unsupported_media_type, invalid_request
 */
export async function readJson(context: RequestContext, max: number, types: readonly string[]): Promise<unknown> {
  const req = context.head as IncomingMessage
  const bytes = await readBytes(req, max)
  context.body = bytes
  assertJson(req, bytes.length === 0, types)
  try {
    return parseJson(utf8.decode(bytes))
  } catch (error) {
    if (error instanceof RangeError) throw new ApiError('invalid_request', 'The body is nested too deeply.')
    const reason = error instanceof SyntaxError ? error.message : 'it is not UTF-8 text'
    throw new ApiError('invalid_request', `The body is not valid JSON: ${reason}.`)
  }
}
