import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { operations } from '../schema/index.js'
import { ApiError } from '../schema/kit/errors.js'
import { fill } from '../schema/kit/operations.js'
import { listen } from '../src/gateway/http/server.js'
import { callGraphql } from './support/calls.js'
import { type Call, type Gateway, sharedGateway, testRedisUrl, useGateway } from './support/gateway.js'
import { TcpProxy } from './support/proxy.js'
import { samples } from './support/samples.js'
import { sql } from './support/sql.js'

const gateway = await sharedGateway()
beforeEach(() => {
  gateway.logged.length = 0
})

const lines = ({ logged }: Gateway) => logged.map((line) => JSON.parse(line))
/** The lines of requests at level info. */
const requestLines = (of: Gateway) => lines(of).filter(({ msg, level }) => msg === 'request' && level === 30)

/** The line of a request. */
async function logged(method: string, path: string, call?: Call) {
  gateway.logged.length = 0
  await gateway.call(method, path, call)
  const all = requestLines(gateway)
  expect(all).toHaveLength(1)
  return all[0]
}

const query = (text: string, call: Call = {}) => logged('POST', '/graphql', { ...call, body: { query: text } })

describe('the log line of a request', () => {
  test('has id, surface, operation, key prefix, cost, status and duration, and nothing else', async () => {
    const { row, key } = await gateway.createKey()
    const line = await logged('GET', '/pets?limit=1', { key, headers: { 'x-request-id': 'abc' } })
    expect(line).toEqual({
      level: 30,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      msg: 'request',
      requestId: 'abc',
      surface: 'rest',
      operation: 'listPets',
      method: 'GET',
      key: row.prefix,
      cost: 1,
      status: 200,
      durationMs: expect.any(Number),
    })
  })

  test.each([
    ['{ pets { id } }', 'listPets'],
    ['query Name { a: pet(petId: 1) { id } b: pet(petId: 2) { id } }', 'getPet'],
    ['{ ...F } fragment F on Query { quota { plan } ... { pets { id } } }', 'getQuota,listPets'],
    ['mutation { createCategory(input: { name: "Cats" }) { id } }', 'createCategory'],
    ['{ __schema { description } }', 'introspection'],
    ['{ __typename }', undefined],
    ['{ nothing }', undefined],
    ['subscription { constructor }', undefined],
    ['{', undefined],
  ])('names the GraphQL operation %s as the document names it: %s', async (text, operation) => {
    const line = await query(text)
    expect([line.surface, line.operation]).toEqual(['graphql', operation])
  })

  test('says why a request was refused', async () => {
    expect(await logged('GET', '/pets', { key: null })).toMatchObject({ status: 401, refusal: 'unauthorized', cost: 1 })
    expect(await logged('GET', '/pets/9999')).toMatchObject({ status: 404, refusal: 'not_found', operation: 'getPet' })
    expect(await query('{ pet(petId: 9999) { id } }')).toMatchObject({ status: 200, refusal: 'not_found' })
    const { key } = await gateway.createKey({ bannedUntil: new Date(Date.now() + 60_000) })
    expect(await logged('GET', '/pets', { key })).toMatchObject({ status: 429, refusal: 'key_banned', cost: 0 })
  })

  test('is written for malformed HTTP too', async () => {
    await gateway.app.malformed('127.0.0.1', new ApiError('request_timeout'))
    expect(requestLines(gateway)).toMatchObject([{ surface: 'other', status: 408, refusal: 'request_timeout' }])
  })

  test('is at level debug for probes, which come every second', async () => {
    await gateway.get('/healthz')
    expect(lines(gateway)).toMatchObject([{ msg: 'request', level: 20 }])
  })

  test('no line holds a secret, wherever the client puts it', async () => {
    const { key: secret, row } = await gateway.createKey()
    const places: [string, string, Call][] = [
      ['GET', '/pets', { key: null, headers: { 'x-api-key': secret } }],
      ['GET', `/pets?api_key=${secret}`, {}],
      ['GET', `/pets/${secret}`, {}],
      ['GET', `/${secret}`, {}],
      ['POST', '/pets', { body: { name: secret, categoryId: 1 } }],
      ['POST', '/pets', { body: `${secret} is not JSON` }],
      ['POST', '/graphql', { body: { query: `query ${secret} { pets { id } }`, operationName: secret } }],
      ['POST', '/graphql', { body: { query: `{ ${secret}: pets { id } }` } }],
      ['POST', '/graphql', { body: { query: `{ ${secret} }` } }],
      ['GET', '/pets', { headers: { cookie: secret, referer: secret, 'user-agent': secret, traceparent: secret } }],
    ]
    gateway.logged.length = 0
    for (const place of places) await gateway.call(...place)
    expect(requestLines(gateway)).toHaveLength(places.length)
    expect(gateway.logged.join('')).toContain(row.prefix)
    expect(gateway.logged.join('')).not.toContain(secret.slice(row.prefix.length))
    expect(gateway.logged.join('')).not.toContain(row.hash)
  })
})

