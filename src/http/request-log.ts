import { createLineWriter, type Logger } from '../log.js'
import type { RequestContext } from './context.js'

/** A field, if it has a value: a text in which JSON escapes nothing. */
const field = (name: string, value: string | undefined) => (value === undefined ? '' : `,"${name}":"${value}"`)

/**
 * One line for each answered request. It holds nothing that a client chose but the id of the request and of its trace:
 * neither path nor query string, header or body, which could hold a secret.
 */
export function createRequestLog(log: Logger) {
  const write = createLineWriter(log, 'request')
  return (context: RequestContext, status: number): void => {
    // Probes come every second.
    const level = context.operational ? 'debug' : 'info'
    if (!log.isLevelEnabled(level)) return
    const { id, trace, surface, operationName, method, key, cost, refusal, elapsedMs } = context
    const traced = field('traceId', trace?.traceId) + field('spanId', trace?.spanId)
    const asked = `${field('surface', surface)}${field('operation', operationName)}${field('method', method)}`
    const charged = `${key ? `,"key":${JSON.stringify(key.prefix)}` : ''},"cost":${cost}`
    const answered = `,"status":${status}${field('refusal', refusal)},"durationMs":${Math.round(elapsedMs * 100) / 100}`
    write(level, `"requestId":${JSON.stringify(id)}${traced}${asked}${charged}${answered}`)
  }
}
