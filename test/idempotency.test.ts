import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { resetStore } from './support/calls.js'
import { type Call, type Gateway, openGateway, useGateway } from './support/gateway.js'

let gateway: Gateway
beforeAll(async () => {
  gateway = await openGateway()
})
afterAll(() => gateway.close())
beforeEach(() => resetStore(gateway.prisma))

let count = 0
const newKey = () => `test-${process.pid}-${count++}`

const order = (idempotencyKey: string, body: unknown = { petId: 1 }, call: Call = {}, of = gateway) =>
  of.post('/store/orders', body, { ...call, headers: { 'idempotency-key': idempotencyKey, ...call.headers } })

const countOrders = () => gateway.prisma.order.count()
const replayed = ({ headers }: { headers: Headers }) => headers.get('idempotency-replayed')

describe('a POST with an Idempotency-Key', () => {
  test('is performed once; a repeated one gets the same status, headers and body, and is marked', async () => {
    const key = newKey()
    const before = await countOrders()
    const first = await order(key)
    const again = await order(key)
    expect([first.status, replayed(first)]).toEqual([201, null])
    expect([again.status, replayed(again)]).toEqual([201, 'true'])
    expect([again.text, again.headers.get('location')]).toEqual([first.text, first.headers.get('location')])
    expect(await countOrders()).toBe(before + 1)
  })

  test('is replayed by every gateway', async () => {
    const other = await useGateway({ database: { ...gateway.database, close: async () => {} } })
    const key = newKey()
    const first = await order(key)
    expect(await order(key, undefined, { key: gateway.key }, other)).toMatchObject({ status: 201, text: first.text })
  })

  test('counts for each caller alone, and goes on after a rotation of the API key', async () => {
    const key = newKey()
    const { key: old, row } = await gateway.createKey()
    const { key: rotated } = await gateway.createKey({ originId: row.id })
    const { key: stranger } = await gateway.createKey()
    const first = await order(key, undefined, { key: old })
    expect((await order(key, undefined, { key: rotated })).text).toBe(first.text)
    expect(replayed(await order(key, undefined, { key: stranger }))).toBeNull()
  })

  test('with another body or path is 422 idempotency_mismatch, and changes nothing', async () => {
    const key = newKey()
    await order(key)
    const before = await countOrders()
    const mismatch = { status: 422, body: { code: 'idempotency_mismatch', status: 422 } }
    expect(await order(key, { petId: 2 })).toMatchObject(mismatch)
    expect(await order(key, '{"petId": 1}')).toMatchObject(mismatch)
    expect(await gateway.post('/categories', { name: 'Birds' }, { headers: { 'idempotency-key': key } })).toMatchObject(
      mismatch,
    )
    expect(await countOrders()).toBe(before)
  })

  test('that is refused for the state of the store is refused again, even if the state has changed', async () => {
    const key = newKey()
    const first = await order(key, { petId: 4 })
    expect(first).toMatchObject({ status: 422, body: { code: 'unknown_reference' } })
    await gateway.post('/pets', { name: 'Late', categoryId: 2 })
    expect(await order(key, { petId: 4 })).toMatchObject({ status: 422, text: first.text })
    expect(replayed(await order(key, { petId: 4 }))).toBe('true')
    expect((await order(newKey(), { petId: 4 })).status).toBe(201)
  })

  test('that is not valid is judged anew each time', async () => {
    const key = newKey()
    expect((await order(key, { petId: 1, quantity: 0 })).status).toBe(400)
    expect((await order(key, { petId: 1 })).status).toBe(201)
  })

  test('costs what the request costs, and is refused like any other once the quota is used up', async () => {
    const { key } = await gateway.createKey({ plan: 'Enterprise', minuteLimit: 2, dayLimit: 2 })
    const idempotencyKey = newKey()
    const answers = [1, 2, 3].map(() => order(idempotencyKey, undefined, { key }))
    const statuses = []
    for (const answer of answers) statuses.push((await answer).status)
    expect(statuses.filter((status) => status === 429)).toHaveLength(1)
  })

  test('performs at most one of many that arrive at once; the others get its answer, or 409 with Retry-After', async () => {
    for (let round = 0; round < 10; round++) {
      const key = newKey()
      const before = await countOrders()
      const answers = await Promise.all(Array.from({ length: 8 }, () => order(key)))
      const created = answers.filter(({ status }) => status === 201)
      expect(created.length).toBeGreaterThan(0)
      expect(new Set(created.map(({ text }) => text)).size).toBe(1)
      for (const { status, headers, body } of answers)
        if (status !== 201) expect([body.code, headers.get('retry-after')]).toEqual(['conflict', '1'])
      expect(await countOrders()).toBe(before + 1)
      expect(await order(key)).toMatchObject({ status: 201, text: created[0]?.text })
    }
  })

  test('is forgotten after 24 hours', async () => {
    const key = newKey()
    const first = await order(key)
    const age = (hours: string) =>
      gateway.prisma
        .$executeRaw`UPDATE "IdempotentAnswer" SET "createdAt" = now() - ${hours}::interval WHERE key = ${key}`
    await age('23:59:00')
    expect((await order(key)).text).toBe(first.text)
    await age('24:00:01')
    const second = await order(key)
    expect(second.body.id).not.toBe(first.body.id)
    expect((await order(key)).text).toBe(second.text)
  })
})

describe('the Idempotency-Key', () => {
  test.each([
    ['has 1 character', 'k', 201],
    ['has 255 characters', 'k'.repeat(255), 201],
    ['has spaces and quotes', '"a b"', 201],
    ['is empty', '', 400],
    ['has 256 characters', 'k'.repeat(256), 400],
    ['is not ASCII', 'kéy', 400],
    ['has a control character', 'k\ty', 400],
  ])('%s: %#', async (_name, key, status) => {
    const answer = await order(key)
    expect(answer.status).toBe(status)
    if (status === 400) expect(answer.body.message).toContain('Idempotency-Key must be 1 to 255 printable ASCII')
  })

  test.each(['PATCH', 'DELETE', 'GET'])('is ignored on %s', async (method) => {
    const headers = { 'idempotency-key': '' }
    const call = { headers, ...(method === 'PATCH' && { body: { quantity: 3 } }) }
    for (const status of [method === 'DELETE' ? 204 : 200, method === 'DELETE' ? 404 : 200]) {
      const answer = await gateway.call(method, '/store/orders/1', call)
      expect([answer.status, replayed(answer)]).toEqual([status, null])
    }
  })
})
