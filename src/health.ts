import type { Registry } from 'prom-client'
import type { Database } from './database/index.js'
import type { HttpRequest } from './http/request.js'
import { type HttpResponse, jsonResponse } from './http/response.js'
import type { RateLimiter } from './rate-limit/index.js'

export interface HealthOptions {
  database: Pick<Database, 'ping'>
  rateLimiter: RateLimiter
  state: { draining: boolean }
  metrics: Registry
}

const NO_STORE = { 'cache-control': 'no-store' }

/** Liveness, readiness and metrics: always at the root, not counted, and without rate limit headers. */
export function createHealth({ database, rateLimiter, state, metrics }: HealthOptions) {
  async function readiness() {
    const reached = await database.ping().then(
      () => true,
      () => false,
    )
    const degraded = rateLimiter.state === 'degraded'
    const status = state.draining ? 'draining' : !reached ? 'unavailable' : degraded ? 'degraded' : 'ok'
    const body = { status, database: reached ? 'ok' : 'unreachable', limits: rateLimiter.state }
    return jsonResponse(JSON.stringify(body), reached && !state.draining ? 200 : 503, NO_STORE)
  }

  const endpoints = new Map<string, () => Promise<HttpResponse>>([
    ['/healthz', async () => jsonResponse('{"status":"ok"}', 200, NO_STORE)],
    ['/readyz', readiness],
    [
      '/metrics',
      async () => ({
        status: 200,
        headers: { 'content-type': metrics.contentType, ...NO_STORE },
        body: await metrics.metrics(),
      }),
    ],
  ])

  return ({ method, pathname }: HttpRequest): Promise<HttpResponse> | undefined =>
    method === 'GET' ? endpoints.get(pathname)?.() : undefined
}
