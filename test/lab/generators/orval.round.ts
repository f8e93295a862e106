import {
  createCategory,
  createOrder,
  createPet,
  getPet,
  listCategories,
  listPets,
  updateInventory,
} from './generated/orval.js'
import { pagesOf, type Report, type Target, unusedEtag, unusedId } from './round.js'

const withKey = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })

export async function round({ key, limitedKey }: Target): Promise<Report> {
  const options = withKey(key)
  const category = await createCategory({ name: 'Dogs' }, options)
  if (category.status !== 201) throw new Error(category.data.message)

  const petIds: number[] = []
  for (const name of ['Rex', 'Bella', 'Max', 'Luna', 'Rocky']) {
    const created = await createPet({ name, categoryId: category.data.id }, options)
    if (created.status !== 201) throw new Error(created.data.message)
    petIds.push(created.data.id)
  }
  const petId = petIds[0] ?? unusedId
  const order = await createOrder({ petId, quantity: 2 }, {}, options)
  if (order.status !== 201) throw new Error(order.data.message)
  const stock = await updateInventory(petId, { quantity: 7 }, options)
  if (stock.status !== 200) throw new Error(stock.data.message)

  const pages = await pagesOf(async (after) => {
    const page = await listPets({ categoryId: category.data.id, limit: 2, after }, options)
    if (page.status !== 200) throw new Error(`listPets returned ${page.status}`)
    return { ids: page.data.map(({ id }) => id), more: page.headers.has('link') }
  })
  const found = await listPets({ id: petIds.slice(-2), expand: ['category', 'inventory'] }, options)
  if (found.status !== 200) throw new Error(`listPets returned ${found.status}`)

  const missing = await getPet(unusedId, {}, options)
  const headers = { ...options.headers, 'If-Match': unusedEtag }
  const stale = await updateInventory(petId, { quantity: 8 }, { headers })
  const unknown = await createPet({ name: 'Rex', categoryId: unusedId }, options)

  await listCategories({}, withKey(limitedKey))
  const limited = await listCategories({}, withKey(limitedKey))

  return {
    category: category.data,
    petIds,
    order: order.data,
    stock: stock.data.quantity,
    pages,
    found: found.data.map(({ id }) => id),
    related: found.data.map(({ category, inventory }) => [category?.name, inventory?.quantity]),
    missing: { status: missing.status, code: missing.status === 404 ? missing.data.code : undefined },
    stale: { status: stale.status, code: stale.status === 412 ? stale.data.code : undefined },
    unknown: { status: unknown.status, code: unknown.status === 422 ? unknown.data.code : undefined },
    limited: {
      status: limited.status,
      code: limited.status === 429 ? limited.data.code : undefined,
      retryAfter: limited.headers.get('retry-after'),
    },
  }
}

/** Never called: what the types refuse. */
export function refused() {
  // @ts-expect-error: no such status
  listPets({ status: 'lost' })
  // @ts-expect-error: a pet needs a name
  createPet({ categoryId: 1 })
  // @ts-expect-error: an id is a number
  createOrder({ petId: '1' })
}
