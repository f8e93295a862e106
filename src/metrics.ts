import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Admissions } from './admission/index.js'
import type { Database } from './database/index.js'
import type { MemoryRoom } from './http/memory-room.js'
import type { HttpRequest } from './http/request.js'
import type { Outcome } from './outcome.js'
import type { RateLimiter } from './rate-limit/index.js'

export interface MetricsOptions {
  rateLimiter: RateLimiter
  database: Pick<Database, 'pool'>
  admissions: Admissions
  uploads: MemoryRoom
  unread: MemoryRoom
}

/**
 * Metrics for Prometheus. Each value of a label is a time series, so every label has a fixed set of values, which
 * clients cannot extend.
 */
export function createMetrics({ rateLimiter, database, admissions, uploads, unread }: MetricsOptions) {
  const { work, refused } = admissions
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const requests = new Counter({
    name: 'petstore_requests_total',
    help: 'Answered requests.',
    labelNames: ['surface', 'operation', 'plan', 'status'],
    registers,
  })
  const duration = new Histogram({
    name: 'petstore_request_duration_seconds',
    help: 'Time from the head of the request to the complete response.',
    labelNames: ['surface', 'operation'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers,
  })
  const cost = new Counter({
    name: 'petstore_cost_total',
    help: 'Requests of the quota that were charged.',
    labelNames: ['surface', 'plan'],
    registers,
  })
  const refusals = new Counter({
    name: 'petstore_refusals_total',
    help: 'Refused requests, by the code of their first error.',
    labelNames: ['surface', 'plan', 'reason'],
    registers,
  })
  const bans = new Counter({
    name: 'petstore_bans_total',
    help: 'Bans that requests to this gateway started.',
    labelNames: ['plan'],
    registers,
  })
  new Gauge({
    name: 'petstore_limits_degraded',
    help: '1 while Redis is unreachable and this gateway counts alone, otherwise 0.',
    registers,
    collect() {
      this.set(rateLimiter.state === 'degraded' ? 1 : 0)
    },
  })
  new Gauge({
    name: 'petstore_database_connections',
    help: 'Connections of the pool, in use and idle.',
    labelNames: ['state'],
    registers,
    collect() {
      const { inUse, idle } = database.pool()
      this.set({ state: 'in_use' }, inUse)
      this.set({ state: 'idle' }, idle)
    },
  })
  new Gauge({
    name: 'petstore_database_waiting',
    help: 'What waits for a connection of the pool.',
    registers,
    collect() {
      this.set(database.pool().waiting)
    },
  })

  new Counter({
    name: 'petstore_shed_requests_total',
    help: 'Requests refused with 503 because there was no room for them in time.',
    registers,
    collect() {
      this.reset()
      this.inc(work.figures.shed + uploads.figures.givenUp + refused.figures.shed)
    },
  })
  new Gauge({
    name: 'petstore_requests',
    help: 'Requests of keys, by state: uploading (their body), waiting (for room), working.',
    labelNames: ['state'],
    registers,
    collect() {
      this.set({ state: 'uploading' }, uploads.figures.holdings)
      this.set({ state: 'waiting' }, work.figures.waiting + refused.figures.waiting)
      this.set({ state: 'working' }, work.figures.inside + refused.figures.inside)
    },
  })
  new Gauge({
    name: 'petstore_unread_bytes',
    help: 'Bytes of answers that clients have not read yet.',
    registers,
    collect() {
      this.set(unread.figures.bytes)
    },
  })

  /** Counts a request that has its response. */
  function observe({ elapsedMs }: HttpRequest, outcome: Outcome): void {
    if (outcome.isOperational) return
    const { surface, operationName = 'none', caller, decision, refusal } = outcome
    const plan = caller?.key.plan ?? 'none'
    // A client can combine root fields in any way.
    const operation = operationName.includes(',') ? 'several' : operationName
    requests.inc({ surface, operation, plan, status: outcome.response.status })
    duration.observe({ surface, operation }, elapsedMs / 1000)
    if (decision && decision.cost > 0) cost.inc({ surface, plan }, decision.cost)
    if (refusal) refusals.inc({ surface, plan, reason: refusal })
    if (decision?.outcome === 'limited' && decision.bannedUntil) bans.inc({ plan })
  }

  return { registry, observe }
}
