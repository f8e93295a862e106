import { createClient } from './generated/hey-api/client/index.js'
import { client } from './generated/hey-api/client.gen.js'
import {
  createCategory,
  createOrder,
  createPet,
  getPet,
  listCategories,
  listPets,
  updateInventory,
} from './generated/hey-api/index.js'
import { given, pagesOf, type Report, type Target, unusedEtag, unusedId } from './round.js'

export async function round({ key, limitedKey }: Target): Promise<Report> {
  client.setConfig({ auth: key })
  const category = given(await createCategory({ body: { name: 'Dogs' } }))

  const petIds: number[] = []
  for (const name of ['Rex', 'Bella', 'Max', 'Luna', 'Rocky']) {
    const { id } = given(await createPet({ body: { name, categoryId: category.id } }))
    petIds.push(id)
  }
  const petId = petIds[0] ?? unusedId
  const order = given(await createOrder({ body: { petId, quantity: 2 } }))
  const { quantity } = given(await updateInventory({ path: { petId }, body: { quantity: 7 } }))

  const pages = await pagesOf(async (after) => {
    const page = await listPets({ query: { categoryId: category.id, limit: 2, after } })
    return { ids: given(page).map(({ id }) => id), more: page.response?.headers.has('link') ?? false }
  })
  const found = given(await listPets({ query: { id: petIds.slice(-2), expand: ['category', 'inventory'] } }))

  const missing = await getPet({ path: { petId: unusedId } })
  const stale = await updateInventory({
    path: { petId },
    headers: { 'If-Match': unusedEtag },
    body: { quantity: 8 },
  })
  const unknown = await createPet({ body: { name: 'Rex', categoryId: unusedId } })

  const limitedClient = createClient({ ...client.getConfig(), auth: limitedKey })
  given(await listCategories({ client: limitedClient }))
  const limited = await listCategories({ client: limitedClient })

  return {
    category,
    petIds,
    order,
    stock: quantity,
    pages,
    found: found.map(({ id }) => id),
    related: found.map(({ category, inventory }) => [category?.name, inventory?.quantity]),
    missing: { status: missing.response?.status ?? 0, code: missing.error?.code },
    stale: { status: stale.response?.status ?? 0, code: stale.error?.code },
    unknown: { status: unknown.response?.status ?? 0, code: unknown.error?.code },
    limited: {
      status: limited.response?.status ?? 0,
      code: limited.error?.code,
      retryAfter: limited.response?.headers.get('retry-after') ?? null,
    },
  }
}

/** Never called: what the types refuse. */
export function refused() {
  // @ts-expect-error: no such status
  listPets({ query: { status: 'lost' } })
  // @ts-expect-error: a pet needs a name
  createPet({ body: { categoryId: 1 } })
  // @ts-expect-error: an id is a number
  createOrder({ body: { petId: '1' } })
}
