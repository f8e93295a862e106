import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { operations } from '../schema/index.js'
import { expandQuery, fill, type Operation } from '../schema/kit/operations.js'
import { cases } from './resources/index.js'
import { callGraphql, graphqlRequest, resetStore, times } from './support/calls.js'
import type { Answer } from './support/gateway.js'
import { sharedGateway } from './support/gateway.js'

// `expand` adds related objects to what GETs return: as GraphQL has them, and for the same price.

const gateway = await sharedGateway()
const { prisma } = gateway
const expandable = operations.filter(({ expansions }) => expansions.length > 0)
const costOf = ({ headers }: Answer) => Number(headers.get('x-ratelimit-cost'))

/** What names the object of an operation: arguments with which it succeeds. */
const idsOf = ({ name, pathArguments }: Operation) => {
  const args = cases[name]?.find(([outcome]) => outcome === 'success')?.[1] ?? {}
  return Object.fromEntries(pathArguments.map((argument) => [argument.name, args[argument.name]]))
}

const ask = (operation: Operation, names: readonly string[]) =>
  gateway.get(`${fill(operation.rest.path, idsOf(operation))}?${expandQuery(names)}`)

const subsets = (names: readonly string[]) =>
  times(2 ** names.length, (bits) => names.filter((_, i) => bits & (1 << i))).filter(({ length }) => length > 0)

describe('what GETs can expand', () => {
  test('is what they refer to and what that refers to, but no way back', () => {
    const names = Object.fromEntries(operations.map(({ name, expansions }) => [name, expansions]))
    expect(names).toMatchObject({
      categories: [],
      category: [],
      pets: ['category', 'inventory'],
      pet: ['category', 'inventory'],
      orders: ['pet', 'pet.category'],
      order: ['pet', 'pet.category'],
      inventory: ['pet', 'pet.category'],
      inventoryItem: ['pet', 'pet.category'],
      quota: [],
      usage: [],
    })
    const writes = operations.filter(({ type }) => type === 'Mutation')
    expect(writes.flatMap(({ expansions }) => expansions)).toEqual([])
  })

  const combinations = expandable.flatMap((operation) =>
    subsets(operation.expansions).map((names) => [operation.name, names, operation] as const),
  )
  test.each(combinations)('%s with %j returns what GraphQL returns', async (name, names, operation) => {
    await resetStore(prisma)
    const rest = await ask(operation, names)
    const graphql = await callGraphql(gateway, operation, idsOf(operation), names)
    // What has no value is absent in REST, and null in GraphQL.
    const { [name]: data } = JSON.parse(JSON.stringify(graphql.body.data), (_, value) => value ?? undefined)
    expect([rest.status, rest.body]).toEqual([200, data])
    expect([data].flat().length).toBeGreaterThan(0)
    expect(costOf(rest)).toBe(costOf(graphql))
  })

  test('are not there without it, and the price is 1', async () => {
    await resetStore(prisma)
    const plain = await gateway.get('/pets?limit=1')
    expect([plain.text, costOf(plain)]).toEqual(['[{"id":1,"name":"Tom","categoryId":2,"status":"available"}]', 1])
    for (const operation of expandable) {
      const { body } = await ask(operation, [])
      const names = Object.keys([body].flat()[0])
      expect(names.filter((name) => operation.expansions.includes(name))).toEqual([])
    }
  })

  test('may be named in any order, and twice', async () => {
    await resetStore(prisma)
    const one = await gateway.get('/pets?expand=category&expand=inventory')
    const other = await gateway.get('/pets?expand=inventory&expand=category')
    expect(other.body).toEqual(one.body)
    expect((await gateway.get('/pets?expand=category&expand=category')).status).toBe(200)
    expect(one.body[0]).toEqual({
      id: 1,
      name: 'Tom',
      categoryId: 2,
      status: 'available',
      category: { id: 2, name: 'Cats' },
      inventory: { petId: 1, quantity: 0, status: 'available' },
    })
  })
})

