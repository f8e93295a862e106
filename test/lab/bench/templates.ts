// What is asked. `{pet}`, `{start}`, `{limit}` and so on are filled in at random for each request (requests.ts).

export interface Template {
  weight: number
  method: 'GET' | 'POST' | 'PATCH'
  path: string
  body?: string
  /** Each request has an Idempotency-Key of its own. */
  isIdempotent?: true
}

export const get = (path: string): Template => ({ weight: 1, method: 'GET', path })

export const query = (text: string, variables: string): Template => ({
  weight: 1,
  method: 'POST',
  path: '/graphql',
  body: `{"query":${JSON.stringify(text)},"variables":${variables}}`,
})

export const getOne = get('/pets/{pet}')
export const getTwenty = get('/pets?limit=20&after={start}')
/** A page with category and stock. Without `expand` it takes three requests: the stock of a page is asked for by its ids. */
export const getExpanded = get('/pets?limit=20&after={start}&expand=category&expand=inventory')
const stockOfPage = Array.from({ length: 20 }, (_, i) => `petId={thousand}${10 + i}`).join('&')
export const getInThree = [getTwenty, get('/categories?limit=20'), get(`/inventory?${stockOfPage}`)]
export const getFiltered = get('/pets?limit=20&status=available&categoryId={category}&after={start}')
export const byName = get('/pets?limit=20&sort=name&categoryId={category}')
export const search = get('/pets?limit=20&sort=name&search=Pet%20{prefix}')
export const lowStock = get('/inventory?limit=20&status=available&maxQuantity={few}&sort=quantity')

export const postOrder: Template = {
  weight: 1,
  method: 'POST',
  path: '/store/orders',
  body: '{"petId":{pet},"quantity":{quantity}}',
}
const sell = (pet: string, query = '?takeStock=true'): Template => ({
  weight: 1,
  method: 'POST',
  path: `/store/orders${query}`,
  body: `{"petId":${pet}}`,
})
export const sellStock = { thousand: sell('{thousand}'), one: sell('1'), none: sell('{thousand}', '') }

export const patchStock: Template = {
  weight: 1,
  method: 'PATCH',
  path: '/inventory/{pet}',
  body: '{"quantity":{quantity}}',
}

const newPet = '{"name":"Pet {pet}","categoryId":{category}}'
export const postPet: Template = { weight: 1, method: 'POST', path: '/pets', body: newPet }
export const BATCH = 100
export const postPets: Template = {
  weight: 1,
  method: 'POST',
  path: '/pets/batch',
  body: `[${Array(BATCH).fill(newPet)}]`,
}

export const mixed: Template[] = [
  { ...getOne, weight: 50 },
  { ...getTwenty, weight: 25 },
  { ...getFiltered, weight: 15 },
  { ...postOrder, weight: 5 },
  { ...patchStock, weight: 5 },
]

/** Nothing here equals its neighbour: other rows, other tables, other filters, other sizes. */
export const different: Template[] = [
  getOne,
  get('/store/orders/{order}'),
  get('/inventory/{pet}'),
  get('/categories/{category}'),
  get('/pets?limit={limit}&after={start}'),
  get('/pets?limit={limit}&status=available&categoryId={category}&after={start}'),
  get('/pets?limit={limit}&sort=name&categoryId={category}'),
  get('/pets?limit={limit}&sort=name&search=Pet%20{prefix}'),
  get('/inventory?limit={limit}&status=available&maxQuantity={few}&sort=quantity'),
  get('/store/orders?limit={limit}&complete=false&after={start}'),
]

const PET = 'id name categoryId status'
const onPet = (selection: string) =>
  query(`query Pet($id: Int64!) { pet(petId: $id) { ${selection} } }`, '{"id":{pet}}')
const onPets = (selection: string) =>
  query(
    `query Pets($limit: Int, $after: Int64) { pets(limit: $limit, after: $after) { ${selection} } }`,
    '{"limit":{limit},"after":{start}}',
  )

