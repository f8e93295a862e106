import { SpanStatusCode } from '@opentelemetry/api'
import { Counter, Histogram, type Registry } from 'prom-client'
import { type Logger, spanMethod } from '../../engines/observe/index.js'
import type { HttpRequest } from '../http/index.js'
import type { Exchange } from '../reply/index.js'

/** What a request asked for. */
export interface Target {
  surface: 'rest' | 'graphql' | 'other'
  /** The template of its path, such as `/pets/{id}`; undefined for an unknown path. */
  template: string | undefined
  operationName: string | undefined
}

/**
 * Tells the log, the metrics and the trace of each answered request. They hold nothing that a client chose but the ids of
 * the request and of its trace: no path, query string, header or body, which could hold a secret.
 */
export function createRequestObserver(log: Logger, registry: Registry) {
  const counter = (name: string, help: string, labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers: [registry] })
  const requests = counter('petstore_requests_total', 'Answered requests.', ['surface', 'operation', 'plan', 'status'])
  const duration = new Histogram({
    name: 'petstore_request_duration_seconds',
    help: 'Time from the head of the request until its response is ready to be sent.',
    labelNames: ['surface', 'operation'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [registry],
  })
  const charged = counter('petstore_cost_total', 'Requests of the quota that were charged.', ['surface', 'plan'])
  const refused = 'Refused requests, by the code of their first error.'
  const refusals = counter('petstore_refusals_total', refused, ['surface', 'plan', 'reason'])
  const bans = counter('petstore_bans_total', 'Bans that requests to this gateway started.', ['plan'])

  return ({ id, trace, head, method, elapsedMs }: HttpRequest, exchange: Exchange, target: Target): void => {
    const { response, caller, decision, refusal, isOperational } = exchange
    const { surface, template, operationName } = target
    const { status } = response
    const { plan, prefix } = caller?.key ?? {}
    const cost = decision?.cost ?? 0
    // A client can combine root fields in any way: no label has their names.
    const operation = operationName?.includes(',') ? 'several' : operationName

    // Probes come every second.
    log[isOperational ? 'debug' : 'info'](
      {
        requestId: id,
        traceId: trace?.traceId,
        spanId: trace?.spanId,
        surface,
        operation: operationName,
        method,
        key: prefix,
        cost,
        status,
        refusal,
        durationMs: Math.round(elapsedMs * 100) / 100,
      },
      'request',
    )
    if (isOperational) return

    const [named, ofPlan] = [operation ?? 'none', plan ?? 'none']
    requests.inc({ surface, operation: named, plan: ofPlan, status })
    duration.observe({ surface, operation: named }, elapsedMs / 1000)
    if (cost > 0) charged.inc({ surface, plan: ofPlan }, cost)
    if (refusal) refusals.inc({ surface, plan: ofPlan, reason: refusal })
    if (decision?.outcome === 'limited' && decision.bannedUntil) bans.inc({ plan: ofPlan })

    // The span of a probe does not end, so that it is not exported.
    if (!trace?.span?.isRecording()) return
    const verb = spanMethod(head.method)
    const isFailed = status >= 500
    trace.span.updateName([verb === '_OTHER' ? 'HTTP' : verb, template].filter(Boolean).join(' '))
    if (isFailed) trace.span.setStatus({ code: SpanStatusCode.ERROR })
    // Those that are undefined are left out.
    trace.span.setAttributes({
      'http.route': template,
      'http.response.status_code': status,
      'error.type': isFailed ? (refusal ?? String(status)) : undefined,
      'graphql.operation.name': surface === 'graphql' ? operation : undefined,
      'petstore.operation': operation,
      'petstore.plan': plan,
      'petstore.key_prefix': prefix,
      'petstore.cost': cost,
      'petstore.error_code': refusal,
    })
    trace.span.end()
  }
}
