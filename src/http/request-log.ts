import type { Logger } from '../log.js'
import type { RequestContext } from './context.js'

/**
 * One line for each answered request. It holds nothing that a client chose but the id of the request and of its trace:
 * neither path nor query string, header or body, which could hold a secret.
 */
export const createRequestLog = (log: Logger) =>
  function logRequest(context: RequestContext, status: number): void {
    // Probes come every second and say nothing.
    const level = context.operational ? 'debug' : 'info'
    if (!log.isLevelEnabled(level)) return
    const { id, trace, surface, operationName, method, key, cost, refusal, elapsedMs } = context
    log[level](
      {
        requestId: id,
        traceId: trace?.traceId,
        spanId: trace?.spanId,
        surface,
        operation: operationName,
        method,
        key: key?.prefix,
        cost,
        status,
        refusal,
        durationMs: Math.round(elapsedMs * 100) / 100,
      },
      'request',
    )
  }