describe('a page of 120 pets', () => {
  beforeAll(async () => {
    await resetStore(prisma)
    await prisma.pet.createMany({ data: times(117, (i) => ({ name: `Pet ${i}`, categoryId: 1n })) })
  })

  const both = 'expand=category&expand=inventory'
  test.each([
    [`limit=100&${both}`, 3],
    [`limit=67&${both}`, 3],
    [`limit=66&${both}`, 2],
    [`limit=34&${both}`, 2],
    [`limit=33&${both}`, 1],
    [both, 1],
    ['limit=50&expand=category', 1],
    ['limit=0050&expand=category', 1],
    ['limit=51&expand=category', 2],
    [`id=${times(33, (i) => i + 1).join('&id=')}&${both}`, 1],
    [`id=${times(34, (i) => i + 1).join('&id=')}&${both}`, 2],
    [`id=${times(100, (i) => i + 1).join('&id=')}&${both}`, 3],
    // The price does not depend on what is found.
    [`limit=100&${both}&sort=name&search=Nobody`, 3],
    [`limit=100&${both}&count=true`, 4],
    ['limit=100', 1],
  ])('%s costs %i', async (query, cost) => {
    const answer = await gateway.get(`/pets?${query}`)
    expect([answer.status, costOf(answer)]).toEqual([200, cost])
  })

  test.each(['pets', 'orders', 'inventory'])(
    'of %s costs what GraphQL takes for the same question, also a wrong one',
    async (name) => {
      const operation = operations.find((operation) => operation.name === name) as Operation
      const path = `${operation.rest.path}?${expandQuery(operation.expansions)}`
      for (const limit of [0, -1, 1, 20, 33, 34, 50, 51, 99, 100, 101, 1e15]) {
        const rest = await gateway.get(`${path}&limit=${limit}`)
        const body = graphqlRequest(operation, { limit }, operation.expansions)
        const graphql = await gateway.call('POST', '/graphql', { body })
        expect([limit, costOf(rest)]).toEqual([limit, costOf(graphql)])
      }
      const ids = operation.field.extensions.list?.ids as string
      for (const count of [1, 33, 34, 50, 51, 100]) {
        const given = times(count, (i) => i + 1)
        const rest = await gateway.get(`${path}&${given.map((id) => `${ids}=${id}`).join('&')}`)
        const body = graphqlRequest(operation, { [ids]: given }, operation.expansions)
        const graphql = await gateway.call('POST', '/graphql', { body })
        expect([count, costOf(rest)]).toEqual([count, costOf(graphql)])
      }
    },
  )

  test.each([
    [`limit=ten&${both}`, 3],
    [`limit=null&${both}`, 3],
    [`limit=&${both}`, 3],
    [`limit=0&${both}`, 3],
    [`limit=10&limit=100&${both}`, 1],
    [`${both}&expand=nothing`, 1],
    [`limit=100&expand=nothing`, 1],
  ])('that is refused costs what it asks for, and changes no other price: %s', async (query, cost) => {
    const answer = await gateway.get(`/pets?${query}`)
    expect([answer.status, costOf(answer)]).toEqual([400, cost])
    expect(costOf(await gateway.get(`/pets?${both}`))).toBe(1)
  })

  const ids = (count: number) => times(count, (i) => `id=${i + 1}`).join('&')
  test.each([
    [2, `limit=100&${both}`, 'with limit=66', `limit=66&${both}`],
    [1, 'limit=100&expand=category', 'with limit=50', 'limit=50&expand=category'],
    [1, `${ids(60)}&${both}`, 'for 33 ids', `${ids(33)}&${both}`],
    [2, `${ids(600)}&${both}`, 'for 66 ids', `${ids(66)}&${both}`],
    [2, `limit=100&${both}&count=true`, 'with limit=33', `limit=33&${both}&count=true`],
    [1, `limit=1&${both}&count=true`, 'without count', `limit=1&${both}`],
    [1, `limit=100&${both}&count=true`, 'without count and with limit=33', `limit=33&${both}`],
    [2, `limit=100&${both}&count=false`, 'with limit=66', `limit=66&${both}&count=false`],
    [1, `limit=ten&${both}`, 'with limit=33', `limit=33&${both}`],
    [1, 'count=true', 'without count', 'limit=100'],
    [1, 'count=true&expand=nothing', 'without count', 'limit=20'],
  ])(
    'that costs more than the %i of a key is refused, and what would fit does: %s',
    async (limit, query, change, fitting) => {
      const refused = await gateway.get(`/pets?${query}`, { key: (await gateway.createLimitedKey(limit)).key })
      expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining(` It would fit ${change}.`)])
      const { key } = await gateway.createLimitedKey(limit)
      expect((await gateway.get(`/pets?${fitting}`, { key })).status).toBe(200)
    },
  )

  test('is followed by its Link, which keeps expand', async () => {
    const seen: number[] = []
    let path: string | undefined = `/pets?limit=50&${both}`
    while (path) {
      const { body, headers } = await gateway.get(path)
      for (const pet of body) expect([pet.category.id, pet.inventory.petId]).toEqual([pet.categoryId, pet.id])
      seen.push(...body.map(({ id }: { id: number }) => id))
      path = /<https?:\/\/[^/]+(.*)>/.exec(headers.get('link') ?? '')?.[1]
    }
    expect(seen).toEqual(times(120, (i) => i + 1))
  })

  test('has its total, its tag, 304 and HEAD as without', async () => {
    const path = `/pets?limit=2&count=true&${both}`
    const answer = await gateway.get(path)
    const etag = answer.headers.get('etag') as string
    expect(answer.headers.get('x-total-count')).toBe('120')
    expect(etag).not.toBe((await gateway.get('/pets?limit=2&count=true')).headers.get('etag'))

    const head = await gateway.call('HEAD', path)
    expect([head.status, head.text, head.headers.get('etag')]).toEqual([200, '', etag])
    const unchanged = await gateway.get(path, { headers: { 'if-none-match': etag } })
    expect([unchanged.status, unchanged.text]).toEqual([304, ''])
    // The tag follows the related objects.
    await gateway.patch('/inventory/2', { quantity: 8 })
    const changed = await gateway.get(path, { headers: { 'if-none-match': etag } })
    expect([changed.status, changed.body[1].inventory.quantity]).toEqual([200, 8])
  })
})

