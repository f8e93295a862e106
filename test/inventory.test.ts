import { beforeEach, describe, expect, test } from 'vitest'
import { resetStore } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'

const gateway = await sharedGateway()
beforeEach(() => resetStore(gateway.prisma))

const tom = { petId: 1, quantity: 0, status: 'available' }
const kitty = { petId: 2, quantity: 7, status: 'sold' }
const felix = { petId: 3, quantity: 0, status: 'pending' }
const noEntry = { code: 'not_found', message: 'There is no inventory entry for pet 4.', status: 404 }

describe('GET /inventory', () => {
  test('returns an array with one entry per pet, in ascending order of petId', async () => {
    const { status, body } = await gateway.get('/inventory')
    expect([status, body]).toEqual([200, [tom, kitty, felix]])
  })
})

describe('GET /inventory/{petId}', () => {
  test("returns the pet's current status", async () => {
    expect((await gateway.get('/inventory/2')).body).toEqual(kitty)
    await gateway.patch('/pets/2', { status: 'pending' })
    expect((await gateway.get('/inventory/2')).body).toEqual({ ...kitty, status: 'pending' })
    expect((await gateway.get('/inventory?status=pending')).body).toHaveLength(2)
  })

  test('returns 404 if the pet does not exist', async () => {
    const { status, body } = await gateway.get('/inventory/4')
    expect([status, body]).toEqual([404, noEntry])
  })
})

describe('PATCH /inventory/{petId}', () => {
  test.each([0, 1, 2_147_483_647])('sets the stock count to %i, and changes no other entry', async (quantity) => {
    const { status, body } = await gateway.patch('/inventory/2', { quantity })
    expect([status, body]).toEqual([200, { ...kitty, quantity }])
    expect((await gateway.get('/inventory')).body).toEqual([tom, body, felix])
  })

  test.each([
    [{ quantity: -1 }, 'quantity is -1; it must be at least 0.'],
    [{ quantity: 2_147_483_648 }, 'quantity is 2147483648; it must be at most 2147483647.'],
    [{ quantity: 1.5 }, 'quantity is 1.5; it must be a whole number from 0 to 2147483647.'],
    [{ quantity: null }, 'quantity is null; it must be a whole number from 0 to 2147483647.'],
    [{}, 'quantity is required.'],
    [{ quantity: 1, status: 'sold' }, 'status is unknown; known are quantity.'],
  ])('returns 400 for %j, and changes nothing', async (sent, message) => {
    const { body } = await gateway.patch('/inventory/2', sent)
    expect(body).toEqual({ code: 'invalid_request', message, status: 400 })
    expect((await gateway.get('/inventory/2')).body).toEqual(kitty)
  })

  test('returns 404 if the pet does not exist', async () => {
    const { status, body } = await gateway.patch('/inventory/4', { quantity: 1 })
    expect([status, body]).toEqual([404, noEntry])
  })
})
