import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll } from 'vitest'
import { listen, type Server } from '../../../src/gateway/http/server.js'
import { resetStore } from '../../support/calls.js'
import { contractOf, withContract } from '../../support/contract.js'
import { type Gateway, openGateway } from '../../support/gateway.js'
import { assertHealthy, fuzz, messagesOf, onSocket } from './fuzz.js'

// Bytes on a connection: HTTP/1.1 with its head, framing and order mutated, in pieces, and cut short. After each
// connection the gateway must answer on a new one.

let gateway: Gateway
let server: Server
/** What the OpenAPI document does not allow, of the responses of one connection. */
let violations: unknown[] = []
beforeAll(async () => {
  gateway = await openGateway()
  await resetStore(gateway.prisma)
  const { BASE_URL } = gateway.config
  const contract = contractOf(gateway.config)
  const app = withContract(gateway.app, BASE_URL, (request, response) => {
    // What is not HTTP is no request for an operation. It alone closes the connection with one of these.
    const isHttp = ![400, 408, 414, 431, 501].includes(response.status) || !new Map(response.headers).has('connection')
    try {
      const method = request.method === 'HEAD' ? 'HEAD' : 'GET'
      contract(isHttp ? request : { method, url: BASE_URL }, response)
    } catch (error) {
      violations.push(error)
    }
  })
  server = await listen(app, { port: 0, host: '127.0.0.1' })
})
afterAll(async () => {
  await server.close()
  await gateway.close()
})

/** How long a connection is read on that nothing arrives on, before the client ends its side. */
const QUIET_MS = 20
/** Longer than any of these connections may then stay open. */
const PATIENCE_MS = 10_000

/** Sends the pieces, and reads until the gateway closes the connection, which it must once the client has. */
async function exchange(pieces: Uint8Array[], quietMs: number): Promise<string> {
  const socket = connect(server.port, '127.0.0.1')
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  for (const piece of pieces) {
    if (socket.writable) socket.write(piece)
    if (pieces.length > 1) await turn()
  }
  const received: Buffer[] = []
  const quiet = setTimeout(() => socket.end(), quietMs)
  socket.on('data', (data) => {
    received.push(data)
    quiet.refresh()
  })
  const late = setTimeout(() => socket.destroy(new Error('late')), PATIENCE_MS)
  await closed
  clearTimeout(quiet)
  clearTimeout(late)
  if (socket.errored?.message === 'late') throw new Error(`The connection is still open after ${PATIENCE_MS} ms`)
  return Buffer.concat(received).toString('latin1')
}

interface RawResponse {
  status: number
  headers: Map<string, string>
  text: string
}

const HEAD = /^HTTP\/1\.1 (\d{3}) [^\r\n]*\r\n((?:[\w-]+: [^\r\n]*\r\n)*)\r\n/

/** All of the bytes as responses; the response to HEAD has a length, but no body. */
function responsesOf(bytes: string): RawResponse[] {
  const responses: RawResponse[] = []
  for (let rest = bytes; rest; ) {
    const head = HEAD.exec(rest)
    if (!head) throw new Error(`No HTTP response: ${JSON.stringify(rest.slice(0, 200))}`)
    const lines = (head[2] as string).split('\r\n').slice(0, -1)
    const headers = new Map(
      lines.map((line) => [line.split(':')[0]?.toLowerCase() ?? '', line.slice(line.indexOf(': ') + 2)]),
    )
    rest = rest.slice(head[0].length)
    const length = /^HTTP\/1\.1 /.test(rest) ? 0 : Number(headers.get('content-length') ?? 0)
    responses.push({ status: Number(head[1]), headers, text: rest.slice(0, length) })
    rest = rest.slice(length)
  }
  return responses
}

async function run(pieces: Uint8Array[], quietMs = QUIET_MS): Promise<RawResponse[]> {
  violations = []
  const responses = responsesOf(await exchange(pieces, quietMs))
  if (violations[0]) throw violations[0]
  const refusals = responses.filter(
    ({ headers, text }) => text.startsWith('{') && headers.get('content-type')?.includes('json'),
  )
  assertHealthy(
    gateway,
    responses.map(({ status }) => status),
    refusals.flatMap(({ text }) => messagesOf({ body: JSON.parse(text) })),
  )
  const health = await fetch(`http://127.0.0.1:${server.port}/healthz`)
  if (!health.ok) throw new Error(`/healthz returned ${health.status}`)
  return responses
}

const encoder = (text: string) => Buffer.from(text, 'latin1')
const show = (pieces: Uint8Array[]) => onSocket(Buffer.concat(pieces))

// Well-formed requests, from which the others are made.

interface Request {
  line: string
  headers: string[]
  body: string
}