test('the tag of an answer with expand is not one that If-Match takes: the message says so', async () => {
  await resetStore(prisma)
  const etag = (await gateway.get('/pets/1?expand=category')).headers.get('etag') as string
  const { status, body } = await gateway.patch('/pets/1', { name: 'Renamed' }, { headers: { 'if-match': etag } })
  expect([status, body.message]).toEqual([412, expect.stringContaining('with expand')])
})

test('a key that may only read can expand', async () => {
  const { key } = await gateway.createKey({ access: 'read' })
  expect((await gateway.get('/pets?expand=inventory', { key })).status).toBe(200)
})

describe('a wrong expand', () => {
  beforeEach(() => resetStore(prisma))

  const repeat = 'For several values, repeat the parameter: expand=category&expand=inventory.'
  test.each([
    ['/pets?expand=orders', 'The query parameter expand is "orders"; it must be category or inventory.'],
    ['/pets?expand=', 'The query parameter expand is ""; it must be category or inventory.'],
    [
      '/pets?expand=category;inventory',
      `The query parameter expand is "category;inventory"; it must be category or inventory. ${repeat}`,
    ],
    [
      '/store/orders?expand=pet,pet.category',
      'The query parameter expand is "pet,pet.category"; it must be pet or pet.category. For all of them, write expand=pet.category.',
    ],
    [
      '/pets?expand=category,inventory',
      `The query parameter expand is "category,inventory"; it must be category or inventory. ${repeat}`,
    ],
    ['/pets?expand[]=category', `The query parameter "expand[]" is unknown; did you mean expand? ${repeat}`],
    [
      '/pets?expand=Category',
      'The query parameter expand is "Category"; it must be category or inventory. Did you mean category?',
    ],
    [
      '/pets?expand=category&expand=inventory&expand=category',
      'The query parameter expand is a list of 3 items; it must have at most 2 items.',
    ],
    ['/pets?expand=__proto__', 'The query parameter expand is "__proto__"; it must be category or inventory.'],
    [
      '/pets?expand=inventory.pet',
      'The query parameter expand is "inventory.pet"; it must be category or inventory. Did you mean inventory?',
    ],
    [
      '/pets?expand=a&expand=b&limit=0',
      'The query parameter expand is "a"; it must be category or inventory. The query parameter expand is "b"; it must be category or inventory. The query parameter limit is 0; it must be at least 1.',
    ],
    ['/pets/1?expand=pet', 'The query parameter expand is "pet"; it must be category or inventory.'],
    [
      '/store/orders?expand=category',
      'The query parameter expand is "category"; it must be pet or pet.category. Did you mean pet.category?',
    ],
    ['/inventory/2?expand=orders', 'The query parameter expand is "orders"; it must be pet or pet.category.'],
    ['/pets?include=category', 'The query parameter include is unknown; did you mean expand?'],
    ['/pets?embed=category', 'The query parameter embed is unknown; did you mean expand?'],
  ])('is refused: %s', async (path, message) => {
    const { status, body } = await gateway.get(path)
    expect([status, body]).toEqual([400, { code: 'invalid_request', message, status: 400 }])
  })

  test('is unknown where there is nothing to expand', async () => {
    for (const path of ['/categories', '/categories/1', '/quota']) {
      const { status, body } = await gateway.get(`${path}?expand=pets`)
      expect([status, body.message]).toEqual([400, expect.stringContaining('expand is unknown')])
    }
    const write = await gateway.patch('/pets/1?expand=category', { name: 'Renamed' })
    expect([write.status, (await gateway.get('/pets/1')).body.name]).toEqual([400, 'Tom'])
  })

  test('does not hide that the thing does not exist, or that no such id can', async () => {
    expect((await gateway.get('/pets/999?expand=category')).status).toBe(404)
    const { body } = await gateway.get('/pets/x?expand=category')
    expect(body.message).toContain('petId')
  })
})

test('a list is returned whole while its pets are deleted', async () => {
  await resetStore(prisma)
  await prisma.pet.createMany({ data: times(300, (i) => ({ name: `Pet ${i}`, categoryId: 1n })) })
  const path = '/pets?limit=100&expand=category&expand=inventory'
  let isDone = false
  const deletions = (async () => {
    for (const chunk of times(15, (i) => times(20, (j) => 4 + 20 * i + j)))
      await Promise.all(chunk.map((id) => gateway.delete(`/pets/${id}`)))
    isDone = true
  })()
  const answers: Answer[] = []
  while (!isDone) answers.push(...(await Promise.all(times(4, () => gateway.get(path)))))
  await deletions
  expect([...new Set(answers.map(({ status }) => status))]).toEqual([200])
  expect(answers.length).toBeGreaterThan(4)
  for (const { body } of answers) for (const pet of body) expect(pet.inventory.petId).toBe(pet.id)
})
