import { beforeEach, describe, expect, test } from 'vitest'
import { resetStore } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'

// Ids that clients read any object again by.

const gateway = await sharedGateway()
beforeEach(() => resetStore(gateway.prisma))

const ask = async (query: string, variables = {}) => (await gateway.graphql(query, variables)).body
const idsOf = async () =>
  (
    await ask(`{
      pets(limit: 1) { nodeId }
      categories(limit: 1) { nodeId }
      orders(limit: 1) { nodeId }
      inventory(limit: 1) { nodeId }
    }`)
  ).data as Record<string, [{ nodeId: string }]>

const fragments = `__typename nodeId
  ... on Pet { name category { name } } ... on Category { name } ... on Order { id quantity } ... on InventoryItem { petId quantity }`

describe('node', () => {
  test('is any object by its nodeId, with everything below it', async () => {
    const { pets, categories, orders, inventory } = await idsOf()
    const ids = [pets, categories, orders, inventory].map((list) => list?.[0].nodeId)
    expect(new Set(ids).size).toBe(4)
    const { data } = await ask(`query ($ids: [ID!]!) { nodes(nodeIds: $ids) { ${fragments} } }`, { ids })
    expect(data.nodes.map(({ __typename }: { __typename: string }) => __typename)).toEqual([
      'Pet',
      'Category',
      'Order',
      'InventoryItem',
    ])
    expect(data.nodes[0]).toMatchObject({ nodeId: ids[0], name: 'Tom', category: { name: expect.any(String) } })
    for (const [i, nodeId] of ids.entries())
      expect(
        (await ask(`query ($nodeId: ID!) { node(nodeId: $nodeId) { ${fragments} } }`, { nodeId })).data.node,
      ).toEqual(data.nodes[i])
  })

  test('is null for what does not exist or was deleted; the others keep their places', async () => {
    const { data } = await ask('mutation { createPet(input: { name: "Rex", categoryId: 1 }) { id nodeId } }')
    const { id, nodeId } = data.createPet
    const other = (await idsOf()).pets?.[0].nodeId
    await gateway.delete(`/pets/${id}`)
    const query = 'query ($ids: [ID!]!) { nodes(nodeIds: $ids) { nodeId } }'
    expect(await ask(query, { ids: [nodeId, other, nodeId] })).toEqual({
      data: { nodes: [null, { nodeId: other }, null] },
    })
    expect(await ask('query ($id: ID!) { node(nodeId: $id) { nodeId } }', { id: nodeId })).toEqual({
      data: { node: null },
    })
  })

  test.each([
    ['x'],
    [''],
    [Buffer.from('Pet:0x1').toString('base64url')],
    [Buffer.from('Pet:01').toString('base64url')],
    [Buffer.from('Quota:1').toString('base64url')],
    [Buffer.from('__Type:1').toString('base64url')],
    [`${Buffer.from('Pet:1').toString('base64url')}=`],
    [Buffer.from('Pet:99999999999999999').toString('base64url')],
  ])('is refused for %j, which is no nodeId', async (id) => {
    const { errors } = await ask('query ($id: ID!) { node(nodeId: $id) { nodeId } }', { id })
    expect(errors[0].message).toMatch(/nodeId is ".*"; it must be the nodeId of an object\./)
    expect(
      (await ask('query ($id: [ID!]!) { nodes(nodeIds: $id) { nodeId } }', { id: [id] })).errors[0].message,
    ).toMatch(/nodeIds\[0\] is/)
  })

  test.each([null, true])('is refused for %j, which is no string', async (id) => {
    const query = 'query ($ids: [ID!]!) { nodes(nodeIds: $ids) { nodeId } }'
    const { errors } = await ask(query, { ids: ['UGV0OjE', id] })
    expect(errors[0].message).toBe(`$ids[1] is ${JSON.stringify(id)}; it must be a string.`)
  })

  test('costs what its objects cost; at most 100 ids are taken', async () => {
    const id = (await idsOf()).pets?.[0].nodeId as string
    const cost = async (count: number) => {
      const query = 'query ($ids: [ID!]!) { nodes(nodeIds: $ids) { nodeId ... on Pet { orders(limit: 9) { id } } } }'
      const { headers, body } = await gateway.graphql(query, { ids: Array(count).fill(id) })
      return body.errors?.[0].message ?? headers.get('x-ratelimit-cost')
    }
    expect([await cost(1), await cost(100)]).toEqual(['1', '10'])
    expect(await cost(101)).toMatch(/at most 100 ids/)
  })
})