describe('W3C Trace Context', () => {
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const parentId = '00f067aa0ba902b7'
  const ask = async (traceparent: string, path = '/quota') =>
    (await gateway.get(path, { headers: { traceparent } })).headers.get('traceparent')

  test.each([
    ['version 00', `00-${traceId}-${parentId}-01`, '01'],
    ['a trace that is not sampled', `00-${traceId}-${parentId}-00`, '00'],
    ['unknown flags, which are not passed on', `00-${traceId}-${parentId}-fd`, '01'],
    ['a later version', `cc-${traceId}-${parentId}-01`, '01'],
    ['a later version with more fields', `cc-${traceId}-${parentId}-01-what.the.future.will.be`, '01'],
  ])('answers %s with the same trace id and a new span id, which are in the log', async (_, given, flags) => {
    const [, version, trace, span, flag] = /^(..)-(.{32})-(.{16})-(..)$/.exec((await ask(given)) ?? '') ?? []
    expect([version, trace, flag]).toEqual(['00', traceId, flags])
    expect(span).toMatch(/^[\da-f]{16}$/)
    expect(span).not.toBe(parentId)
    expect(requestLines(gateway)).toMatchObject([{ traceId, spanId: span }])
  })

  test.each([
    ['none', ''],
    ['garbage', 'x'],
    ['version ff', `ff-${traceId}-${parentId}-01`],
    ['version 00 with more fields', `00-${traceId}-${parentId}-01-x`],
    ['capital letters', `00-${traceId.toUpperCase()}-${parentId}-01`],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${parentId}-01`],
    ['a parent id of zeros', `00-${traceId}-${'0'.repeat(16)}-01`],
    ['a trace id that is too short', `00-${traceId.slice(1)}-${parentId}-01`],
    ['flags that are too long', `00-${traceId}-${parentId}-011`],
    ['two of them', `00-${traceId}-${parentId}-01, 00-${traceId}-${parentId}-01`],
  ])('ignores %s', async (_, given) => {
    expect(await ask(given)).toBeNull()
    expect(requestLines(gateway)[0]).not.toHaveProperty('traceId')
  })

  test('refusals and probes have it too', async () => {
    for (const path of ['/nowhere', '/pets/x', '/healthz', '/docs'])
      expect(await ask(`00-${traceId}-${parentId}-01`, path), path).toContain(traceId)
  })
})

test.each(operations)(
  '$operationId has this one name in the log and in the metrics, on both surfaces and for HEAD',
  async (operation) => {
    const { operationId: name, rest, pathArguments } = operation
    const own = await gateway.openBeside()
    const args = {
      ...Object.fromEntries(pathArguments.map((arg) => [arg.name, 1])),
      ...(operation.body && { input: {} }),
    }
    const [method, path] = [rest.method, fill(rest.path, args)]
    await own.call(method, path, operation.body && { body: {} })
    if (method === 'GET') await own.call('HEAD', path)
    await callGraphql(own, operation, args)
    const calls = method === 'GET' ? ['rest', 'rest', 'graphql'] : ['rest', 'graphql']
    expect(requestLines(own).map(({ surface, operation }) => [surface, operation])).toEqual(
      calls.map((surface) => [surface, name]),
    )
    const counted = (await samples(own, 'petstore_requests_total')) as unknown as { operation: string; value: number }[]
    expect(new Set(counted.map(({ operation }) => operation))).toEqual(new Set([name]))
    expect(counted.reduce((sum, { value }) => sum + value, 0)).toBe(calls.length)
  },
)

describe('metrics', () => {
  test('count requests, cost, refusals and bans by the operation names of the log, and by plan', async () => {
    const own = await useGateway({ env: { BAN_AFTER: '1' } })
    const { key, row } = await own.createKey()
    await own.get('/pets', { key })
    await own.get('/pets/9999', { key })
    await own.graphql('{ pets { id } }', {}, { key })
    await own.graphql('{ pets { id } quota { plan } }', {}, { key })
    await own.get('/pets', { key: null })
    const by = (surface: string, operation: string, plan: string, status: string) => ({
      surface,
      operation,
      plan,
      status,
      value: 1,
    })
    expect(await samples(own, 'petstore_requests_total')).toEqual([
      by('rest', 'listPets', 'Free', '200'),
      by('rest', 'getPet', 'Free', '404'),
      by('graphql', 'listPets', 'Free', '200'),
      by('graphql', 'several', 'Free', '200'),
      by('rest', 'listPets', 'none', '401'),
    ])
    expect(await samples(own, 'petstore_cost_total')).toEqual([
      { surface: 'rest', plan: 'Free', value: 2 },
      { surface: 'graphql', plan: 'Free', value: 2 },
      { surface: 'rest', plan: 'none', value: 1 },
    ])
    expect(await samples(own, 'petstore_refusals_total')).toEqual([
      { surface: 'rest', plan: 'Free', reason: 'not_found', value: 1 },
      { surface: 'rest', plan: 'none', reason: 'unauthorized', value: 1 },
    ])
    expect(await samples(own, 'petstore_request_duration_seconds_count')).toContainEqual({
      surface: 'rest',
      operation: 'getPet',
      value: 1,
    })
    const refused = async () => (await own.get('/pets', { key })).body.code
    await expect.poll(refused, { interval: 20 }).toBe('key_banned')
    expect(await samples(own, 'petstore_bans_total')).toEqual([{ plan: 'Free', value: 1 }])
    expect((await own.prisma.apiKey.findUniqueOrThrow({ where: { id: row.id } })).plan).toBe('Free')
  })

  test('report the pool, Redis, and the delay of the event loop', async () => {
    await gateway.get('/pets')
    const states = await samples(gateway, 'petstore_database_connections')
    expect(states).toEqual([
      { state: 'in_use', value: expect.any(Number) },
      { state: 'idle', value: expect.any(Number) },
    ])
    expect(states.reduce((sum, { value }) => sum + value, 0)).toBeGreaterThan(0)
    expect(await samples(gateway, 'petstore_database_waiting')).toEqual([{ value: 0 }])
    expect(await samples(gateway, 'petstore_limits_degraded')).toEqual([{ value: 0 }])
    expect(await samples(gateway, 'nodejs_eventloop_lag_p99_seconds')).toHaveLength(1)
  })

  test('name the version that runs', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
    const [build] = await samples(gateway, 'petstore_build_info')
    expect(build).toEqual({ version, commit: '', node: process.versions.node, value: 1 })
  })

  test('report how long the database takes to read, write and commit, and each error by its kind', async () => {
    const own = await useGateway()
    const count = async (operation: string) =>
      (await samples(own, 'petstore_database_duration_seconds_count'))
        .filter((sample) => sample.operation === operation)
        .map(({ result, value }) => [result, value])
    const errors = async () =>
      Object.fromEntries((await samples(own, 'petstore_database_errors_total')).map(({ kind, value }) => [kind, value]))
    const none = { unreachable: 0, full: 0, timeout: 0, conflict: 0, constraint: 0, read_only: 0, other: 0 }
    expect(await errors()).toEqual(none)
    const reads = (await count('read'))[0]?.[1] ?? 0
    await own.get('/pets')
    expect(await count('read')).toEqual([
      ['answered', expect.toSatisfy((value) => value > reads)],
      ['failed', 0],
    ])
    await own.post('/categories', { name: 'Cats' }, { headers: { 'idempotency-key': 'one' } })
    for (const operation of ['write', 'commit'])
      expect(await count(operation)).toEqual([
        ['answered', expect.toSatisfy((value) => value > 0)],
        ['failed', 0],
      ])
    await expect(own.database.query(sql('SELECT 1 / 0'), [])).rejects.toThrow()
    const twice = sql(`INSERT INTO "Category" (id, name) VALUES (1, 'Cats')`)
    await expect(own.database.query(twice, [])).rejects.toThrow()
    expect(await errors()).toEqual({ ...none, constraint: 1, other: 1 })
    expect(await count('connect')).toEqual([['failed', 0]])
  })

  test.runIf(testRedisUrl)('report how long commands to Redis take, and those that fail', async () => {
    const proxy = await TcpProxy.open(testRedisUrl as string)
    const own = await useGateway({ redisUrl: proxy.url, redisTimeoutMs: 30_000 })
    const counted = async (wanted: string) => {
      const all = await samples(own, 'petstore_redis_duration_seconds_count')
      return all.find((sample) => 'result' in sample && sample.result === wanted)?.value ?? 0
    }
    const before = await counted('answered')
    for (let i = 0; i < 5; i++) await own.get('/pets')
    expect(await counted('answered')).toBeGreaterThanOrEqual(before + 5)
    expect(await counted('failed')).toBe(0)
    await proxy.cut()
    await expect.poll(() => counted('failed')).toBeGreaterThan(1)
  })

  test('have as many series after hundreds of strange requests as after the first ones', async () => {
    const own = await useGateway()
    // The usage of keys is written now and then: its series must be there before the first count.
    await own.post('/categories', { name: 'Birds' })
    const strange = async (from: number) => {
      for (let i = from; i < from + 40; i++) {
        await own.call(i % 2 ? 'PURGE' : 'GET', `/strange-${i}`)
        await own.get(`/pets/${i + 9000}`)
        await own.graphql(`query N${i} { a${i}: pets { id } }`)
        await own.graphql(`{ a: pets { id } ${i % 3 ? 'quota { plan }' : ''} ${i % 5 ? 'orders { id }' : ''} }`)
        await own.graphql(`{ strange${i} }`)
      }
      return (await own.get('/metrics')).text.match(/^petstore_.*\}/gm)?.length
    }
    const first = await strange(0)
    expect(await strange(40)).toBe(first)
  })

  test('docs/operators.md has every metric of the gateway, and only metrics that exist', async () => {
    const page = readFileSync('docs/operators.md', 'utf8')
    const { text } = await gateway.get('/metrics')
    const exposed = [...text.matchAll(/^# TYPE (petstore_\w+)/gm)].map(([, name]) => name)
    const named = [...page.matchAll(/\bpetstore_(?!restored)[a-z_]+/g)].map(([name]) =>
      name.replace(/_(bucket|count|sum)$/, ''),
    )
    expect([...new Set(named)].sort()).toEqual(exposed.sort())
  })
})

describe.each([
  ['without a base path', ''],
  ['with a base path', '/v1'],
])('/metrics %s', (_, base) => {
  // A proxy that denies this path must not be deceived by another that leads to it.
  const others = [
    ...['//metrics', '/metrics/', '/metrics;a', '/%6detrics', '/metrics%00', '/./metrics', '/../metrics'],
    ...['/x/../metrics', '/x/%2e%2e/metrics', '/pets/%2e%2e/metrics', '/pets/.%2E/metrics', '/x\\..\\metrics'],
    ...['/\\metrics', 'http://a.example/x/../metrics', 'http://a.example//metrics', `${base}/../metrics`],
    ...[`${base || '/v1'}/metrics`, 'http://a.example#/metrics', '/metrics#a', '/x#/metrics', 'http://a@b/metrics'],
    ...['http:///metrics', 'metrics'],
  ]

  test.each([
    ['PORT', {}],
    ['ADMIN_PORT', { ADMIN_PORT: '9000' }],
  ])('has one path on %s', async (port, env) => {
    const of = await useGateway({ env: { BASE_URL: `https://api.example.com${base}`, ...env } })
    const server = await listen(port === 'PORT' ? of.app : of.app.admin, { port: 0, host: '127.0.0.1' })
    onTestFinished(() => server.close())
    // Not fetch, because it resolves dots.
    const ask = async (path: string) => {
      const sent = request({ port: server.port, path, headers: { 'x-api-key': of.key } }).end()
      const [response] = await once(sent, 'response')
      return [response.statusCode, (await response.toArray()).join('')]
    }
    for (const path of ['/metrics', '/metrics?a=/x', 'http://a.example/metrics'])
      expect(await ask(path), path).toEqual([200, expect.stringContaining('petstore_requests_total')])
    for (const path of others)
      expect(await ask(path), path).toEqual([expect.toBeOneOf([400, 404]), expect.stringContaining('"code"')])
  })
})

