import { beforeEach, describe, expect, test } from 'vitest'
import { resetStore, times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'

const gateway = await sharedGateway()
beforeEach(() => resetStore(gateway.prisma))

const open = { id: 1, petId: 2, quantity: 2, complete: false }
const complete = { id: 2, petId: 2, quantity: 1, shipDate: '2026-12-24T18:00:00.000Z', complete: true }
const noOrder = { code: 'not_found', message: 'There is no order 3.', status: 404 }
const noPet = { code: 'unknown_reference', message: 'petId 4 does not exist.', status: 422 }

describe('GET /store/orders', () => {
  test('returns an array of all orders, and leaves out a missing ship date', async () => {
    const { status, body } = await gateway.get('/store/orders')
    expect([status, body]).toEqual([200, [open, complete]])
  })
})

describe('POST /store/orders', () => {
  test('returns 201 with the order and its Location; by default quantity is 1 and complete is false', async () => {
    const { status, headers, body } = await gateway.post('/store/orders', { petId: 1 })
    expect([status, body]).toEqual([201, { id: 3, petId: 1, quantity: 1, complete: false }])
    expect(headers.get('location')).toBe('http://localhost:3000/store/orders/3')
    expect((await gateway.get('/store/orders/3')).body).toEqual(body)
  })

  test('accepts every field', async () => {
    const sent = { petId: 1, quantity: 2_147_483_647, shipDate: '2027-01-01T00:00:00.000Z', complete: true }
    expect((await gateway.post('/store/orders', sent)).body).toEqual({ id: 3, ...sent })
  })

  test('changes neither the stock nor the status of the pet', async () => {
    const before = (await gateway.get('/inventory')).body
    await gateway.post('/store/orders', { petId: 2, quantity: 5, complete: true })
    await gateway.patch('/store/orders/1', { quantity: 100, complete: true })
    expect((await gateway.get('/inventory')).body).toEqual(before)
  })

  test.each([
    ['2026-12-24T18:00:00Z', '2026-12-24T18:00:00.000Z'],
    ['2026-12-24t18:00:00z', '2026-12-24T18:00:00.000Z'],
    ['2026-12-24T18:00:00+05:30', '2026-12-24T12:30:00.000Z'],
    ['2026-12-24T18:00:00-23:59', '2026-12-25T17:59:00.000Z'],
    ['2026-12-24T18:00:00-00:00', '2026-12-24T18:00:00.000Z'],
    ['2026-12-24T18:00:00.5Z', '2026-12-24T18:00:00.500Z'],
    ['2026-12-24T18:00:00.123456789Z', '2026-12-24T18:00:00.123Z'],
    [`2026-12-24T18:00:00.${'0'.repeat(43)}Z`, '2026-12-24T18:00:00.000Z'],
    ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000Z'],
    ['1969-12-31T23:30:00-01:00', '1970-01-01T00:30:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])('stores the ship date %s and returns it in UTC with milliseconds: %s', async (shipDate, stored) => {
    expect((await gateway.post('/store/orders', { petId: 1, shipDate })).body.shipDate).toBe(stored)
    expect((await gateway.get('/store/orders/3')).body.shipDate).toBe(stored)
  })

  test('returns 422 if the pet does not exist', async () => {
    const { status, body } = await gateway.post('/store/orders', { petId: 4 })
    expect([status, body]).toEqual([422, noPet])
  })
})

describe('GET /store/orders/{orderId}', () => {
  test('returns 200 with only the fields that have a value', async () => {
    expect((await gateway.get('/store/orders/1')).body).toEqual(open)
    expect((await gateway.get('/store/orders/2')).body).toEqual(complete)
  })
})

describe('PATCH /store/orders/{orderId}', () => {
  const { shipDate: _, ...cleared } = complete

  test.each([
    [{ petId: 1 }, { ...complete, petId: 1 }],
    [{ quantity: 9 }, { ...complete, quantity: 9 }],
    [{ shipDate: '1970-01-01T00:00:00Z' }, { ...complete, shipDate: '1970-01-01T00:00:00.000Z' }],
    [{ shipDate: null }, cleared],
    [{ complete: false }, { ...complete, complete: false }],
    [{}, complete],
  ])('with %j changes only the fields sent', async (changes, order) => {
    const headers = { 'content-type': 'application/merge-patch+json' }
    const { status, body } = await gateway.patch('/store/orders/2', changes, { headers })
    expect([status, body]).toEqual([200, order])
    expect((await gateway.get('/store/orders')).body).toEqual([open, order])
  })

  test('returns 422 if the pet does not exist, and changes nothing', async () => {
    expect((await gateway.patch('/store/orders/1', { petId: 4, quantity: 9 })).body).toEqual(noPet)
    expect((await gateway.get('/store/orders/1')).body).toEqual(open)
  })
})

describe('DELETE /store/orders/{orderId}', () => {
  test('returns 204 without a body, then 404', async () => {
    const { status, text } = await gateway.delete('/store/orders/1')
    expect([status, text]).toEqual([204, ''])
    expect((await gateway.get('/store/orders')).body).toEqual([complete])
    expect((await gateway.delete('/store/orders/1')).status).toBe(404)
  })

  test('returns 409 while the order is complete', async () => {
    const { status, body } = await gateway.delete('/store/orders/2')
    const message = 'Order 2 is complete and cannot be deleted. Set complete to false first.'
    expect([status, body]).toEqual([409, { code: 'conflict', message, status: 409 }])
    await gateway.patch('/store/orders/2', { complete: false })
    expect((await gateway.delete('/store/orders/2')).status).toBe(204)
  })

  test('never reuses an id', async () => {
    const { body } = await gateway.post('/store/orders', { petId: 1 })
    await gateway.delete(`/store/orders/${body.id}`)
    expect((await gateway.post('/store/orders', { petId: 1 })).body.id).toBe(body.id + 1)
  })

  test('never deletes an order that is completed at the same time', async () => {
    const ids = await Promise.all(times(20, async () => (await gateway.post('/store/orders', { petId: 1 })).body.id))
    for (const id of ids) {
      const [completed, deleted] = await Promise.all([
        gateway.patch(`/store/orders/${id}`, { complete: true }),
        gateway.delete(`/store/orders/${id}`),
      ])
      expect([
        [200, 409],
        [404, 204],
      ]).toContainEqual([completed.status, deleted.status])
    }
  })
})

test.each([
  ['GET', undefined],
  ['PATCH', {}],
  ['PATCH', { quantity: 1 }],
  ['DELETE', undefined],
])('%s of an order that does not exist returns 404, also with the body %j', async (method, body) => {
  expect((await gateway.call(method, '/store/orders/3', { body })).body).toEqual(noOrder)
})
