import { randomUUID } from 'node:crypto'
import lightMyRequest from 'light-my-request'
import { afterAll, onTestFinished } from 'vitest'
import type { ApiKey } from '../../prisma/generated/client/client.js'
import { createLog } from '../../src/engines/observe/log.js'
import { openRateLimiter, type RateLimiter } from '../../src/engines/rate-limit/index.js'
import { type App, createApp } from '../../src/gateway/app.js'
import { listen, type Server } from '../../src/gateway/http/server.js'
import { createSecret } from '../../src/gateway/keys/index.js'
import { readSettings, type Settings } from '../../src/settings.js'
import { type Contract, contractOf, withContract } from './contract.js'
import { openTestDatabase, type TestDatabase } from './database.js'

export const testRedisUrl = process.env.TEST_REDIS_URL

export interface Answer {
  status: number
  headers: Headers
  /** Parsed JSON; undefined if there is no body. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  body: any
  text: string
  /** Of its error, or of the first one, on either surface. */
  code?: string
  message?: string
}

/** Sends a request to the app without a socket. */
export async function inject(app: App, request: Request): Promise<Response> {
  const { method, url, body } = request
  const response = await lightMyRequest((req, res) => void app.handle(req, res), {
    method: method as 'GET',
    url,
    headers: Object.fromEntries(request.headers),
    payload: body ? Buffer.from(await request.arrayBuffer()) : undefined,
  })
  const { statusCode: status, rawPayload } = response
  const headers = Object.entries(response.headers).map(([name, value]) => [name, String(value)] as [string, string])
  return new Response(status === 204 || status === 304 ? null : new Uint8Array(rawPayload), { status, headers })
}

export interface Call {
  key?: string | null
  headers?: Record<string, string>
  /** Sent as JSON; text and bytes are sent as they are. */
  body?: unknown
}

/** A gateway that compares each of its responses with the OpenAPI document. */
export class Gateway {
  readonly config: Settings
  readonly app: App
  readonly database: TestDatabase
  readonly limits: RateLimiter
  readonly logged: string[]
  /** A key with very high limits, for tests that are not about limits. */
  readonly key: string
  readonly #contract: Contract
  readonly #violations: unknown[] = []
  #server: Server | undefined

  constructor(parts: Pick<Gateway, 'config' | 'app' | 'database' | 'limits' | 'logged' | 'key'>) {
    this.config = parts.config
    this.app = parts.app
    this.database = parts.database
    this.limits = parts.limits
    this.logged = parts.logged
    this.key = parts.key
    this.#contract = contractOf(parts.config)
  }

  get prisma() {
    return this.database.prisma
  }

  /** Creates a key with the given fields. */
  async createKey(data: Partial<ApiKey> = {}) {
    return createKey(this.database, data)
  }

  /** Creates a key with these limits. */
  async createLimitedKey(minuteLimit: number, dayLimit = 1_000, data: Partial<ApiKey> = {}) {
    return createKey(this.database, { plan: 'Enterprise', minuteLimit, dayLimit, ...data })
  }

  /** Another gateway on the same database, which closes when the test ends. */
  async openBeside(options: Omit<GatewayOptions, 'database'> = {}): Promise<Gateway> {
    return useGateway({ ...options, database: { ...this.database, close: async () => {} } })
  }

