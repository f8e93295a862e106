import { setTimeout as sleep } from 'node:timers/promises'
import { isEnumType, isInputObjectType, isObjectType, isScalarType, isSpecifiedScalarType } from 'graphql'
import { describe, expect, test } from 'vitest'
import { schema } from '../schema/index.js'
import { times } from './support/calls.js'
import { sharedGateway, useGateway } from './support/gateway.js'
import { dial, statuses } from './support/sockets.js'
import { openWatchedDatabase } from './support/statements.js'

const database = await openWatchedDatabase()
const { statements } = database
const gateway = await sharedGateway({ database })

/** A category with pets, each with orders. */
const createCategory = (pets = 1, orders = 0) =>
  gateway.prisma.category.create({
    data: {
      name: 'Cats',
      pets: {
        create: times(pets, () => ({
          name: 'Tom',
          orders: { create: times(orders, (i) => ({ quantity: i + 1 })) },
        })),
      },
    },
    include: { pets: { include: { orders: true }, orderBy: { id: 'asc' } } },
  })

const data = async (query: string, variables?: object) => {
  const { body, text } = await gateway.graphql(query, variables)
  expect(body.errors, text).toBeUndefined()
  return body.data
}

test('every scalar of this API names the page that specifies it', () => {
  const scalars = Object.values(schema.getTypeMap()).filter(isScalarType)
  const own = scalars.filter((scalar) => !isSpecifiedScalarType(scalar))
  expect(own.map(({ name }) => name).sort()).toEqual(['DateTime', 'Int64'])
  for (const { specifiedByURL } of own) expect(specifiedByURL).toMatch(/^https:\/\//)
})

test('every type, field, argument and value has a description', () => {
  const nameless = Object.values(schema.getTypeMap()).flatMap((type) => {
    if (type.name.startsWith('__')) return []
    const parts: { name: string; description?: string | null }[] = [type]
    if (isEnumType(type)) parts.push(...type.getValues())
    if (isObjectType(type) || isInputObjectType(type)) parts.push(...Object.values(type.getFields()))
    if (isObjectType(type)) parts.push(...Object.values(type.getFields()).flatMap(({ args }) => args))
    return parts.filter(({ description }) => !description?.trim()).map(({ name }) => `${type.name}: ${name}`)
  })
  expect(nameless).toEqual([])
})

describe('the graph', () => {
  test('has relations in both directions between all resources', async () => {
    const category = await createCategory(1, 1)
    const [pet] = category.pets
    const query = `query ($category: Int64!, $pet: Int64!, $order: Int64!) {
      category(categoryId: $category) { pets { id } }
      pet(petId: $pet) { category { id } inventory { petId quantity status } orders { id } }
      order(orderId: $order) { pet { id } }
      inventoryItem(petId: $pet) { pet { id } }
    }`
    const [id, petId, orderId] = [category.id, pet?.id, pet?.orders[0]?.id].map(Number)
    expect(await data(query, { category: id, pet: petId, order: orderId })).toEqual({
      category: { pets: [{ id: petId }] },
      pet: {
        category: { id },
        inventory: { petId, quantity: 0, status: 'available' },
        orders: [{ id: orderId }],
      },
      order: { pet: { id: petId } },
      inventoryItem: { pet: { id: petId } },
    })
  })

  test('leads from every resource to every other and back, to whole rows', async () => {
    const { id: categoryId, pets } = await createCategory(1, 1)
    const petId = Number(pets[0]?.id)
    const all: Record<string, string> = {
      category: 'id name',
      pet: 'id name status categoryId',
      pets: 'id name status categoryId',
      orders: 'id petId quantity complete',
      inventory: 'petId quantity status',
    }
    const next: Record<string, string[]> = {
      category: ['pets'],
      pet: ['category', 'inventory', 'orders'],
      pets: ['category', 'inventory', 'orders'],
      orders: ['pet'],
      inventory: ['pet'],
    }
    const lists = ['pets', 'orders']
    const select = (name: string, depth: number): string =>
      `{ ${all[name]} ${depth > 0 ? next[name]?.map((below) => `${below}${lists.includes(below) ? '(limit: 2)' : ''} ${select(below, depth - 1)}`).join(' ') : ''} }`
    const roots = { category: `category(categoryId: ${categoryId})`, pets: `pets(id: [${petId}])` }
    for (const [name, field] of Object.entries(roots)) await data(`{ ${field} ${select(name, 4)} }`)
    await data(`{ pet(petId: ${petId}) ${select('pet', 4)} inventoryItem(petId: ${petId}) ${select('inventory', 4)} }`)
    await data(
      `{ orders(petId: ${petId}, limit: 2) ${select('orders', 4)} inventory(limit: 1) ${select('inventory', 4)} }`,
    )
  })

  test('nested lists have the same pagination as root lists: 20 by default, starting after the given id', async () => {
    const category = await createCategory(22, 0)
    const ids = category.pets.map(({ id }) => ({ id: Number(id) }))
    const query = `query ($id: Int64!, $limit: Int, $after: Int64) {
      category(categoryId: $id) { standard: pets { id } page: pets(limit: $limit, after: $after) { id } }
    }`
    const variables = { id: Number(category.id), limit: 3, after: ids[4]?.id }
    expect((await data(query, variables)).category).toEqual({ standard: ids.slice(0, 20), page: ids.slice(5, 8) })
    expect((await data(query, { ...variables, after: ids[20]?.id })).category.page).toEqual(ids.slice(21))
  })
})

describe('errors', () => {
  test('a field that fails leaves the data of the other fields', async () => {
    const { id } = await createCategory()
    const { status, body } = await gateway.graphql(
      `{ category(categoryId: ${id}) { name } pet(petId: 999999) { id } wide: pets(limit: 101) { id } }`,
    )
    expect(status).toBe(200)
    expect(body.data).toEqual({ category: { name: 'Cats' }, pet: null, wide: null })
    expect(body.errors).toEqual([
      expect.objectContaining({ path: ['wide'], extensions: { code: 'invalid_request', status: 400 } }),
      expect.objectContaining({ path: ['pet'], extensions: { code: 'not_found', status: 404 } }),
    ])
  })

  describe('a field of a mutation that is null because of something below it', () => {
    const REFUSED: [string, string, string][] = [
      ['a limit of a list', 'id category { pets(limit: 0) { id } }', 'pets'],
      ['a limit in a variable', 'id category { pets(limit: $limit) { id } }', 'pets'],
      ['a limit in a fragment', '...OfPet', 'orders'],
      ['an argument of a connection', 'id ordersConnection(first: 101) { totalCount }', 'ordersConnection'],
      ['a cursor', 'ordersConnection(after: "x") { totalCount }', 'ordersConnection'],
      ['nothing', 'id', ''],
    ]
    const fragments = 'fragment OfPet on Pet { id orders(limit: 0) { id } }'
    const withFragments = (operation: string, selection: string) =>
      selection.includes('...') ? `${operation} ${fragments}` : operation

    test.each(REFUSED)('has changed nothing, and other fields have: %s', async (_, selection, last) => {
      const { id } = (await gateway.post('/categories', { name: 'Cats' })).body
      const { body: pet } = await gateway.post('/pets', { name: 'Old', categoryId: id })
      const operation = `mutation ${selection.includes('$') ? '($limit: Int)' : ''} {
        before: createPet(input: { name: "Before", categoryId: ${id} }) { name }
        one: updatePet(petId: ${pet.id}, input: { name: "New" }) { ${selection} }
        two: createPet(input: { name: "Two", categoryId: ${id} }) { ${selection} }
        after: createPet(input: { name: "After", categoryId: ${id} }) { name category { id } }
      }`
      const { body } = await gateway.graphql(withFragments(operation, selection), { limit: 0 })
      const { pets } = (await gateway.graphql(`{ pets(categoryId: ${id}, limit: 10) { name } }`)).body.data
      const names = pets.map(({ name }: { name: string }) => name)
      expect(body.data).toMatchObject({ before: { name: 'Before' }, after: { name: 'After', category: { id } } })
      if (last === '') return expect(names).toEqual(['New', 'Before', 'Two', 'After'])
      expect([body.data.one, body.data.two]).toEqual([null, null])
      expect(body.errors.map(({ path }: { path: string[] }) => [path[0], path.at(-1)])).toEqual([
        ['one', last],
        ['two', last],
      ])
      for (const { extensions } of body.errors) expect(extensions).toEqual({ code: 'invalid_request', status: 400 })
      expect(names).toEqual(['Old', 'Before', 'After'])
    })

    test.each(REFUSED)('has changed nothing if it is the only one: %s', async (_, selection, last) => {
      const { id } = (await gateway.post('/categories', { name: 'Cats' })).body
      const operation = `mutation ${selection.includes('$') ? '($limit: Int)' : ''} {
        createPet(input: { name: "One", categoryId: ${id} }) { ${selection} }
      }`
      const { body } = await gateway.graphql(withFragments(operation, selection), { limit: 0 })
      expect([body.data.createPet === null, body.errors?.[0].path.at(-1)]).toEqual([last !== '', last || undefined])
      expect(await gateway.prisma.pet.count({ where: { categoryId: id } })).toBe(last === '' ? 1 : 0)
    })
  })

  test('a syntax error names the problem and its position', async () => {
    const { body } = await gateway.graphql('{ pets { tokens')
    expect(body.errors[0]).toMatchObject({
      message: 'Syntax Error: Expected Name, found <EOF>.',
      locations: [{ line: 1, column: 16 }],
    })
  })
})

describe('deletes', () => {
  test('return the deleted pet with its relations', async () => {
    const [pet] = (await createCategory()).pets
    const query = `mutation { deletePet(petId: ${pet?.id}) { name category { name } inventory { quantity } orders { id } } }`
    expect((await data(query)).deletePet).toEqual({
      name: 'Tom',
      category: { name: 'Cats' },
      inventory: { quantity: 0 },
      orders: [],
    })
    expect(await gateway.prisma.inventoryItem.count({ where: { petId: pet?.id } })).toBe(0)
  })

  test('return the deleted order and category', async () => {
    const category = await createCategory(1, 1)
    const [pet] = category.pets
    const order = await data(`mutation { deleteOrder(orderId: ${pet?.orders[0]?.id}) { quantity pet { name } } }`)
    expect(order.deleteOrder).toEqual({ quantity: 1, pet: { name: 'Tom' } })
    await data(`mutation { deletePet(petId: ${pet?.id}) { id } }`)
    const deleted = await data(`mutation { deleteCategory(categoryId: ${category.id}) { name pets { id } } }`)
    expect(deleted.deleteCategory).toEqual({ name: 'Cats', pets: [] })
  })

  test('return the lists of rows that are reached through others, too', async () => {
    const { pets } = await createCategory(1, 0)
    const stock = (limit: number) => `inventory { pet { orders(limit: ${limit}) { id } } }`
    const answer = await gateway.graphql(
      `mutation { deletePet(petId: ${pets[0]?.id}) { a: ${stock(1)} b: ${stock(2)} } }`,
    )
    const none = { pet: { orders: [] } }
    expect(answer.body).toEqual({ data: { deletePet: { a: none, b: none } } })
    expect((await gateway.get(`/pets/${pets[0]?.id}`)).status).toBe(404)
  })
})

describe('the database cost of a document', () => {
  const deep = `query ($id: [Int64!]) { pets(id: $id, limit: 5) { name category { name pets(limit: 3) { id } }
    orders(limit: 10) { quantity pet { name inventory { quantity status } } } } }`
  const twoPages = `query ($id: [Int64!]) { pets(id: $id) { first: orders(limit: 1) { id } more: orders(limit: 5, after: 1) { id } } }`

  test.each([
    // One for each field that reads: pets, category, orders, pets, pet, inventory.
    ['lists within lists', deep, 6],
    ['two pages of one list', twoPages, 2],
  ])('%s need a fixed number of statements, whatever the number of rows', async (_, query, most) => {
    const count = async (pets: number, orders: number) => {
      const category = await createCategory(pets, orders)
      statements.length = 0
      const rows = (await data(query, { id: category.pets.map(({ id }) => Number(id)) })).pets
      expect(rows).toHaveLength(pets)
      // The gateway reads a key again when its row is a few seconds old.
      return statements.filter((statement) => !statement.includes('"ApiKey')).length
    }
    await data(query, { id: [1] }) // the key is cached from here on
    const few = await count(1, 1)
    expect(few).toBeGreaterThan(0)
    expect(few).toBeLessThanOrEqual(most)
    expect(await count(5, 8)).toBe(few)
  })
})

describe('an unexpected error', () => {
  test('returns internal on both surfaces, reveals no details, and is logged with the request id', async () => {
    const broken = await useGateway()
    await broken.prisma.$executeRawUnsafe('ALTER TABLE "Order" RENAME COLUMN "quantity" TO "amount"')
    const message = 'Something went wrong on our side.'

    const rest = await broken.get('/store/orders', { headers: { 'x-request-id': 'rest-1' } })
    expect([rest.status, rest.body]).toEqual([500, { code: 'internal', message, status: 500 }])

    const query = '{ orders { quantity } categories { id } }'
    const graphql = await broken.graphql(query, {}, { headers: { 'x-request-id': 'graphql-1' } })
    expect(graphql.body).toEqual({
      errors: [
        {
          message,
          path: ['orders'],
          locations: [{ line: 1, column: 3 }],
          extensions: { code: 'internal', status: 500 },
        },
      ],
      data: { orders: null, categories: [] },
    })
    for (const id of ['rest-1', 'graphql-1'])
      expect(broken.logged.map((line) => JSON.parse(line))).toContainEqual(
        expect.objectContaining({ level: 50, requestId: id, err: expect.objectContaining({ code: '42703' }) }),
      )
  })
})

describe('an execution', () => {
  /** A gateway on whose database the queries of categories take a while. */
  async function useSlowGateway(ms: number, deadlineMs?: number) {
    const wait = async <Args, Result>({ args, query }: { args: Args; query: (args: Args) => Promise<Result> }) => {
      await sleep(ms)
      return query(args)
    }
    const prisma = database.prisma.$extends({ query: { category: { create: wait } } })
    const query: typeof database.query = async (statement, values) => {
      if (statement.tables.includes('Category')) await sleep(ms)
      return database.query(statement, values)
    }
    return useGateway({
      database: { ...database, prisma: prisma as unknown as typeof database.prisma, query, close: async () => {} },
      deadlineMs,
    })
  }

  test('that takes longer than its deadline returns 503 with Retry-After', async () => {
    const slow = await useSlowGateway(3_000, 1_500)
    const { status, body, headers } = await slow.graphql('{ categories { id } }')
    expect([status, body.errors[0].extensions]).toEqual([503, { code: 'unavailable', status: 503 }])
    expect([body.data, headers.get('retry-after')]).toEqual([undefined, expect.stringMatching(/^[1-9]\d*$/)])
    expect((await slow.graphql('{ pets { id } }')).status).toBe(200)
  })

  test('of a client that half-closes goes on, and the client gets the answer', async () => {
    const slow = await useSlowGateway(1_300)
    const body = JSON.stringify({ query: 'mutation { createCategory(input: { name: "Slow" }) { name } }' })
    const lines = ['Host: localhost', `X-API-Key: ${slow.key}`, 'Content-Type: application/json']
    for (const version of ['1.1', '1.0']) {
      const socket = await dial(slow)
      socket.end(
        `POST /graphql HTTP/${version}\r\n${lines.join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      )
      const all = await statuses(socket)
      expect([version, all.filter((status) => status !== 102)]).toEqual([version, [200]])
      // HTTP/1.0 has no interim responses.
      expect(all.includes(102)).toBe(version === '1.1')
    }
  })

  test('ends when its client disconnects', async () => {
    const slow = await useSlowGateway(300)
    const { url } = await slow.listen()
    const create = (alias: string) => `${alias}: createCategory(input: { name: "Gone ${alias}" }) { id }`
    const request = fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${slow.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query: `mutation { ${[...'abcdefgh'].map(create).join(' ')} }` }),
      signal: AbortSignal.timeout(150),
    })
    await expect(request).rejects.toThrow()
    await sleep(3_000)
    expect(await slow.prisma.category.count({ where: { name: { startsWith: 'Gone' } } })).toBeLessThan(8)
  })
})
