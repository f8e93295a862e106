import { SpanStatusCode } from '@opentelemetry/api'
import type { HttpRequest } from './http/request.js'
import { spanMethod } from './http/trace.js'
import type { Outcome } from './outcome.js'

/**
 * Ends the span of an answered request. Like its line in the log it holds nothing that a client chose, and unlike the
 * conventions say, no path: it could hold a secret.
 */
export function endRequestSpan({ trace, head }: HttpRequest, outcome: Outcome): void {
  const span = trace?.span
  // A span that does not end is not exported: probes come every second.
  if (!span?.isRecording() || outcome.isOperational) return
  const { route, surface, operationName, caller, decision, refusal, response } = outcome
  const method = spanMethod(head.method)
  span.updateName([method === '_OTHER' ? 'HTTP' : method, route].filter(Boolean).join(' '))
  // A client can combine root fields in any way.
  const operation = operationName?.includes(',') ? 'several' : operationName
  const isFailed = response.status >= 500
  const attributes = {
    'http.route': route,
    'http.response.status_code': response.status,
    'error.type': isFailed ? (refusal ?? String(response.status)) : undefined,
    'graphql.operation.name': surface === 'graphql' ? operation : undefined,
    'petstore.operation': operation,
    'petstore.plan': caller?.key.plan,
    'petstore.key_prefix': caller?.key.prefix,
    'petstore.cost': decision?.cost ?? 0,
    'petstore.error_code': refusal,
  }
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) span.setAttribute(name, value)
  if (isFailed) span.setStatus({ code: SpanStatusCode.ERROR })
  span.end()
}
