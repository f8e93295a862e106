import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { resetStore, walk } from './support/calls.js'
import { type Gateway, openGateway } from './support/gateway.js'

let gateway: Gateway
beforeAll(async () => {
  gateway = await openGateway()
})
afterAll(() => gateway.close())
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

  test.each([
    ['petId=2', [1, 2]],
    ['petId=1', []],
    ['complete=true', [2]],
    ['complete=false', [1]],
    ['petId=2&complete=false', [1]],
    ['petId=2&complete=false&after=1', []],
    ['petId=2&after=1&limit=1', [2]],
  ])('with %s returns only the orders %j', async (query, ids) => {
    const { status, body } = await gateway.get(`/store/orders?${query}`)
    expect([status, body.map(({ id }: { id: number }) => id)]).toEqual([200, ids])
  })

  test.each([
    ['limit=1', [[1], [2]]],
    ['limit=2', [[1, 2]]],
    ['limit=1&complete=true', [[2]]],
  ])('with %s: the Link headers lead through all pages; the last page has none', async (query, ids) => {
    const pages = await walk(gateway, `/store/orders?${query}`)
    expect(pages.map((page) => page.map(({ id }) => id))).toEqual(ids)
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

  test.each([
    ...['2026-12-24', '2026-12-24T18:00:00', '2026-12-24T18:00Z', '2026-12-24 18:00:00Z', '2026-12-24T18:00:00+0530'],
    ...[
      '2026-02-30T00:00:00Z',
      '2027-02-29T00:00:00Z',
      '2026-13-01T00:00:00Z',
      '2026-12-24T24:00:00Z',
      '1969-12-31T23:59:59Z',
    ],
    ...['1970-01-01T00:00:00+01:00', '9999-12-31T23:59:59-01:00', '10000-01-01T00:00:00Z', ' 2026-12-24T18:00:00Z'],
    `2026-12-24T18:00:00.${'0'.repeat(44)}Z`,
  ])('returns 400 for the ship date %j', async (shipDate) => {
    const { body } = await gateway.post('/store/orders', { petId: 1, shipDate })
    const shown = shipDate.length > 40 ? `${shipDate.slice(0, 40)}…" (${shipDate.length} characters)` : `${shipDate}"`
    const message = `shipDate is "${shown}; it must be an RFC 3339 date-time with an offset, such as 2026-12-24T18:00:00Z, in the years 1970 to 9999 and at most 64 characters.`
    expect(body).toEqual({ code: 'invalid_request', message, status: 400 })
  })

  test.each([
    [0, 'quantity is 0; it must be at least 1.'],
    [-1, 'quantity is -1; it must be at least 1.'],
    [2_147_483_648, 'quantity is 2147483648; it must be at most 2147483647.'],
    [null, 'quantity must not be null.'],
  ])('returns 400 for the quantity %j', async (quantity, message) => {
    const { body } = await gateway.post('/store/orders', { petId: 1, quantity })
    expect(body).toEqual({ code: 'invalid_request', message, status: 400 })
  })

  test('returns 400 without petId', async () => {
    const { body } = await gateway.post('/store/orders', {})
    expect(body).toEqual({ code: 'invalid_request', message: 'petId is required.', status: 400 })
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

  test('returns 404 if the order does not exist', async () => {
    const { status, body } = await gateway.get('/store/orders/3')
    expect([status, body]).toEqual([404, noOrder])
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

  test.each(['petId', 'quantity', 'complete'])('returns 400 if %s is null', async (field) => {
    const { body } = await gateway.patch('/store/orders/1', { [field]: null })
    expect(body).toEqual({ code: 'invalid_request', message: `${field} must not be null.`, status: 400 })
  })

  test('returns 404 if the order does not exist, even for an empty change', async () => {
    for (const changes of [{}, { quantity: 1 }])
      expect((await gateway.patch('/store/orders/3', changes)).body).toEqual(noOrder)
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

  test('returns 404 if the order does not exist', async () => {
    expect((await gateway.delete('/store/orders/3')).body).toEqual(noOrder)
  })

  test('returns 409 while the order is complete', async () => {
    const { status, body } = await gateway.delete('/store/orders/2')
    const message = 'Order 2 is complete and cannot be deleted.'
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
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () => (await gateway.post('/store/orders', { petId: 1 })).body.id),
    )
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
