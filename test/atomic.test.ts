import { beforeEach, describe, expect, test } from 'vitest'
import { contents, resetStore, times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'

const gateway = await sharedGateway()
beforeEach(() => resetStore(gateway.prisma))

const orderAndStock = (quantity: number, directive = '@atomic') => `mutation ${directive} {
  createOrder(input: { petId: 2, quantity: 2 }) { quantity pet { inventory { quantity } } }
  stock: updateInventory(petId: 2, input: { quantity: ${quantity} }) { quantity }
}`

describe('a mutation with @atomic', () => {
  test('changes all or, because of its first error, nothing; without it each field stands for itself', async () => {
    const before = await contents(gateway.prisma)
    const refused = await gateway.graphql(orderAndStock(-1))
    expect([refused.status, refused.body.data, refused.body.errors]).toEqual([
      200,
      null,
      [expect.objectContaining({ path: ['stock'], extensions: { code: 'invalid_request', status: 400 } })],
    ])
    expect(await contents(gateway.prisma)).toEqual(before)

    const { body } = await gateway.graphql(orderAndStock(5))
    expect(body).toEqual({
      data: { createOrder: { quantity: 2, pet: { inventory: { quantity: 7 } } }, stock: { quantity: 5 } },
    })

    const apart = await gateway.graphql(orderAndStock(-1, ''))
    expect([apart.body.data.createOrder.quantity, apart.body.data.stock]).toEqual([2, null])
  })

  test('reads its own changes, and shows what an error of the database has refused', async () => {
    const query = `mutation @atomic {
      createPet(input: { name: "Rex", categoryId: 1 }) { id category { pets { name } } }
      deleteCategory(categoryId: 1) { id }
      updatePet(petId: 1, input: { name: "Tim" }) { name }
    }`
    const before = await contents(gateway.prisma)
    const { body } = await gateway.graphql(query)
    expect([body.data, body.errors]).toEqual([
      null,
      [expect.objectContaining({ path: ['deleteCategory'], extensions: { code: 'conflict', status: 409 } })],
    ])
    expect(await contents(gateway.prisma)).toEqual(before)
  })

  test('deletes a hundred orders for a hundred units, or none of them', async () => {
    const { body: orders } = await gateway.post(
      '/store/orders/batch',
      times(100, () => ({ petId: 2 })),
    )
    const ids: number[] = orders.map(({ id }: { id: number }) => id)
    const deleteAll = (some: number[]) =>
      gateway.graphql(
        `mutation @atomic { ${some.map((id) => `o${id}: deleteOrder(orderId: ${id}) { id }`).join(' ')} }`,
      )
    const before = await contents(gateway.prisma)
    const refused = await deleteAll(ids.with(99, 999))
    expect([refused.body.data, refused.body.errors[0].message]).toEqual([null, 'There is no order 999.'])
    expect(await contents(gateway.prisma)).toEqual(before)
    const { headers, body } = await deleteAll(ids)
    expect([body.errors, headers.get('x-ratelimit-cost')]).toEqual([undefined, '100'])
    expect((await gateway.get(`/store/orders?limit=100&after=${(ids[0] as number) - 1}`)).body).toEqual([])
  })

  test('includes conditions: a stale ifMatch undoes the rest', async () => {
    const before = await contents(gateway.prisma)
    const { body } = await gateway.graphql(`mutation @atomic {
      createCategory(input: { name: "Fish" }) { id }
      updatePet(petId: 1, input: { name: "Tim" }, ifMatch: "\\"stale\\"") { name }
    }`)
    expect([body.data, body.errors[0].extensions.code]).toEqual([null, 'precondition_failed'])
    expect(await contents(gateway.prisma)).toEqual(before)
  })

  test('takes an Idempotency-Key with any number of fields, and is replayed as a whole', async () => {
    const send = (quantity: number, key: string) =>
      gateway.graphql(orderAndStock(quantity), {}, { headers: { 'idempotency-key': key } })
    const before = (await gateway.get('/store/orders')).body.length
    const [first, again] = [await send(3, 'a'), await send(3, 'a')]
    expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([first.body, 'true'])
    expect(first.body.data.stock).toEqual({ quantity: 3 })
    // What is wrong with its values is judged each time.
    const refused = await send(-1, 'b')
    expect([refused.body.data, (await send(-1, 'b')).headers.get('idempotency-replayed')]).toEqual([null, null])
    expect((await gateway.get('/store/orders')).body).toHaveLength(before + 1)
  })

  test('costs what the document costs', async () => {
    const { key } = await gateway.createKey()
    const { headers } = await gateway.graphql(orderAndStock(1), {}, { key })
    expect(headers.get('x-ratelimit-cost')).toBe('2')
  })

  test.each([
    '{"toString":1}',
    '{"toString":1,"valueOf":2}',
    '{"id":{"toString":1}}',
    '[{"id":{"toString":1},"name":"x"}]',
    '[{"id":[[1]]},null,[],7]',
    '[[[1]]]',
    '"1"',
    'true',
    '1e300',
    '12345678901234567890',
    'null',
  ])('refuses what names no row, whatever it is: %s', async (value) => {
    const before = await contents(gateway.prisma)
    for (const headers of [{}, { 'idempotency-key': value.replaceAll(/[^a-z0-9]/g, '') || 'x' }] as Record<
      string,
      string
    >[])
      for (const [type, field] of [
        ['Int64!', 'updatePet(petId: $x, input: { name: "y" }) { id }'],
        ['Int64!', 'updateInventory(petId: $x, input: { quantity: 2 }) { petId }'],
        ['[PetChange!]!', 'updatePets(input: $x) { id }'],
        ['Int64!', 'updatePets(input: [{ id: $x, name: "z" }]) { id }'],
      ]) {
        const query = `mutation ($x: ${type}) @atomic { ${field} other: ${field} }`
        const body = `{"query":${JSON.stringify(query)},"variables":{"x":${value}}}`
        const answer = await gateway.call('POST', '/graphql', { headers, body })
        expect([answer.status, answer.code]).toEqual([200, 'invalid_request'])
      }
    expect(await contents(gateway.prisma)).toEqual(before)
  })

  test('of many that change the same rows in another order, each succeeds or changes nothing', async () => {
    const stock = (first: number, second: number, quantity: number) => `mutation @atomic {
      a: updateInventory(petId: ${first}, input: { quantity: ${quantity} }) { quantity }
      b: updateInventory(petId: ${second}, input: { quantity: ${quantity} }) { quantity }
    }`
    const answers = await Promise.all(times(6, (i) => gateway.graphql(i % 2 ? stock(1, 2, i) : stock(2, 1, i))))
    const done = answers.filter(({ body }) => !body.errors)
    expect(done.length).toBeGreaterThan(0)
    // PostgreSQL needs a second to see that two wait for each other, so some may be out of time: 503, without data.
    for (const { body } of answers) expect(!body.data || body.data.a.quantity === body.data.b.quantity).toBe(true)
    const [one, two] = (await gateway.get('/inventory?limit=2')).body
    expect(one.quantity).toBe(two.quantity)
  })

  test.each(['', '@atomic'])(
    '%s with wrong variables is refused before it runs, and names all of them',
    async (directive) => {
      const query = `mutation ($n: NewPet!, $id: Int64!) ${directive} { createPet(input: $n) { id } deletePet(petId: $id) { id } }`
      for (const key of [{}, { 'idempotency-key': `wrong ${directive}` }]) {
        if (directive === '' && 'idempotency-key' in key) continue
        const headers: Record<string, string> = { accept: 'application/graphql-response+json', ...(key as object) }
        const { status, body } = await gateway.graphql(query, {}, { headers })
        expect([status, 'data' in body, body.errors.length]).toEqual([400, false, 2])
      }
    },
  )

  test('without a field that costs something is no transaction, and keeps no answer', async () => {
    const { key } = await gateway.createLimitedKey(1, 1)
    await gateway.get('/pets', { key })
    const kept = () => gateway.prisma.idempotentAnswer.count()
    const before = await kept()
    const { body } = await gateway.graphql(
      'mutation @atomic { __typename }',
      {},
      { key, headers: { 'idempotency-key': 'x' } },
    )
    expect([body, await kept()]).toEqual([{ data: { __typename: 'Mutation' } }, before])
  })

  test('is nothing for a query, nor twice', async () => {
    expect((await gateway.graphql('query @atomic { quota { plan } }')).body.errors[0].message).toMatch(/atomic/)
    expect((await gateway.graphql(orderAndStock(1, '@atomic @atomic'))).body.errors[0].message).toMatch(/atomic/)
  })
})
