import {
  CreateCategoryDocument,
  CreateOrderDocument,
  CreatePetDocument,
  FindPetsDocument,
  GetPetDocument,
  ListPetsDocument,
  SetStockDocument,
  type TypedDocumentString,
} from './generated/graphql.js'
import { given, pagesOf, type Report, type Target, unusedEtag, unusedId } from './round.js'

interface Answer<Data> {
  data?: Data | null
  errors?: { message: string; extensions: { code: string; status: number } }[]
}

const clientOf =
  (url: string, key: string) =>
  async <Data, Variables>(query: TypedDocumentString<Data, Variables>, variables: Variables) => {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables }),
    })
    const answer: Answer<Data> = await response.json()
    return { ...answer, response }
  }

const refusal = ({ errors: [error] = [] }: Answer<unknown>) => ({
  status: error?.extensions.status ?? 0,
  code: error?.extensions.code,
})

export async function round({ url, key, limitedKey }: Target): Promise<Report> {
  const ask = clientOf(url, key)
  const category = given({ data: given(await ask(CreateCategoryDocument, { input: { name: 'Dogs' } })).createCategory })

  const petIds: number[] = []
  for (const name of ['Rex', 'Bella', 'Max', 'Luna', 'Rocky']) {
    const { createPet } = given(await ask(CreatePetDocument, { input: { name, categoryId: category.id } }))
    petIds.push(given({ data: createPet }).id)
  }
  const petId = petIds[0] ?? unusedId
  const { createOrder } = given(await ask(CreateOrderDocument, { input: { petId, quantity: 2 } }))
  const { updateInventory } = given(await ask(SetStockDocument, { petId, quantity: 7 }))

  const limit = 2
  const pages = await pagesOf(async (after) => {
    const { pets } = given(await ask(ListPetsDocument, { categoryId: category.id, limit, after }))
    const ids = given({ data: pets }).map(({ id }) => id)
    return { ids, more: ids.length === limit }
  })
  const found = given(await ask(FindPetsDocument, { ids: petIds.slice(-2) }))

  const missing = await ask(GetPetDocument, { petId: unusedId })
  const stale = await ask(SetStockDocument, { petId, quantity: 8, ifMatch: unusedEtag })
  const unknown = await ask(CreatePetDocument, { input: { name: 'Rex', categoryId: unusedId } })

  const askLimited = clientOf(url, limitedKey)
  given(await askLimited(GetPetDocument, { petId }))
  const limited = await askLimited(GetPetDocument, { petId })

  return {
    category,
    petIds,
    order: given({ data: createOrder }),
    stock: given({ data: updateInventory }).quantity,
    pages,
    found: given({ data: found.pets }).map(({ id }) => id),
    related: given({ data: found.pets }).map(({ category, inventory }) => [category.name, inventory.quantity]),
    missing: refusal(missing),
    stale: refusal(stale),
    unknown: refusal(unknown),
    limited: { ...refusal(limited), retryAfter: limited.response.headers.get('retry-after') },
  }
}

/** Never called: what the types refuse. */
export function refused(ask: ReturnType<typeof clientOf>) {
  // @ts-expect-error: no such status
  ask(CreatePetDocument, { input: { name: 'Rex', categoryId: 1, status: 'lost' } })
  // @ts-expect-error: a pet needs a name
  ask(CreatePetDocument, { input: { categoryId: 1 } })
  // @ts-expect-error: an id is a number
  ask(GetPetDocument, { petId: '1' })
}
