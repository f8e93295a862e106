import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

// A collector of OpenTelemetry: receives spans by OTLP over HTTP, as JSON and as Protocol Buffers.

export interface CollectedSpan {
  traceId: string
  spanId: string
  parentSpanId: string
  traceState: string
  name: string
  kind: number
  attributes: Record<string, unknown>
  links: string[]
  status: number
  startedAt: bigint
}

type Json = { [name: string]: Json } & Json[] & string

const plain = ({ stringValue, intValue, boolValue, doubleValue }: Json) =>
  stringValue ?? (intValue === undefined ? (boolValue ?? doubleValue) : Number(intValue))

const spanOfJson = (span: Json): CollectedSpan => ({
  traceId: span.traceId as Json,
  spanId: span.spanId as Json,
  parentSpanId: (span.parentSpanId ?? '') as string,
  traceState: (span.traceState ?? '') as string,
  name: span.name as Json,
  kind: Number(span.kind),
  attributes: Object.fromEntries((span.attributes ?? []).map(({ key, value }: Json) => [key, plain(value as Json)])),
  links: (span.links ?? []).map(({ spanId }: Json) => spanId as string),
  status: Number(span.status?.code ?? 0),
  startedAt: BigInt(span.startTimeUnixNano as string),
})

/** The fields of a message of Protocol Buffers: bytes by number. Numbers of fixed or variable length are left out. */
function fieldsOf(message: Buffer): Map<number, Buffer[]> {
  const fields = new Map<number, Buffer[]>()
  let at = 0
  const varint = () => {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = message[at++] as number
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
  }
  while (at < message.length) {
    const tag = varint()
    if (tag % 8 === 0) varint()
    else if (tag % 8 === 1) at += 8
    else if (tag % 8 === 5) at += 4
    else {
      const length = varint()
      const number = Math.floor(tag / 8)
      fields.set(number, [...(fields.get(number) ?? []), message.subarray(at, at + length)])
      at += length
    }
  }
  return fields
}

/** All messages that a path of field numbers leads to. */
const messages = (message: Buffer, ...[number, ...rest]: number[]): Buffer[] =>
  number === undefined ? [message] : (fieldsOf(message).get(number) ?? []).flatMap((found) => messages(found, ...rest))

/** Ids and the name, by the numbers of opentelemetry/proto/trace/v1/trace.proto. */
function spanOfProtobuf(span: Buffer) {
  const [traceId, spanId, parentSpanId, name] = [1, 2, 4, 5].map((number) => messages(span, number)[0])
  const hex = (bytes?: Buffer) => bytes?.toString('hex') ?? ''
  return { traceId: hex(traceId), spanId: hex(spanId), parentSpanId: hex(parentSpanId), name: String(name) }
}

interface Exported {
  type: string | undefined
  headers: NodeJS.Dict<string | string[]>
  bytes: Buffer
}

/**
 * Starts a collector.
 *
 * @param onCleanup gets the function that ends it; default: it ends with the test
 */
export async function startCollector(port = 0, onCleanup: (end: () => void) => void = onTestFinished) {
  const requests: Exported[] = []
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk)
    requests.push({ type: req.headers['content-type'], headers: req.headers, bytes: Buffer.concat(chunks) })
    res
      .writeHead(200, { 'content-type': req.headers['content-type'] })
      .end(/json/.test(`${req.headers['content-type']}`) ? '{}' : '')
  })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  onCleanup(() => {
    server.closeAllConnections()
    server.close()
  })
  const json = () =>
    requests.filter(({ type }) => type === 'application/json').map(({ bytes }) => JSON.parse(`${bytes}`))
  return {
    requests,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** The attributes of the process that has sent spans. */
    resource: (): Record<string, unknown> =>
      Object.fromEntries(
        json()[0].resourceSpans[0].resource.attributes.map(({ key, value }: Json) => [key, plain(value as Json)]),
      ),
    /** The spans that were sent as JSON. */
    spans: (): CollectedSpan[] =>
      json()
        .flatMap(({ resourceSpans }) => resourceSpans)
        .flatMap(({ scopeSpans }) => scopeSpans)
        .flatMap(({ spans }) => spans.map(spanOfJson)),
    /** The spans that were sent as Protocol Buffers. */
    decoded: () =>
      requests
        .filter(({ type }) => type === 'application/x-protobuf')
        .flatMap(({ bytes }) => messages(bytes, 1, 2, 2).map(spanOfProtobuf)),
  }
}
