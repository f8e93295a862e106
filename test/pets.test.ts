import { beforeEach, describe, expect, test } from 'vitest'
import { emptyStore, resetStore, times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'

const gateway = await sharedGateway()
beforeEach(() => resetStore(gateway.prisma))

const tom = { id: 1, name: 'Tom', categoryId: 2, status: 'available' }
const kitty = { id: 2, name: 'Kitty', categoryId: 2, status: 'sold' }
const felix = { id: 3, name: 'Felix', categoryId: 2, status: 'pending' }

const refusal = (code: string, status: number, message: string) => ({ code, message, status })
const noPet = (id: number | bigint) => refusal('not_found', 404, `There is no pet ${id}.`)

describe('GET /pets', () => {
  test('returns an array of all pets in ascending order of id', async () => {
    await gateway.patch('/pets/1', { name: 'Zoe' })
    const { status, headers, body } = await gateway.get('/pets')
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json'])
    expect(body).toEqual([{ ...tom, name: 'Zoe' }, kitty, felix])
  })

  test('returns an empty array if there are no pets', async () => {
    await emptyStore(gateway.prisma)
    const { status, headers, text } = await gateway.get('/pets')
    expect([status, text, headers.get('link')]).toEqual([200, '[]', null])
  })

  test.each([
    ['status=sold', [2]],
    ['categoryId=2', [1, 2, 3]],
    ['categoryId=1', []],
    ['id=3&id=1', [1, 3]],
    ['id=2&id=2', [2]],
    ['id=2&id=999', [2]],
    ['after=1', [2, 3]],
    ['after=3', []],
    ['status=pending&categoryId=2', [3]],
    ['status=pending&categoryId=1', []],
    ['id=1&id=2&status=sold', [2]],
    ['id=1&id=2&id=3&after=1', [2, 3]],
    ['id=1&id=2&status=sold&categoryId=2&after=1&limit=1', [2]],
  ])('with %s returns only the pets %j', async (query, ids) => {
    const { status, body } = await gateway.get(`/pets?${query}`)
    expect([status, body.map(({ id }: { id: number }) => id)]).toEqual([200, ids])
  })

  test('returns at most 20 by default, and 100 if ids are given', async () => {
    await gateway.prisma.pet.createMany({ data: times(120, () => ({ name: 'Rex', categoryId: 2n })) })
    const hundred = times(100, (index) => `id=${index + 11}`).join('&')
    expect((await gateway.get('/pets')).body).toHaveLength(20)
    expect((await gateway.get('/pets?limit=100')).body).toHaveLength(100)
    expect((await gateway.get(`/pets?${hundred}`)).body).toHaveLength(100)
    expect((await gateway.get(`/pets?${hundred}&limit=7`)).body).toHaveLength(7)
    expect((await gateway.get(`/pets?${hundred}&id=1`)).body).toEqual(
      refusal('invalid_request', 400, 'The query parameter id is a list of 101 items; it must name at most 100 ids.'),
    )
  })
})

describe('POST /pets', () => {
  test('returns 201 with the pet and its Location; the default status is available', async () => {
    const { status, headers, body } = await gateway.post('/pets', { name: 'Rex', categoryId: 1 })
    expect([status, body]).toEqual([201, { id: 4, name: 'Rex', categoryId: 1, status: 'available' }])
    expect(headers.get('location')).toBe('http://localhost:3000/pets/4')
    expect((await gateway.get('/pets/4')).body).toEqual(body)
  })

  test('creates the inventory entry together with the pet', async () => {
    await gateway.post('/pets', { name: 'Rex', categoryId: 1, status: 'pending' })
    expect((await gateway.get('/inventory/4')).body).toEqual({ petId: 4, quantity: 0, status: 'pending' })
  })

  test.each([
    ['  Tom\t\n', 'Tom'],
    ['\u00a0\u3000Tom Cat\ufeff', 'Tom Cat'],
    ['🐈'.repeat(100), '🐈'.repeat(100)],
    [` ${'🐈'.repeat(100)} `, '🐈'.repeat(100)],
    ['<b>"\\\u0001', '<b>"\\\u0001'],
  ])('stores the name %j as %j', async (given, stored) => {
    expect((await gateway.post('/pets', { name: given, categoryId: 1 })).body.name).toBe(stored)
    expect((await gateway.get('/pets/4')).body.name).toBe(stored)
  })

  test('returns 422 if the category does not exist', async () => {
    const { status, body } = await gateway.post('/pets', { name: 'Rex', categoryId: 3 })
    expect([status, body]).toEqual([422, refusal('unknown_reference', 422, 'categoryId 3 does not exist.')])
  })
})

describe('GET /pets/{petId}', () => {
  test('returns 200 with exactly the specified fields', async () => {
    const { status, body } = await gateway.get('/pets/2')
    expect([status, body]).toEqual([200, kitty])
  })

  test('returns 404 if the pet does not exist, however large the id', async () => {
    for (const id of [4, 2n ** 53n, 2n ** 63n - 1n]) expect((await gateway.get(`/pets/${id}`)).body).toEqual(noPet(id))
  })

  test('distinguishes the largest ids', async () => {
    const id = 2n ** 53n - 1n
    await gateway.prisma.pet.create({ data: { id, name: 'Last', categoryId: 1n } })
    expect((await gateway.get(`/pets/${id}`)).body).toEqual({ ...tom, id: Number(id), name: 'Last', categoryId: 1 })
    expect((await gateway.get(`/pets/${id - 1n}`)).status).toBe(404)
    expect((await gateway.get(`/pets/${id + 1n}`)).status).toBe(404)
    const { body } = await gateway.call('POST', '/store/orders', { body: `{"petId":${id}}` })
    expect(body.petId).toBe(Number(id))
  })
})

describe('PATCH /pets/{petId}', () => {
  test.each([
    [{ name: ' Tim ' }, { ...tom, name: 'Tim' }],
    [{ categoryId: 1 }, { ...tom, categoryId: 1 }],
    [{ status: 'sold' }, { ...tom, status: 'sold' }],
    [
      { name: 'Tim', categoryId: 1, status: 'pending' },
      { id: 1, name: 'Tim', categoryId: 1, status: 'pending' },
    ],
    [{}, tom],
  ])('with %j changes only the fields sent', async (changes, pet) => {
    const { status, body } = await gateway.patch('/pets/1', changes)
    expect([status, body]).toEqual([200, pet])
    expect((await gateway.get('/pets')).body).toEqual([pet, kitty, felix])
  })

  test('accepts the media type of a merge patch', async () => {
    const headers = { 'content-type': 'application/merge-patch+json' }
    expect((await gateway.patch('/pets/1', { status: 'sold' }, { headers })).body).toEqual({ ...tom, status: 'sold' })
  })

  test('allows any status after any other', async () => {
    for (const status of ['sold', 'pending', 'available', 'sold', 'available', 'pending', 'sold'])
      expect((await gateway.patch('/pets/1', { status })).body.status).toBe(status)
  })

  test('returns 404 if the pet does not exist, even for an empty change', async () => {
    for (const changes of [{}, { name: 'Tim' }, { categoryId: 1 }])
      expect((await gateway.patch('/pets/4', changes)).body).toEqual(noPet(4))
  })

  test('returns 422 if the category does not exist, and changes nothing', async () => {
    const { body } = await gateway.patch('/pets/1', { name: 'Tim', categoryId: 3 })
    expect(body).toEqual(refusal('unknown_reference', 422, 'categoryId 3 does not exist.'))
    expect((await gateway.get('/pets/1')).body).toEqual(tom)
  })
})

describe('DELETE /pets/{petId}', () => {
  test('returns 204 without a body, and deletes the inventory entry', async () => {
    const { status, text, headers } = await gateway.delete('/pets/1')
    expect([status, text, headers.get('content-type')]).toEqual([204, '', null])
    expect((await gateway.get('/pets')).body).toEqual([kitty, felix])
    expect((await gateway.get('/inventory/1')).status).toBe(404)
    expect(await gateway.prisma.inventoryItem.count()).toBe(2)
  })

  test('returns 404 the second time', async () => {
    await gateway.delete('/pets/1')
    expect((await gateway.delete('/pets/1')).body).toEqual(noPet(1))
  })

  test('returns 409 while an order refers to the pet', async () => {
    const { status, body } = await gateway.delete('/pets/2')
    expect([status, body]).toEqual([409, refusal('conflict', 409, 'Pet 2 has orders. Delete or change them first.')])
    expect((await gateway.get('/inventory/2')).body.quantity).toBe(7)
    for (const id of [1, 2]) await gateway.patch(`/store/orders/${id}`, { petId: 1 })
    expect((await gateway.delete('/pets/2')).status).toBe(204)
  })

  test('never reuses an id', async () => {
    await gateway.delete('/pets/3')
    expect((await gateway.post('/pets', { name: 'Rex', categoryId: 1 })).body.id).toBe(4)
  })

  test('of ten concurrent requests, exactly one succeeds', async () => {
    const answers = await Promise.all(times(10, () => gateway.delete('/pets/1')))
    expect(answers.map(({ status }) => status).sort()).toEqual([204, ...Array(9).fill(404)])
  })
})
