import createClient from 'openapi-fetch'
import type { paths } from './generated/openapi-fetch.js'
import { given, pagesOf, type Report, type Target, unusedEtag, unusedId } from './round.js'

const clientOf = (url: string, key: string) =>
  createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${key}` } })

export async function round({ url, key, limitedKey }: Target): Promise<Report> {
  const client = clientOf(url, key)
  const category = given(await client.POST('/categories', { body: { name: 'Dogs' } }))

  const petIds: number[] = []
  for (const name of ['Rex', 'Bella', 'Max', 'Luna', 'Rocky']) {
    const pet = given(await client.POST('/pets', { body: { name, categoryId: category.id } }))
    petIds.push(pet.id)
  }
  const petId = petIds[0] ?? unusedId
  const order = given(await client.POST('/store/orders', { body: { petId, quantity: 2 } }))
  const { quantity } = given(
    await client.PATCH('/inventory/{petId}', { params: { path: { petId } }, body: { quantity: 7 } }),
  )

  const pages = await pagesOf(async (after) => {
    const page = await client.GET('/pets', { params: { query: { categoryId: category.id, limit: 2, after } } })
    return { ids: given(page).map(({ id }) => id), more: page.response.headers.has('link') }
  })
  const found = given(
    await client.GET('/pets', { params: { query: { id: petIds.slice(-2), expand: ['category', 'inventory'] } } }),
  )

  const missing = await client.GET('/pets/{petId}', { params: { path: { petId: unusedId } } })
  const stale = await client.PATCH('/inventory/{petId}', {
    params: { path: { petId }, header: { 'If-Match': unusedEtag } },
    body: { quantity: 8 },
  })
  const unknown = await client.POST('/pets', { body: { name: 'Rex', categoryId: unusedId } })

  const limitedClient = clientOf(url, limitedKey)
  given(await limitedClient.GET('/categories'))
  const limited = await limitedClient.GET('/categories')

  return {
    category,
    petIds,
    order,
    stock: quantity,
    pages,
    found: found.map(({ id }) => id),
    related: found.map(({ category, inventory }) => [category?.name, inventory?.quantity]),
    missing: { status: missing.response.status, code: missing.error?.code },
    stale: { status: stale.response.status, code: stale.error?.code },
    unknown: { status: unknown.response.status, code: unknown.error?.code },
    limited: {
      status: limited.response.status,
      code: limited.error?.code,
      retryAfter: limited.response.headers.get('retry-after'),
    },
  }
}

/** Never called: what the types refuse. */
export function refused(client: ReturnType<typeof clientOf>) {
  // @ts-expect-error: no such status
  client.GET('/pets', { params: { query: { status: 'lost' } } })
  // @ts-expect-error: a pet needs a name
  client.POST('/pets', { body: { categoryId: 1 } })
  // @ts-expect-error: an id is a number
  client.POST('/store/orders', { body: { petId: '1' } })
  // @ts-expect-error: nothing is deleted here
  client.DELETE('/inventory/{petId}', { params: { path: { petId: 1 } } })
}
