import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { operations, schema } from '../schema/index.js'
import { fill } from '../schema/kit/operations.js'
import { contents, resetStore } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'

// Keys that may only read.

const TTL = 50
const gateway = await sharedGateway({ keyTtlMs: TTL })
await resetStore(gateway.prisma)
const { key, row } = await gateway.createLimitedKey(1_000_000, 1_000_000, { access: 'read' })

const create = 'mutation { createCategory(input: { name: "Birds" }) { id } }'
const forbidden = {
  status: 403,
  body: { code: 'forbidden', message: 'This API key may only read: it cannot change data.', status: 403 },
}

test.each(operations)('$name is $type: a read key may call it if it reads, on both surfaces', async (operation) => {
  const { rest, type, field } = operation
  const before = await contents(gateway.prisma)
  const args = operation.pathArguments.map(({ name }) => name)
  const path = fill(rest.path, Object.fromEntries(args.map((name) => [name, 1])))
  // Nothing in it is valid: access is judged first.
  const rested = await gateway.call(rest.method, path, { key, body: operation.body && { wrong: true } })
  if (type === 'Mutation') expect(rested).toMatchObject(forbidden)
  else expect(rested.status).toBe(200)
  const call = args.length > 0 ? `(${args.map((name) => `${name}: 1`)})` : ''
  const { status, body } = await gateway.graphql(
    `${type.toLowerCase()} { ${field.name}${call} { __typename } }`,
    {},
    { key },
  )
  if (type === 'Mutation') {
    expect([status, body.data]).toEqual([403, undefined])
    expect(body.errors[0].extensions).toEqual({ code: 'forbidden', status: 403 })
  } else expect([status, body.errors]).toEqual([200, undefined])
  expect(await contents(gateway.prisma)).toEqual(before)
})

test('a GraphQL document with a mutation beside a query: only the operation that is asked for counts', async () => {
  const query = `query Read { categories { id } } ${create.replace('mutation', 'mutation Write')}`
  const send = async (operationName: string) =>
    (await gateway.post('/graphql', { query, operationName }, { key })).status
  expect([await send('Read'), await send('Write')]).toEqual([200, 403])
  expect(Object.keys(schema.getMutationType()?.getFields() ?? {}).length).toBeGreaterThan(5)
})

describe('access is judged in its place', () => {
  const huge = ' '.repeat(200_000)
  test.each<[string, number, string, string, object]>([
    ['after the path', 404, 'POST', '/nothing', {}],
    ['after the method', 405, 'DELETE', '/pets', {}],
    ['before the size', 403, 'POST', '/pets', { body: huge }],
    ['before the type', 403, 'POST', '/pets', { body: 'x', headers: { 'content-type': 'text/plain' } }],
    ['before the values', 403, 'PATCH', '/pets/0', { body: {} }],
    ['before conditions', 403, 'DELETE', '/pets/1', { headers: { 'if-match': 'nonsense' } }],
    ['before an Idempotency-Key', 403, 'POST', '/pets', { body: {}, headers: { 'idempotency-key': 'é' } }],
  ])('%s in REST', async (_, status, method, path, call) => {
    expect((await gateway.call(method, path, { key, ...call })).status).toBe(status)
  })

  test.each<[string, number, string, object]>([
    ['before validation', 403, 'mutation { createCategory { nonsense } }', {}],
    ['before values', 403, create.replace('"Birds"', '""'), {}],
    ['before an Idempotency-Key', 403, create, { headers: { 'idempotency-key': 'a'.repeat(256) } }],
    [
      'after the syntax',
      400,
      'mutation { createCategory(',
      { headers: { accept: 'application/graphql-response+json' } },
    ],
    ['after document limits', 400, `mutation { ${'a:createCategory '.repeat(11)} }`, {}],
    [
      'after the cost',
      400,
      create.replace('{ id }', '{ pets(limit: 100) { orders(limit: 100) { id pet { id } } } }'),
      {},
    ],
  ])('%s in GraphQL', async (_, status, query, call) => {
    expect((await gateway.graphql(query, {}, { key, ...call })).status).toBe(status)
  })

  test('after the method in GraphQL: a mutation by GET returns 405', async () => {
    expect((await gateway.get(`/graphql?query=${encodeURIComponent(create)}`, { key })).status).toBe(405)
  })

  test.each([
    [401, 'unauthorized', { revokedAt: new Date(0) }],
    [429, 'key_banned', { bannedUntil: new Date(Date.now() + 60_000) }],
  ])('after %s %s', async (status, code, data) => {
    const { key } = await gateway.createKey({ access: 'read', ...data })
    expect(await gateway.post('/pets', {}, { key })).toMatchObject({ status, body: { code } })
    expect(await gateway.graphql(create, {}, { key })).toMatchObject({ status, code })
  })

  test('after the quota, which a forbidden request is taken from', async () => {
    const { key } = await gateway.createLimitedKey(2, 10, { access: 'read' })
    const costs = []
    for (const send of [
      () => gateway.post('/pets', {}, { key }),
      () => gateway.graphql(create, {}, { key }),
      () => gateway.post('/pets', {}, { key }),
    ]) {
      const { status, headers } = await send()
      costs.push([status, headers.get('x-ratelimit-cost'), headers.get('x-ratelimit-remaining')])
    }
    expect(costs).toEqual([
      [403, '1', '1'],
      [403, '1', '0'],
      [429, '0', '0'],
    ])
  })
})

test('a change of access takes effect within the TTL of the cache; replays are forbidden too', async () => {
  const set = async (access: 'read' | 'write') => {
    await gateway.prisma.apiKey.update({ where: { id: row.id }, data: { access } })
    await sleep(TTL + 50)
  }
  const post = () => gateway.post('/categories', { name: 'Birds' }, { key, headers: { 'idempotency-key': 'access' } })
  await set('write')
  const first = await post()
  expect(first.status).toBe(201)
  await set('read')
  expect(await post()).toMatchObject(forbidden)
  await set('write')
  expect(await post()).toMatchObject({ status: 201, text: first.text })
  await set('read')
})
