import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { resetStore, times } from './support/calls.js'
import { type Answer, sharedGateway } from './support/gateway.js'
import { testDatabaseUrl } from './support/postgres.js'
import { sql } from './support/sql.js'
import { openWatchedDatabase } from './support/statements.js'

// Batches: many things in one request, all or none.

interface Node {
  'Actual Rows': number
  'Actual Loops': number
  Plans?: Node[]
}

const database = await openWatchedDatabase()
const { statements } = database
const gateway = await sharedGateway({ database })
beforeEach(() => resetStore(gateway.prisma))

const newPets = (count: number) => times(count, (i) => ({ name: `Pet ${i}`, categoryId: 1 + (i % 2) }))

/** All that is stored. */
const stored = async () => {
  const [pets, inventory, orders] = await Promise.all(
    ['/pets?limit=100', '/inventory?limit=100', '/store/orders?limit=100'].map(
      async (path) => (await gateway.get(path)).body,
    ),
  )
  return { pets, inventory, orders }
}

/** The answer is a refusal, and nothing has changed. */
async function expectRefusal(send: () => Promise<Answer>, status: number, message: RegExp | string) {
  const before = await stored()
  const { status: found, body } = await send()
  expect([found, body.message]).toEqual([status, expect.stringMatching(message)])
  expect(await stored()).toEqual(before)
}

const used = async (key: string) => {
  const { minute } = (await gateway.get('/quota', { key })).body
  return minute.limit - minute.remaining
}

/** Each batch, with an item that works. */
const batches = [
  ['POST', '/pets/batch', 'createPets', { name: 'Rex', categoryId: 1 }],
  ['PATCH', '/pets/batch', 'updatePets', { id: 1, name: 'Rex' }],
  ['PATCH', '/inventory/batch', 'updateInventories', { petId: 1, quantity: 5 }],
  ['POST', '/store/orders/batch', 'createOrders', { petId: 1, quantity: 2 }],
  ['PATCH', '/store/orders/batch', 'updateOrders', { id: 1, complete: true }],
  ['POST', '/categories/batch', 'createCategories', { name: 'Birds' }],
  ['POST', '/inventory/adjustments', 'adjustInventories', { petId: 1, by: 2 }],
] as const

const send = (method: 'POST' | 'PATCH', path: string, body: unknown, call = {}) =>
  method === 'POST' ? gateway.post(path, body, call) : gateway.patch(path, body, call)

describe('a batch of new pets', () => {
  test.each([1, 100])('of %i returns them in the order of the items, each with its stock', async (count) => {
    const { status, body, headers } = await gateway.post('/pets/batch', newPets(count))
    expect(status).toBe(201)
    expect(body).toEqual(newPets(count).map((pet, i) => ({ ...pet, id: body[0].id + i, status: 'available' })))
    expect([headers.get('location'), headers.get('etag')]).toEqual([null, expect.any(String)])
    const last = body.at(-1)
    expect((await gateway.get(`/pets?id=${last.id}`)).body).toEqual([last])
    expect((await gateway.get(`/inventory/${last.id}`)).body).toMatchObject({ quantity: 0, status: 'available' })
  })

  test('of the longest names fits into a body', async () => {
    const pets = times(100, () => ({ name: '𠮷'.repeat(100), categoryId: 1, status: 'pending' }))
    const { status, body } = await gateway.post('/pets/batch', pets)
    expect([status, body.length, body[99].name]).toEqual([201, 100, '𠮷'.repeat(100)])
  })

  test('can be asked for with everything below it in GraphQL', async () => {
    const query = `mutation ($input: [NewPet!]!) {
      createPets(input: $input) { name status category { id } inventory { quantity } orders { id } }
    }`
    const { body } = await gateway.graphql(query, { input: newPets(3) })
    expect(body.data.createPets).toEqual(
      newPets(3).map(({ name, categoryId }) => ({
        name,
        status: 'available',
        category: { id: categoryId },
        inventory: { quantity: 0 },
        orders: [],
      })),
    )
  })

  test('is written by one statement, however many they are', async () => {
    await gateway.post('/pets/batch', newPets(1))
    const countOf = async (count: number) => {
      statements.length = 0
      expect((await gateway.post('/pets/batch', newPets(count))).status).toBe(201)
      return statements.filter((text) => /"Pet"/.test(text)).length
    }
    expect([await countOf(1), await countOf(100)]).toEqual([1, 1])
  })
})

