import { getNamedType, isInputObjectType } from 'graphql'
import { describe, expect, test } from 'vitest'
import { operations, schema } from '../schema/index.js'
import { catalogue, type ErrorCode } from '../schema/kit/errors.js'
import { fill, type Operation } from '../schema/kit/operations.js'
import { type Args, callGraphql, callRest, contents, resetStore } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'

type Case = [expected: 'success' | ErrorCode, args: Args]

const shipDate = '2026-12-24T18:00:00+01:00'

/** A change of one thing under a condition: of what exists, and of what does not. */
const conditional = (args: Args, missing: Args): Case[] => [
  ['success', { ...args, ifMatch: '*' }],
  ['invalid_request', { ...args, ifMatch: 'x' }],
  ['precondition_failed', { ...args, ifMatch: '"x", W/"y"' }],
  ['precondition_failed', { ...args, ...missing, ifMatch: '*' }],
]
const tom = { name: 'Tom', categoryId: 1 }
const stock = (quantity: number, ...petIds: number[]) => ({ input: petIds.map((petId) => ({ petId, quantity })) })

// The tests below fail for a root field without a line here, and for an argument that no success uses.
const cases: Record<string, Case[]> = {
  pets: [
    ['success', {}],
    ['success', { limit: 1 }],
    ['success', { limit: 5, after: 1, id: [1, 2, 3], status: 'sold', categoryId: 2 }],
    ['success', { id: [9_007_199_254_740_993n] }],
    ['success', { search: 'KI', sort: 'name', direction: 'desc' }],
    ['invalid_request', { limit: 101 }],
    ['invalid_request', { search: 'Ki' }],
    ['invalid_request', { sort: 'name', after: 1 }],
    ['invalid_request', { id: [0] }],
    ['invalid_request', { id: Array(101).fill(1) }],
    ['invalid_request', { status: 'Sold' }],
  ],
  pet: [
    ['success', { petId: 1 }],
    ['not_found', { petId: 4 }],
    ['not_found', { petId: 2n ** 63n - 1n }],
    ['invalid_request', { petId: 2n ** 63n }],
  ],
  createPet: [
    ['success', { input: { name: ' Tom ', categoryId: 1 } }],
    ['success', { input: { name: 'Tom', categoryId: 1, status: 'sold' } }],
    ['invalid_request', { input: {} }],
    ['invalid_request', { input: { name: ' ', categoryId: 1 } }],
    ['invalid_request', { input: { name: 'Tom', categoryId: 1, status: null } }],
    ['invalid_request', { input: { name: 'Tom', categoryId: 1, weight: 1 } }],
    ['unknown_reference', { input: { name: 'Tom', categoryId: 3 } }],
    ['unknown_reference', { input: { name: 'Tom', categoryId: 9_007_199_254_740_993n } }],
  ],
  createPets: [
    ['success', { input: [{ name: ' Tom ', categoryId: 1 }] }],
    ['success', { input: [1, 2].map(() => ({ name: 'Tom', categoryId: 1, status: 'sold' })) }],
    ['invalid_request', { input: [] }],
    ['invalid_request', { input: [tom, { ...tom, name: ' ' }] }],
    ['invalid_request', { input: [{ name: 'Tom', categoryId: 1, status: null }] }],
    ['invalid_request', { input: Array(101).fill({ name: 'Tom', categoryId: 1 }) }],
    ['unknown_reference', { input: [{ name: 'Tom', categoryId: 3 }] }],
  ],
  updatePets: [
    ['success', { input: [{ id: 1 }] }],
    ['success', { input: [{ id: 2, name: 'Jerry', categoryId: 1, status: 'pending' }, { id: 1 }] }],
    ['invalid_request', { input: [{ id: 1, name: null }] }],
    ['invalid_request', { input: [{ id: 1 }, { id: 1 }] }],
    ['not_found', { input: [{ id: 1, name: 'Jerry' }, { id: 4 }] }],
    ['unknown_reference', { input: [{ id: 1, categoryId: 3 }] }],
  ],
  updatePet: [
    ['success', { petId: 1, input: {} }],
    ['success', { petId: 1, input: { name: 'Jerry', categoryId: 1, status: 'pending' } }],
    ['invalid_request', { petId: 1, input: { name: null } }],
    ['not_found', { petId: 4, input: {} }],
    ['not_found', { petId: 4, input: { name: 'Jerry' } }],
    ['unknown_reference', { petId: 1, input: { categoryId: 3 } }],
    ...conditional({ petId: 1, input: {} }, { petId: 4 }),
  ],
  deletePet: [
    ['success', { petId: 1 }],
    ['invalid_request', { petId: 0 }],
    ['not_found', { petId: 4 }],
    ['conflict', { petId: 2 }],
    ...conditional({ petId: 1 }, { petId: 4 }),
  ],
  categories: [
    ['success', {}],
    ['success', { limit: 1, after: 1 }],
    ['success', { id: [2, 3], search: 'c', sort: 'name', direction: 'asc' }],
    ['invalid_request', { limit: 0 }],
    ['invalid_request', { search: ' ', sort: 'name' }],
  ],
  category: [
    ['success', { categoryId: 1 }],
    ['success', { categoryId: 2 }],
    ['not_found', { categoryId: 3 }],
    ['invalid_request', { categoryId: -1 }],
  ],
  createCategory: [
    ['success', { input: { name: 'Birds' } }],
    ['success', { input: { name: 'Birds', description: '' } }],
    ['invalid_request', { input: { name: 'Birds', description: null } }],
  ],
  updateCategory: [
    ['success', { categoryId: 1, input: {} }],
    ['success', { categoryId: 1, input: { name: 'Hounds', description: 'They run.' } }],
    ['success', { categoryId: 1, input: { description: null } }],
    ['invalid_request', { categoryId: 1, input: { name: null } }],
    ['not_found', { categoryId: 3, input: {} }],
    ...conditional({ categoryId: 1, input: {} }, { categoryId: 3 }),
  ],
  deleteCategory: [
    ['success', { categoryId: 1 }],
    ['invalid_request', { categoryId: 0 }],
    ['not_found', { categoryId: 3 }],
    ['conflict', { categoryId: 2 }],
    ...conditional({ categoryId: 1 }, { categoryId: 3 }),
  ],
  orders: [
    ['success', {}],
    ['success', { limit: 1, after: 1, petId: 2, complete: true }],
    ['success', { complete: false }],
    [
      'success',
      { id: [2], sort: 'shipDate', direction: 'desc', shipDateFrom: shipDate, shipDateBefore: '2027-01-01T00:00:00Z' },
    ],
    ['invalid_request', { after: 0 }],
    ['invalid_request', { shipDateFrom: shipDate }],
    ['invalid_request', { sort: 'shipDate', shipDateFrom: '2027-01-01T00:00:00Z', shipDateBefore: shipDate }],
  ],
  order: [
    ['success', { orderId: 1 }],
    ['success', { orderId: 2 }],
    ['invalid_request', { orderId: 0 }],
    ['not_found', { orderId: 3 }],
  ],
  createOrder: [
    ['success', { input: { petId: 1 } }],
    ['success', { input: { petId: 1, quantity: 2_147_483_647, shipDate, complete: true } }],
    ['invalid_request', { input: { petId: 1, quantity: 0 } }],
    ['invalid_request', { input: { petId: 1, shipDate: null } }],
    ['unknown_reference', { input: { petId: 4 } }],
  ],
  createOrders: [
    ['success', { input: [{ petId: 1 }, { petId: 1, quantity: 2_147_483_647, shipDate, complete: true }] }],
    ['invalid_request', { input: [{ petId: 1, quantity: 0 }] }],
    ['unknown_reference', { input: [{ petId: 1 }, { petId: 4 }] }],
  ],
  updateOrder: [
    ['success', { orderId: 2, input: {} }],
    ['success', { orderId: 1, input: { petId: 1, quantity: 3, shipDate, complete: true } }],
    ['success', { orderId: 2, input: { shipDate: null } }],
    ['invalid_request', { orderId: 1, input: { complete: null } }],
    ['not_found', { orderId: 3, input: { quantity: 1 } }],
    ['unknown_reference', { orderId: 1, input: { petId: 4 } }],
    ...conditional({ orderId: 1, input: {} }, { orderId: 3 }),
  ],
  deleteOrder: [
    ['success', { orderId: 1 }],
    ['invalid_request', { orderId: 0 }],
    ['not_found', { orderId: 3 }],
    ['conflict', { orderId: 2 }],
    ...conditional({ orderId: 1 }, { orderId: 3 }),
  ],
  inventory: [
    ['success', {}],
    ['success', { limit: 1, after: 1, status: 'sold' }],
    ['success', { petId: [1, 2], minQuantity: 1, maxQuantity: 7, sort: 'quantity', direction: 'desc' }],
    ['invalid_request', { limit: -1 }],
    ['invalid_request', { minQuantity: 1 }],
    ['invalid_request', { sort: 'quantity', minQuantity: 2, maxQuantity: 1 }],
  ],
  inventoryItem: [
    ['success', { petId: 2 }],
    ['invalid_request', { petId: 0 }],
    ['not_found', { petId: 4 }],
  ],
  updateInventories: [
    ['success', { input: [{ petId: 2, quantity: 3 }, ...stock(0, 1).input] }],
    ['invalid_request', stock(-1, 2)],
    ['invalid_request', stock(1, 2, 2)],
    ['not_found', stock(1, 2, 4)],
  ],
  updateInventory: [
    ['success', { petId: 2, input: { quantity: 0 } }],
    ['invalid_request', { petId: 2, input: { quantity: -1 } }],
    ['not_found', { petId: 4, input: { quantity: 1 } }],
    ...conditional({ petId: 2, input: { quantity: 0 } }, { petId: 4 }),
  ],
  quota: [['success', {}]],
  usage: [
    ['success', {}],
    ['success', { days: 90 }],
    ['invalid_request', { days: 91 }],
  ],
}