export const graphqlOne = query(
  'query Pet($petId: Int64!) { pet(petId: $petId) { id name categoryId status } }',
  '{"petId":{pet}}',
)
export const graphqlList = query(
  `query Pets($after: Int64, $categoryId: Int64) { pets(limit: 20, after: $after, status: available, categoryId: $categoryId) { ${PET} } }`,
  '{"after":{start},"categoryId":{category}}',
)
export const graphqlTotal = query(
  `query Pets($categoryId: Int64) { petsConnection(first: 20, status: available, categoryId: $categoryId) { totalCount nodes { ${PET} } pageInfo { hasNextPage endCursor } } }`,
  '{"categoryId":{category}}',
)
export const graphqlThreeLevels = query(
  'query Pets($after: Int64) { pets(limit: 10, after: $after) { id name category { name } orders(limit: 3) { id quantity } inventory { quantity } } }',
  '{"after":{start}}',
)

/** Nested questions, each for the same page, or for a page at random: equal ones share statements and rows. */
const nested = (text: string) => {
  const at = (after: string) => query(`query Nested($after: Int64) { ${text} }`, `{"after":${after}}`)
  return { same: at('1'), random: at('{start}') }
}
export const nestedShop = nested(
  'categories(limit: 10) { id name pets(limit: 10, after: $after) { id name inventory { quantity } orders(limit: 3) { id quantity } } }',
)
export const nestedDeep = nested(
  'categories(limit: 5) { name pets(limit: 5, after: $after) { name orders(limit: 5) { quantity pet { name category { name } } } } }',
)
export const nestedWide = nested('pets(limit: 100, after: $after) { id name category { name } inventory { quantity } }')

export const graphqlDifferent: Template[] = [
  graphqlOne,
  onPet('id name'),
  onPet('name status category { id name }'),
  onPet('id inventory { petId quantity }'),
  onPet('id orders(limit: 5) { id quantity complete }'),
  onPets('id name'),
  onPets('id status category { name }'),
  onPets('name inventory { quantity }'),
  graphqlList,
  graphqlTotal,
]

const after = 'filter: { rowId: { greaterThan: $after } }'
const ROW = 'id: rowId name categoryId status'
const nestedInTables = (text: string) => {
  const at = (start: string) => query(`query Nested($after: BigInt) { ${text} }`, `{"after":"${start}"}`)
  return { same: at('1'), random: at('{start}') }
}

/** The same questions in the words of PostGraphile, which makes its schema from the tables. */
export const postgraphile = {
  nestedShop: nestedInTables(
    `categories(first: 10) { nodes { id: rowId name pets(first: 10, ${after}) { nodes { id: rowId name inventory: inventoryItemByStatusAndPetId { quantity } orders(first: 3) { nodes { id: rowId quantity } } } } } }`,
  ),
  nestedDeep: nestedInTables(
    `categories(first: 5) { nodes { name pets(first: 5, ${after}) { nodes { name orders(first: 5) { nodes { quantity pet { name category { name } } } } } } } }`,
  ),
  nestedWide: nestedInTables(
    `pets(first: 100, ${after}) { nodes { id: rowId name category { name } inventory: inventoryItemByStatusAndPetId { quantity } } }`,
  ),
  list: query(
    `query Pets($after: BigInt, $categoryId: BigInt) { pets(first: 20, ${after}, condition: { status: available, categoryId: $categoryId }) { nodes { ${ROW} } } }`,
    '{"after":"{start}","categoryId":"{category}"}',
  ),
  total: query(
    `query Pets($categoryId: BigInt) { petsConnection: pets(first: 20, condition: { status: available, categoryId: $categoryId }) { totalCount nodes { ${ROW} } pageInfo { hasNextPage endCursor } } }`,
    '{"categoryId":"{category}"}',
  ),
  threeLevels: query(
    `query Pets($after: BigInt) { pets(first: 10, ${after}) { nodes { id: rowId name category { name } orders(first: 3) { nodes { id: rowId quantity } } inventory: inventoryItemByStatusAndPetId { quantity } } } }`,
    '{"after":"{start}"}',
  ),
}