describe('a batch of changes', () => {
  test('changes of each thing what is sent, and returns all in the order of the items', async () => {
    const changes = [{ id: 3, status: 'sold' }, { id: 1, name: ' Tomcat ', categoryId: 2 }, { id: 2 }]
    const before = (await stored()).pets
    const { status, body } = await gateway.patch('/pets/batch', changes)
    expect([status, body]).toEqual([
      200,
      [{ ...before[2], status: 'sold' }, { ...before[0], name: 'Tomcat', categoryId: 2 }, before[1]],
    ])
    expect((await stored()).pets).toEqual([body[1], body[2], body[0]])
    expect((await gateway.get('/inventory/3')).body.status).toBe('sold')
  })

  test('that change nothing returns the things', async () => {
    const { pets } = await stored()
    expect((await gateway.patch('/pets/batch', [{ id: 2 }, { id: 1 }])).body).toEqual([pets[1], pets[0]])
  })

  test('of stock counts is a stock-take', async () => {
    const counts = [
      { petId: 2, quantity: 0 },
      { petId: 1, quantity: 2_147_483_647 },
    ]
    const { status, body } = await gateway.patch('/inventory/batch', counts)
    expect([status, body]).toEqual([
      200,
      [
        { ...counts[0], status: 'sold' },
        { ...counts[1], status: 'available' },
      ],
    ])
    expect((await stored()).inventory).toMatchObject([counts[1], counts[0], { petId: 3 }])
  })

  test('has the result of its changes one by one', async () => {
    const change = fc.record(
      {
        name: fc
          .string({ unit: 'grapheme', minLength: 1, maxLength: 9 })
          .map((text) => `n${text.replaceAll('\0', '')}n`),
        categoryId: fc.integer({ min: 1, max: 2 }),
        status: fc.constantFrom('available', 'pending', 'sold'),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.integer({ min: 0, max: 4 }), { minLength: 1 }),
        fc.array(change, { minLength: 5, maxLength: 5 }),
        async (places, changes) => {
          const { body: together } = await gateway.post('/pets/batch', newPets(5))
          const { body: apart } = await gateway.post('/pets/batch', newPets(5))
          const changed = await gateway.patch(
            '/pets/batch',
            places.map((i) => ({ id: together[i].id, ...changes[i] })),
          )
          const singles: unknown[] = []
          for (const i of places) singles.push((await gateway.patch(`/pets/${apart[i].id}`, changes[i])).body)
          const bare = (pets: { id: number }[]) => pets.map(({ id: _, ...pet }) => pet)
          expect(bare(changed.body)).toEqual(bare(singles as { id: number }[]))
        },
      ),
      { numRuns: 20 },
    )
  })
})

