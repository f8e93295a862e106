import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context } from '../schema/builder.js'
import { schema } from '../schema/index.js'
import {
  ApiKeyCache,
  addressSubject,
  createAuthentication,
  createQuota,
  readQuota,
  windowSeconds,
} from './auth/index.js'
import type { Database } from './database/index.js'
import { createDocs } from './docs/index.js'
import { gatherReads } from './execute/gather.js'
import { createGraphql } from './graphql/index.js'
import { notHttp, RequestContext, readTarget } from './http/context.js'
import { preflight, setCorsHeaders } from './http/cors.js'
import { errorResponse, toApiError } from './http/errors.js'
import { createHealth } from './http/health.js'
import { type HttpResponse, send } from './http/response.js'
import { createIdempotency } from './idempotency/index.js'
import type { Logger } from './log.js'
import { createMetrics } from './metrics.js'
import { type RateLimiter, setRateLimitHeaders } from './rate-limit/index.js'
import { createDeprecations } from './rest/deprecation.js'
import { createRest, route } from './rest/index.js'
import type { Settings } from './settings.js'

export interface Dependencies {
  settings: Pick<Settings, 'BASE_URL' | 'TRUST_PROXY' | 'CORS_ORIGINS' | 'MAX_BODY_BYTES' | 'PET_BY_ID_SUNSET'>
  database: Pick<Database, 'prisma' | 'ping'>
  rateLimiter: RateLimiter
  log: Logger
  /** How long a key's row is trusted (see ApiKeyCache). */
  keyTtlMs?: number
  /** Lengths of the windows, where a test cannot wait for a minute. */
  seconds?: typeof windowSeconds
}

/** The gateway. It neither listens nor reads the environment. */
export function createApp({ settings, database, rateLimiter, log, keyTtlMs, seconds = windowSeconds }: Dependencies) {
  const { BASE_URL: baseUrl, PET_BY_ID_SUNSET: sunset, MAX_BODY_BYTES: maxBodyBytes } = settings
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '')
  const state = { draining: false }
  const prisma = gatherReads(database.prisma)
  const createResolverContext = (context: RequestContext, prisma: Context['prisma']): Context => ({
    prisma,
    quota: async () => readQuota(context),
  })

  const apiKeys = new ApiKeyCache({ prisma: database.prisma, log, ttlMs: keyTtlMs })
  const metrics = createMetrics(rateLimiter, log)
  const health = createHealth({ database, rateLimiter, state, metrics: metrics.registry })
  const docs = createDocs({ baseUrl, sunset, schema })
  const authenticate = createAuthentication({ apiKeys, rateLimiter, seconds })
  const consume = createQuota({ apiKeys, rateLimiter })
  const idempotency = createIdempotency({ prisma, log })
  const rest = createRest({ consume, createContext: createResolverContext, idempotency, baseUrl, sunset, maxBodyBytes })
  const setDeprecationHeaders = createDeprecations({ baseUrl, sunset })
  const graphql = createGraphql({
    schema,
    consume,
    createContext: createResolverContext,
    idempotency,
    maxBodyBytes,
    log,
  })

  /** The way of a request, until something answers it. */
  async function respond(context: RequestContext): Promise<HttpResponse> {
    readTarget(context, basePath)
    route(context)
    const open = preflight(context) ?? health(context) ?? docs(context)
    if (open) return open
    await authenticate(context)
    return context.path === '/graphql' ? graphql(context) : rest(context)
  }

  /** The way back: what every response carries, refusals included. */
  async function complete(context: RequestContext, response: HttpResponse): Promise<HttpResponse> {
    const { headers, status } = response
    headers['x-request-id'] = context.id
    if (context.operational) return response
    // A request that was not counted shows its key's windows, or the window of its address.
    context.rateLimit ??= await rateLimiter.consume(context.subject ?? addressSubject(context.address, seconds), 0)
    setCorsHeaders(headers, context, settings.CORS_ORIGINS)
    // A banned key that reads its quota is not refused: it gets no Retry-After.
    setRateLimitHeaders(headers, context.rateLimit, status === 429)
    setDeprecationHeaders(headers, context)
    return response
  }

  /** Whatever a step throws becomes a response of the surface that was asked. */
  const refuse = (error: unknown, context: RequestContext) => errorResponse(toApiError(error, log, context), context)

  return {
    /** Answers a request. */
    async handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
      const context = new RequestContext(req, settings.TRUST_PROXY)
      let response: HttpResponse
      try {
        response = await respond(context)
      } catch (error) {
        response = refuse(error, context)
      }
      await complete(context, response)
      metrics.observe(context, response.status)
      send(res, response)
    },
    /** The answer to what is not HTTP at all. It costs nothing, and shows the window of the address. */
    malformed(remoteAddress: string | undefined): Promise<HttpResponse> {
      const context = new RequestContext({ headers: {}, rawHeaders: [], socket: { remoteAddress } }, 0)
      return complete(context, refuse(notHttp(), context))
    },
    /** From now on /readyz returns 503, so that load balancers send nothing new. */
    drain: () => {
      state.draining = true
    },
    close() {
      idempotency.close()
      return apiKeys.close()
    },
  }
}

export type App = ReturnType<typeof createApp>
