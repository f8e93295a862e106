import { parse as parseLossless } from 'lossless-json'
import { ApiError } from '../../schema/errors.js'

const tooLarge = (max: number) =>
  // What is left of the body is not read, so the connection cannot serve another request.
  new ApiError('payload_too_large', `The body must not be larger than ${max} bytes.`, { connection: 'close' })

/** The bytes of a body. A declared length is believed (HTTP delivers no more); without one they are counted. */
async function readBytes(request: Request, max: number): Promise<Uint8Array> {
  const declared = request.headers.get('content-length')
  if (Number(declared) > max) throw tooLarge(max)
  if (declared !== null) return new Uint8Array(await request.arrayBuffer())
  const chunks: Uint8Array[] = []
  let size = 0
  // Not `for await`: leaving it cancels the stream, and with it the connection that the refusal has to take.
  const reader = request.body?.getReader()
  for (let read = await reader?.read(); read?.value; read = await reader?.read()) {
    size += read.value.length
    if (size > max) throw tooLarge(max)
    chunks.push(read.value)
  }
  return Buffer.concat(chunks)
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
  // Only a number of many digits can lose any, and the exact parser is the slower one.
  return /\d{16}/.test(text) ? parseLossless(text, undefined, lossless) : JSON.parse(text)
}

/**
 * The JSON body of a request.
 *
 * @param types media types that are taken
 * @throws ApiError payload_too_large, unsupported_media_type, invalid_request
 */
export async function readJson(request: Request, { max, types }: { max: number; types: string[] }): Promise<unknown> {
  let bytes: Uint8Array
  try {
    bytes = await readBytes(request, max)
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw new ApiError('invalid_request', 'The body could not be read to its end.')
  }
  const [type = '', ...parameters] = (request.headers.get('content-type') ?? '').toLowerCase().split(';')
  const charset = parameters.map((parameter) => /^\s*charset="?([^"]*?)"?\s*$/.exec(parameter)?.[1]).find(Boolean)
  if (bytes.length === 0 && !type) throw new ApiError('invalid_request', 'A JSON body is required.')
  if (!types.includes(type.trim()) || (charset && charset !== 'utf-8' && charset !== 'utf8'))
    throw new ApiError('unsupported_media_type', `The Content-Type must be ${types.join(' or ')}, in UTF-8.`)
  if (!/^(identity)?$/i.test(request.headers.get('content-encoding') ?? ''))
    throw new ApiError('unsupported_media_type', 'The body must not have a Content-Encoding.')
  try {
    return parseJson(utf8.decode(bytes))
  } catch (error) {
    if (error instanceof RangeError) throw new ApiError('invalid_request', 'The body is nested too deeply.')
    const reason = error instanceof SyntaxError ? error.message : 'it is not UTF-8 text'
    throw new ApiError('invalid_request', `The body is not valid JSON: ${reason}.`)
  }
}
