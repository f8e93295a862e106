import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { GatewayPlugin } from './http/context.js'
import type { Logger } from './log.js'
import type { RateLimiter } from './rate-limit/index.js'

/** What Prometheus is told, and the log line of each request (level debug). */
export function createMetrics(limits: RateLimiter) {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const labels = ['surface', 'operation', 'method', 'status'] as const
  const requests = new Counter({
    name: 'petstore_requests_total',
    help: 'Requests answered.',
    labelNames: labels,
    registers: [registry],
  })
  const duration = new Histogram({
    name: 'petstore_request_duration_seconds',
    help: 'Time from the first byte understood to the answer made.',
    labelNames: ['surface'] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [registry],
  })
  const verdicts = new Counter({
    name: 'petstore_rate_limit_verdicts_total',
    help: 'Decisions of the limits: allowed, limited, banned.',
    labelNames: ['outcome'] as const,
    registers: [registry],
  })
  new Gauge({
    name: 'petstore_limits_degraded',
    help: '1 while Redis is configured but away, and this gateway counts alone.',
    registers: [registry],
    collect() {
      this.set(limits.state === 'degraded' ? 1 : 0)
    },
  })

  const plugin = (log: Logger): GatewayPlugin => ({
    onResponse({ response: { status }, serverContext: { exchange } }) {
      if (exchange.operational) return
      const { id, method, path, operation, key, verdict, started } = exchange
      const surface = path === '/graphql' ? 'graphql' : operation ? 'rest' : 'other'
      const ms = performance.now() - started
      requests.inc({ surface, operation: operation?.name ?? '', method: known.has(method) ? method : 'other', status })
      duration.observe({ surface }, ms / 1000)
      if (verdict) verdicts.inc({ outcome: verdict.outcome })
      if (log.isLevelEnabled('debug'))
        log.debug({ requestId: id, method, path, status, ms: Math.round(ms * 10) / 10, key: key?.prefix }, 'request')
    },
  })

  return { registry, plugin }
}

// A client chooses its method: an unknown one must not make a series of its own.
const known = new Set(['GET', 'POST', 'PATCH', 'DELETE', 'OPTIONS', 'PUT'])
