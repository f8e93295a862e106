import type { Registry } from 'prom-client'
import type { RateLimiter } from '../../engines/rate-limit/index.js'
import type { Database } from '../database/index.js'
import { type HttpRequest, type HttpResponse, jsonResponse } from '../http/index.js'

const NO_STORE = { 'cache-control': 'no-store' }

/** Liveness, readiness and metrics: always at the root, not counted, and without rate limit headers. */
export function createHealth(
  { ping }: Pick<Database, 'ping'>,
  rateLimiter: RateLimiter,
  metrics: Registry,
  state: { draining: boolean },
) {
  async function readiness() {
    const database = await ping().catch(() => 'unreachable' as const)
    const limits = rateLimiter.state
    const reached = database !== 'unreachable'
    const isDegraded = limits === 'degraded' || database === 'full'
    const served = database === 'read-only' ? database : isDegraded ? 'degraded' : 'ok'
    const status = state.draining ? 'draining' : reached ? served : 'unavailable'
    const body = { status, database, limits }
    return jsonResponse(JSON.stringify(body), reached && !state.draining ? 200 : 503, NO_STORE)
  }

  async function exposition() {
    const headers = { 'content-type': metrics.contentType, ...NO_STORE }
    return { status: 200, headers, body: await metrics.metrics() }
  }

  const endpoints = new Map<string, () => Promise<HttpResponse>>([
    ['/healthz', async () => jsonResponse('{"status":"ok"}', 200, NO_STORE)],
    ['/readyz', readiness],
    ['/metrics', exposition],
  ])

  return ({ method, pathname }: HttpRequest): Promise<HttpResponse> | undefined =>
    method === 'GET' ? endpoints.get(pathname)?.() : undefined
}
