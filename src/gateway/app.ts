import type { IncomingMessage, ServerResponse } from 'node:http'
import { schema } from '../../schema/index.js'
import { ApiError } from '../../schema/kit/errors.js'
import { Alone, type Member } from '../engines/cluster/index.js'
import { inSpan, inTrace, type Logger } from '../engines/observe/index.js'
import type { RateLimiter } from '../engines/rate-limit/index.js'
import type { Settings } from '../settings.js'
import { ADMISSION_LIMITS, Admissions } from './admission/index.js'
import { createAccess } from './context/index.js'
import type { Database } from './database/index.js'
import { createDocs, type DocsSettings } from './docs/index.js'
import { createGraphql, MAX_FREE_REQUEST } from './graphql/index.js'
import {
  type Body,
  errorResponse,
  type Handlers,
  HttpRequest,
  type HttpResponse,
  MAX_UNREAD,
  MemoryBudget,
  noBody,
  type RequestHead,
  readBody,
  send,
  toApiError,
  UPLOAD_BUDGET,
  watchUnread,
} from './http/index.js'
import { createIdempotency } from './idempotency/index.js'
import {
  ApiKeyCache,
  addressSubject,
  type Caller,
  createAuthentication,
  createQuota,
  KeyUsage,
  windowSeconds,
} from './keys/index.js'
import { createHealth, createMetrics, createRequestObserver } from './monitor/index.js'
import {
  type Exchange,
  type Findings,
  preflight,
  type ReadRequest,
  type Reply,
  serverOptions,
  setHeaders,
} from './reply/index.js'
import { createRest } from './rest/index.js'

export interface Dependencies {
  settings: DocsSettings & Pick<Settings, 'TRUST_PROXY' | 'CORS_ORIGINS' | 'MAX_BODY_BYTES' | 'GATEWAYS'>
  database: Omit<Database, 'close' | 'name' | 'url' | 'embedded'>
  rateLimiter: RateLimiter
  log: Logger
  /** What this process is among those that share its port; default: alone. */
  member?: Member
  /** How long a key's row is trusted (see ApiKeyCache). */
  keyTtlMs?: number
  /** How many requests may be at work. */
  limits?: typeof ADMISSION_LIMITS
  /** What bodies that are arriving may take together, in bytes; default: 64 MiB, or 16 of the largest. */
  uploadBudget?: number
  /** Lengths of the windows; only tests set it, because they cannot wait for a minute. */
  seconds?: typeof windowSeconds
  /** How long an execution of GraphQL may take; default: 10 s. */
  deadlineMs?: number
  /** How long a client may read nothing of its response; default: 10 s. */
  stallMs?: number
}

