import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Gateway, openGateway } from './support/gateway.js'

let gateway: Gateway
let categoryId: number
beforeAll(async () => {
  gateway = await openGateway()
  categoryId = (await gateway.post('/categories', { name: 'Cats' })).body.id
})
afterAll(() => gateway.close())

const createPet = async (data: object = {}) =>
  (await gateway.post('/pets', { name: 'Tom', categoryId, ...data })).body as { id: number }

describe('POST /pets', () => {
  test('answers 201 with the pet and its Location, available unless told otherwise', async () => {
    const { status, headers, body } = await gateway.post('/pets', { name: '  Tom ', categoryId })
    expect(status).toBe(201)
    expect(body).toEqual({ id: expect.any(Number), name: 'Tom', categoryId, status: 'available' })
    expect(headers.get('location')).toBe(`http://localhost:3000/pets/${body.id}`)
    expect((await gateway.get(`/pets?id=${body.id}`)).body).toEqual([body])
  })

  test('makes the inventory entry with the pet', async () => {
    const { id } = await createPet({ status: 'pending' })
    expect((await gateway.get(`/inventory/${id}`)).body).toEqual({ petId: id, quantity: 0, status: 'pending' })
  })

  test('answers 422 where the category does not exist', async () => {
    const { status, body } = await gateway.post('/pets', { name: 'Tom', categoryId: 999_999 })
    expect([status, body.code]).toEqual([422, 'unknown_reference'])
  })
})