const auth = () => `X-API-Key: ${gateway.key}`
const json = '{"name":"Tom","categoryId":2}'
const query = '{"query":"{ pets { id name } }"}'
const requests: fc.Arbitrary<Request> = fc.constantFrom<Request[]>(
  { line: 'GET /pets?limit=2 HTTP/1.1', headers: [], body: '' },
  { line: 'HEAD /pets/2 HTTP/1.1', headers: [], body: '' },
  { line: 'GET /pets/2 HTTP/1.0', headers: [], body: '' },
  {
    line: 'OPTIONS /pets HTTP/1.1',
    headers: ['Origin: https://shop.test', 'Access-Control-Request-Method: GET'],
    body: '',
  },
  { line: 'POST /pets HTTP/1.1', headers: ['Content-Type: application/json'], body: json },
  { line: 'PATCH /pets/2 HTTP/1.1', headers: ['Content-Type: application/json'], body: '{"status":"sold"}' },
  { line: 'POST /graphql HTTP/1.1', headers: ['Content-Type: application/json'], body: query },
  { line: 'GET http://localhost/pets HTTP/1.1', headers: [], body: '' },
  { line: 'GET /docs HTTP/1.1', headers: [], body: '' },
)

const chunked = (body: string, size = 7) => {
  const chunks = body.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
  return `${chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}0\r\n\r\n`
}

type Framing = 'length' | 'chunked'
const bytesOf = ({ line, headers, body }: Request, framing: Framing = 'length') => {
  const framed = framing === 'chunked' ? ['Transfer-Encoding: chunked'] : body ? [`Content-Length: ${body.length}`] : []
  return (
    [line, 'Host: localhost', auth(), ...headers, ...framed].join('\r\n') +
    `\r\n\r\n${framing === 'chunked' ? chunked(body) : body}`
  )
}

/** Cuts bytes into pieces at the given places. */
const cut = (bytes: Buffer, places: number[]) => {
  const at = [...new Set(places.map((place) => Math.floor(place * bytes.length)))].sort((a, b) => a - b)
  return [0, ...at].map((start, i) => bytes.subarray(start, at[i]))
}
const places = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 })

const framings = fc.constantFrom<Framing[]>('length', 'chunked')
const pipelines = fc.record({
  requests: fc.array(fc.tuple(requests, framings), { minLength: 1, maxLength: 8 }),
  places,
})

const statusOf = (line: string) => (line.startsWith('OPTIONS') ? [204] : line.startsWith('POST /pets') ? [201] : [200])

fuzz('pipelined requests in pieces get their responses in order', 0.05, pipelines, {
  show: (value) => show(pipeline(value)),
  async run(value) {
    const responses = await run(pipeline(value), PATIENCE_MS)
    // HTTP/1.0 closes the connection after its response.
    const last = value.requests.findIndex(([{ line }]) => line.endsWith('1.0'))
    const expected = last < 0 ? value.requests : value.requests.slice(0, last + 1)
    const wrong = expected.findIndex(
      ([{ line }], i) =>
        responses[i]?.headers.get('x-request-id') !== `r${i}` || !statusOf(line).includes(responses[i].status),
    )
    if (wrong >= 0 || responses.length !== expected.length)
      throw new Error(
        `Response ${wrong} is wrong: ${JSON.stringify(responses.map(({ status, headers }) => [status, headers.get('x-request-id')]))}`,
      )
  },
})

const pipeline = ({ requests, places }: { requests: [Request, Framing][]; places: number[] }) =>
  cut(
    encoder(
      requests
        .map(([request, framing], i) =>
          bytesOf(
            {
              ...request,
              headers: [
                `X-Request-Id: r${i}`,
                ...request.headers,
                ...(i === requests.length - 1 ? ['Connection: close'] : []),
              ],
            },
            request.line.endsWith('1.0') ? 'length' : framing,
          ),
        )
        .join(''),
    ),
    places,
  )

// Mutated heads.

const bytes = fc.uint8Array({ maxLength: 40 }).map((value) => Buffer.from(value).toString('latin1'))
const strangeHeaders = fc.oneof(
  bytes,
  fc.constantFrom(
    'Host: other',
    'Host:',
    ': empty',
    'No colon',
    ' Folded: x',
    'X-Long: '.padEnd(20_000, 'x'),
    'Connection: close',
    'Connection: keep-alive, upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13',
    'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
    'Expect: 100-continue',
    'Expect: nothing',
    'Authorization: Bearer x',
    'Authorization: Basic eDp5',
    'X-API-Key: petstore_x',
    'Content-Encoding: gzip',
    'Content-Type: text/plain',
    'Content-Length: 5',
    'Content-Length: -1',
    'Content-Length: 99999999999999999999',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: identity',
    'TE: trailers',
    'Trailer: X-API-Key',
    'Accept: application/graphql-response+json',
    'X-Request-Id: \x80\xff',
  ),
)
const strangeLines = fc.oneof(
  bytes,
  fc
    .tuple(
      fc.constantFrom('GET', 'get', 'POST', 'CONNECT', 'TRACE', 'PRI', 'SOURCE', 'M-SEARCH', 'QUERY', 'G\0T', ''),
      fc.oneof(
        bytes,
        fc.constantFrom(
          '/',
          '*',
          '//',
          '/%00',
          '/pets?limit=%',
          '/../pets',
          'localhost:80',
          'ftp://x/',
          'http://[',
          '/pets#x',
          `/${'x'.repeat(17_000)}`,
          '',
        ),
      ),
      fc.constantFrom('HTTP/1.1', 'HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/1.1.1', 'http/1.1', ''),
    )
    .map((parts) => parts.join(' ')),
)
const edits = fc.array(
  fc.record({
    at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    how: fc.constantFrom<('drop' | 'repeat' | 'replace' | 'insert' | 'cut')[]>(
      'drop',
      'repeat',
      'replace',
      'insert',
      'cut',
    ),
    bytes,
  }),
  { maxLength: 4 },
)
const mutations = fc.record({
  request: requests,
  framing: framings,
  line: fc.option(strangeLines, { nil: undefined, freq: 2 }),
  headers: fc.array(strangeHeaders, { maxLength: 3 }),
  lineEnd: fc.constantFrom('\r\n', '\r\n', '\r\n', '\n', '\r'),
  edits,
  next: fc.boolean(),
  places,
})