describe('ADMIN_PORT', () => {
  test('moves health and metrics to a port of their own, where nothing else is', async () => {
    const moved = await useGateway({ env: { ADMIN_PORT: '9000' } })
    const admin = await listen(moved.app.admin, { port: 0, host: '127.0.0.1' })
    onTestFinished(() => admin.close())
    const ask = async (path: string, method = 'GET') => {
      const response = await fetch(`http://127.0.0.1:${admin.port}${path}`, { method })
      const marks = [...response.headers.keys()].filter((name) => /ratelimit|access-control/.test(name))
      expect(marks).toEqual([])
      return { status: response.status, text: await response.text() }
    }
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      expect((await moved.get(path)).status, path).toBe(404)
      expect((await moved.get(path, { key: null })).status, path).toBe(401)
      expect((await ask(path)).status, path).toBe(200)
      expect(await ask(path, 'HEAD'), path).toEqual({ status: 200, text: '' })
    }
    expect(JSON.parse((await ask('/healthz', 'POST')).text)).toMatchObject({ code: 'method_not_allowed', status: 405 })
    moved.logged.length = 0
    const absent = ['/', '/pets', '/graphql', '/docs', '/openapi.json']
    for (const path of absent)
      expect(JSON.parse((await ask(path)).text), path).toMatchObject({ code: 'not_found', status: 404 })
    expect(lines(moved).map(({ surface, operation }) => [surface, operation])).toEqual(
      absent.map(() => ['other', undefined]),
    )
    expect((await ask('/metrics')).text).toContain('petstore_requests_total')
    moved.app.drain()
    expect((await ask('/readyz')).status).toBe(503)
  })
})
