import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { version } from '../../src/project.js'
import { collectorOf, readSettings } from '../../src/settings.js'
import { type CollectedSpan, startCollector } from '../support/collector.js'
import { openTestDatabase } from '../support/database.js'
import { freePort } from '../support/ports.js'
import { testDatabaseUrl } from '../support/postgres.js'
import { startGateway } from '../support/process.js'
import { TcpProxy } from '../support/proxy.js'
import { RedisServer, redisBinary } from '../support/redis.js'
import { createKey, keys } from '../support/remote.js'

type Environment = Record<string, string>

/** Ends what tests of a `describe` share, the latest first. */
type OnCleanup = (end: () => void | Promise<void>) => void

async function embedded(onCleanup: OnCleanup): Promise<Environment> {
  const DATA_DIR = await mkdtemp(join(tmpdir(), 'petstore-spans-'))
  onCleanup(() => rm(DATA_DIR, { recursive: true }))
  await cp(inject('folder'), DATA_DIR, { recursive: true })
  return { DATA_DIR }
}

async function servers(onCleanup: OnCleanup): Promise<Environment> {
  const redis = await RedisServer.reserve()
  await redis.start()
  onCleanup(() => redis.kill())
  const database = await openTestDatabase()
  onCleanup(() => database.close())
  return { ...database.env, REDIS_URL: redis.url }
}

const stores = [
  ['the embedded database', embedded],
  ...(testDatabaseUrl && redisBinary ? [['PostgreSQL and Redis', servers] as const] : []),
] as const

/** A store for what does not depend on it. A gateway on PostgreSQL starts twice as fast. */
async function anyStore(onCleanup: OnCleanup = onTestFinished): Promise<Environment> {
  if (!testDatabaseUrl) return embedded(onCleanup)
  const database = await openTestDatabase()
  onCleanup(() => database.close())
  return database.env
}

const EXPORTS = { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_BSP_SCHEDULE_DELAY: '50', LOG_LEVEL: 'info' }

interface Asked {
  body?: unknown
  headers?: Environment
}