/** The gateway. It neither listens nor reads the environment. */
export function createApp(dependencies: Dependencies) {
  const { settings, database, rateLimiter, log, keyTtlMs, deadlineMs } = dependencies
  const { member = new Alone(), limits = ADMISSION_LIMITS, seconds = windowSeconds } = dependencies
  const { BASE_URL: baseUrl, PET_BY_ID_SUNSET: sunset, MAX_BODY_BYTES: maxBodyBytes } = settings
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '')
  const headerOptions = { baseUrl, sunset, origins: settings.CORS_ORIGINS }
  const state = { draining: false }
  const { reads, createContext, createTransact } = createAccess(database)

  const apiKeys = new ApiKeyCache({ ...database, reads, log, ttlMs: keyTtlMs })
  const usage = new KeyUsage({ query: database.query, log })
  const admissions = new Admissions(limits, database.answersSince)
  const uploads = new MemoryBudget(dependencies.uploadBudget ?? Math.max(UPLOAD_BUDGET, 16 * maxBodyBytes))
  const unread = new MemoryBudget(MAX_UNREAD)
  const metrics = createMetrics({ rateLimiter, database, admissions, uploads, unread, processes: settings.GATEWAYS })
  const health = createHealth(database, rateLimiter, metrics, member, state)
  const observe = createRequestObserver(log, metrics)
  const docs = createDocs(settings, schema)
  const authenticate = createAuthentication(apiKeys, rateLimiter, database.requestTimeoutMs, seconds)
  const quota = createQuota({ apiKeys, rateLimiter })
  const idempotency = createIdempotency(database, createTransact, log)
  const shared = { createContext, createTransact, idempotency }
  const rest = createRest({ ...shared, baseUrl, sunset, hasPage: docs.has })
  const graphql = createGraphql({ ...shared, schema, log, deadlineMs })

  async function respond(request: HttpRequest, found: Findings): Promise<Reply> {
    if (request.malformed) throw request.malformed
    if (!found.route && !(isGraphql(request) && request.method === 'POST')) {
      const status = settings.ADMIN_PORT ? undefined : health(request)
      found.isOperational = status !== undefined
      const open = status ?? preflight(request) ?? serverOptions(request) ?? docs.respond(request)
      if (open) return { response: await open }
    }
    const { caller, refusal, decision } = await inSpan('authenticate', () => authenticate(request))
    found.caller = caller
    found.decision = decision
    if (!caller) throw refusal
    return serve(request, caller, found)
  }

  /** The steps of a request with a valid key: body, operation, admission, quota, run. */
  async function serve(request: HttpRequest, caller: Caller, found: Findings): Promise<Reply> {
    const { route } = found
    const isParsed = isGraphql(request) || route?.operation.body !== undefined
    const isUsedUp = isParsed && admissions.isRefused(caller) && (await quota.isUsedUp(caller))
    // No REST operation with a body is free: the quota refuses it unread.
    const body = isUsedUp && route ? noBody : await receive(request, caller, route)
    const maxBytes = isUsedUp ? ((await quota.hasFree(caller)) ? MAX_FREE_REQUEST : 0) : undefined
    const operation = readOperation(request, route, body, maxBytes)
    const reply = await perform(request, caller, found, operation, !isUsedUp || operation.units === 0)
    if (reply) return reply
    // A window has begun, or a ban has ended, since the request was not read: it is read now, and pays the rest.
    const whole = route ? await receive(request, caller, route) : body
    return (await perform(request, caller, found, readOperation(request, route, whole))) as Reply
  }

  /** @param maxBytes of GraphQL: how much of it is read, to find a free operation */
  const readOperation = (request: HttpRequest, route: Findings['route'], body: Body, maxBytes?: number): ReadRequest =>
    isGraphql(request) ? graphql.read(request, body, maxBytes) : rest.read(request, route, body)

  /** Admission, which the quota may need, quota, run. Undefined if the quota allows what was not read as a whole. */
  async function perform(
    request: HttpRequest,
    caller: Caller,
    found: Findings,
    operation: ReadRequest,
    isComplete = true,
  ): Promise<Reply | undefined> {
    found.operationName = operation.operationName
    // A free request is answered from the counters: it need not wait for those that wait for the database.
    const slot = await inSpan('admission', () =>
      operation.units === 0
        ? undefined
        : admissions.work.enter(caller.subject.id, operation.units, request.head.socket),
    )
    const isEarly = operation.isRead && quota.isForeseen(caller, operation)
    const deciding = inSpan('quota', () => quota.take(caller, operation, found.decision?.cost))
    // A read does not wait for Redis. Its result, or error, is neither seen nor counted before the decision allows it.
    const early = isEarly ? operation.run(caller, deciding) : undefined
    const run = async () => {
      const { decision, refusal } = await deciding
      found.decision = decision
      if (refusal && !(operation.isRefusedFirst && refusal.status === 429)) throw refusal
      return isComplete || refusal ? (early ?? operation.run(caller, deciding)) : undefined
    }
    const running = run()
    // A refused read that has begun holds its slot until it ends.
    if (slot) void Promise.allSettled([running, early]).then(() => admissions.work.leave(slot))
    return running
  }

  async function receive(request: HttpRequest, caller: Caller, route: Findings['route']): Promise<Body> {
    if (isGraphql(request) ? request.method !== 'POST' : !route?.operation.body) return noBody
    return inSpan('body', () => readBody(request, maxBodyBytes, uploads, caller.subject.id))
  }

  /** The steps of a request to ADMIN_PORT. */
  async function respondToOperator(request: HttpRequest): Promise<Reply> {
    if (request.malformed) throw request.malformed
    const response = await health(request)
    if (response) return { response }
    throw new ApiError('not_found', 'This port has only /healthz, /readyz and /metrics.')
  }

  /** Turns an error of any step into a response of REST or GraphQL, by the path. */
  function refuse(thrown: unknown, request: HttpRequest): Reply {
    const error = toApiError(thrown, log, request.id)
    return { response: errorResponse(error, request), refusal: error.code }
  }

  /** The last step: what every response has, refusals included. */
  async function finish(request: HttpRequest, exchange: Exchange): Promise<HttpResponse> {
    const { caller, response, decision, refusal, route, isOperational } = exchange
    const shown = decision ?? (await readWindows(request, exchange))
    if (caller && shown) admissions.note(caller, shown)
    setHeaders(request, exchange, shown, headerOptions)
    if (caller) usage.count(caller, decision?.cost ?? 0, refusal)
    observe(request, exchange, {
      surface: isOperational ? 'other' : isGraphql(request) ? 'graphql' : route ? 'rest' : 'other',
      template: templateOf(request, exchange),
      operationName: exchange.operationName ?? route?.operation.operationId,
    })
    return response
  }

  function templateOf(request: HttpRequest, { route }: Findings): string | undefined {
    if (route) return basePath + route.operation.rest.path
    if (request.path !== null && (isGraphql(request) || docs.has(request.path))) return basePath + request.path
  }

  /** What a request shows that was not counted: its key's windows, or the window of its address. */
  async function readWindows({ address }: HttpRequest, { caller, isOperational }: Findings) {
    if (!isOperational) return rateLimiter.consume(caller?.subject ?? addressSubject(address, seconds), 0)
  }

  /** The request handlers of one port. */
  function handlers(steps: (request: HttpRequest, found: Findings) => Promise<Reply>, below?: string): Handlers {
    const isOperational = below === undefined
    const read = (head: RequestHead) => new HttpRequest(head, settings.TRUST_PROXY, below)
    return {
      async handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
        const request = read(req)
        const found: Findings = { isOperational, route: isGraphql(request) ? undefined : rest.find(request) }
        const replying = inTrace(request.trace, () => steps(request, found))
        const reply = await replying.catch((error) => refuse(error, request))
        const sending = send(res, await finish(request, Object.assign(found, reply)))
        if (sending) await sending
        // Nearly all have left the process by then.
        if (res.writableLength > 0)
          watchUnread(res, found.caller?.subject.id ?? request.address, unread, dependencies.stallMs)
      },
      /** It costs nothing, and shows the window of the address. */
      malformed(remoteAddress, refusal) {
        const request = read({ headers: {}, rawHeaders: [], socket: { remoteAddress } })
        return finish(request, { isOperational, ...refuse(refusal, request) })
      },
      connected: admissions.connected,
    }
  }

  return {
    ...handlers(respond, basePath),
    /** Handles requests on ADMIN_PORT. */
    admin: handlers(respondToOperator),
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

const isGraphql = ({ path }: HttpRequest) => path === '/graphql'

export type App = ReturnType<typeof createApp>
