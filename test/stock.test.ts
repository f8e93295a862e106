import { beforeEach, describe, expect, test } from 'vitest'
import { contents, deadlocksOf, resetStore, times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'
import { testDatabaseUrl } from './support/postgres.js'

// Orders that take from the stock, and changes of stock by a difference. Pet 2 has a stock of 7, pets 1 and 3 of 0.

const gateway = await sharedGateway()
beforeEach(() => resetStore(gateway.prisma))

const MAX = 2_147_483_647
const stockOf = async (petId: number) => (await gateway.get(`/inventory/${petId}`)).body.quantity
const setStock = (petId: number, quantity: number) => gateway.patch(`/inventory/${petId}`, { quantity })
const stored = () => contents(gateway.prisma)
const conflict = (message: string) => ({ code: 'conflict', message, status: 409 })
const keyed = (key: string) => ({ headers: { 'idempotency-key': key } })

const sell = (petId: number, quantity?: number, of = gateway) =>
  of.post('/store/orders?takeStock=true', { petId, quantity })

/** Places an order by either surface. Returns its status. */
const buyers: [string, (petId: number, key: string, of?: typeof gateway) => Promise<number>][] = [
  ['POST', async (petId, _key, of) => (await sell(petId, 1, of)).status],
  [
    'POST with an Idempotency-Key',
    async (petId, key, of = gateway) => (await of.post('/store/orders?takeStock=true', { petId }, keyed(key))).status,
  ],
  [
    'a mutation',
    async (petId, _key, of = gateway) => {
      const query = 'mutation ($id: Int64!) { createOrder(input: { petId: $id }, takeStock: true) { id } }'
      const { data, errors } = (await of.graphql(query, { id: petId })).body
      return data.createOrder ? 201 : errors[0].extensions.status
    },
  ],
]

describe('an order with takeStock', () => {
  test('is that of the specification, and its quantity is taken from the stock', async () => {
    const { status, body, headers } = await sell(2, 5)
    expect([status, body]).toEqual([201, { id: 3, petId: 2, quantity: 5, complete: false }])
    expect(headers.get('location')).toBe('http://localhost:3000/store/orders/3')
    expect(await stockOf(2)).toBe(2)
    expect((await gateway.get('/store/orders/3')).body).toEqual(body)
    await sell(2)
    expect(await stockOf(2)).toBe(1)
  })

  test('is refused if there is not enough, and nothing changes: the message has the pet, its stock and what was asked for', async () => {
    const before = await stored()
    const { status, body } = await sell(2, 8)
    expect([status, body]).toEqual([409, conflict('Pet 2 has a stock of 7, but the order asks for 8.')])
    expect((await sell(1)).body.message).toBe('Pet 1 has a stock of 0, but the order asks for 1.')
    expect(await stored()).toEqual(before)
    expect((await sell(2, 7)).status).toBe(201)
    expect(await stockOf(2)).toBe(0)
  })

  test('is refused for its values first, then for a pet that does not exist, then for the stock', async () => {
    const refused = async (body: object, path = '/store/orders') => {
      const { code, message } = (await gateway.post(`${path}?takeStock=true`, body)).body
      return [code, message]
    }
    expect(await refused({ petId: 99, quantity: 0 })).toEqual(['invalid_request', expect.stringMatching('quantity')])
    expect(await refused({ petId: 99, quantity: 8 })).toEqual(['unknown_reference', 'petId 99 does not exist.'])
    const batch = [{ petId: 2, quantity: 8 }, { petId: 99 }]
    expect(await refused(batch, '/store/orders/batch')).toEqual(['unknown_reference', '[1].petId 99 does not exist.'])
  })

  test.each([
    ['takeStock=True', 201, 6],
    ['takeStock=false', 201, 7],
    ['takeStock=yes', 400, 7],
    ['takeStock=1', 400, 7],
    ['takeStock=', 400, 7],
    ['takeStock=true&takeStock=true', 400, 7],
    ['takestock=true', 400, 7],
  ])('in the query string %s returns %i and leaves a stock of %i', async (query, status, left) => {
    const answer = await gateway.post(`/store/orders?${query}`, { petId: 2 })
    expect([answer.status, await stockOf(2)]).toEqual([status, left])
    if (status === 400) expect(answer.body.message).toMatch(/takeStock/)
  })

  test('that is asked for in the body is refused, and the message says where it belongs', async () => {
    const { status, body } = await gateway.post('/store/orders', { petId: 2, takeStock: true })
    expect([status, body.message]).toEqual([400, 'takeStock is unknown; it is a query parameter: ?takeStock=….'])
    const batch = await gateway.post('/store/orders/batch', [{ petId: 2, takeStock: true }])
    expect(batch.body.message).toBe('[0].takeStock is unknown; it is a query parameter: ?takeStock=….')
    expect(await stockOf(2)).toBe(7)
  })

  test('takes nothing in GraphQL if takeStock is null', async () => {
    const query = `mutation ($take: Boolean) {
      createOrder(input: { petId: 2 }, takeStock: $take) { id }
      createOrders(input: [{ petId: 2 }], takeStock: null) { id }
    }`
    expect((await gateway.graphql(query, { take: null })).body.errors).toBeUndefined()
    expect(await stockOf(2)).toBe(7)
  })

  test('moves no stock when it is changed or completed', async () => {
    await sell(2, 3)
    await gateway.patch('/store/orders/3', { petId: 1, quantity: 100, complete: true })
    await gateway.patch('/store/orders/batch', [{ id: 3, petId: 2, quantity: 1, complete: false }])
    expect([await stockOf(1), await stockOf(2)]).toEqual([0, 4])
  })

  test('is undone with its stock if another field of the same @atomic mutation fails', async () => {
    const before = await stored()
    const { body } = await gateway.graphql(`mutation @atomic {
      createOrder(input: { petId: 2, quantity: 4 }, takeStock: true) { pet { inventory { quantity } } }
      deletePet(petId: 99) { id }
    }`)
    expect([body.data, body.errors[0].extensions.code]).toEqual([null, 'not_found'])
    expect(await stored()).toEqual(before)
  })

  test('shows the stock that is left in the same answer of GraphQL', async () => {
    const { body } = await gateway.graphql(
      `mutation { createOrder(input: { petId: 2, quantity: 4 }, takeStock: true) { pet { inventory { quantity } } } }`,
    )
    expect(body.data.createOrder.pet.inventory.quantity).toBe(3)
  })
})

describe('20 buyers of ten pieces', () => {
  test.each(buyers)('by %s are 20 requests: ten orders, ten refusals, and a stock of 0', async (name, buy) => {
    await setStock(2, 10)
    const statuses = await Promise.all(times(20, (i) => buy(2, `${name} ${i}`)))
    expect(statuses.sort()).toEqual([...times(10, () => 201), ...times(10, () => 409)])
    expect([await stockOf(2), await gateway.prisma.order.count()]).toEqual([0, 12])
  })

  test.skipIf(!testDatabaseUrl)('on two gateways get as many orders', async () => {
    const other = await gateway.openBeside()
    await setStock(2, 10)
    const [[, post], [, keyedPost]] = buyers as [(typeof buyers)[0], (typeof buyers)[0]]
    const statuses = await Promise.all(
      times(20, (i) => (i % 4 < 2 ? post : keyedPost)(2, `two ${i}`, i % 2 ? gateway : other)),
    )
    expect(statuses.sort()).toEqual([...times(10, () => 201), ...times(10, () => 409)])
    expect([await stockOf(2), await gateway.prisma.order.count()]).toEqual([0, 12])
  })

  test.skipIf(!testDatabaseUrl).each([1, 2])(
    'of whom half change the status of the pet in the same transaction: on %i gateways, none meets another in a circle',
    async (count) => {
      const other = count === 2 ? await gateway.openBeside() : gateway
      await setStock(2, 10)
      const before = await deadlocksOf(gateway.prisma)
      const sellAndLabel = async (of: typeof gateway) => {
        const { data, errors } = (
          await of.graphql(`mutation @atomic {
            createOrder(input: { petId: 2 }, takeStock: true) { id }
            updatePet(petId: 2, input: { status: ${Math.random() < 0.5 ? 'sold' : 'pending'} }) { id }
          }`)
        ).body
        return data ? 201 : errors[0].extensions.status
      }
      const statuses = await Promise.all(
        times(20, async (i) => {
          const of = i % 4 < 2 ? gateway : other
          return i % 2 ? (await sell(2, 1, of)).status : sellAndLabel(of)
        }),
      )
      expect(statuses.sort()).toEqual([...times(10, () => 201), ...times(10, () => 409)])
      expect([await stockOf(2), await gateway.prisma.order.count()]).toEqual([0, 12])
      // And those who cancel and put the label back, beside those who buy.
      const { body: orders } = await gateway.get('/store/orders?petId=2&complete=false&limit=100')
      const cancels = orders.slice(0, 6).map(({ id }: { id: number }, i: number) =>
        (i % 2 ? gateway : other).graphql(`mutation @atomic {
          deleteOrder(orderId: ${id}, returnStock: true) { id }
          updatePet(petId: 2, input: { status: available }) { id }
        }`),
      )
      const bought = await Promise.all(times(6, () => sell(2)))
      for (const { body } of await Promise.all(cancels)) expect(body.errors).toBeUndefined()
      for (const { status } of bought) expect([201, 409]).toContain(status)
      expect(await deadlocksOf(gateway.prisma)).toBe(before)
    },
  )

  test('in batches get all that they ask for, or nothing', async () => {
    await setStock(1, 30)
    await setStock(3, 30)
    const orders = [1, 3, 1].map((petId) => ({ petId, quantity: 2 }))
    const answers = await Promise.all(
      times(20, (i) => gateway.post('/store/orders/batch?takeStock=true', i % 2 ? orders : orders.toReversed())),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([...times(7, () => 201), ...times(13, () => 409)])
    expect([await stockOf(1), await stockOf(3)]).toEqual([30 - 7 * 4, 30 - 7 * 2])
  })
})

describe('a batch of orders with takeStock', () => {
  const sellMany = (orders: object[]) => gateway.post('/store/orders/batch?takeStock=true', orders)

  test('adds up the orders for one pet', async () => {
    await setStock(1, 4)
    const { status, body } = await sellMany([
      { petId: 2, quantity: 3 },
      { petId: 1, quantity: 4 },
      { petId: 2, quantity: 4 },
    ])
    expect([status, body.map(({ id }: { id: number }) => id)]).toEqual([201, [3, 4, 5]])
    expect([await stockOf(1), await stockOf(2)]).toEqual([0, 0])
  })

  test('is refused as a whole, and names the first place at which there is not enough', async () => {
    const before = await stored()
    const { status, body } = await sellMany([{ petId: 2, quantity: 3 }, { petId: 2, quantity: 5 }, { petId: 1 }])
    const message = '[1] cannot be sold: pet 2 has a stock of 7, but the orders up to here ask for 8.'
    expect([status, body]).toEqual([409, conflict(message)])
    expect(await stored()).toEqual(before)
  })

  test('can take all of the largest stock, and not one more', async () => {
    await setStock(2, MAX)
    const { body } = await sellMany([{ petId: 2, quantity: MAX }, { petId: 2 }])
    expect(body.message).toBe(
      `[1] cannot be sold: pet 2 has a stock of ${MAX}, but the orders up to here ask for ${MAX + 1}.`,
    )
    expect((await sellMany([{ petId: 2, quantity: MAX - 1 }, { petId: 2 }])).status).toBe(201)
    expect(await stockOf(2)).toBe(0)
  })

  test('can ask for more than any stock can be', async () => {
    const { status, body } = await sellMany(times(100, () => ({ petId: 2, quantity: MAX })))
    expect([status, body.message]).toEqual([409, expect.stringMatching(/^\[0\].* ask for 2147483647\.$/)])
  })
})

describe('deleting an order with returnStock', () => {
  const cancel = (id: number, call = {}) => gateway.delete(`/store/orders/${id}?returnStock=true`, call)

  test('gives back exactly what it took, to the pet that it was taken from', async () => {
    await sell(2, 3)
    await sellBatch()
    await gateway.patch('/store/orders/3', { petId: 1, quantity: 100 })
    await gateway.patch('/store/orders/batch', [{ id: 3, petId: 3, quantity: 50 }])
    expect(await stockOf(2)).toBe(2)
    expect((await cancel(3)).status).toBe(204)
    expect([await stockOf(1), await stockOf(2)]).toEqual([0, 5])
    const { body } = await gateway.graphql(
      'mutation { deleteOrder(orderId: 4, returnStock: true) { id pet { inventory { quantity } } } }',
    )
    expect(body.data.deleteOrder).toEqual({ id: 4, pet: { inventory: { quantity: 7 } } })
  })
  const sellBatch = () => gateway.post('/store/orders/batch?takeStock=true', [{ petId: 2, quantity: 2 }])

  test('gives back nothing for an order that took nothing, and without returnStock nothing at all', async () => {
    expect((await cancel(1)).status).toBe(204)
    await sell(2, 3)
    expect((await gateway.delete('/store/orders/3')).status).toBe(204)
    expect(await stockOf(2)).toBe(4)
  })

  test('gives it back once, whoever else deletes the order at the same time', async () => {
    await sell(2, 3)
    const answers = await Promise.all(times(6, () => cancel(3)))
    expect(answers.map(({ status }) => status).sort()).toEqual([204, ...times(5, () => 404)])
    expect(await stockOf(2)).toBe(7)
  })

  test('and ordering again in one step leaves the order as it was if there is not enough', async () => {
    await sell(2, 3)
    const before = await stored()
    const change = (quantity: number) =>
      gateway.graphql(`mutation @atomic {
        deleteOrder(orderId: 3, returnStock: true) { id }
        createOrder(input: { petId: 2, quantity: ${quantity} }, takeStock: true) { id }
      }`)
    expect((await change(8)).body.errors[0].message).toBe('Pet 2 has a stock of 7, but the order asks for 8.')
    expect(await stored()).toEqual(before)
    expect((await change(7)).body.errors).toBeUndefined()
    expect(await stockOf(2)).toBe(0)
  })

  test('returns nothing in GraphQL if returnStock is null', async () => {
    await sell(2, 3)
    const { body } = await gateway.graphql('mutation { deleteOrder(orderId: 3, returnStock: null) { id } }')
    expect([body.errors, await stockOf(2)]).toEqual([undefined, 4])
  })

  test('is refused for an order that is complete, and takes If-Match', async () => {
    await sell(2, 3)
    await gateway.patch('/store/orders/3', { complete: true })
    expect((await cancel(3)).body).toEqual(
      conflict('Order 3 is complete and cannot be deleted. Set complete to false first.'),
    )
    const { headers } = await gateway.patch('/store/orders/3', { complete: false })
    expect((await cancel(3, { headers: { 'if-match': '"stale"' } })).status).toBe(412)
    expect(await stockOf(2)).toBe(4)
    expect((await cancel(3, { headers: { 'if-match': headers.get('etag') } })).status).toBe(204)
    expect(await stockOf(2)).toBe(7)
  })

  test('is refused if the stock would be too large, and the order stays', async () => {
    await sell(2, 3)
    await setStock(2, MAX - 2)
    const before = await stored()
    const message = `Order 3 took 3 from the stock of pet 2, which is ${MAX - 2} now: it cannot be above ${MAX}. Lower the stock first, or delete the order without returnStock.`
    expect((await cancel(3)).body).toEqual(conflict(message))
    expect(await stored()).toEqual(before)
    await setStock(2, MAX - 3)
    expect((await cancel(3)).status).toBe(204)
    expect(await stockOf(2)).toBe(MAX)
  })

  test('is refused if the pet that it was taken from is deleted', async () => {
    await setStock(1, 1)
    await sell(1)
    await gateway.patch('/store/orders/3', { petId: 2 })
    expect((await gateway.delete('/pets/1')).status).toBe(204)
    const message = 'Order 3 took from the stock of pet 1, which is deleted. Delete the order without returnStock.'
    expect((await cancel(3)).body).toEqual(conflict(message))
    expect((await gateway.delete('/store/orders/3')).status).toBe(204)
  })

  test.each(['returnStock=yes', 'returnStock=', 'takeStock=true'])(
    'with %s is 400, and the order stays',
    async (query) => {
      const { status, body } = await gateway.delete(`/store/orders/1?${query}`)
      expect([status, body.message]).toEqual([400, expect.stringContaining(query.split('=')[0] as string)])
      expect((await gateway.get('/store/orders/1')).status).toBe(200)
    },
  )
})

describe('an order with takeStock and an Idempotency-Key', () => {
  const order = (key: string, query = '?takeStock=true') =>
    gateway.post(`/store/orders${query}`, { petId: 2, quantity: 4 }, keyed(key))

  test('takes from the stock once, and is replayed', async () => {
    const [first, again] = [await order('a'), await order('a')]
    expect([first.status, again.body, again.headers.get('idempotency-replayed')]).toEqual([201, first.body, 'true'])
    expect(await stockOf(2)).toBe(3)
  })

  test('that was refused is refused again after restocking: a new key is needed', async () => {
    await order('b')
    expect((await order('c')).status).toBe(409)
    await setStock(2, 100)
    const again = await order('c')
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([409, 'true'])
    expect((await order('d')).status).toBe(201)
  })

  test('is another request than the same order without takeStock', async () => {
    await order('e')
    expect((await order('e', '')).body.code).toBe('idempotency_mismatch')
    expect((await order('e', '?takeStock=True')).body.code).toBe('idempotency_mismatch')
    await order('f', '')
    expect((await order('f')).body.code).toBe('idempotency_mismatch')
    expect((await order('f', '?')).headers.get('idempotency-replayed')).toBe('true')
    expect(await stockOf(2)).toBe(3)
  })
})

describe('POST /inventory/adjustments', () => {
  const adjust = (changes: [petId: number, by: number][], call = {}) =>
    gateway.post(
      '/inventory/adjustments',
      changes.map(([petId, by]) => ({ petId, by })),
      call,
    )

  test('adds to stocks and takes from them, and returns the entries in the order of the items', async () => {
    const { status, body, headers } = await adjust([
      [2, -7],
      [1, MAX],
    ])
    expect([status, headers.get('location')]).toEqual([200, null])
    expect(body).toEqual([
      { petId: 2, quantity: 0, status: 'sold' },
      { petId: 1, quantity: MAX, status: 'available' },
    ])
    expect([await stockOf(2), await stockOf(1)]).toEqual([0, MAX])
  })

  test.each([
    [
      409,
      [
        [3, 1],
        [2, -8],
      ],
      `[1].by is -8, but pet 2 has a stock of 7: a stock must stay from 0 to ${MAX}.`,
    ],
    [
      409,
      [
        [2, MAX - 6],
        [1, -1],
      ],
      `[0].by is ${MAX - 6}, but pet 2 has a stock of 7: a stock must stay from 0 to ${MAX}.`,
    ],
    [
      404,
      [
        [2, -8],
        [99, 1],
      ],
      'There is no inventory entry for pet 99, which [1] names.',
    ],
    [400, [[2, 0]], '[0].by is 0; it must not be 0.'],
    [
      400,
      [
        [2, 1],
        [1, 1],
        [2, 1],
      ],
      '[2].petId is 2; it must not be the same as in [0].',
    ],
  ] as [number, [number, number][], string][])(
    'returns %i for %j, and changes nothing',
    async (status, changes, message) => {
      const before = await stored()
      const answer = await adjust(changes)
      expect([answer.status, answer.body.message]).toEqual([status, message])
      expect(await stored()).toEqual(before)
    },
  )

  test('can empty the largest stock', async () => {
    await setStock(2, MAX)
    expect((await adjust([[2, -MAX]])).body).toMatchObject([{ quantity: 0 }])
  })

  test('never loses one of many at the same time, also beside orders', async () => {
    await setStock(1, 100)
    const answers = await Promise.all([
      ...times(10, (i) =>
        adjust(
          i % 2
            ? [
                [1, -2],
                [3, 1],
              ]
            : [
                [3, 1],
                [1, -2],
              ],
        ),
      ),
      ...times(10, () => sell(1, 3)),
    ])
    for (const { status } of answers) expect(status).toBeLessThan(300)
    expect([await stockOf(1), await stockOf(3)]).toEqual([100 - 20 - 30, 10])
  })

  test('with an Idempotency-Key is performed once', async () => {
    const [first, again] = [await adjust([[2, -3]], keyed('delivery')), await adjust([[2, -3]], keyed('delivery'))]
    expect([first.status, again.body, again.headers.get('idempotency-replayed')]).toEqual([200, first.body, 'true'])
    expect(await stockOf(2)).toBe(4)
  })
})

test('orders that take stock never fail because pets change or are deleted at the same time', async () => {
  for (let round = 0; round < 6; round++) {
    const { body: pets } = await gateway.post(
      '/pets/batch',
      times(6, (i) => ({ name: `Pet ${i}`, categoryId: 1 })),
    )
    const ids: number[] = pets.map(({ id }: { id: number }) => id)
    const orders = ids.toReversed().map((petId) => ({ petId }))
    await gateway.patch(
      '/inventory/batch',
      ids.map((petId) => ({ petId, quantity: 100 })),
    )
    const { body: placed } = await gateway.post('/store/orders/batch?takeStock=true', orders)
    const [adjusted, ...answers] = await Promise.all([
      gateway.post(
        '/inventory/adjustments',
        orders.map(({ petId }) => ({ petId, by: -1 })),
      ),
      ...placed.map(({ id }: { id: number }) => gateway.delete(`/store/orders/${id}?returnStock=true`)),
      ...ids.map((id) => gateway.delete(`/pets/${id}`)),
      ...ids.map((id) => sell(id)),
      gateway.patch(
        '/pets/batch',
        ids.map((id) => ({ id, status: 'sold' })),
      ),
      gateway.post('/store/orders/batch?takeStock=true', orders),
      gateway.patch(
        '/store/orders/batch',
        placed.map(({ id }: { id: number }) => ({ id, quantity: 2 })),
      ),
      gateway.graphql(`mutation { deletePet(petId: ${ids[0]}) { inventory { quantity } } }`),
    ])
    for (const { status, text } of [adjusted, ...answers])
      expect([200, 201, 204, 404, 409, 422], text).toContain(status)
    // What is gone is what was sold and not returned.
    const left = await gateway.prisma.inventoryItem.findMany({ where: { petId: { in: ids.map(BigInt) } } })
    const sold = await gateway.prisma.$queryRaw<{ petId: bigint; sum: bigint }[]>`
      SELECT "takenPetId" AS "petId", sum("takenQuantity") FROM "Order" WHERE "takenPetId" IS NOT NULL GROUP BY 1`
    const sums = new Map(sold.map(({ petId, sum }) => [petId, Number(sum)]))
    for (const { petId, quantity } of left)
      expect(quantity).toBe(100 - (sums.get(petId) ?? 0) - (adjusted?.status === 200 ? 1 : 0))
  }
})
