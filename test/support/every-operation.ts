/** Sends a request with a key, and returns the response. */
export type Call = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
  // biome-ignore lint/suspicious/noExplicitAny: JSON
) => Promise<{ status: number; headers: Headers; body: any }>

/** Every operation, with a pet and a category of its own; returns what differs from what it should be. */
export async function everyOperation(call: Call, i: number) {
  const wrong: string[] = []
  const expectStatus = async (status: number, ...args: Parameters<typeof call>) => {
    const answer = await call(...args)
    if (answer.status !== status) wrong.push(`${args[0]} ${args[1]}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer
  }
  const key = { 'idempotency-key': `pet ${i}` }
  const category = (await expectStatus(201, 'POST', '/categories', { name: 'Dogs' })).body
  const pet = { name: `Pet ${i}`, categoryId: category.id }
  const { body: created, headers } = await expectStatus(201, 'POST', '/pets', pet, key)
  const again = await expectStatus(201, 'POST', '/pets', pet, key)
  if (again.body.id !== created.id) wrong.push('performed again')
  const ifMatch = { 'if-match': headers.get('etag') as string }
  await expectStatus(200, 'PATCH', `/pets/${created.id}`, { status: 'sold' }, ifMatch)
  await expectStatus(412, 'PATCH', `/pets/${created.id}`, { status: 'pending' }, ifMatch)
  await expectStatus(200, 'PATCH', `/pets/${created.id}`, { status: 'available' })
  await expectStatus(200, 'PATCH', `/categories/${category.id}`, { description: 'Loyal.' })
  await expectStatus(200, 'PATCH', `/inventory/${created.id}`, { quantity: i })
  const order = (await expectStatus(201, 'POST', '/store/orders', { petId: created.id, quantity: 1 })).body
  await expectStatus(200, 'PATCH', `/store/orders/${order.id}`, { quantity: 2 })
  const reads = [
    '/categories?limit=5',
    '/pets?status=available&limit=5',
    '/inventory?limit=5',
    '/store/orders?limit=5',
    '/quota',
    `/categories/${category.id}`,
    `/pets/${created.id}`,
    `/inventory/${created.id}`,
    `/store/orders/${order.id}`,
  ]
  await Promise.all(reads.map((path) => expectStatus(200, 'GET', path)))
  const query = `{ category(categoryId: ${category.id}) { pets(limit: 3) { name orders(limit: 3) { quantity } } } }`
  const { body } = await expectStatus(200, 'POST', '/graphql', { query })
  const pets = [{ name: pet.name, orders: [{ quantity: 2 }] }]
  if (JSON.stringify(body?.data?.category?.pets) !== JSON.stringify(pets)) wrong.push(JSON.stringify(body))
  await expectStatus(409, 'DELETE', `/pets/${created.id}`)
  await expectStatus(204, 'DELETE', `/store/orders/${order.id}`)
  await expectStatus(204, 'DELETE', `/pets/${created.id}`)
  await expectStatus(204, 'DELETE', `/categories/${category.id}`)
  return wrong
}
