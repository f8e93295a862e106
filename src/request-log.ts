import type { HttpRequest } from './http/request.js'
import type { Logger } from './log.js'
import type { Outcome } from './outcome.js'

/**
 * One line for each answered request. It holds nothing that a client chose but the id of the request and of its trace:
 * neither path nor query string, header or body, which could hold a secret.
 */
export function logRequest(log: Logger, { id, trace, method, elapsedMs }: HttpRequest, outcome: Outcome): void {
  const { surface, operationName, caller, decision, refusal, response, isOperational } = outcome
  // Probes come every second.
  log[isOperational ? 'debug' : 'info'](
    {
      requestId: id,
      traceId: trace?.traceId,
      spanId: trace?.spanId,
      surface,
      operation: operationName,
      method,
      key: caller?.key.prefix,
      cost: decision?.cost ?? 0,
      status: response.status,
      refusal,
      durationMs: Math.round(elapsedMs * 100) / 100,
    },
    'request',
  )
}
