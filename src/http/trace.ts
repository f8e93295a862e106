import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { context, propagation, ROOT_CONTEXT, type Span, SpanKind, trace } from '@opentelemetry/api'
import { tracer } from '../observe/tracing.js'

/** The trace that a request belongs to (W3C Trace Context), and the gateway's own span in it. */
export interface Trace {
  traceId: string
  spanId: string
  /** In hexadecimal: bit 0 says that the trace is sampled, bit 1 that its id is random. */
  flags: string
  /** That span, if an SDK is there to record it. */
  span?: Span
}

/** Version 00 has four fields; later versions may add more. Version ff and ids of zeros are invalid. */
const format = /^(?!ff|00.{53}-)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-([\da-f]{2})(?:-.*)?$/

/** The trace of a `traceparent`; undefined if it is absent or invalid, which is no error: the request has no trace. */
export function readTrace(traceparent: string | string[] | undefined): Trace | undefined {
  if (typeof traceparent !== 'string') return undefined
  const [, traceId, flags] = format.exec(traceparent) ?? []
  if (!traceId || !flags) return undefined
  // Unknown flags must not be passed on.
  const known = (Number.parseInt(flags, 16) & 0b11).toString().padStart(2, '0')
  return { traceId, spanId: randomBytes(8).toString('hex'), flags: known }
}

/** The methods that the semantic conventions of OpenTelemetry know. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE'])

/** The method as spans show it. */
export const spanMethod = (method = '') => (METHODS.has(method) ? method : '_OTHER')

/** Begins the span of a request, in the trace that its headers name; without an SDK, reads that trace. */
export function openTrace(method: string | undefined, headers: IncomingHttpHeaders): Trace | undefined {
  const attributes = { 'http.request.method': spanMethod(method) }
  // Not in the active context: on a connection that is kept alive it can be that of the request before.
  const parent = propagation.extract(ROOT_CONTEXT, headers)
  const span = tracer.startSpan('HTTP', { kind: SpanKind.SERVER, attributes }, parent)
  const { traceId, spanId, traceFlags } = span.spanContext()
  if (!trace.isSpanContextValid(span.spanContext())) return readTrace(headers.traceparent)
  return { traceId, spanId, flags: traceFlags.toString(16).padStart(2, '0'), span }
}

/** Runs the steps of a request. Their spans are below its own. */
export const inTrace = <T>(opened: Trace | undefined, run: () => T): T =>
  opened?.span ? context.with(trace.setSpan(ROOT_CONTEXT, opened.span), run) : run()

export const traceparent = ({ traceId, spanId, flags }: Trace) => `00-${traceId}-${spanId}-${flags}`