test.skipIf(!testDatabaseUrl)('a batch looks its rows up by their ids, however many there are', async () => {
  await gateway.prisma.$executeRaw`
    INSERT INTO "Pet" (name, "categoryId") SELECT 'Pet ' || i, 1 FROM generate_series(1, 20000) i`
  await gateway.prisma.$executeRaw`INSERT INTO "Order" ("petId") SELECT 1 FROM generate_series(1, 20000)`
  await gateway.prisma.$executeRaw`ANALYZE`
  const ids = times(100, (i) => 10 + 150 * i)
  const rows = (key: string, values: object) => JSON.stringify(ids.map((id) => ({ [key]: id, ...values })))
  const byOne = ids.map(() => -1)
  const order = { quantity: 1, complete: false }
  for (const [method, path, key, sent, parameters] of [
    ['PATCH', '/pets/batch', 'id', { status: 'sold' }, [rows('id', { status: 'pending' }), ids]],
    ['PATCH', '/inventory/batch', 'petId', { quantity: 5 }, [rows('petId', { quantity: 6 }), ids, ids]],
    ['POST', '/store/orders/batch', 'petId', {}, [rows('petId', order), ids]],
    ['PATCH', '/store/orders/batch', 'id', { quantity: 2 }, [rows('id', { quantity: 3 }), ids]],
    ['POST', '/store/orders/batch?takeStock=true', 'petId', {}, [rows('petId', order), ids, ids, byOne]],
    ['POST', '/inventory/adjustments', 'petId', { by: -1 }, [ids, byOne]],
  ] as const) {
    const body = ids.map((id) => ({ [key]: id, ...sent }))
    statements.length = 0
    expect((await send(method, path, body)).status).toBeLessThan(300)
    const [text = ''] = statements.filter((statement) => /"(Pet|InventoryItem|Order)"/.test(statement))
    const [row] = await database.query(sql(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`), [...parameters])
    const most = (node: Node): number =>
      Math.max(node['Actual Rows'] * node['Actual Loops'], ...(node.Plans ?? []).map(most))
    const [{ Plan: plan }] = (row as { 'QUERY PLAN': [{ Plan: Node }] })['QUERY PLAN']
    expect(most(plan), text).toBeLessThan(1_000)
  }
})

test('a batch completes orders, and changes complete ones as a single change does', async () => {
  const shipDate = '2027-01-01T08:00:00.000Z'
  const changes = [
    { id: 2, complete: true },
    { id: 1, shipDate, complete: true },
  ]
  const [first, second] = (await stored()).orders
  const { status, body } = await gateway.patch('/store/orders/batch', changes)
  expect([status, body]).toEqual([
    200,
    [
      { ...second, complete: true },
      { ...first, shipDate, complete: true },
    ],
  ])
  const reopened = [
    { id: 1, shipDate: null, complete: false },
    { id: 2, quantity: 9 },
  ]
  const { shipDate: _, ...open } = first
  expect((await gateway.patch('/store/orders/batch', reopened)).body).toEqual([
    { ...open, complete: false },
    { ...second, complete: true, quantity: 9 },
  ])
})

test('a batch of categories keeps descriptions and their absence, and the longest ones fit into a body', async () => {
  const longest = times(100, () => ({ name: 'n'.repeat(100), description: 'd'.repeat(1_000) }))
  const { status, body } = await gateway.post('/categories/batch', longest)
  expect([status, body]).toEqual([201, longest.map((category, i) => ({ ...category, id: body[0].id + i }))])
  const birds = [{ name: 'Birds' }, { name: ' Fish ', description: '' }]
  expect((await gateway.post('/categories/batch', birds)).body).toMatchObject([
    { name: 'Birds' },
    { name: 'Fish', description: '' },
  ])
})

test('a batch of orders keeps moments and their absence', async () => {
  const orders = [
    { petId: 2, shipDate: '2027-01-01T10:00:00+02:00' },
    { petId: 1, quantity: 7, complete: true },
  ]
  const { status, body } = await gateway.post('/store/orders/batch', orders)
  expect([status, body]).toEqual([
    201,
    [
      { id: body[0].id, petId: 2, quantity: 1, shipDate: '2027-01-01T08:00:00.000Z', complete: false },
      { id: body[0].id + 1, petId: 1, quantity: 7, complete: true },
    ],
  ])
})

describe('a batch that is refused changes nothing:', () => {
  test.each(batches)('%s %s of no items, and of 101', async (method, path, _name, item) => {
    const many = times(101, () => item)
    await expectRefusal(() => send(method, path, []), 400, 'must have at least 1 item')
    await expectRefusal(() => send(method, path, many), 400, 'must have at most 100 items')
    await expectRefusal(() => send(method, path, item), 400, 'The body is')
  })

  test('wrong values are named for every item, by their place', async () => {
    const pets = [...newPets(3), { name: '', categoryId: 1 }, { categoryId: 'x', color: 'red' }]
    await expectRefusal(() => gateway.post('/pets/batch', pets), 400, /\[3\]\.name is ""/)
    const { body } = await gateway.post('/pets/batch', pets)
    for (const name of ['[3].name', '[4].name', '[4].categoryId', '[4].color']) expect(body.message).toContain(name)
    expect(body.message).not.toMatch(/\[[0-2]\]/)
  })

  test.each([
    ['POST', '/pets/batch', 'NewPet', { name: 'Rex', categoryId: 1, status: null }, '[1].status'],
    ['PATCH', '/pets/batch', 'PetChange', { id: 2, name: null }, '[1].name'],
    ['POST', '/store/orders/batch', 'NewOrder', { petId: 1, quantity: null }, '[1].quantity'],
    ['PATCH', '/store/orders/batch', 'OrderChange', { id: 2, complete: null }, '[1].complete'],
    ['POST', '/categories/batch', 'NewCategory', { name: 'Fish', description: null }, '[1].description'],
  ] as const)('%s %s of %s with a null that clears nothing: %j', async (method, path, type, item, name) => {
    const found = batches.find((batch) => batch[0] === method && batch[1] === path)
    const [, , field, first] = found as (typeof batches)[number]
    const message = `${name} must not be null`.replace(/[[\].]/g, '\\$&')
    await expectRefusal(() => send(method, path, [first, item]), 400, message)
    const query = `mutation ($input: [${type}!]!) { ${field}(input: $input) { __typename } }`
    const { body } = await gateway.graphql(query, { input: [first, item] })
    expect(body.errors[0].message).toBe(`input${name} must not be null.`)
  })

  test.each(batches)('%s %s of a list in the list', async (method, path, _name, item) => {
    for (const inner of [[], [item], [item, item]])
      await expectRefusal(() => send(method, path, [inner]), 400, /^\[0\] is .*; it must be a JSON object\.$/)
  })

  test('null instead of a list', async () => {
    const query = 'mutation ($input: [OrderChange!]!) { updateOrders(input: $input) { id } }'
    const { body } = await gateway.graphql(query, { input: null })
    expect(body.errors[0].message).toBe('$input is null; it must be a JSON array.')
    await expectRefusal(
      () => gateway.patch('/store/orders/batch', 'null'),
      400,
      /^The body is null; it must be a JSON array\.$/,
    )
  })

  test('the same thing twice', async () => {
    const pets = [{ id: 1 }, { id: 2 }, { id: 1, name: 'Rex' }]
    await expectRefusal(
      () => gateway.patch('/pets/batch', pets),
      400,
      /^\[2\]\.id is 1; it must not be the same as in \[0\]\.$/,
    )
    const counts = times(2, () => ({ petId: 1, quantity: 1 }))
    await expectRefusal(() => gateway.patch('/inventory/batch', counts), 400, /^\[1\]\.petId is 1; it must not/)
    const { body } = await gateway.graphql('mutation { updatePets(input: [{ id: 1 }, { id: 1 }]) { id } }')
    expect(body.errors[0].message).toBe('input[1].id is 1; it must not be the same as in [0].')
  })

  test.each([[{ toString: 1, valueOf: 1 }], [JSON.parse(`${'['.repeat(4_000)}${']'.repeat(4_000)}`)], ['1'], [null]])(
    'what is no id',
    async (id) => {
      for (const [path, key] of [
        ['/pets/batch', 'id'],
        ['/inventory/batch', 'petId'],
      ] as const)
        await expectRefusal(
          () => gateway.patch(path, [{ [key]: id, quantity: 1 }, { [key]: id }]),
          400,
          `\\[0\\]\\.${key}`,
        )
    },
  )

  test('a reference to nothing, named by its place', async () => {
    const pets = [...newPets(57), { name: 'Rex', categoryId: 99 }, { name: 'Tim', categoryId: 98 }]
    await expectRefusal(() => gateway.post('/pets/batch', pets), 422, /^\[57\]\.categoryId 99 does not exist\.$/)
    const orders = [{ petId: 1 }, { petId: 99 }]
    await expectRefusal(() => gateway.post('/store/orders/batch', orders), 422, /^\[1\]\.petId 99 does not exist\.$/)
    const moved = [
      { id: 1, complete: true },
      { id: 2, petId: 99 },
    ]
    await expectRefusal(() => gateway.patch('/store/orders/batch', moved), 422, /^\[1\]\.petId 99 does not exist\.$/)
    const changes = [{ id: 1 }, { id: 2, categoryId: 99 }]
    await expectRefusal(() => gateway.patch('/pets/batch', changes), 422, /^\[1\]\.categoryId 99 does not exist\.$/)
  })

  test('a thing that does not exist, named by its place', async () => {
    const changes = [1, 77].map((id) => ({ id, name: 'Tim' }))
    await expectRefusal(() => gateway.patch('/pets/batch', changes), 404, /^There is no pet 77, which \[1\] names\.$/)
    await expectRefusal(() => gateway.patch('/pets/batch', [{ id: 77 }]), 404, /^There is no pet 77, which \[0\]/)
    const completed = [1, 66].map((id) => ({ id, complete: true }))
    await expectRefusal(
      () => gateway.patch('/store/orders/batch', completed),
      404,
      /^There is no order 66, which \[1\] names\.$/,
    )
    const counts = [88, 1].map((petId) => ({ petId, quantity: 1 }))
    await expectRefusal(() => gateway.patch('/inventory/batch', counts), 404, /pet 88, which \[0\] names\.$/)
  })

  test('If-Match, which names one thing', async () => {
    const headers = { 'if-match': '"x"' }
    await expectRefusal(() => gateway.patch('/pets/batch', [{ id: 1 }], { headers }), 400, 'If-Match')
  })
})

describe('the price of a batch', () => {
  test.each([
    [1, 1],
    [10, 1],
    [11, 2],
    [100, 10],
  ])('of %i items is %i on both surfaces', async (count, units) => {
    const { key } = await gateway.createKey({ plan: 'Business' })
    await gateway.post('/pets/batch', newPets(count), { key })
    expect(await used(key)).toBe(units)
    const mutation = 'mutation ($input: [NewPet!]!) { createPets(input: $input) { id } }'
    await gateway.graphql(mutation, { input: newPets(count) }, { key })
    expect(await used(key)).toBe(2 * units)
  })

  test('does not depend on a byte order mark', async () => {
    const { key } = await gateway.createKey({ plan: 'Business' })
    const { status } = await gateway.post('/pets/batch', `\ufeff${JSON.stringify(newPets(100))}`, { key })
    expect([status, await used(key)]).toEqual([201, 10])
  })

  test('is taken before it is performed: without enough left it is refused', async () => {
    const { key } = await gateway.createLimitedKey(12)
    expect((await gateway.post('/pets/batch', newPets(100), { key })).status).toBe(201)
    await expectRefusal(() => gateway.post('/pets/batch', newPets(100), { key }), 429, 'only 2 are left')
    expect((await gateway.post('/pets/batch', newPets(10), { key })).status).toBe(201)
    await expectRefusal(() => gateway.post('/pets/batch', newPets(11), { key }), 429, 'only 1 is left')
  })

  test.each([['not JSON'], ['{}'], ['[]'], [JSON.stringify(times(500, () => 1))]])(
    'of the body %j is that of a request that is refused',
    async (body) => {
      const { key } = await gateway.createKey({ plan: 'Business' })
      const { status } = await gateway.post('/pets/batch', body, { key })
      expect([status, await used(key)]).toEqual([400, body.length > 100 ? 10 : 1])
    },
  )
})

test('a batch with an Idempotency-Key is performed once, also one that is refused for stored data', async () => {
  const headers = { 'idempotency-key': 'import 1' }
  const first = await gateway.post('/pets/batch', newPets(50), { headers })
  const again = await gateway.post('/pets/batch', newPets(50), { headers })
  expect([first.status, again.body, again.headers.get('idempotency-replayed')]).toEqual([201, first.body, 'true'])
  expect((await gateway.post('/pets/batch', newPets(51), { headers })).body.code).toBe('idempotency_mismatch')

  const later = { 'idempotency-key': 'import 2' }
  const pets = [{ name: 'Rex', categoryId: 3 }]
  expect((await gateway.post('/pets/batch', pets, { headers: later })).status).toBe(422)
  await gateway.post('/categories', { name: 'Fish' })
  const replayed = await gateway.post('/pets/batch', pets, { headers: later })
  expect([replayed.status, replayed.headers.get('idempotency-replayed')]).toEqual([422, 'true'])
})

test('batches in opposite order, beside single changes, never fail each other', async () => {
  const { body: pets } = await gateway.post('/pets/batch', newPets(60))
  const ids: number[] = pets.map(({ id }: { id: number }) => id)
  const changes = (order: number[], status: string) => order.map((id) => ({ id, status }))
  const counts = (order: number[], quantity: number) => order.map((petId) => ({ petId, quantity }))
  const back = ids.toReversed()
  const orders = back.map((petId) => ({ petId }))
  const { body: placed } = await gateway.post('/store/orders/batch', orders)
  const completed = placed.map(({ id }: { id: number }) => ({ id, complete: true }))
  const moved = placed.map(({ id }: { id: number }, i: number) => ({ id, petId: ids[i] })).toReversed()
  for (let round = 0; round < 8; round++) {
    const answers = await Promise.all([
      gateway.patch('/pets/batch', changes(ids, 'sold')),
      gateway.patch('/pets/batch', changes(back, 'pending')),
      gateway.patch('/inventory/batch', counts(back, round)),
      gateway.patch('/inventory/batch', counts(ids, round + 1)),
      gateway.post('/store/orders/batch', orders),
      gateway.patch('/store/orders/batch', completed),
      gateway.patch('/store/orders/batch', moved),
      gateway.patch(`/pets/${ids[30]}`, { name: `Round ${round}` }),
    ])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 201, 200, 200, 200])
  }
  const statuses = (await gateway.get(`/pets?limit=100&after=${(ids[0] as number) - 1}`)).body.map(
    (pet: { status: string }) => pet.status,
  )
  expect(new Set(statuses).size).toBe(1)
})

test('a batch that costs more than a whole window is refused, and the number of items that the message names fits', async () => {
  const query = `mutation ($input: [NewPet!]!) {
    createPets(input: $input) { id name status categoryId etag category { id name description etag } }
  }`
  for (const [limit, sendItems, advised] of [
    [3, (count: number, key: string) => gateway.post('/pets/batch', newPets(count), { key }), 30],
    [3, (count: number, key: string) => gateway.graphql(query, { input: newPets(count) }, { key }), 30],
    [1, (count: number, key: string) => gateway.graphql(query, { input: newPets(count) }, { key }), 10],
  ] as const) {
    const create = () => gateway.createKey({ plan: 'Enterprise', minuteLimit: limit, dayLimit: 100 })
    const { status, text } = await sendItems(100, (await create()).key)
    expect([status, text]).toEqual([400, expect.stringContaining(`It would fit with at most ${advised} items`)])
    expect((await sendItems(advised, (await create()).key)).text).not.toContain('cost')
    expect((await sendItems(advised + 1, (await create()).key)).status).toBe(400)
  }
  const { key } = await gateway.createLimitedKey(1)
  expect((await gateway.get('/pets?count=true', { key })).body.message).toMatch(/It would fit without count\.$/)
})
