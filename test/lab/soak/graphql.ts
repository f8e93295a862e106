import type { Call } from '../../support/every-operation.js'

const names = ['categories', 'pets', 'orders', 'inventory']

/** Every operation of GraphQL, with a category and a pet of its own; returns what differs from what it should be. */
export async function everyGraphqlOperation(call: Call, i: number) {
  const wrong: string[] = []
  const ask = async (query: string, variables?: object) => {
    const { status, body } = await call('POST', '/graphql', { query, variables })
    if (status !== 200 || body.errors) wrong.push(`${query}: ${status} ${JSON.stringify(body)}`)
    return body?.data ?? {}
  }
  const change = (name: string, id: string, value: unknown, type: string, input: object) =>
    ask(`mutation ($id: Int64!, $input: ${type}!) { ${name}(${id}: $id, input: $input) { etag } }`, {
      id: value,
      input,
    })
  // A document that no cache has.
  const { createCategory: category } = await ask(`mutation { createCategory(input: { name: "Soak ${i}" }) { id } }`)
  const { createPet: pet } = await ask('mutation ($input: NewPet!) { createPet(input: $input) { id etag } }', {
    input: { name: `Pet ${i}`, categoryId: category?.id },
  })
  const { createOrder: order } = await ask('mutation ($input: NewOrder!) { createOrder(input: $input) { id } }', {
    input: { petId: pet?.id },
  })
  await change('updateCategory', 'categoryId', category?.id, 'CategoryUpdate', { description: 'Loyal.' })
  await change('updatePet', 'petId', pet?.id, 'PetUpdate', { status: 'pending' })
  await change('updateOrder', 'orderId', order?.id, 'OrderUpdate', { quantity: 2 })
  await change('updateInventory', 'petId', pet?.id, 'InventoryUpdate', { quantity: 3 })
  const lists = names.map((name) => `${name}(limit: 5) { __typename }`)
  const connections = names.map((name) => `${name}Connection(first: 2) { totalCount edges { cursor } }`)
  await ask(`{ ${[...lists, ...connections].join(' ')} quota { plan } }`)
  await ask(
    `query ($id: Int64!) { pet(petId: $id) { name category { pets(limit: 3) { name orders(limit: 2) { id } } } } }`,
    {
      id: pet?.id,
    },
  )
  await ask(`{ order(orderId: ${order?.id}) { quantity } inventoryItem(petId: ${pet?.id}) { quantity } }`)
  for (const [name, id, value] of [
    ['deleteOrder', 'orderId', order?.id],
    ['deletePet', 'petId', pet?.id],
    ['deleteCategory', 'categoryId', category?.id],
  ])
    await ask(`mutation ($id: Int64!) { ${name}(${id}: $id) { __typename } }`, { id: value })
  return wrong
}
