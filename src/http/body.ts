import type { IncomingMessage } from 'node:http'
import { parse as parseLossless } from 'lossless-json'
import { ApiError } from '../../schema/errors.js'
import { wrongValue } from '../../schema/problems.js'
import type { RequestContext, RequestHead } from './context.js'

const tooLarge = (max: number) =>
  // The rest of the body is not read, so the connection cannot serve another request.
  new ApiError('payload_too_large', `The body must not be larger than ${max} bytes.`, { connection: 'close' })

/**
 * Collects the body of a request, counted whether or not it declares a length. What is wrong with it is kept for the step
 * that needs it, because a refusal of the key comes first.
 */
export function readBody(context: RequestContext, max: number): Promise<void> | undefined {
  const req = context.head as IncomingMessage
  if (Number(req.headers['content-length']) > max) {
    context.body = tooLarge(max)
    return undefined
  }
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const finish = (body: Buffer | ApiError) => {
      context.body = body
      resolve()
    }
    // Every request emits `close`, nearly all after their end, and creating an error that is not used is slow.
    const incomplete = () => {
      if (!req.readableEnded)
        finish(new ApiError('invalid_request', 'The body is incomplete: the connection closed before its end.'))
    }
    req.on('data', function collect(chunk: Buffer) {
      size += chunk.length
      chunks.push(chunk)
      if (size <= max) return
      req.off('data', collect).off('error', incomplete).off('close', incomplete).pause()
      finish(tooLarge(max))
    })
    req.on('end', () => finish(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)))
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
function assertJson({ headers }: RequestHead, empty: boolean, types: readonly string[]) {
  const contentType = headers['content-type'] ?? ''
  if (!types.includes(contentType)) {
    const [type = '', ...parameters] = contentType.toLowerCase().split(';')
    const charset = parameters.map((parameter) => /^charset="?([^"]*)/.exec(parameter.trim())?.[1]).find(Boolean)
    if (empty && !type) throw new ApiError('invalid_request', 'A JSON body is required.')
    if (!types.includes(type.trim()) || (charset && charset !== 'utf-8' && charset !== 'utf8'))
      throw new ApiError(
        'unsupported_media_type',
        wrongValue('The Content-Type', contentType || undefined, `must be ${types.join(' or ')}, in UTF-8`),
      )
  }
  const encoding = headers['content-encoding']
  if (encoding && encoding.toLowerCase() !== 'identity')
    throw new ApiError(
      'unsupported_media_type',
      `${wrongValue('The Content-Encoding', encoding, 'must be left out')} Send the body uncompressed.`,
    )
}

/**
 * The JSON in the body of a request.
 *
 * @param types the media types that are accepted
 * @throws ApiError payload_too_large, unsupported_media_type, invalid_request
 */
export function readJson({ head, body }: RequestContext, types: readonly string[]): unknown {
  if (body instanceof ApiError) throw body
  assertJson(head, body.length === 0, types)
  try {
    return parseJson(utf8.decode(body))
  } catch (error) {
    if (body.length === 0) throw new ApiError('invalid_request', 'The body is empty; it must be JSON.')
    if (error instanceof RangeError) throw new ApiError('invalid_request', 'The body is nested too deeply.')
    const reason = error instanceof SyntaxError ? error.message : 'it is not UTF-8 text'
    throw new ApiError('invalid_request', `The body is not valid JSON: ${reason}.`)
  }
}
