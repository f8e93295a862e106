import { context, DiagLogLevel, diag, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from '@opentelemetry/resources'
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from '@opentelemetry/sdk-trace-base'
import { version } from '../../project.js'
import type { Logger } from './log.js'

// The SDK of OpenTelemetry. It reads the variables OTEL_* itself; only serve.ts loads it, if they ask for spans.

const REPEAT_MS = 60_000

/** If every address of a name refuses, Node says so without a message. */
const reasonOf = (error: Error & { code?: unknown }) => error.message || String(error.code)

/**
 * Says once that the collector takes no spans, and once that it takes them again. What the SDK itself complains of is a
 * warning, too, but the same thing at most once in a minute, and not that spans are lost while nothing takes them.
 */
function createReports(log: Logger) {
  const saidAt = new Map<string, number>()
  let isFailing = false
  return {
    complain(message: string): void {
      const kind = message.replace(/\d+/g, '#')
      if (isFailing || Date.now() - (saidAt.get(kind) ?? 0) < REPEAT_MS) return
      saidAt.set(kind, Date.now())
      log.warn(`OpenTelemetry: ${message}`)
    },
    exported(error: Error | undefined): void {
      if (error && !isFailing) log.warn({ reason: reasonOf(error) }, 'the collector takes no spans; they are lost')
      if (!error && isFailing) log.info('the collector takes spans again')
      isFailing = error !== undefined
    },
  }
}

export interface ExportOptions {
  protocol: 'http/protobuf' | 'http/json'
  /** Whether a request continues the trace that its headers name (W3C Trace Context). */
  continuesTraces: boolean
}

/** Exports spans from now on. Returns what exports the last ones and ends it. */
export function openTelemetry({ protocol, continuesTraces }: ExportOptions, log: Logger): () => Promise<void> {
  const { complain, exported } = createReports(log)
  const ignore = () => {}
  diag.setLogger(
    { error: complain, warn: complain, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  const exporter = protocol === 'http/json' ? new JsonExporter() : new ProtobufExporter()
  const reporting: SpanExporter = {
    export: (spans, done) =>
      exporter.export(spans, ({ code, error }) => {
        exported(code === ExportResultCode.SUCCESS ? undefined : (error ?? new Error('no reason')))
        done({ code: ExportResultCode.SUCCESS })
      }),
    shutdown: () => exporter.shutdown(),
  }
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'petstore', 'service.version': version }))
      .merge(detectResources({ detectors: [serviceInstanceIdDetector, envDetector] })),
    spanProcessors: [new BatchSpanProcessor(reporting)],
  })
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  if (continuesTraces) propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  trace.setGlobalTracerProvider(provider)
  return () => provider.shutdown()
}
