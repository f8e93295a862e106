import { beforeEach, describe, expect, test } from 'vitest'
import { resetStore, times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'

const gateway = await sharedGateway()
beforeEach(() => resetStore(gateway.prisma))

const dogs = { id: 1, name: 'Dogs', description: 'They bark.' }
const cats = { id: 2, name: 'Cats' }
const noCategory = { code: 'not_found', message: 'There is no category 3.', status: 404 }

describe('GET /categories', () => {
  test('returns an array of all categories, and leaves out a missing description', async () => {
    const { status, body } = await gateway.get('/categories')
    expect([status, body]).toEqual([200, [dogs, cats]])
  })

  test('returns at most 20 by default', async () => {
    await gateway.prisma.category.createMany({ data: times(20, () => ({ name: 'More' })) })
    expect((await gateway.get('/categories')).body).toHaveLength(20)
  })
})

describe('POST /categories', () => {
  test.each([
    [{ name: ' Birds ' }, { id: 3, name: 'Birds' }],
    [
      { name: 'Birds', description: ' They sing. ' },
      { id: 3, name: 'Birds', description: ' They sing. ' },
    ],
    [
      { name: 'Birds', description: '' },
      { id: 3, name: 'Birds', description: '' },
    ],
    [{ name: 'Cats' }, { id: 3, name: 'Cats' }],
  ])('with %j returns 201 with the category and its Location', async (sent, made) => {
    const { status, headers, body } = await gateway.post('/categories', sent)
    expect([status, body, headers.get('location')]).toEqual([201, made, 'http://localhost:3000/categories/3'])
    expect((await gateway.get('/categories/3')).body).toEqual(made)
  })
})

describe('GET /categories/{categoryId}', () => {
  test('returns 200 with only the fields that have a value', async () => {
    expect((await gateway.get('/categories/1')).body).toEqual(dogs)
    expect((await gateway.get('/categories/2')).body).toEqual(cats)
  })

  test('has null in GraphQL where REST leaves out the description', async () => {
    const { body } = await gateway.graphql('{ category(categoryId: 2) { description } }')
    expect(body).toEqual({ data: { category: { description: null } } })
  })
})

describe('PATCH /categories/{categoryId}', () => {
  test.each([
    [{ name: ' Hounds ' }, { ...dogs, name: 'Hounds' }],
    [{ description: 'They run.' }, { ...dogs, description: 'They run.' }],
    [{ description: null }, { id: 1, name: 'Dogs' }],
    [
      { name: 'Hounds', description: null },
      { id: 1, name: 'Hounds' },
    ],
    [{}, dogs],
  ])('with %j changes only the fields sent', async (changes, category) => {
    const headers = { 'content-type': 'application/merge-patch+json' }
    const { status, body } = await gateway.patch('/categories/1', changes, { headers })
    expect([status, body]).toEqual([200, category])
    expect((await gateway.get('/categories')).body).toEqual([category, cats])
  })
})

describe('DELETE /categories/{categoryId}', () => {
  test('returns 204 without a body, then 404', async () => {
    const { status, text } = await gateway.delete('/categories/1')
    expect([status, text]).toEqual([204, ''])
    expect((await gateway.get('/categories')).body).toEqual([cats])
    expect((await gateway.delete('/categories/1')).status).toBe(404)
  })

  test('returns 409 while the category has pets', async () => {
    const { id } = (await gateway.post('/categories', { name: 'Kittens' })).body
    for (const pet of [1, 2, 3]) await gateway.patch(`/pets/${pet}`, { categoryId: id })
    const { status, body } = await gateway.delete(`/categories/${id}`)
    // Rows of every kind that can refer to a category are named.
    const message = expect.stringMatching(/^Category 3 has pets(, \w+)*( or \w+)?[.] Delete or change them first[.]$/)
    expect([status, body]).toEqual([409, { code: 'conflict', message, status: 409 }])
    for (const pet of [1, 2, 3]) await gateway.patch(`/pets/${pet}`, { categoryId: 1 })
    expect((await gateway.delete(`/categories/${id}`)).status).toBe(204)
  })

  test('never reuses an id', async () => {
    const { body } = await gateway.post('/categories', { name: 'Birds' })
    await gateway.delete(`/categories/${body.id}`)
    expect((await gateway.post('/categories', { name: 'Fish' })).body.id).toBe(body.id + 1)
  })
})

test.each([
  ['GET', undefined],
  ['PATCH', {}],
  ['PATCH', { name: 'Birds' }],
  ['DELETE', undefined],
])('%s of a category that does not exist returns 404, also with the body %j', async (method, body) => {
  expect((await gateway.call(method, '/categories/3', { body })).body).toEqual(noCategory)
})
