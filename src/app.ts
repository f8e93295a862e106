import type { IncomingMessage, ServerResponse } from 'node:http'
import { initContextCache } from '@pothos/core'
import type { Context } from '../schema/builder.js'
import { ApiError } from '../schema/errors.js'
import { schema } from '../schema/index.js'
import {
  ApiKeyCache,
  addressSubject,
  createAuthentication,
  createQuota,
  KeyUsage,
  readQuota,
  windowSeconds,
} from './auth/index.js'
import type { Database } from './database/index.js'
import { createDocs } from './docs/index.js'
import { gatherReads } from './execute/gather.js'
import { createRequestClient } from './execute/request-client.js'
import { createGraphql } from './graphql/index.js'
import { ADMISSION_LIMITS, Admissions, leavePlace } from './http/admission.js'
import { readBody } from './http/body.js'
import { notHttp, RequestContext, readTarget } from './http/context.js'
import { preflight, setCorsHeaders } from './http/cors.js'
import { errorResponse, toApiError, unavailable } from './http/errors.js'
import { createHealth } from './http/health.js'
import { createRequestLog } from './http/request-log.js'
import { type HttpResponse, send } from './http/response.js'
import { traceparent } from './http/trace.js'
import { UnreadAnswers } from './http/unread.js'
import { UPLOAD_ROOM, Uploads } from './http/uploads.js'
import { createIdempotency } from './idempotency/index.js'
import type { Logger } from './log.js'
import { createMetrics } from './metrics.js'
import { type RateLimiter, setRateLimitHeaders } from './rate-limit/index.js'
import { createDeprecations } from './rest/deprecation.js'
import { createRest, route } from './rest/index.js'
import type { Settings } from './settings.js'

export interface Dependencies {
  settings: Pick<
    Settings,
    'ADMIN_PORT' | 'BASE_URL' | 'TRUST_PROXY' | 'CORS_ORIGINS' | 'MAX_BODY_BYTES' | 'PET_BY_ID_SUNSET'
  >
  database: Pick<Database, 'prisma' | 'transaction' | 'ping' | 'pool' | 'requestTimeoutMs'>
  rateLimiter: RateLimiter
  log: Logger
  /** How long a key's row is trusted (see ApiKeyCache). */
  keyTtlMs?: number
  /** How many requests may be at work, and of keys that are refused anyway. */
  limits?: typeof ADMISSION_LIMITS
  /** What bodies that are arriving may take together, in bytes; default: 64 MiB, or 16 of the largest. */
  uploadRoom?: number
  /** Lengths of the windows; only tests set it, because they cannot wait for a minute. */
  seconds?: typeof windowSeconds
  /** How long an execution of GraphQL may take; default: 10 s. */
  deadlineMs?: number
}

const takesBody = ({ path, method, operation }: RequestContext) =>
  operation ? operation.body : path === '/graphql' && method === 'POST'

