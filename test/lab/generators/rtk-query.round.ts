import { configureStore } from '@reduxjs/toolkit'
import type { FetchBaseQueryArgs } from '@reduxjs/toolkit/query'
import { petstore } from './generated/rtk-query.js'
import { given, pagesOf, type Report, type Target, unusedEtag, unusedId } from './round.js'

const { createCategory, createOrder, createPet, getPet, listCategories, listPets, updateInventory } = petstore.endpoints

function clientOf(url: string, key: string) {
  let last: Response | undefined
  const extraArgument: FetchBaseQueryArgs = {
    baseUrl: url,
    prepareHeaders: (headers) => headers.set('authorization', `Bearer ${key}`),
    async fetchFn(request) {
      last = await fetch(request)
      return last
    },
  }
  const { dispatch } = configureStore({
    reducer: { [petstore.reducerPath]: petstore.reducer },
    middleware: (defaults) => defaults({ thunk: { extraArgument } }).concat(petstore.middleware),
  })
  // The store keeps no headers.
  return { dispatch, lastHeaders: () => last?.headers ?? new Headers() }
}

const refusal = ({ error }: { error?: unknown }) => {
  const { status, data } = error as { status: number; data: { code: string } }
  return { status, code: data.code }
}

export async function round({ url, key, limitedKey }: Target): Promise<Report> {
  const { dispatch, lastHeaders } = clientOf(url, key)
  const category = given(await dispatch(createCategory.initiate({ newCategory: { name: 'Dogs' } })))

  const petIds: number[] = []
  for (const name of ['Rex', 'Bella', 'Max', 'Luna', 'Rocky']) {
    const { id } = given(await dispatch(createPet.initiate({ newPet: { name, categoryId: category.id } })))
    petIds.push(id)
  }
  const petId = petIds[0] ?? unusedId
  const order = given(await dispatch(createOrder.initiate({ newOrder: { petId, quantity: 2 } })))
  const { quantity } = given(await dispatch(updateInventory.initiate({ petId, inventoryUpdate: { quantity: 7 } })))

  const pages = await pagesOf(async (after) => {
    const page = given(await dispatch(listPets.initiate({ categoryId: category.id, limit: 2, after })))
    return { ids: page.map(({ id }) => id), more: lastHeaders().has('link') }
  })
  const found = given(await dispatch(listPets.initiate({ id: petIds.slice(-2), expand: ['category', 'inventory'] })))

  const missing = await dispatch(getPet.initiate({ petId: unusedId }))
  const change = { petId, inventoryUpdate: { quantity: 8 }, 'If-Match': unusedEtag }
  const stale = await dispatch(updateInventory.initiate(change))
  const unknown = await dispatch(createPet.initiate({ newPet: { name: 'Rex', categoryId: unusedId } }))

  const limitedClient = clientOf(url, limitedKey)
  given(await limitedClient.dispatch(listCategories.initiate({})))
  const limited = await limitedClient.dispatch(listCategories.initiate({}, { forceRefetch: true }))

  return {
    category,
    petIds,
    order,
    stock: quantity,
    pages,
    found: found.map(({ id }) => id),
    related: found.map(({ category, inventory }) => [category?.name, inventory?.quantity]),
    missing: refusal(missing),
    stale: refusal(stale),
    unknown: refusal(unknown),
    limited: { ...refusal(limited), retryAfter: limitedClient.lastHeaders().get('retry-after') },
  }
}

/** Never called: what the types refuse. */
export function refused() {
  // @ts-expect-error: no such status
  listPets.initiate({ status: 'lost' })
  // @ts-expect-error: a pet needs a name
  createPet.initiate({ newPet: { categoryId: 1 } })
  // @ts-expect-error: an id is a number
  createOrder.initiate({ newOrder: { petId: '1' } })
}
