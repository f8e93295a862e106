import { Prisma } from '../../../prisma/generated/client/client.js'
import { createGuard } from './guard.js'
import { createFastify, protect, serve } from './http.js'
import { openPrisma } from './prisma.js'
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

app.get<{ Querystring: ListQuery }>('/pets', { schema: listPetsSchema }, async ({ query }, reply) => {
  const { limit, after, status, categoryId } = query
  const pets = await prisma.pet.findMany({
    where: { id: after === undefined ? undefined : { gt: after }, status, categoryId },
    orderBy: { id: 'asc' },
    take: limit + 1,
  })
  if (pets.length > limit) {
    pets.pop()
    const last = pets.at(-1)
    if (last) reply.header('link', nextLink('/pets', query, last.id))
  }
  return pets
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