/** A gateway that exports spans to a collector, with a key. */
async function open(env: Environment, more: Environment = {}, onCleanup: OnCleanup = onTestFinished) {
  const collector = await startCollector(0, onCleanup)
  const settings = { ...env, ...EXPORTS, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...more }
  const gateway = await startGateway(settings, onCleanup)
  const key = await createKey(env, 'Owner')

  async function ask(method: string, path: string, { body, headers }: Asked = {}) {
    const response = await fetch(gateway.url + path, {
      method,
      headers: { 'x-api-key': key, 'content-type': 'application/json', ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const [, traceId = '', spanId = '', flags] = response.headers.get('traceparent')?.split('-') ?? []
    return { status: response.status, traceId, spanId, flags, body: await response.json().catch(() => undefined) }
  }
  const logged = (): Record<string, unknown>[] =>
    gateway
      .errors()
      .split('\n')
      .flatMap((line) => (line.endsWith('}') ? JSON.parse(line) : []))
  return {
    ...gateway,
    collector,
    key,
    ask,
    logged,
    /** The line of the log about a request. */
    lineOf: (spanId: string) => expect.poll(() => logged().find((line) => line.spanId === spanId)).toBeDefined(),
    /** A pet and its category, which have ids. */
    async createPet(name = 'Rex') {
      const category = await ask('POST', '/categories', { body: { name: `Dogs of ${name}` } })
      return (await ask('POST', '/pets', { body: { name, categoryId: category.body.id } })).body as { id: number }
    },
    /** The spans of a request, its own first, once that has arrived, which ends last. */
    async spansOf({ traceId, spanId }: { traceId: string; spanId: string }) {
      const own = () => collector.spans().find((span) => span.spanId === spanId)
      await expect.poll(own).toBeDefined()
      const others = collector.spans().filter((span) => span.traceId === traceId && span.spanId !== spanId)
      return [own() as CollectedSpan, ...others]
    },
  }
}

/** The names of spans below each other, in the order in which they began. */
function treeOf(spans: CollectedSpan[], parent = spans[0] as CollectedSpan): unknown[] {
  const children = spans
    .filter(({ parentSpanId }) => parentSpanId === parent.spanId)
    // Spans begin at a whole millisecond, several of them at the same.
    .sort((a, b) => Number(a.startedAt - b.startedAt) || STEPS.indexOf(a.name) - STEPS.indexOf(b.name))
  const below = children.flatMap((child) => treeOf(spans, child))
  return below.length > 0 ? [parent.name, below] : [parent.name]
}

const traceparent = (flags: string) => `00-4bf92f3577b34da6a3ce929d0e0e47${flags}-00f067aa0ba902b7-${flags}`
const [INTERNAL, SERVER, CLIENT] = [1, 2, 3]
const [UNSET, ERROR] = [0, 2]
const STEPS = ['authenticate', 'body', 'admission', 'quota', 'validate', 'execute']

describe.each(stores)('spans with %s', (_, store) => {
  const cleanups: Parameters<OnCleanup>[0][] = []
  const onCleanup: OnCleanup = (end) => void cleanups.unshift(end)
  let env: Environment
  let gateway: Awaited<ReturnType<typeof open>>
  beforeAll(async () => {
    env = await store(onCleanup)
    gateway = await open(env, {}, onCleanup)
  })
  afterAll(async () => {
    for (const end of cleanups) await end()
  })

  test('name what happens to a request, in the order of its steps, and the response and the log name its span', async () => {
    const { id } = await gateway.createPet()

    const rest = await gateway.ask('GET', `/pets/${id}`)
    const spans = await gateway.spansOf(rest)
    const [own, ...others] = spans as [CollectedSpan]
    const steps = ['authenticate', 'admission', 'quota', 'validate', 'execute', ['SELECT Pet']]
    expect(treeOf(spans)).toEqual(['GET /pets/{petId}', steps])
    expect([own.kind, own.parentSpanId, own.status]).toEqual([SERVER, '', UNSET])
    expect(own.attributes).toEqual({
      'http.request.method': 'GET',
      'http.route': '/pets/{petId}',
      'http.response.status_code': 200,
      'petstore.operation': 'getPet',
      'petstore.plan': 'Enterprise',
      'petstore.key_prefix': gateway.key.slice(0, 17),
      'petstore.cost': 1,
    })
    expect(others.map(({ kind }) => kind).sort()).toEqual([INTERNAL, INTERNAL, INTERNAL, INTERNAL, INTERNAL, CLIENT])
    expect(spans.find(({ kind }) => kind === CLIENT)?.attributes).toEqual({
      'db.system.name': 'postgresql',
      'db.operation.name': 'SELECT',
      'db.collection.name': 'Pet',
      'db.query.summary': 'SELECT Pet',
    })
    await gateway.lineOf(rest.spanId)
    expect(gateway.logged()).toContainEqual(expect.objectContaining({ traceId: rest.traceId, spanId: rest.spanId }))

    const query = 'query Mine($id: Int64!) { pet(petId: $id) { category { name } inventory { quantity } } }'
    const graphql = await gateway.spansOf(
      await gateway.ask('POST', '/graphql', { body: { query, variables: { id }, operationName: 'Mine' } }),
    )
    expect(treeOf(graphql).flat()).toEqual(['POST /graphql', ...STEPS, expect.anything()])
    expect(new Set(treeOf(graphql).flat(2).slice(7))).toEqual(
      new Set(['SELECT Pet', 'SELECT Category', 'SELECT InventoryItem']),
    )
    expect(graphql[0]?.attributes).toMatchObject({
      'http.route': '/graphql',
      'graphql.operation.type': 'query',
      'graphql.operation.name': 'getPet',
    })
    const several = await gateway.ask('POST', '/graphql', { body: { query: '{ a: pets { id } categories { id } }' } })
    expect((await gateway.spansOf(several))[0]?.attributes).toMatchObject({ 'graphql.operation.name': 'several' })

    const keyed = { headers: { 'idempotency-key': 'k' }, body: { name: 'Dogs' } }
    const performed = treeOf(await gateway.spansOf(await gateway.ask('POST', '/categories', keyed)))
    expect(performed.flat(3)).toEqual(
      expect.arrayContaining([
        'POST /categories',
        'INSERT Category IdempotentAnswer',
        'INSERT IdempotentAnswer',
        'COMMIT',
      ]),
    )
    await gateway.ask('PATCH', `/inventory/${id}`, { body: { quantity: 1 } })
    const sold = await gateway.ask('POST', '/store/orders?takeStock=true', { body: { petId: id } })
    expect(treeOf(await gateway.spansOf(sold)).flat(3)).toContain('INSERT Order Pet InventoryItem')
  })

  test('continue the trace of the client: one that is sampled, one that is not, and none', async () => {
    const sampled = await gateway.ask('GET', '/pets', {
      headers: { traceparent: traceparent('01'), tracestate: 'vendor=1' },
    })
    const unsampled = await gateway.ask('GET', '/pets', { headers: { traceparent: traceparent('00') } })
    const none = await gateway.ask('GET', '/pets', { headers: { traceparent: 'x' } })
    expect([sampled.flags, unsampled.flags, none.flags]).toEqual(['01', '00', '01'])
    expect([sampled.traceId, unsampled.traceId]).toEqual([
      traceparent('01').slice(3, 35),
      traceparent('00').slice(3, 35),
    ])
    expect((await gateway.spansOf(none))[0]).toMatchObject({ parentSpanId: '' })
    const spans = await gateway.spansOf(sampled)
    expect(spans[0]).toMatchObject({ parentSpanId: '00f067aa0ba902b7', traceState: 'vendor=1' })
    expect(spans.length).toBeGreaterThan(5)
    expect(gateway.collector.spans().filter(({ traceId }) => traceId === unsampled.traceId)).toEqual([])
    await gateway.lineOf(unsampled.spanId)
  })

  test('say why a request was refused, and that this is not a failure of the service', async () => {
    const limits = ['--minute-limit', '1', '--day-limit', '1']
    const poor = await keys(env, 'create', '--name', 'Poor', '--plan', 'Enterprise', ...limits)
    const asPoor = { headers: { 'x-api-key': poor.key } }
    await gateway.ask('GET', '/pets', asPoor)
    const refused = [
      [await gateway.ask('GET', '/pets', { headers: { 'x-api-key': 'none' } }), 'GET /pets', 401, 'unauthorized', []],
      [await gateway.ask('GET', '/pets', asPoor), 'GET /pets', 429, 'rate_limited', ['admission', 'quota']],
      [
        await gateway.ask('GET', '/pets/x'),
        'GET /pets/{petId}',
        400,
        'invalid_request',
        ['admission', 'quota', 'validate'],
      ],
      [await gateway.ask('GET', '/nowhere/7'), 'GET', 404, 'not_found', ['admission', 'quota']],
      [await gateway.ask('PROPFIND', '/pets'), 'HTTP', 405, 'method_not_allowed', ['admission', 'quota']],
    ] as const
    for (const [answer, name, status, code, steps] of refused) {
      expect(answer.status).toBe(status)
      const spans = await gateway.spansOf(answer)
      // The key may be looked up.
      const names = spans.slice(1).flatMap((span) => (span.kind === CLIENT ? [] : span.name))
      // They arrive in the order of their ends, and a read may end before the quota is decided.
      expect(names.sort((a, b) => STEPS.indexOf(a) - STEPS.indexOf(b))).toEqual(['authenticate', ...steps])
      expect(spans.map((span) => span.status)).toEqual(spans.map(() => UNSET))
      expect(spans[0]).toMatchObject({
        name,
        attributes: { 'http.response.status_code': status, 'petstore.error_code': code },
      })
      expect(spans[0]?.attributes).not.toHaveProperty('error.type')
    }
    const invalid = await gateway.ask('POST', '/graphql', { body: { query: '{ nothing }' } })
    expect((await gateway.spansOf(invalid))[0]).toMatchObject({
      name: 'POST /graphql',
      attributes: { 'petstore.error_code': 'invalid_request' },
    })
  })

  test('what a gateway reads for no request in particular, the history of keys, has none', async () => {
    const names: string[] = []
    // A look takes place every two seconds.
    for (const end = Date.now() + 2_500; Date.now() < end; )
      names.push(...(await gateway.spansOf(await gateway.ask('GET', '/pets'))).map(({ name }) => name))
    expect(names).toContain('SELECT Pet')
    expect(gateway.collector.spans().map(({ name }) => name)).not.toContain('SELECT ApiKeyEvent')
  })

  test('a statement that several requests share has a span in each of them, and these name each other', async () => {
    const ids = [(await gateway.createPet()).id, (await gateway.createPet('Tom')).id]
    const isShared = ({ name, links }: CollectedSpan) => name === 'SELECT Pet' && links.length > 0
    for (let tries = 0; !gateway.collector.spans().some(isShared); tries++) {
      expect(tries).toBeLessThan(50)
      const together = Array.from({ length: 32 }, (_, i) => gateway.ask('GET', `/pets/${ids[i % 2]}`))
      for (const answer of await Promise.all(together)) {
        const statements = (await gateway.spansOf(answer)).filter(({ name }) => name === 'SELECT Pet')
        expect(statements).toHaveLength(1)
      }
    }
    const spans = new Map(gateway.collector.spans().map((span) => [span.spanId, span]))
    for (const shared of [...spans.values()].filter(isShared))
      for (const link of shared.links) {
        const other = spans.get(link) as CollectedSpan
        expect(other).toMatchObject({ name: 'SELECT Pet', links: expect.arrayContaining([shared.spanId]) })
        expect(other.traceId).not.toBe(shared.traceId)
        expect(spans.get(other.parentSpanId)).toMatchObject({ name: 'execute', traceId: other.traceId })
      }
  })
})

test.each(['http/json', 'http/protobuf'])(
  'spans as %s are exported when the gateway stops, at the latest, and hold no secret and nothing that a client chose',
  async (protocol) => {
    const gateway = await open(await anyStore(), {
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_BSP_SCHEDULE_DELAY: '600000',
    })
    const { id } = await gateway.createPet('Zerberus')
    const headers = { 'x-request-id': 'my-request-id', 'user-agent': 'my-agent', cookie: 'my-cookie' }
    const query = `query MyName($v: Int64!) { myAlias: pet(petId: $v) { name } pets(search: "my-text") { id } }`
    const asked: [string, string, Asked][] = [
      ['GET', '/pets/4711004711', { headers }],
      ['GET', '/pets/my-path?x=my-query', { headers }],
      ['GET', '/pets?search=my-text&name=my-query', { headers }],
      ['PATCH', `/pets/${id}`, { body: { name: 'my-pet' }, headers: { ...headers, 'idempotency-key': 'my-key' } }],
      ['POST', '/pets', { body: { name: 'my-pet', categoryId: 4711004711 } }],
      ['POST', '/my-path', { body: {} }],
      ['GET', '/pets', { headers: { 'x-api-key': `${gateway.key}my-secret` } }],
      ['POST', '/graphql', { body: { query, operationName: 'MyName', variables: { v: 4711004711 } }, headers }],
      ['POST', '/graphql', { body: { query: '{ myField }', operationName: 'MyOther' }, headers }],
    ]
    for (const request of asked) await gateway.ask(...request)
    const { requests } = gateway.collector
    expect(requests).toEqual([])
    expect(await gateway.stop()).toBe(0)
    const text = requests.map(({ bytes }) => bytes.toString('latin1')).join()
    expect(text.match(/PATCH \/pets\/\{petId\}/g)?.length).toBe(1)
    expect(text).toContain(gateway.key.slice(0, 17))
    expect(text).not.toContain(gateway.key.slice(0, 25))
    expect(text).not.toMatch(
      /my-(request|agent|cookie|path|query|text|pet|key|secret)|My(Name|Other)|my(Alias|Field)|4711004711|Zerberus|Owner|= \$1/,
    )
  },
)

test.runIf(testDatabaseUrl)('a database that fails is a failure of the statement and of the request', async () => {
  const database = await openTestDatabase()
  onTestFinished(() => database.close())
  const proxy = await TcpProxy.open(database.url)
  const gateway = await open({ DATABASE_URL: database.env.DATABASE_URL as string }, { DATABASE_URL: proxy.url })
  await gateway.ask('GET', '/pets')
  await proxy.cut()
  const answer = await gateway.ask('GET', '/pets')
  expect(answer.status).toBe(503)
  const [own, ...others] = await gateway.spansOf(answer)
  expect(own).toMatchObject({
    status: ERROR,
    attributes: { 'http.response.status_code': 503, 'error.type': 'unavailable', 'petstore.error_code': 'unavailable' },
  })
  expect(others.find(({ name }) => name === 'SELECT Pet')).toMatchObject({
    status: ERROR,
    attributes: { 'error.type': expect.stringMatching(/^E[A-Z]+$/) },
  })
})

describe('the standard variables', () => {
  test('name the service and its attributes, add headers, ignore clients, and choose Protocol Buffers by default', async () => {
    const gateway = await open(await anyStore(), {
      OTEL_SERVICE_NAME: 'pets-of-ann',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20collector',
    })
    await gateway.spansOf(await gateway.ask('GET', '/pets'))
    expect(gateway.collector.resource()).toMatchObject({
      'service.name': 'pets-of-ann',
      'service.version': version,
      'service.instance.id': expect.any(String),
      'deployment.environment.name': 'test',
    })
    expect(gateway.collector.requests[0]?.headers.authorization).toBe('Bearer collector')

    const other = await open(await anyStore(), { OTEL_EXPORTER_OTLP_PROTOCOL: '', OTEL_PROPAGATORS: 'none' })
    const headers = { traceparent: traceparent('00') }
    const { traceId, spanId } = await other.ask('GET', '/pets', { headers })
    expect(headers.traceparent).not.toContain(traceId)
    const own = () => other.collector.decoded().find((span) => span.spanId === spanId)
    await expect.poll(own).toEqual({ traceId, spanId, parentSpanId: '', name: 'GET /pets' })
    const below = other.collector.decoded().filter(({ parentSpanId }) => parentSpanId === spanId)
    expect(below.map(({ name }) => name)).toEqual(expect.arrayContaining(['admission', 'quota', 'validate', 'execute']))
  })

  test('choose what is sampled: the client does not, if the sampler ignores it', async () => {
    const gateway = await open(await anyStore(), { OTEL_TRACES_SAMPLER: 'always_off' })
    const headers = { traceparent: traceparent('01') }
    expect(await gateway.ask('GET', '/pets', { headers })).toMatchObject({
      flags: '00',
      traceId: headers.traceparent.slice(3, 35),
    })
    expect(await gateway.stop()).toBe(0)
    expect(gateway.collector.requests).toEqual([])
  })

  test('turn spans off', async () => {
    const OTEL_EXPORTER_OTLP_ENDPOINT = 'http://127.0.0.1:4318'
    const goal = (more: Environment) => collectorOf(readSettings({ OTEL_EXPORTER_OTLP_ENDPOINT, ...more }))?.url
    expect(goal({})).toBe(OTEL_EXPORTER_OTLP_ENDPOINT)
    expect(goal({ OTEL_TRACES_EXPORTER: 'none' })).toBeUndefined()
    expect(goal({ OTEL_EXPORTER_OTLP_ENDPOINT: '' })).toBeUndefined()
    const gateway = await open(await anyStore(), { OTEL_SDK_DISABLED: 'true' })
    expect((await gateway.ask('GET', '/pets')).traceId).toBe('')
    const known = await gateway.ask('GET', '/pets', { headers: { traceparent: traceparent('01') } })
    expect(known).toMatchObject({ flags: '01', traceId: traceparent('01').slice(3, 35) })
    expect(await gateway.stop()).toBe(0)
    expect(gateway.collector.requests).toEqual([])
  })

  test('are refused if their value is not supported', () => {
    const read = () => readSettings({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_TRACES_SAMPLER: 'jaeger_remote' })
    expect(read).toThrow(
      /^OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"; it must be http\/protobuf \(its port is 4318\) or http\/json\nOTEL_TRACES_SAMPLER is "jaeger_remote"; it must be always_on, .* or parentbased_traceidratio$/,
    )
  })
})

test('probes and the port of operators have no spans', async () => {
  const admin = await freePort()
  const env = await anyStore()
  const first = await open(env)
  for (const path of ['/healthz', '/readyz', '/metrics']) expect((await fetch(first.url + path)).status).toBe(200)
  expect(await first.stop()).toBe(0)
  expect(first.collector.spans()).toEqual([])
  const second = await open(env, { ADMIN_PORT: String(admin) })
  const response = await fetch(`http://127.0.0.1:${admin}/healthz`)
  expect(response.headers.get('traceparent')).toBeNull()
  await fetch(`http://127.0.0.1:${admin}/nothing`)
  expect(await second.stop()).toBe(0)
  expect(second.collector.spans()).toEqual([])
})

test('a collector that is away hurts no request and is one warning; spans arrive when it is back', async () => {
  const port = await freePort()
  const limits = {
    OTEL_EXPORTER_OTLP_TIMEOUT: '200',
    OTEL_BSP_MAX_QUEUE_SIZE: '16',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '16',
  }
  const gateway = await open(await anyStore(), { ...limits, OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` })
  const warnings = () => gateway.logged().filter(({ level }) => Number(level) >= 40)
  const askMany = async () => {
    for (let i = 0; i < 20; i++) expect((await gateway.ask('GET', '/pets')).status).toBe(200)
  }
  await askMany()
  await expect.poll(() => warnings().length).toBeGreaterThan(0)
  for (let i = 0; i < 5; i++) {
    await askMany()
    await sleep(100)
  }
  expect(warnings()).toEqual([
    expect.objectContaining({ reason: expect.any(String), msg: 'the collector takes no spans; they are lost' }),
  ])
  const collector = await startCollector(port)
  while (collector.requests.length === 0) await gateway.ask('GET', '/pets')
  await expect.poll(() => gateway.logged().map(({ msg }) => msg)).toContain('the collector takes spans again')
  expect(await gateway.stop()).toBe(0)
})

test('a gateway that stops does not wait for a collector that is away', async () => {
  const away = await open(await anyStore(), { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await freePort()}` })
  await away.ask('GET', '/pets')
  expect(await away.stop()).toBe(0)
})
