import {
  type Attributes,
  context,
  createContextKey,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { ApiError } from '../../schema/errors.js'
import { version } from '../project.js'

// Spans, by the API of OpenTelemetry alone: without an SDK (sdk.ts) no request has a span, and nothing here costs
// more than asking for one. No span gets a value of a client: neither a message of an error nor a parameter.

export const tracer = trace.getTracer('petstore-gateway', version)

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
