import type { Registry } from 'prom-client'
import { type Member, totals } from '../../engines/cluster/index.js'
import type { RateLimiter } from '../../engines/rate-limit/index.js'
import type { Database } from '../database/index.js'
import { type HttpRequest, type HttpResponse, jsonResponse, methodNotAllowed } from '../http/index.js'

const NO_STORE = { 'cache-control': 'no-store' }

/** From the worst to the best. */
const DATABASES = ['unreachable', 'full', 'read-only', 'ok'] as const

/** What a process sees of its database and of Redis. */
interface View {
  database: (typeof DATABASES)[number]
  limits: RateLimiter['state']
}

/**
 * Liveness, readiness and metrics of all processes that share the port: always at the root, not counted, and without rate
 * limit headers.
 */
export function createHealth(
  { ping }: Pick<Database, 'ping'>,
  rateLimiter: RateLimiter,
  metrics: Registry,
  member: Member,
  state: { draining: boolean },
) {
  member.answer('health', () => true)
  member.answer('metrics', () => metrics.getMetricsAsJSON())
  member.answer('readiness', async (): Promise<View> => {
    const database = await ping().catch(() => 'unreachable' as const)
    return { database, limits: rateLimiter.state }
  })

  async function liveness() {
    const isWhole = (await member.ask('health')).every(Boolean)
    return jsonResponse(`{"status":"${isWhole ? 'ok' : 'unavailable'}"}`, isWhole ? 200 : 503, NO_STORE)
  }

  async function readiness() {
    const views = (await member.ask('readiness')) as (View | undefined)[]
    const database = DATABASES.find((one) => views.some((view) => view?.database === one))
    const limits = views.find((view) => view?.limits === 'degraded')?.limits ?? rateLimiter.state
    const isServed = database !== 'unreachable' && views.every(Boolean)
    const isDegraded = limits === 'degraded' || database === 'full'
    const served = database === 'read-only' ? database : isDegraded ? 'degraded' : 'ok'
    const status = state.draining ? 'draining' : isServed ? served : 'unavailable'
    return jsonResponse(JSON.stringify({ status, database, limits }), isServed && !state.draining ? 200 : 503, NO_STORE)
  }

  async function exposition() {
    const { contentType } = metrics
    const body = await totals(await member.ask('metrics')).metrics()
    return { status: 200, headers: { 'content-type': contentType, ...NO_STORE }, body }
  }

  const endpoints = new Map<string, () => Promise<HttpResponse>>([
    ['/healthz', liveness],
    ['/readyz', readiness],
    ['/metrics', exposition],
  ])

  const refuse = async (method?: string): Promise<never> => {
    throw methodNotAllowed(method, 'GET, HEAD')
  }

  return ({ method, pathname, head }: HttpRequest): Promise<HttpResponse> | undefined => {
    const respond = endpoints.get(pathname)
    return respond && (method === 'GET' ? respond() : refuse(head.method))
  }
}
