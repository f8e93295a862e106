import { createServerAdapter } from '@whatwg-node/server'
import type { Context } from '../schema/builder.js'
import { ApiError } from '../schema/errors.js'
import { schema } from '../schema/index.js'
import { addressClient, KeyRing, windowSeconds } from './auth/api-keys.js'
import { Admission } from './auth/authenticate.js'
import type { Database } from './database/index.js'
import { useDocuments } from './docs/index.js'
import { useGraphql } from './graphql/index.js'
import { type Exchange, type GatewayPlugin, type ServerContext, useExchange } from './http/context.js'
import { errorResponse, toApiError } from './http/errors.js'
import { useCors, useDeprecation, useRateLimitHeaders } from './http/headers.js'
import { useOperational } from './http/health.js'
import type { Logger } from './log.js'
import { createMetrics } from './metrics.js'
import { quotaOf, type RateLimiter } from './rate-limit/index.js'
import { useRest } from './rest/index.js'
import type { Config } from './settings.js'

export interface Dependencies {
  config: Pick<Config, 'BASE_URL' | 'TRUST_PROXY' | 'CORS_ORIGINS' | 'MAX_BODY_BYTES' | 'PET_BY_ID_SUNSET'>
  database: Pick<Database, 'prisma' | 'ping'>
  limits: RateLimiter
  log: Logger
  /** How long a key's row is believed (see KeyRing). */
  keyTtlMs?: number
  /** Lengths of the windows, where a test cannot wait for a minute. */
  seconds?: typeof windowSeconds
}

/** The gateway: neither listens nor reads the environment. `app.fetch(request)` answers without a socket too. */
export function createApp({ config, database, limits, log, keyTtlMs, seconds = windowSeconds }: Dependencies) {
  const { prisma } = database
  const baseUrl = config.BASE_URL
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '')
  const sunset = config.PET_BY_ID_SUNSET
  const maxBodyBytes = config.MAX_BODY_BYTES

  const keys = new KeyRing({ prisma, log, ttlMs: keyTtlMs })
  const admission = new Admission(keys, limits, seconds)
  const metrics = createMetrics(limits)
  const state = { draining: false }
  const context = ({ key, verdict }: Exchange): Context => ({
    prisma,
    quota: async () => {
      if (!key || !verdict) throw new ApiError('unauthorized')
      return quotaOf(key.plan, verdict)
    },
  })
  const rest = useRest({ admission, context, baseUrl, sunset, maxBodyBytes })

  // The order is the architecture: a request passes from the top to the bottom until one of them answers; every
  // response passes all of them again, likewise from the top.
  const plugins: GatewayPlugin[] = [
    // who and where, and the id of it all
    useExchange({ basePath, trustProxy: config.TRUST_PROXY }),
    metrics.plugin(log),
    rest.route,
    // what every response carries
    useCors(config.CORS_ORIGINS),
    useRateLimitHeaders(limits, (address) => addressClient(address, seconds)),
    useDeprecation({ baseUrl, sunset }),
    // what needs no key
    useOperational({ database, limits, state, metrics: metrics.registry }),
    useDocuments({ baseUrl, sunset, schema }),
    // what needs one
    {
      async onRequest({ request, serverContext }) {
        await admission.identify(request, serverContext)
      },
    },
    useGraphql({ schema, endpoint: `${basePath}/graphql`, admission, context, maxBodyBytes, log }),
    rest.serve,
  ]

  const adapter = createServerAdapter<ServerContext>(() => errorNobodyAnswered(), {
    plugins: plugins.map((plugin) => guarded(plugin, log)),
  })

  return {
    /** Answers a request. `context` may name the Node request it came in. */
    fetch: (request: Request, context: Partial<ServerContext> = {}): Promise<Response> =>
      Promise.resolve(adapter.fetch(request, context as ServerContext)),
    listener: adapter.requestListener,
    /** The answer to what is no HTTP at all. It costs nothing, and shows the window of the address. */
    malformed: (remoteAddress: string | undefined) =>
      Promise.resolve(adapter.fetch(new Request(baseUrl), { malformed: { remoteAddress } } as ServerContext)),
    /** From now on /readyz says 503, so that balancers send nothing new. */
    drain: () => {
      state.draining = true
    },
    close: () => keys.close(),
  }
}

export type App = ReturnType<typeof createApp>

/** Whatever a plugin throws becomes a response of the surface that was asked, which the rest of them still mark. */
function guarded(plugin: GatewayPlugin, log: Logger): GatewayPlugin {
  const { onRequest } = plugin
  if (!onRequest) return plugin
  return {
    ...plugin,
    onRequest(payload) {
      const refuse = (error: unknown) => {
        const { exchange } = payload.serverContext
        payload.endResponse(errorResponse(toApiError(error, log, exchange), payload.request, exchange))
      }
      // Only what really waits makes the next plugin wait.
      try {
        return onRequest(payload)?.then(undefined, refuse)
      } catch (error) {
        refuse(error)
      }
    },
  }
}

function errorNobodyAnswered(): never {
  throw new ApiError('internal')
}