const gateway = await sharedGateway()
// From here on, two reads of the quota show the same windows.
await gateway.get('/categories')

async function throughRest(operation: Operation, args: Args) {
  const { method, path, status = 200 } = operation.rest
  // A delete returns no body in REST, and the deleted object in GraphQL.
  const deleted = method === 'DELETE' ? (await gateway.get(fill(path, args))).body : undefined
  const answer = await callRest(gateway, operation, args)
  if (answer.status >= 400) return { code: answer.body.code, status: answer.status }
  expect([answer.status, answer.text === '']).toEqual([status, status === 204])
  return { data: answer.body ?? deleted }
}

async function throughGraphql(operation: Operation, args: Args) {
  const { errors, data } = (await callGraphql(gateway, operation, args)).body
  if (errors) return errors[0].extensions
  return JSON.parse(JSON.stringify({ data: data[operation.name] }), (_, value) => value ?? undefined)
}

const inputFields = ({ field }: Operation) =>
  field.args.flatMap(({ type }) => {
    const named = getNamedType(type)
    return isInputObjectType(named) ? Object.keys(named.getFields()) : []
  })

describe('the table of cases', () => {
  test('has every root field of the schema', () => {
    const types = [schema.getQueryType(), schema.getMutationType()]
    // Connections and nodes have tests of their own: REST has none.
    const names = types.flatMap((type) => Object.keys(type?.getFields() ?? {}))
    const rootFields = names.filter((name) => !/Connection$|^nodes?$/.test(name)).sort()
    expect(Object.keys(cases).sort()).toEqual(rootFields)
    expect(operations.map(({ name }) => name).sort()).toEqual(rootFields)
  })

  test.each(operations)('uses every argument of $name in a success', (operation) => {
    const used = (cases[operation.name] ?? []).flatMap(([expected, args]) =>
      expected === 'success' ? [...Object.keys(args), ...[args.input ?? {}].flat().flatMap(Object.keys)] : [],
    )
    // Cursors and totals are REST's alone.
    const shared = operation.field.args.filter(({ extensions }) => !extensions.subGraphs)
    const names = [...shared.map(({ name }) => name), ...inputFields(operation)]
    expect(used).toEqual(expect.arrayContaining(names))
  })

  test.each(operations)('has every error of $name', (operation) => {
    const { name, field, rest } = operation
    const { key } = operation.body?.extensions.batch ?? {}
    const refers = inputFields(operation).some((input) => input.endsWith('Id') && input !== key)
    const expected = [
      ...(field.args.length > 0 ? ['invalid_request'] : []),
      ...(rest.path.includes('{') || key ? ['not_found'] : []),
      ...(field.args.some((arg) => arg.name === 'ifMatch') ? ['precondition_failed'] : []),
      ...(refers ? ['unknown_reference'] : []),
      ...(rest.errors ?? []),
    ]
    expect((cases[name] ?? []).map(([outcome]) => outcome)).toEqual(expect.arrayContaining(expected))
  })
})

describe.each(operations)('$name', (operation) => {
  test.each(cases[operation.name] ?? [])('is %s on both surfaces with %o', async (expected, args) => {
    await resetStore(gateway.prisma)
    const rest = await throughRest(operation, args)
    const stored = await contents(gateway.prisma)
    await resetStore(gateway.prisma)
    const graphql = await throughGraphql(operation, args)

    // These may differ: the whole quota is too large to be free in GraphQL, and usage is written every five seconds.
    const changing = ['remaining', 'requests', 'refused', 'cost']
    const shown = (answer: object) =>
      JSON.stringify(answer, (key, value) => (changing.includes(key) ? typeof value : value))
    expect(JSON.parse(shown(graphql))).toEqual(JSON.parse(shown(rest)))
    expect(await contents(gateway.prisma)).toEqual(stored)
    if (expected === 'success') expect(rest.data).toBeDefined()
    else expect(rest).toEqual({ code: expected, status: catalogue[expected].status })
  })
})
