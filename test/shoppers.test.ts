import { beforeEach, describe, expect, test } from 'vitest'
import { deadlocksOf, resetStore, times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'
import { testDatabaseUrl } from './support/postgres.js'

// What shoppers ask: which pets are in stock, the stock of a category. The database keeps both beside what lists read, whoever
// changes them. Pet 2 has a stock of 7, pets 1 and 3 of 0, and all are of category 2.

const gateway = await sharedGateway()
beforeEach(() => resetStore(gateway.prisma))

const idsIn = async (path: string) =>
  (await gateway.get(path)).body.map(({ id, petId }: { id?: number; petId?: number }) => id ?? petId)
const inStock = () => idsIn('/pets?inStock=true')
const sql = (statement: string) => gateway.prisma.$executeRawUnsafe(statement)
const order = (petId: number, quantity: number, of = gateway) =>
  of.post('/store/orders?takeStock=true', { petId, quantity })

describe('pets in stock', () => {
  test('are those whose stock is above 0, and the others those whose stock is 0, on both surfaces', async () => {
    expect([await inStock(), await idsIn('/pets?inStock=false')]).toEqual([[2], [1, 3]])
    const { body } = await gateway.graphql(`{
      pets(inStock: true) { id inventory { quantity } }
      none: petsConnection(inStock: false, sort: name) { totalCount nodes { name } }
      category(categoryId: 2) { pets(inStock: true) { id } petsConnection(inStock: false, status: pending) { nodes { id } } }
    }`)
    expect(body.data).toEqual({
      pets: [{ id: 2, inventory: { quantity: 7 } }],
      none: { totalCount: 2, nodes: [{ name: 'Felix' }, { name: 'Tom' }] },
      category: { pets: [{ id: 2 }], petsConnection: { nodes: [{ id: 3 }] } },
    })
  })

  const first = async (method: 'patch' | 'post', path: string, body: unknown) =>
    (await gateway[method](path, body)).status
  test.each<[string, () => Promise<unknown>, number[]]>([
    ['a stock is set', () => first('patch', '/inventory/1', { quantity: 1 }), [1, 2]],
    ['a stock is set to 0', () => first('patch', '/inventory/2', { quantity: 0 }), []],
    ['a stock is set to another number', () => first('patch', '/inventory/2', { quantity: 1 }), [2]],
    [
      'stocks are set together',
      () =>
        first('patch', '/inventory/batch', [
          { petId: 3, quantity: 4 },
          { petId: 2, quantity: 0 },
        ]),
      [3],
    ],
    [
      'stocks are adjusted',
      () =>
        first('post', '/inventory/adjustments', [
          { petId: 3, by: 1 },
          { petId: 2, by: -7 },
        ]),
      [3],
    ],
    ['an order takes the last', () => order(2, 7), []],
    ['an order takes some', () => order(2, 6), [2]],
    [
      'orders take the last',
      () => first('post', '/store/orders/batch?takeStock=true', [{ petId: 2, quantity: 7 }]),
      [],
    ],
    [
      'an order gives back the last',
      async () => gateway.delete(`/store/orders/${(await order(2, 7)).body.id}?returnStock=true`),
      [2],
    ],
    [
      'somebody changes the stock by SQL',
      () => sql(`UPDATE "InventoryItem" SET quantity = 1 - sign(quantity)`),
      [1, 3],
    ],
    ['somebody writes what is not true', () => sql(`UPDATE "Pet" SET "inStock" = NOT "inStock"`), [2]],
    [
      'somebody adds a pet by SQL that says so',
      () => sql(`INSERT INTO "Pet" (name, "categoryId", "inStock") VALUES ('Rex', 1, true)`),
      [2],
    ],
  ])('are right after %s', async (_, change, expected) => {
    await change()
    expect(await inStock()).toEqual(expected)
  })

  test('answers the question of a storefront page by page, with the total', async () => {
    await gateway.patch('/inventory/2', { quantity: 0 })
    const names = ['Émile', 'emil', 'Ella', 'E\u0301douard', 'Rex', 'Ernest']
    const { body } = await gateway.post(
      '/pets/batch',
      names.map((name) => ({ name, categoryId: 2 })),
    )
    const stocks = body.map(({ id }: { id: number }, i: number) => ({ petId: id, quantity: i === 5 ? 0 : 3 }))
    await gateway.patch('/inventory/batch', stocks)
    const seen: string[] = []
    const totals: (string | null)[] = []
    let path: string | undefined =
      '/pets?status=available&categoryId=2&inStock=true&sort=name&search=E&limit=2&count=true'
    while (path) {
      const page = await gateway.get(path)
      seen.push(...page.body.map(({ name }: { name: string }) => name))
      totals.push(page.headers.get('x-total-count'))
      const next: string | undefined = page.headers.get('link')?.match(/localhost:3000(.+)>/)?.[1]
      expect(next ?? 'inStock=true').toContain('inStock=true')
      path = next
    }
    expect([seen, totals[0]]).toEqual([['E\u0301douard', 'Ella', 'emil', 'Émile'], '4'])
  })

  test.each([
    ['inStock=1', 'The query parameter inStock is "1"; it must be true or false.'],
    ['inStock=', 'The query parameter inStock must not be empty.'],
    ['inStock=true&inStock=false', 'The query parameter inStock must not be repeated.'],
    ['instock=true', 'did you mean inStock?'],
  ])('?%s: %s', async (query, message) => {
    const { status, body } = await gateway.get(`/pets?${query}`)
    expect([status, body.message]).toEqual([400, expect.stringContaining(message)])
  })
})

describe('the stock of a category', () => {
  test('has the entries of its pets, in both orders, on both surfaces', async () => {
    await gateway.post('/pets', { name: 'Rex', categoryId: 1 })
    expect(await idsIn('/inventory?categoryId=2')).toEqual([1, 2, 3])
    expect(await idsIn('/inventory?categoryId=2&direction=desc&limit=2')).toEqual([3, 2])
    expect(await idsIn('/inventory?categoryId=2&status=sold')).toEqual([2])
    expect(await idsIn('/inventory?categoryId=2&status=sold&after=2')).toEqual([])
    expect(await idsIn('/inventory?categoryId=2&sort=quantity&maxQuantity=3')).toEqual([1, 3])
    expect(await idsIn('/inventory?categoryId=1')).toEqual([4])
    expect(await idsIn('/inventory?categoryId=9')).toEqual([])
    const { body } = await gateway.graphql(
      `{ inventory(categoryId: 1) { petId } inventoryConnection(categoryId: 2, first: 2) { totalCount nodes { petId } } }`,
    )
    expect(body.data).toEqual({
      inventory: [{ petId: 4 }],
      inventoryConnection: { totalCount: 3, nodes: [{ petId: 1 }, { petId: 2 }] },
    })
  })

  test.each<[string, () => Promise<unknown>]>([
    ['a pet changes its category', () => gateway.patch('/pets/3', { categoryId: 1 })],
    ['it changes its status, too', () => gateway.patch('/pets/3', { categoryId: 1, status: 'sold' })],
    ['pets change together', () => gateway.patch('/pets/batch', [{ id: 3, categoryId: 1 }])],
    ['somebody changes it by SQL', () => sql(`UPDATE "Pet" SET "categoryId" = 1 WHERE id = 3`)],
    [
      'somebody writes what is not true',
      () =>
        sql(
          `DO 'BEGIN UPDATE "Pet" SET "categoryId" = 1 WHERE id = 3; UPDATE "InventoryItem" SET "categoryId" = 7; END'`,
        ),
    ],
  ])('is right after %s', async (_, change) => {
    await change()
    expect([await idsIn('/inventory?categoryId=1'), await idsIn('/inventory?categoryId=2')]).toEqual([[3], [1, 2]])
    expect(await idsIn('/inventory?categoryId=2&sort=quantity')).toEqual([1, 2])
  })
})

describe('staff who set a stock to 0 and fill it up, beside those who buy', () => {
  type Of = typeof gateway
  const entries = (values: object) => [1, 2, 3].map((petId) => ({ petId, ...values }))
  const staff: [string, (quantity: number, of: Of) => Promise<{ status: number }>][] = [
    ['PATCH', (quantity, of) => of.patch('/inventory/2', { quantity })],
    ['PATCH with If-Match', (quantity, of) => of.patch('/inventory/2', { quantity }, { headers: { 'if-match': '*' } })],
    ['a batch', (quantity, of) => of.patch('/inventory/batch', entries({ quantity }))],
    [
      'two changes in a transaction',
      async (quantity, of) => {
        const set = (quantity: number) => `updateInventory(petId: 2, input: { quantity: ${quantity} }) { quantity }`
        const { body } = await of.graphql(
          `mutation @atomic { a: ${set(quantity + 5)} b: ${set(0)} c: ${set(quantity)} }`,
        )
        return { status: body.errors?.[0].extensions.status ?? 200 }
      },
    ],
    ['adjustments', (_, of) => of.post('/inventory/adjustments', entries({ by: 1 }).reverse())],
  ]
  test.each(staff)('by %s never wait for each other in a circle, and inStock is what the stock is', async (_, set) => {
    const gateways = [gateway, await gateway.openBeside()] as const
    const before = await deadlocksOf(gateway.prisma)
    const sold: number[] = []
    for (let round = 0; round < 6; round++) {
      const of = (i: number) => gateways[(i >> 1) % 2] as Of
      const sales = times(12, (i) => order(2, 1, of(i)))
      const labels = times(2, (i) => of(i).patch('/pets/2', { status: i % 2 ? 'sold' : 'available' }))
      const sets = times(12, (i) => set(i % 2, of(i)))
      const cancels = sold.splice(0, 2).map((id) => gateway.delete(`/store/orders/${id}?returnStock=true`))
      for (const { status, body } of await Promise.all(sales)) {
        expect([201, 409]).toContain(status)
        if (status === 201) sold.push(body.id)
      }
      for (const { status } of await Promise.all([...labels, ...sets])) expect(status).toBe(200)
      for (const { status } of await Promise.all(cancels)) expect(status).toBe(204)
      const { body } = await gateway.get('/inventory/2')
      expect((await inStock()).includes(2)).toBe(body.quantity > 0)
    }
    if (testDatabaseUrl) expect(await deadlocksOf(gateway.prisma)).toBe(before)
  })
})