/** The gateway. It neither listens nor reads the environment. */
export function createApp(dependencies: Dependencies) {
  const { settings, database, rateLimiter, log, keyTtlMs, deadlineMs } = dependencies
  const { limits = ADMISSION_LIMITS, seconds = windowSeconds } = dependencies
  const { BASE_URL: baseUrl, PET_BY_ID_SUNSET: sunset, MAX_BODY_BYTES: maxBodyBytes } = settings
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '')
  const state = { draining: false }
  const prisma = gatherReads(database.prisma)
  const createResolverContext = (context: RequestContext, transaction?: Context['prisma']): Context =>
    Object.assign(initContextCache(), {
      prisma: transaction ?? createRequestClient(prisma, database.requestTimeoutMs - context.waitedMs),
      quota: async () => readQuota(context),
    })

  const apiKeys = new ApiKeyCache({ prisma, log, ttlMs: keyTtlMs })
  const usage = new KeyUsage({ prisma: database.prisma, log })
  const admissions = new Admissions(limits)
  const uploads = new Uploads(dependencies.uploadRoom ?? Math.max(UPLOAD_ROOM, 16 * maxBodyBytes))
  const unread = new UnreadAnswers()
  const metrics = createMetrics({ rateLimiter, database, admissions, uploads, unread })
  const logRequest = createRequestLog(log)
  const health = createHealth({ database, rateLimiter, state, metrics: metrics.registry })
  const docs = createDocs({ baseUrl, sunset, schema })
  const authenticate = createAuthentication({ apiKeys, rateLimiter, timeoutMs: database.requestTimeoutMs, seconds })
  const takeQuota = createQuota({ apiKeys, rateLimiter })
  /** Room before quota, so that a request that is refused for lack of room costs nothing. */
  const consume: typeof takeQuota = (context, ...cost) => {
    const waiting = admissions.work.enter(context, cost[0])
    return waiting ? waiting.then(() => takeQuota(context, ...cost)) : takeQuota(context, ...cost)
  }
  const idempotency = createIdempotency({ database, log })
  const surface = { consume, createContext: createResolverContext, idempotency }
  const rest = createRest({ ...surface, baseUrl, sunset })
  const setDeprecationHeaders = createDeprecations({ baseUrl, sunset })
  const graphql = createGraphql({ ...surface, schema, log, deadlineMs })

  /** The steps of a request, until one of them returns a response. */
  async function respond(context: RequestContext): Promise<HttpResponse> {
    readTarget(context, basePath)
    route(context)
    const open = preflight(context) ?? (settings.ADMIN_PORT ? undefined : health(context)) ?? docs(context)
    if (open) return open
    await authenticate(context)
    const isGraphql = context.path === '/graphql'
    if (isGraphql && admissions.isRefused(context)) await admissions.refused.enter(context)
    if (takesBody(context)) {
      // A REST request that the quota refuses is refused without its body.
      if (!isGraphql && (await isUsedUp(context))) context.body = unavailable()
      else await readBody(context, maxBodyBytes, uploads)
    }
    return isGraphql ? await graphql(context) : await rest(context)
  }

  /** Whether the quota has nothing left for a key that it has refused before. */
  async function isUsedUp(context: RequestContext): Promise<boolean> {
    if (!context.subject || !admissions.isRefused(context)) return false
    const { bannedUntil, windows } = await rateLimiter.consume(context.subject, 0)
    return bannedUntil !== undefined || windows.some(({ remaining }) => remaining === 0)
  }

  /** The steps of a request to ADMIN_PORT. */
  async function respondToOperator(context: RequestContext): Promise<HttpResponse> {
    readTarget(context, '')
    // This port has no API, so an error has the shape of REST.
    context.path = null
    const answer = health(context)
    if (!answer) throw new ApiError('not_found', 'This port has only /healthz, /readyz and /metrics.')
    return answer
  }

  /** The last step: what every response has, errors included. */
  async function complete(context: RequestContext, response: HttpResponse): Promise<HttpResponse> {
    // A request that was not counted shows its key's windows, or the window of its address.
    if (!context.rateLimit && !context.operational)
      context.rateLimit = await rateLimiter.consume(context.subject ?? addressSubject(context.address, seconds), 0)
    setHeaders(context, response)
    metrics.observe(context, response.status)
    usage.count(context)
    logRequest(context, response.status)
    return response
  }

  function setHeaders(context: RequestContext, { headers, status }: HttpResponse): void {
    headers['x-request-id'] = context.id
    if (context.trace) headers.traceparent = traceparent(context.trace)
    if (!context.rateLimit) return
    admissions.note(context)
    setCorsHeaders(headers, context, settings.CORS_ORIGINS)
    // A banned key that reads its quota is not refused: it gets no Retry-After.
    setRateLimitHeaders(headers, context.rateLimit, status === 429)
    setDeprecationHeaders(headers, context)
    headers['cache-control'] ??= 'private, no-cache'
    headers['x-content-type-options'] ??= 'nosniff'
  }

  /** Turns an error of any step into a response of REST or GraphQL, by the path. */
  function refuse(thrown: unknown, context: RequestContext): HttpResponse {
    const error = toApiError(thrown, log, context)
    context.refusal ??= error.code
    return errorResponse(error, context)
  }

  /** The request handler of one port. */
  const createHandlers = (respond: (context: RequestContext) => Promise<HttpResponse>, operational = false) => ({
    async handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
      const context = new RequestContext(req, settings.TRUST_PROXY)
      context.operational = operational
      let response: HttpResponse
      try {
        response = await respond(context)
      } catch (error) {
        response = refuse(error, context)
      } finally {
        leavePlace(context)
      }
      const sending = send(res, await complete(context, response))
      if (sending) await sending
      unread.watch(res, context.subject?.id ?? context.address)
    },
    /** The response to input that is not HTTP. It costs nothing, and shows the window of the address. */
    malformed(remoteAddress: string | undefined, reason: string): Promise<HttpResponse> {
      const context = new RequestContext({ headers: {}, rawHeaders: [], socket: { remoteAddress } }, 0)
      context.operational = operational
      return complete(context, refuse(notHttp(reason), context))
    },
    /** Must be called for each new connection. */
    connected: admissions.work.connected,
  })

  return {
    ...createHandlers(respond),
    /** Handles requests on ADMIN_PORT. */
    admin: createHandlers(respondToOperator, true),
    /** From now on /readyz returns 503, so that load balancers send nothing new. */
    drain: () => {
      state.draining = true
    },
    close() {
      idempotency.close()
      return usage.close()
    },
  }
}

export type App = ReturnType<typeof createApp>
