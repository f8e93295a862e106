import { type Aggregator, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { ERROR_KINDS, errorKind } from '../../engines/postgres/index.js'
import type { RateLimiter } from '../../engines/rate-limit/index.js'
import { commit, version } from '../../project.js'
import type { Admissions } from '../admission/index.js'
import type { Database } from '../database/index.js'
import type { MemoryBudget } from '../http/index.js'

export interface MetricsOptions {
  rateLimiter: RateLimiter
  database: Pick<Database, 'pool' | 'observeStatements'>
  admissions: Admissions
  uploads: MemoryBudget
  unread: MemoryBudget
  /** How many processes share the port. */
  processes: number
}

/** Errors of statements to which PostgreSQL has said nothing; all others are answers. */
const UNANSWERED = new Set<string>(['unreachable', 'full', 'timeout'])

/**
 * Metrics for Prometheus. Each value of a label is a time series, so every label has a fixed set of values, which
 * clients cannot extend.
 */
export function createMetrics({ rateLimiter, database, admissions, uploads, unread, processes }: MetricsOptions) {
  const { work } = admissions
  const registry = new Registry()
  const registers = [registry]
  /** A figure that is read when metrics are asked for. */
  const gauge = (
    name: string,
    help: string,
    read: (gauge: Gauge) => void,
    { labelNames = [], aggregator = 'sum' }: { labelNames?: string[]; aggregator?: Aggregator } = {},
  ) =>
    new Gauge({
      name,
      help,
      labelNames,
      aggregator,
      registers,
      collect() {
        read(this)
      },
    })
  collectDefaultMetrics({ register: registry })
  const build = { version, commit, node: process.versions.node }
  gauge('petstore_build_info', 'Always 1: what runs.', (figure) => figure.set(build, 1), {
    labelNames: Object.keys(build),
    aggregator: 'max',
  })
  gauge('petstore_processes', 'Processes that answer requests here.', (figure) => figure.set(1))
  gauge('petstore_processes_wanted', 'Processes that GATEWAYS asks for.', (figure) => figure.set(processes), {
    aggregator: 'max',
  })
  const degraded = '1 while Redis is unreachable and this gateway counts alone, otherwise 0.'
  gauge('petstore_limits_degraded', degraded, (figure) => figure.set(rateLimiter.state === 'degraded' ? 1 : 0), {
    aggregator: 'max',
  })
  const redis = new Histogram({
    name: 'petstore_redis_duration_seconds',
    help: 'Time until Redis answered a command, or had failed to.',
    labelNames: ['result'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25],
    registers,
  })
  rateLimiter.observeCommands?.((seconds, result) => redis.observe({ result }, seconds))
  const statements = new Histogram({
    name: 'petstore_database_duration_seconds',
    help: 'Time until the database answered a statement, or had failed to.',
    labelNames: ['operation', 'result'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers,
  })
  for (const operation of ['read', 'write', 'commit'])
    for (const result of ['answered', 'failed']) statements.zero({ operation, result })
  statements.zero({ operation: 'connect', result: 'failed' })
  const databaseErrors = new Counter({
    name: 'petstore_database_errors_total',
    help: 'Statements and connections that ended with an error, by its kind.',
    labelNames: ['kind'],
    registers,
  })
  for (const kind of ERROR_KINDS) databaseErrors.inc({ kind }, 0)
  database.observeStatements((operation, seconds, error) => {
    const kind = error === undefined ? undefined : errorKind(error)
    if (kind) databaseErrors.inc({ kind })
    statements.observe({ operation, result: kind && UNANSWERED.has(kind) ? 'failed' : 'answered' }, seconds)
  })
  const connections = (figure: Gauge) => {
    const { inUse, idle } = database.pool()
    figure.set({ state: 'in_use' }, inUse)
    figure.set({ state: 'idle' }, idle)
  }
  gauge('petstore_database_connections', 'Connections of the pool, in use and idle.', connections, {
    labelNames: ['state'],
  })
  const waiting = 'What waits for a connection of the pool.'
  gauge('petstore_database_waiting', waiting, (figure) => figure.set(database.pool().waiting))

  new Counter({
    name: 'petstore_shed_requests_total',
    help: 'Requests refused with 503 because of overload.',
    registers,
    collect() {
      this.reset()
      this.inc(work.figures.rejected + uploads.figures.givenUp)
    },
  })
  const requests = (figure: Gauge) => {
    figure.set({ state: 'uploading' }, uploads.figures.holdings)
    figure.set({ state: 'waiting' }, work.figures.waiting)
    figure.set({ state: 'working' }, work.figures.inside)
  }
  const states = 'Requests of keys, by state: uploading (their body), waiting (for admission), working.'
  gauge('petstore_requests', states, requests, { labelNames: ['state'] })
  const unreadBytes = 'Bytes of answers that clients have not read yet.'
  gauge('petstore_unread_bytes', unreadBytes, (figure) => figure.set(unread.figures.bytes))

  return registry
}
