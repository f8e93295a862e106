import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Admission } from './http/admission.js'
import type { RequestContext } from './http/context.js'
import type { UnreadAnswers } from './http/unread.js'
import type { Logger } from './log.js'
import type { RateLimiter } from './rate-limit/index.js'

// Clients choose the method, so unknown ones share a label: each label value is a time series.
const METHODS = new Set(['GET', 'POST', 'PATCH', 'DELETE', 'OPTIONS', 'PUT'])

export interface MetricsOptions {
  rateLimiter: RateLimiter
  admissions: Record<'work' | 'uploads' | 'refusals', Admission>
  unread: UnreadAnswers
  log: Logger
}

/** Metrics for Prometheus, and the log line of each request (level debug). */
export function createMetrics({ rateLimiter, admissions, unread, log }: MetricsOptions) {
  const { work, uploads, refusals } = admissions
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const labels = ['surface', 'operation', 'method', 'status'] as const
  const requests = new Counter({
    name: 'petstore_requests_total',
    help: 'Answered requests.',
    labelNames: labels,
    registers: [registry],
  })
  const duration = new Histogram({
    name: 'petstore_request_duration_seconds',
    help: 'Time from the head of the request to the complete response.',
    labelNames: ['surface'] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [registry],
  })
  const decisions = new Counter({
    name: 'petstore_rate_limit_decisions_total',
    help: 'Decisions of the rate limiter, by outcome: allowed, limited, banned.',
    labelNames: ['outcome'] as const,
    registers: [registry],
  })
  new Gauge({
    name: 'petstore_limits_degraded',
    help: '1 while Redis is unreachable and this gateway counts alone, otherwise 0.',
    registers: [registry],
    collect() {
      this.set(rateLimiter.state === 'degraded' ? 1 : 0)
    },
  })

  new Counter({
    name: 'petstore_shed_requests_total',
    help: 'Requests refused with 503 because there was no room for them in time.',
    registers: [registry],
    collect() {
      this.reset()
      this.inc(work.figures.shed + uploads.figures.shed + refusals.figures.shed)
    },
  })
  new Gauge({
    name: 'petstore_requests',
    help: 'Requests of keys, by state: uploading (their body), waiting (for room), working.',
    labelNames: ['state'] as const,
    registers: [registry],
    collect() {
      this.set({ state: 'uploading' }, uploads.figures.inside)
      this.set({ state: 'waiting' }, uploads.figures.waiting + work.figures.waiting + refusals.figures.waiting)
      this.set({ state: 'working' }, work.figures.inside + refusals.figures.inside)
    },
  })
  new Gauge({
    name: 'petstore_unread_bytes',
    help: 'Bytes of answers that clients have not read yet.',
    registers: [registry],
    collect() {
      this.set(unread.bytes)
    },
  })

  /** Counts an answered request. */
  function observe(context: RequestContext, status: number): void {
    if (context.operational) return
    const { id, method, path, operation, key, rateLimit, startedAt } = context
    const surface = path === '/graphql' ? 'graphql' : operation ? 'rest' : 'other'
    const ms = performance.now() - startedAt
    requests.inc({ surface, operation: operation?.name ?? '', method: METHODS.has(method) ? method : 'other', status })
    duration.observe({ surface }, ms / 1000)
    if (rateLimit) decisions.inc({ outcome: rateLimit.outcome })
    if (log.isLevelEnabled('debug'))
      log.debug({ requestId: id, method, path, status, ms: Math.round(ms * 10) / 10, key: key?.prefix }, 'request')
  }

  return { registry, observe }
}
