import { Api, type Error as Body, type HttpResponse, PetExpansion } from './generated/swagger-typescript-api.js'
import { pagesOf, type Report, type Target, unusedEtag, unusedId } from './round.js'

const clientOf = (key: string) => new Api({ baseApiParams: { headers: { authorization: `Bearer ${key}` } } })

/** What a call throws. */
const refusal = (call: Promise<unknown>): Promise<HttpResponse<unknown, Body>> =>
  call.then(
    () => Promise.reject(new Error('It was not refused.')),
    (response) => response,
  )

export async function round({ key, limitedKey }: Target): Promise<Report> {
  const { categories, pets, inventory, store } = clientOf(key)
  const { data: category } = await categories.createCategory({ name: 'Dogs' })

  const petIds: number[] = []
  for (const name of ['Rex', 'Bella', 'Max', 'Luna', 'Rocky']) {
    const { data } = await pets.createPet({ name, categoryId: category.id })
    petIds.push(data.id)
  }
  const petId = petIds[0] ?? unusedId
  const { data: order } = await store.createOrder({ petId, quantity: 2 })
  const { data: stock } = await inventory.updateInventory(petId, { quantity: 7 })

  const pages = await pagesOf(async (after) => {
    const { data, headers } = await pets.listPets({ categoryId: category.id, limit: 2, after })
    return { ids: data.map(({ id }) => id), more: headers.has('link') }
  })
  const expand = [PetExpansion.Category, PetExpansion.Inventory]
  const { data: found } = await pets.listPets({ id: petIds.slice(-2), expand })

  const missing = await refusal(pets.getPet(unusedId))
  const headers = { 'If-Match': unusedEtag }
  const stale = await refusal(inventory.updateInventory(petId, { quantity: 8 }, { headers }))
  const unknown = await refusal(pets.createPet({ name: 'Rex', categoryId: unusedId }))

  const limitedClient = clientOf(limitedKey)
  await limitedClient.categories.listCategories()
  const limited = await refusal(limitedClient.categories.listCategories())

  return {
    category,
    petIds,
    order,
    stock: stock.quantity,
    pages,
    found: found.map(({ id }) => id),
    related: found.map(({ category, inventory }) => [category?.name, inventory?.quantity]),
    missing: { status: missing.status, code: missing.error.code },
    stale: { status: stale.status, code: stale.error.code },
    unknown: { status: unknown.status, code: unknown.error.code },
    limited: { status: limited.status, code: limited.error.code, retryAfter: limited.headers.get('retry-after') },
  }
}

/** Never called: what the types refuse. */
export function refused({ pets, store }: ReturnType<typeof clientOf>) {
  // @ts-expect-error: no such status
  pets.listPets({ status: 'lost' })
  // @ts-expect-error: a pet needs a name
  pets.createPet({ categoryId: 1 })
  // @ts-expect-error: an id is a number
  store.createOrder({ petId: '1' })
}