const mutated = ({
  request,
  framing,
  line,
  headers,
  lineEnd,
  edits,
  next,
  places,
}: typeof mutations extends fc.Arbitrary<infer Value> ? Value : never) => {
  let text = bytesOf(
    { ...request, line: line ?? request.line, headers: [...request.headers, ...headers] },
    framing,
  ).replaceAll('\r\n', lineEnd)
  for (const { at, how, bytes } of edits) {
    const i = Math.floor(at * text.length)
    const [before, after] = [text.slice(0, i), text.slice(i)]
    if (how === 'drop') text = before + after.slice(bytes.length)
    if (how === 'repeat') text = before + after.slice(0, bytes.length) + after
    if (how === 'replace') text = before + bytes + after.slice(bytes.length)
    if (how === 'insert') text = before + bytes + after
    if (how === 'cut') text = before
  }
  return cut(encoder(next ? text + bytesOf(request) : text), places)
}

fuzz('mutated HTTP gets a documented response or none', 0.06, mutations, {
  show: (value) => show(mutated(value)),
  async run(value) {
    await run(mutated(value))
  },
})

fuzz('random bytes do no harm', 0.02, fc.array(fc.uint8Array({ maxLength: 2_000 }), { maxLength: 4 }), {
  show,
  async run(pieces) {
    await run(pieces)
  },
})

// Request smuggling: a second request in what a proxy may take for the body of the first one.

const ambiguous = (length: number): string[][] => [
  [`Content-Length: ${length}`, 'Transfer-Encoding: chunked'],
  ['Transfer-Encoding: chunked', `Content-Length: ${length}`],
  ['Content-Length: 5', `Content-Length: ${length}`],
  [`Content-Length: 5, ${length}`],
  [`Content-Length: +${length}`],
  [`Content-Length: 0x${length.toString(16)}`],
  [`Content-Length: ${length} 5`],
  [`Content-Length : ${length}`],
  [`Content-Length:\r\n ${length}`],
  ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
  ['Transfer-Encoding: identity, chunked', `Content-Length: ${length}`],
  ['Transfer-Encoding: xchunked', `Content-Length: ${length}`],
  ['Transfer-Encoding: chunked, x', `Content-Length: ${length}`],
  ['Transfer-Encoding : chunked', `Content-Length: ${length}`],
  ['Transfer-Encoding:\x0bchunked', `Content-Length: ${length}`],
  ['Transfer-Encoding: "chunked"', `Content-Length: ${length}`],
  ['X: y\nTransfer-Encoding: chunked', `Content-Length: ${length}`],
  ['X: y\rTransfer-Encoding: chunked', `Content-Length: ${length}`],
  [' Transfer-Encoding: chunked', `Content-Length: ${length}`],
]
const bodies = (inner: string) => [
  `0\r\n\r\n${inner}`,
  `5\r\nhello\r\n0\r\n\r\n${inner}`,
  `0\n\n${inner}`,
  `0;x=\n\r\n\r\n${inner}`,
  `00000000000000000\r\n\r\n${inner}`,
  `5;a\nb\r\nhello\r\n0\r\n\r\n${inner}`,
  `fffffffffffffffff\r\n${inner}`,
  `-1\r\n\r\n${inner}`,
  inner,
]
const smuggled = fc
  .record({
    framing: fc.nat(18),
    body: fc.nat(8),
    request: requests.filter(({ line }) => line.endsWith('1.1')),
    places,
  })
  .map((choice) => () => {
    const inner = bytesOf({ line: 'GET /pets/2 HTTP/1.1', headers: ['X-Request-Id: smuggled'], body: '' })
    const body = bodies(inner)[choice.body] as string
    const framing = ambiguous(body.length)[choice.framing] as string[]
    const head = [choice.request.line, 'Host: localhost', auth(), ...choice.request.headers, ...framing].join('\r\n')
    return cut(encoder(`${head}\r\n\r\n${body}`), choice.places)
  })

fuzz('ambiguous framing never smuggles a second request', 0.02, smuggled, {
  show: (create) => show(create()),
  async run(create) {
    const responses = await run(create())
    if (responses.some(({ headers }) => headers.get('x-request-id') === 'smuggled'))
      throw new Error(`The smuggled request was answered: ${responses.map(({ status }) => status)}`)
  },
})