  /** Sends a request. Uses the unlimited key unless `key` is given; null sends none. */
  async call(method: string, path: string, { key = this.key, headers = {}, body }: Call = {}): Promise<Answer> {
    const raw = typeof body === 'string' || body instanceof Uint8Array
    const request = new Request(`${this.config.BASE_URL}${path}`, {
      method,
      headers: {
        ...(key ? { authorization: `Bearer ${key}` } : {}),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : raw ? (body as string) : JSON.stringify(body),
    })
    const response = await inject(this.app, request)
    const text = await response.text()
    this.#contract(request, { status: response.status, headers: response.headers, text })
    const { status, headers: sent } = response
    const json = /json/.test(sent.get('content-type') ?? '') && text !== '' ? JSON.parse(text) : undefined
    const error = json?.errors?.[0] ?? json
    const { code } = error?.extensions ?? error ?? {}
    return { status, headers: sent, text, body: json, code, message: error?.message }
  }

  get(path: string, call?: Call) {
    return this.call('GET', path, call)
  }

  post(path: string, body: unknown, call?: Call) {
    return this.call('POST', path, { ...call, body })
  }

  patch(path: string, body: unknown, call?: Call) {
    return this.call('PATCH', path, { ...call, body })
  }

  delete(path: string, call?: Call) {
    return this.call('DELETE', path, call)
  }

  graphql(query: string, variables?: object, call: Call = {}) {
    return this.call('POST', '/graphql', { ...call, body: { query, variables } })
  }

  /** Listens on a real socket (default: a free port) and returns its address. */
  async listen(port = 0): Promise<{ port: number; url: string }> {
    const app = withContract(this.app, this.config.BASE_URL, (...exchange) => {
      try {
        this.#contract(...exchange)
      } catch (error) {
        this.#violated(error)
      }
    })
    this.#server ??= await listen(app, { port, host: '127.0.0.1' })
    return { port: this.#server.port, url: `http://127.0.0.1:${this.#server.port}` }
  }

  /** Fails the running test or, outside of tests, the closing of the gateway. */
  #violated(statement: unknown) {
    this.#violations.push(statement)
    try {
      onTestFinished(() => this.#report())
    } catch {}
  }

  #report() {
    const [first] = this.#violations.splice(0)
    if (first) throw first
  }

  async close() {
    await this.#server?.close()
    await this.app.close()
    await this.limits.close()
    await this.database.close()
    this.#report()
  }
}

async function createKey({ prisma }: Pick<TestDatabase, 'prisma'>, data: Partial<ApiKey> = {}) {
  const { key, prefix, hash } = createSecret()
  const row = await prisma.apiKey.create({ data: { name: 'test', plan: 'Free', prefix, hash, ...data } })
  return { key, row }
}

export interface GatewayOptions {
  env?: Record<string, string>
  database?: TestDatabase
  redisUrl?: string
  keyPrefix?: string
  redisTimeoutMs?: number
  keyTtlMs?: number
  /** How many requests may be at work. */
  limits?: Parameters<typeof createApp>[0]['limits']
  /** What bodies that are arriving may take together, in bytes. */
  uploadBudget?: number
  /** Lengths of the windows. */
  seconds?: Parameters<typeof createApp>[0]['seconds']
  deadlineMs?: number
  /** How long a client may read nothing. */
  stallMs?: number
}

/** Opens a gateway with its own database (unless one is given), and with TEST_REDIS_URL if it is set. */
export async function openGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const { env = {}, redisUrl = testRedisUrl, keyPrefix = `test-${randomUUID()}`, keyTtlMs, seconds } = options
  const config = readSettings(env)
  const database = options.database ?? (await openTestDatabase())
  const logged: string[] = []
  const log = createLog('debug', { write: (line) => void logged.push(line) })
  const rateLimiter = await openRateLimiter({
    redisUrl,
    banAfter: config.BAN_AFTER,
    banSeconds: config.BAN_SECONDS,
    log,
    keyPrefix,
    redisTimeoutMs: options.redisTimeoutMs,
  })
  const { limits, uploadBudget, deadlineMs, stallMs } = options
  const app = createApp({
    settings: config,
    database,
    rateLimiter,
    log,
    keyTtlMs,
    limits,
    uploadBudget,
    seconds,
    deadlineMs,
    stallMs,
  })
  const { key } = await createKey(database, {
    name: 'unlimited',
    plan: 'Enterprise',
    minuteLimit: 2_000_000_000,
    dayLimit: 2_000_000_000,
  })
  return new Gateway({ config, app, database, limits: rateLimiter, logged, key })
}

/** Opens a gateway for all tests of a file, at the top level of the file. */
export async function sharedGateway(options?: GatewayOptions): Promise<Gateway> {
  const gateway = await openGateway(options)
  afterAll(() => gateway.close())
  return gateway
}

/** Opens a gateway that closes when the test ends. */
export async function useGateway(options?: GatewayOptions): Promise<Gateway> {
  const gateway = await openGateway(options)
  onTestFinished(() => gateway.close())
  return gateway
}
