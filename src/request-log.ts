import type { HttpRequest } from './http/request.js'
import { createLineWriter, type Logger } from './log.js'
import type { Outcome } from './outcome.js'

/** A field, if it has a value: a text in which JSON escapes nothing. */
const field = (name: string, value: string | undefined) => (value === undefined ? '' : `,"${name}":"${value}"`)

/**
 * One line for each answered request. It holds nothing that a client chose but the id of the request and of its trace:
 * neither path nor query string, header or body, which could hold a secret.
 */
export function createRequestLog(log: Logger) {
  const write = createLineWriter(log, 'request')
  return ({ id, trace, method, elapsedMs }: HttpRequest, outcome: Outcome): void => {
    const { surface, operationName, caller, decision, refusal, response, isOperational } = outcome
    // Probes come every second.
    const level = isOperational ? 'debug' : 'info'
    if (!log.isLevelEnabled(level)) return
    const traced = field('traceId', trace?.traceId) + field('spanId', trace?.spanId)
    const asked = `${field('surface', surface)}${field('operation', operationName)}${field('method', method)}`
    const key = caller ? `,"key":${JSON.stringify(caller.key.prefix)}` : ''
    const refused = field('refusal', refusal)
    const durationMs = Math.round(elapsedMs * 100) / 100
    write(
      level,
      `"requestId":${JSON.stringify(id)}${traced}${asked}${key},"cost":${decision?.cost ?? 0},"status":${response.status}${refused},"durationMs":${durationMs}`,
    )
  }
}
