import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import type { ApiKey } from '../../prisma/generated/client/client.js'
import { type App, createApp } from '../../src/app.js'
import { createSecret } from '../../src/auth/api-keys.js'
import { listen, type Server } from '../../src/http/server.js'
import { createLog } from '../../src/log.js'
import { openRateLimiter, type RateLimiter } from '../../src/rate-limit/index.js'
import { type Config, readConfig } from '../../src/settings.js'
import { type Contract, contractOf, overheard } from './contract.js'
import { openTestDatabase, type TestDatabase } from './database.js'

export const testRedisUrl = process.env.TEST_REDIS_URL

export interface Answer {
  status: number
  headers: Headers
  /** Parsed JSON; undefined where there is no body. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  body: any
  text: string
}

export interface Call {
  key?: string | null
  headers?: Record<string, string>
  /** Sent as JSON; text and bytes are sent as they are. */
  body?: unknown
}

/** Holds every response that it gives to the OpenAPI document. */
export class Gateway {
  readonly config: Config
  readonly app: App
  readonly database: TestDatabase
  readonly limits: RateLimiter
  readonly logged: string[]
  /** A key that no limit stops, for tests that are not about limits. */
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

  /** A new key of a plan, with whatever else its row should hold. */
  async createKey(data: Partial<ApiKey> = {}) {
    return createKey(this.database, data)
  }

  /** A REST or any other call. The unlimited key goes with it unless another, or none (null), is given. */
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
    const response = await this.app.fetch(request)
    const text = await response.text()
    this.#contract(request, { status: response.status, headers: response.headers, text })
    const json = /json/.test(response.headers.get('content-type') ?? '') && text !== ''
    return { status: response.status, headers: response.headers, text, body: json ? JSON.parse(text) : undefined }
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

  /** Listens on a real socket, a free port unless one is named; the address. */
  async listen(port = 0): Promise<{ port: number; url: string }> {
    const app = overheard(this.app, this.config.BASE_URL, (...exchange) => {
      try {
        this.#contract(...exchange)
      } catch (error) {
        this.#violated(error)
      }
    })
    this.#server ??= await listen(app, { port, host: '127.0.0.1' })
    return { port: this.#server.port, url: `http://127.0.0.1:${this.#server.port}` }
  }

  /** Fails the test that is running or, where none is, whoever closes the gateway. */
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
  keyTtlMs?: number
  /** Lengths of the windows. */
  seconds?: Parameters<typeof createApp>[0]['seconds']
}

/** A gateway of its own, over a database of its own unless one is given, and TEST_REDIS_URL where that is set. */
export async function openGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const { env = {}, redisUrl = testRedisUrl, keyPrefix = `test-${randomUUID()}`, keyTtlMs, seconds } = options
  const config = readConfig(env)
  const database = options.database ?? (await openTestDatabase())
  const logged: string[] = []
  const log = createLog('debug', { write: (line) => void logged.push(line) })
  const limits = await openRateLimiter({
    redisUrl,
    banAfter: config.BAN_AFTER,
    banSeconds: config.BAN_SECONDS,
    // A slow machine must not make Redis look as if it were away.
    redisTimeoutMs: 1_000,
    log,
    keyPrefix,
  })
  const app = createApp({ config, database, limits, log, keyTtlMs, seconds })
  const { key } = await createKey(database, {
    name: 'unlimited',
    plan: 'Enterprise',
    minuteLimit: 2_000_000_000,
    dayLimit: 2_000_000_000,
  })
  return new Gateway({ config, app, database, limits, logged, key })
}

/** The same, closed when the test ends. */
export async function useGateway(options?: GatewayOptions): Promise<Gateway> {
  const gateway = await openGateway(options)
  onTestFinished(() => gateway.close())
  return gateway
}
