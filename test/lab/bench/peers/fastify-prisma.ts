import type { FastifyReply } from 'fastify'
import { type Pet, Prisma } from '../../../../prisma/generated/client/client.js'
import { createGuard } from './guard.js'
import { createFastify, protect, serve } from './http.js'
import { openPrisma } from './prisma.js'
import {
  createOrderSchema,
  getCategorySchema,
  getInventorySchema,
  getOrderSchema,
  getPetSchema,
  type InventoryQuery,
  listInventorySchema,
  listOrdersSchema,
  type NewOrder,
  nextLink,
  notFound,
  type OrdersQuery,
  type SortedQuery,
  sortPetsSchema,
  unknownPet,
  updateInventorySchema,
} from './schemas.js'

// The main REST peer: Fastify with schemas, Prisma, a key check and two windows in Redis. Keyset pages, one query for
// each request; the stock update reads the status beside the update, because a relation in it costs a transaction.

const prisma = openPrisma()
const guard = createGuard(prisma)
const app = createFastify()
protect(app, guard)

const failedWith = (error: unknown, code: string) =>
  error instanceof Prisma.PrismaClientKnownRequestError && error.code === code

app.get<{ Params: { petId: number } }>('/pets/:petId', { schema: getPetSchema }, async ({ params }, reply) => {
  const pet = await prisma.pet.findUnique({ where: { id: params.petId } })
  return pet ?? reply.code(404).send(notFound('pet'))
})

app.get<{ Params: { orderId: number } }>(
  '/store/orders/:orderId',
  { schema: getOrderSchema },
  async (request, reply) => {
    const order = await prisma.order.findUnique({ where: { id: request.params.orderId } })
    return order ? { ...order, shipDate: order.shipDate ?? undefined } : reply.code(404).send(notFound('order'))
  },
)

app.get<{ Params: { categoryId: number } }>(
  '/categories/:categoryId',
  { schema: getCategorySchema },
  async ({ params }, reply) => {
    const category = await prisma.category.findUnique({ where: { id: params.categoryId } })
    if (!category) return reply.code(404).send(notFound('category'))
    return { ...category, description: category.description ?? undefined }
  },
)

app.get<{ Params: { petId: number } }>(
  '/inventory/:petId',
  { schema: getInventorySchema },
  async ({ params }, reply) => {
    const item = await prisma.inventoryItem.findUnique({ where: { petId: params.petId } })
    return item ?? reply.code(404).send(notFound('pet'))
  },
)

/** A page, of which one row more than asked for was read. */
function paged<Row>(reply: FastifyReply, rows: Row[], limit: number, next: (last: Row) => string) {
  if (rows.length <= limit) return rows
  rows.pop()
  reply.header('link', next(rows.at(-1) as Row))
  return rows
}

/** Prisma cannot sort by an expression. The index has this order. */
function petsByName({ limit, status, categoryId, search, afterName, after = 0 }: SortedQuery) {
  const key = Prisma.sql`lower(name) COLLATE "C"`
  const conditions = [Prisma.sql`TRUE`]
  if (status) conditions.push(Prisma.sql`status = ${status}::"PetStatus"`)
  if (categoryId) conditions.push(Prisma.sql`"categoryId" = ${categoryId}`)
  if (search) {
    const prefix = search.toLowerCase()
    conditions.push(Prisma.sql`${key} BETWEEN ${prefix} AND ${`${prefix}\u{10ffff}`}`)
  }
  if (afterName !== undefined)
    conditions.push(Prisma.sql`(${key}, name COLLATE "C", id) > (${afterName.toLowerCase()}, ${afterName}, ${after})`)
  return prisma.$queryRaw<Pet[]>`SELECT id, name, "categoryId", status FROM "Pet"
    WHERE ${Prisma.join(conditions, ' AND ')} ORDER BY ${key}, name COLLATE "C", id LIMIT ${limit + 1}`
}

const above = (id: number | undefined) => (id === undefined ? undefined : { gt: id })

app.get<{ Querystring: SortedQuery }>('/pets', { schema: sortPetsSchema }, async ({ query }, reply) => {
  const { limit, after, status, categoryId, sort } = query
  if (sort === 'name')
    return paged(reply, await petsByName(query), limit, ({ id, name }) =>
      nextLink('/pets', query, id, { afterName: name }),
    )
  const where = { id: above(after), status, categoryId }
  const pets = await prisma.pet.findMany({ where, orderBy: { id: 'asc' }, take: limit + 1 })
  return paged(reply, pets, limit, ({ id }) => nextLink('/pets', query, id))
})

app.get<{ Querystring: InventoryQuery }>('/inventory', { schema: listInventorySchema }, async ({ query }, reply) => {
  const { limit, after, status, maxQuantity, afterQuantity } = query
  const items = await prisma.inventoryItem.findMany({
    where: {
      status,
      quantity: { lte: maxQuantity },
      ...(afterQuantity === undefined
        ? {}
        : { OR: [{ quantity: { gt: afterQuantity } }, { quantity: afterQuantity, petId: above(after) }] }),
    },
    orderBy: [{ quantity: 'asc' }, { petId: 'asc' }],
    take: limit + 1,
  })
  return paged(reply, items, limit, ({ petId, quantity }) =>
    nextLink('/inventory', query, petId, { afterQuantity: quantity }),
  )
})

app.get<{ Querystring: OrdersQuery }>('/store/orders', { schema: listOrdersSchema }, async ({ query }, reply) => {
  const { limit, after, complete } = query
  const where = { id: above(after), complete }
  const orders = await prisma.order.findMany({ where, orderBy: { id: 'asc' }, take: limit + 1 })
  const shown = orders.map((order) => ({ ...order, shipDate: order.shipDate ?? undefined }))
  return paged(reply, shown, limit, ({ id }) => nextLink('/store/orders', query, id))
})

app.post<{ Body: NewOrder }>('/store/orders', { schema: createOrderSchema }, async ({ body }, reply) => {
  try {
    const order = await prisma.order.create({ data: body })
    reply.code(201).header('location', `/store/orders/${order.id}`)
    return { ...order, shipDate: order.shipDate ?? undefined }
  } catch (error) {
    if (failedWith(error, 'P2003')) return reply.code(422).send(unknownPet)
    throw error
  }
})

app.patch<{ Params: { petId: number }; Body: { quantity: number } }>(
  '/inventory/:petId',
  { schema: updateInventorySchema },
  async ({ params: { petId }, body: { quantity } }, reply) => {
    try {
      const [item, pet] = await Promise.all([
        prisma.inventoryItem.update({ where: { petId }, data: { quantity } }),
        prisma.pet.findUnique({ where: { id: petId }, select: { status: true } }),
      ])
      return { ...item, status: pet?.status }
    } catch (error) {
      if (failedWith(error, 'P2025')) return reply.code(404).send(notFound('pet'))
      throw error
    }
  },
)

await guard.open()
await serve(app, async () => {
  guard.close()
  await prisma.$disconnect()
})
