import { axiosInstance } from '@kubb/plugin-client/clients/axios'
import type { AxiosError } from 'axios'
import {
  createCategory,
  createOrder,
  createPet,
  getPet,
  listCategories,
  listPets,
  updateInventory,
} from './generated/kubb/index.js'
import { pagesOf, type Report, type Target, unusedEtag, unusedId } from './round.js'

const withKey = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })

/** What a call throws. */
const refusal = (call: Promise<unknown>): Promise<NonNullable<AxiosError<{ code: string }>['response']>> =>
  call.then(
    () => Promise.reject(new Error('It was not refused.')),
    (error) => error.response,
  )

export async function round({ url, key, limitedKey }: Target): Promise<Report> {
  axiosInstance.defaults.baseURL = url
  // axios sends `id[]=1&id[]=2`.
  axiosInstance.defaults.paramsSerializer = { indexes: null }
  const options = withKey(key)
  const category = await createCategory({ name: 'Dogs' }, {}, options)

  const petIds: number[] = []
  for (const name of ['Rex', 'Bella', 'Max', 'Luna', 'Rocky']) {
    const { id } = await createPet({ name, categoryId: category.id }, {}, options)
    petIds.push(id)
  }
  const petId = petIds[0] ?? unusedId
  const order = await createOrder({ petId, quantity: 2 }, {}, {}, options)
  const { quantity } = await updateInventory(petId, { quantity: 7 }, {}, options)

  // What kubb returns by default has no headers.
  const limit = 2
  const pages = await pagesOf(async (after) => {
    const page = await listPets({ categoryId: category.id, limit, after }, {}, options)
    return { ids: page.map(({ id }) => id), more: page.length === limit }
  })
  const found = await listPets({ id: petIds.slice(-2), expand: ['category', 'inventory'] }, {}, options)

  const missing = await refusal(getPet(unusedId, {}, {}, options))
  const stale = await refusal(updateInventory(petId, { quantity: 8 }, { 'If-Match': unusedEtag }, options))
  const unknown = await refusal(createPet({ name: 'Rex', categoryId: unusedId }, {}, options))

  await listCategories({}, {}, withKey(limitedKey))
  const limited = await refusal(listCategories({}, {}, withKey(limitedKey)))

  return {
    category,
    petIds,
    order,
    stock: quantity,
    pages,
    found: found.map(({ id }) => id),
    related: found.map(({ category, inventory }) => [category?.name, inventory?.quantity]),
    missing: { status: missing.status, code: missing.data.code },
    stale: { status: stale.status, code: stale.data.code },
    unknown: { status: unknown.status, code: unknown.data.code },
    limited: {
      status: limited.status,
      code: limited.data.code,
      retryAfter: String(limited.headers['retry-after']),
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
