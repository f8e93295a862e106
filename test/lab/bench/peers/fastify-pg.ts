import { DatabaseError, Pool, types } from 'pg'
import { createFastify, serve } from './http.js'
import {
  createOrderSchema,
  getPetSchema,
  type ListQuery,
  listPetsSchema,
  type NewOrder,
  nextLink,
  notFound,
  unknownPet,
  updateInventorySchema,
} from './schemas.js'

// The bare peer: Fastify with schemas over `pg` with prepared statements. No ORM, no keys, no limits: about as little
// as Node can do for these routes.

// Ids stay below 2^53 (a check constraint).
types.setTypeParser(types.builtins.INT8, Number)
const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
const app = createFastify()

/** Each text is a prepared statement; lists have one for each set of filters. */
const names = new Map<string, string>()
async function query(text: string, values: unknown[]) {
  let name = names.get(text)
  if (!name) {
    name = `statement_${names.size}`
    names.set(text, name)
  }
  return (await pool.query({ name, text, values })).rows
}

const PET = 'SELECT id, name, "categoryId", status FROM "Pet"'

app.get<{ Params: { petId: number } }>('/pets/:petId', { schema: getPetSchema }, async ({ params }, reply) => {
  const [pet] = await query(`${PET} WHERE id = $1`, [params.petId])
  return pet ?? reply.code(404).send(notFound('pet'))
})

app.get<{ Querystring: ListQuery }>('/pets', { schema: listPetsSchema }, async (request, reply) => {
  const { limit, after, status, categoryId } = request.query
  const values: unknown[] = [limit + 1, after ?? 0]
  let where = 'id > $2'
  if (status) where += ` AND status = $${values.push(status)}::"PetStatus"`
  if (categoryId) where += ` AND "categoryId" = $${values.push(categoryId)}`
  const pets = await query(`${PET} WHERE ${where} ORDER BY id LIMIT $1`, values)
  if (pets.length > limit) {
    pets.pop()
    reply.header('link', nextLink('/pets', request.query, pets.at(-1).id))
  }
  return pets
})

const INSERT_ORDER = `INSERT INTO "Order" ("petId", quantity, "shipDate", complete) VALUES ($1, $2, $3, $4)
  RETURNING id, "petId", quantity, "shipDate", complete`

app.post<{ Body: NewOrder }>('/store/orders', { schema: createOrderSchema }, async ({ body }, reply) => {
  try {
    const [order] = await query(INSERT_ORDER, [body.petId, body.quantity, body.shipDate, body.complete])
    reply.code(201).header('location', `/store/orders/${order.id}`)
    return { ...order, shipDate: order.shipDate ?? undefined }
  } catch (error) {
    if (error instanceof DatabaseError && error.code === '23503') return reply.code(422).send(unknownPet)
    throw error
  }
})

const UPDATE_STOCK = `UPDATE "InventoryItem" AS i SET quantity = $2 FROM "Pet" AS p
  WHERE i."petId" = $1 AND p.id = i."petId" RETURNING i."petId", i.quantity, p.status`

app.patch<{ Params: { petId: number }; Body: { quantity: number } }>(
  '/inventory/:petId',
  { schema: updateInventorySchema },
  async ({ params, body }, reply) => {
    const [item] = await query(UPDATE_STOCK, [params.petId, body.quantity])
    return item ?? reply.code(404).send(notFound('pet'))
  },
)

await serve(app, () => pool.end())
