// JSON Schemas of the two Fastify peers: Ajv validates inputs with them, fast-json-stringify writes responses with them.

const id = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER }
const status = { type: 'string', enum: ['available', 'pending', 'sold'] }

const pet = {
  type: 'object',
  required: ['id', 'name', 'categoryId', 'status'],
  properties: { id, name: { type: 'string' }, categoryId: id, status: { type: 'string' } },
}

const order = {
  type: 'object',
  required: ['id', 'petId', 'quantity', 'complete'],
  properties: {
    id,
    petId: id,
    quantity: { type: 'integer' },
    shipDate: { type: 'string', format: 'date-time' },
    complete: { type: 'boolean' },
  },
}

const inventoryItem = {
  type: 'object',
  required: ['petId', 'quantity', 'status'],
  properties: { petId: id, quantity: { type: 'integer' }, status: { type: 'string' } },
}

const error = {
  type: 'object',
  required: ['code', 'message', 'status'],
  properties: { code: { type: 'string' }, message: { type: 'string' }, status: { type: 'integer' } },
}

const petIdParam = { type: 'object', required: ['petId'], properties: { petId: id } }

export const getPetSchema = { params: petIdParam, response: { 200: pet, '4xx': error } }

export const listPetsSchema = {
  querystring: {
    type: 'object',
    additionalProperties: false,
    properties: {
      limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
      after: id,
      status,
      categoryId: id,
    },
  },
  response: { 200: { type: 'array', items: pet }, '4xx': error },
}

const page = { limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 }, after: id }

/** With lists by name, which have keyset pages of their own. */
export const sortPetsSchema = {
  ...listPetsSchema,
  querystring: {
    ...listPetsSchema.querystring,
    properties: {
      ...listPetsSchema.querystring.properties,
      sort: { type: 'string', enum: ['id', 'name'], default: 'id' },
      search: { type: 'string', minLength: 1, maxLength: 100 },
      afterName: { type: 'string', maxLength: 100 },
    },
  },
}

export const listInventorySchema = {
  querystring: {
    type: 'object',
    additionalProperties: false,
    required: ['sort'],
    properties: {
      ...page,
      status,
      maxQuantity: { type: 'integer', minimum: 0, maximum: 2_147_483_647 },
      sort: { type: 'string', enum: ['quantity'] },
      afterQuantity: { type: 'integer', minimum: 0 },
    },
  },
  response: { 200: { type: 'array', items: inventoryItem }, '4xx': error },
}

export const listOrdersSchema = {
  querystring: { type: 'object', additionalProperties: false, properties: { ...page, complete: { type: 'boolean' } } },
  response: { 200: { type: 'array', items: order }, '4xx': error },
}

const category = {
  type: 'object',
  required: ['id', 'name'],
  properties: { id, name: { type: 'string' }, description: { type: 'string' } },
}

const oneOf = (param: string, item: object) => ({
  params: { type: 'object', required: [param], properties: { [param]: id } },
  response: { 200: item, '4xx': error },
})
export const getOrderSchema = oneOf('orderId', order)
export const getInventorySchema = oneOf('petId', inventoryItem)
export const getCategorySchema = oneOf('categoryId', category)

export const createOrderSchema = {
  body: {
    type: 'object',
    required: ['petId'],
    additionalProperties: false,
    properties: {
      petId: id,
      quantity: { type: 'integer', minimum: 1, maximum: 2_147_483_647, default: 1 },
      shipDate: { type: 'string', format: 'date-time' },
      complete: { type: 'boolean', default: false },
    },
  },
  response: { 201: order, '4xx': error },
}

export const updateInventorySchema = {
  params: petIdParam,
  body: {
    type: 'object',
    required: ['quantity'],
    additionalProperties: false,
    properties: { quantity: { type: 'integer', minimum: 0, maximum: 2_147_483_647 } },
  },
  response: { 200: inventoryItem, '4xx': error },
}

export interface ListQuery {
  limit: number
  after?: number
  status?: 'available' | 'pending' | 'sold'
  categoryId?: number
}

export interface SortedQuery extends ListQuery {
  sort: 'id' | 'name'
  search?: string
  afterName?: string
}

export interface InventoryQuery {
  limit: number
  after?: number
  status?: 'available' | 'pending' | 'sold'
  maxQuantity?: number
  sort: 'quantity'
  afterQuantity?: number
}

export interface OrdersQuery {
  limit: number
  after?: number
  complete?: boolean
}

export interface NewOrder {
  petId: number
  quantity: number
  shipDate?: string
  complete: boolean
}

/** The `Link` header of a page that has a successor. */
export function nextLink(path: string, query: object, last: bigint | number, place: object = {}) {
  const next = new URLSearchParams()
  for (const [name, value] of Object.entries({ ...query, ...place, after: last })) next.set(name, String(value))
  return `<${path}?${next}>; rel="next"`
}

export const notFound = (what: string) => ({ code: 'not_found', message: `There is no such ${what}.`, status: 404 })

export const unknownPet = { code: 'unknown_reference', message: 'petId names no pet.', status: 422 }
