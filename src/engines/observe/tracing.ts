import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import {
  type Attributes,
  context,
  createContextKey,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { ApiError } from '../../../schema/kit/errors.js'
import { version } from '../../project.js'

// Spans, by the API of OpenTelemetry alone: without an SDK (sdk.ts) no request has a span, and nothing here costs
// more than asking for one. No span gets a value of a client: neither a message of an error nor a parameter.

const tracer = trace.getTracer('petstore-gateway', version)

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

/** Runs what no request waits for. It has no spans, whichever request it began in. */
export const outsideTraces = <T>(run: () => T): T => context.with(ROOT_CONTEXT, run)

export const traceparent = ({ traceId, spanId, flags }: Trace) => `00-${traceId}-${spanId}-${flags}`

/** What a span says when it begins. */
export interface Description {
  name: string
  kind?: SpanKind
  attributes?: Attributes
}

const LINKED = createContextKey('the spans of other requests for which this one asks, too')

/** Whether a request with this outcome failed because of the service. */
const isFailure = (error: unknown) => !(error instanceof ApiError) || error.status >= 500

/** A code of ours, of PostgreSQL or of Node, or the name of a class: a client can choose none of them. */
function typeOf(error: unknown): string {
  const { code, name = 'Error' } = error as { code?: unknown; name?: string }
  return typeof code === 'string' ? code : name
}

function end(spans: Span[], failure?: { error: unknown }): void {
  for (const span of spans) {
    if (failure) span.setAttribute('error.type', typeOf(failure.error))
    if (failure && isFailure(failure.error)) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end()
  }
}

/** Runs a step of a request in a span, which ends when the step does. What runs after its request ended has none. */
export function inSpan<T>(step: string | (() => Description), run: () => T): T {
  const active = context.active()
  if (!trace.getSpan(active)?.isRecording()) return run()
  const { name, ...options }: Description = typeof step === 'string' ? { name: step } : step()
  const span = tracer.startSpan(name, options, active)
  const others = ((active.getValue(LINKED) ?? []) as Span[]).map((linked) => {
    const links = [{ context: span.spanContext() }]
    const other = tracer.startSpan(name, { ...options, links }, trace.setSpan(active, linked))
    span.addLink({ context: other.spanContext() })
    return other
  })
  const spans = [span, ...others]
  try {
    const result = context.with(trace.setSpan(active.deleteValue(LINKED), span), run)
    if (!(result instanceof Promise)) end(spans)
    else
      result.then(
        () => end(spans),
        (error) => end(spans, { error }),
      )
    return result
  } catch (error) {
    end(spans, { error })
    throw error
  }
}

/** Says more of the step that runs. */
export const addToSpan = (attribute: string, value: string) => trace.getActiveSpan()?.setAttribute(attribute, value)

/** The spans that ask for something together: what is done for them has a span in each, and these name each other. */
export class LinkedSpans {
  readonly #spans = new Set<Span>()

  /** Adds the span of the caller. */
  add(): void {
    const span = trace.getActiveSpan()
    if (span?.isRecording()) this.#spans.add(span)
  }

  run<T>(ask: () => T): T {
    const [first, ...others] = this.#spans
    if (!first) return ask()
    return context.with(trace.setSpan(context.active(), first).setValue(LINKED, others), ask)
  }
}

/** The span of a statement, named by what it does to which tables. */
export function describeStatement(verb: string, tables: string[]): Description {
  const name = [verb, ...tables].join(' ')
  const attributes = {
    'db.system.name': 'postgresql',
    'db.operation.name': verb,
    'db.query.summary': name,
    ...(tables.length === 1 && { 'db.collection.name': tables[0] }),
  }
  return { name, kind: SpanKind.CLIENT, attributes }
}
