import { Response } from '@whatwg-node/fetch'
import type { Registry } from 'prom-client'
import type { Database } from '../database/index.js'
import type { RateLimiter } from '../rate-limit/index.js'
import type { GatewayPlugin } from './context.js'

export interface OperationalOptions {
  database: Pick<Database, 'ping'>
  limits: RateLimiter
  state: { draining: boolean }
  metrics: Registry
}

/** Is it alive, is it ready, how does it do: always at the root, never counted, never marked. */
export function useOperational({ database, limits, state, metrics }: OperationalOptions): GatewayPlugin {
  const json = (body: object, status = 200) =>
    new Response(JSON.stringify(body), {
      status,
      headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
    })

  const endpoints: Record<string, () => Promise<Response>> = {
    '/healthz': async () => json({ status: 'ok' }),
    '/readyz': async () => {
      const reached = await database.ping().then(
        () => true,
        () => false,
      )
      const ready = reached && !state.draining
      const status = state.draining
        ? 'draining'
        : !reached
          ? 'unavailable'
          : limits.state === 'degraded'
            ? 'degraded'
            : 'ok'
      return json({ status, database: reached ? 'ok' : 'away', limits: limits.state }, ready ? 200 : 503)
    },
    '/metrics': async () =>
      new Response(await metrics.metrics(), {
        headers: { 'content-type': metrics.contentType, 'cache-control': 'no-store' },
      }),
  }

  return {
    async onRequest({ url, serverContext: { exchange }, endResponse }) {
      const endpoint =
        exchange.method === 'GET' && Object.hasOwn(endpoints, url.pathname) ? endpoints[url.pathname] : undefined
      if (!endpoint) return
      exchange.operational = true
      endResponse(await endpoint())
    },
  }
}
