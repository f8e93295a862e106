import { GraphQLError, GraphQLScalarType, Kind } from 'graphql'
import mercurius, { type IResolvers, type MercuriusLoaders } from 'mercurius'
import type { InventoryItem, Order, Pet } from '../../../prisma/generated/client/client.js'
import { createGuard } from './guard.js'
import { createFastify, protect, serve } from './http.js'
import { openPrisma } from './prisma.js'

// The GraphQL peer: Mercurius with compiled queries (jit) and a loader for each relation, on Fastify and Prisma, with
// the key check and the limits of the REST peer.

const prisma = openPrisma()
const guard = createGuard(prisma)
const app = createFastify()
protect(app, guard)

const schema = /* GraphQL */ `
  scalar Int64
  enum PetStatus { available pending sold }
  type Category { id: Int64! name: String! description: String }
  type InventoryItem { petId: Int64! quantity: Int! }
  type Order { id: Int64! petId: Int64! quantity: Int! complete: Boolean! }
  type Pet {
    id: Int64!
    name: String!
    categoryId: Int64!
    status: PetStatus!
    category: Category!
    inventory: InventoryItem!
    orders(limit: Int = 20, after: Int64): [Order!]!
  }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type PetConnection { nodes: [Pet!]! pageInfo: PageInfo! totalCount: Int! }
  type Query {
    pet(petId: Int64!): Pet
    pets(limit: Int = 20, after: Int64, status: PetStatus, categoryId: Int64): [Pet!]
    petsConnection(first: Int = 20, after: String, status: PetStatus, categoryId: Int64): PetConnection!
  }
`

const Int64 = new GraphQLScalarType<number, number>({
  name: 'Int64',
  parseValue: toId,
  parseLiteral: (node) => toId(node.kind === Kind.INT ? Number(node.value) : undefined),
  serialize: Number,
})

function toId(value: unknown) {
  if (!Number.isSafeInteger(value) || (value as number) < 1) throw new GraphQLError('Int64 must be a positive integer.')
  return value as number
}

interface Page {
  limit: number
  after?: number
}

interface Filters {
  status?: Pet['status']
  categoryId?: number
}

const resolvers = {
  Int64,
  Query: {
    pet: async (_root: unknown, { petId }: { petId: number }) => {
      const pet = await prisma.pet.findUnique({ where: { id: petId } })
      if (!pet) throw new mercurius.ErrorWithProps(`There is no pet ${petId}.`, { code: 'not_found', status: 404 })
      return pet
    },
    pets: (_root: unknown, args: Page & Filters) => {
      const { limit, after, status, categoryId } = args
      const where = { id: after === undefined ? undefined : { gt: after }, status, categoryId }
      return prisma.pet.findMany({ where, orderBy: { id: 'asc' }, take: limit })
    },
    petsConnection: async (_root: unknown, args: Filters & { first: number; after?: string }) => {
      const { first, after, status, categoryId } = args
      const where = { id: after === undefined ? undefined : { gt: BigInt(after) }, status, categoryId }
      const nodes = await prisma.pet.findMany({ where, orderBy: { id: 'asc' }, take: first + 1 })
      const hasNextPage = nodes.length > first
      if (hasNextPage) nodes.pop()
      const last = nodes.at(-1)
      const pageInfo = { hasNextPage, endCursor: last && String(last.id) }
      return { nodes, pageInfo, filters: { status, categoryId } }
    },
  },
  /** Counted only if it is asked for. */
  PetConnection: {
    totalCount: ({ filters }: { filters: Filters }) => prisma.pet.count({ where: filters }),
  },
} as unknown as IResolvers

type Queries<Params = object> = { obj: Pet; params: Params }[]

// One query for each relation and level, whatever the number of parents. Mercurius' own cache of loaders lives for one
// request and would only cost here: no parent occurs twice.
const uncached = { cache: false }
const loaders = {
  Pet: {
    category: {
      opts: uncached,
      loader: async (queries: Queries) => {
        const ids = [...new Set(queries.map(({ obj }) => obj.categoryId))]
        const categories = await prisma.category.findMany({ where: { id: { in: ids } } })
        const byId = new Map(categories.map((category) => [category.id, category]))
        return queries.map(({ obj }) => byId.get(obj.categoryId))
      },
    },
    inventory: {
      opts: uncached,
      loader: async (queries: Queries) => {
        const items = await prisma.inventoryItem.findMany({
          where: { petId: { in: queries.map(({ obj }) => obj.id) } },
        })
        const byPet = new Map<bigint, InventoryItem>(items.map((item) => [item.petId, item]))
        return queries.map(({ obj }) => byPet.get(obj.id))
      },
    },
    orders: {
      opts: uncached,
      loader: async (queries: Queries<Page>) => {
        const [
          {
            params: { limit, after = 0 },
          } = { params: { limit: 0 } },
        ] = queries
        const alike = queries.every(({ params }) => params.limit === limit && (params.after ?? 0) === after)
        if (!alike) throw new GraphQLError('Aliases of orders with different arguments are not supported.')
        const ids = queries.map(({ obj }) => obj.id)
        const orders = await firstOrders(ids, limit, after)
        const byPet = new Map<bigint, Order[]>(ids.map((id) => [id, []]))
        for (const order of orders) byPet.get(order.petId)?.push(order)
        return ids.map((id) => byPet.get(id))
      },
    },
  },
} as unknown as MercuriusLoaders

/** The first orders of each pet, in one statement: Prisma's own `take` in a relation would join and build JSON. */
const firstOrders = (petIds: bigint[], limit: number, after: number) => prisma.$queryRaw<Order[]>`
  SELECT o.id, o."petId", o.quantity, o.complete FROM unnest(${petIds}::bigint[]) AS pet(id)
  CROSS JOIN LATERAL (
    SELECT * FROM "Order" WHERE "petId" = pet.id AND id > ${after} ORDER BY id LIMIT ${limit}
  ) AS o`

app.register(mercurius, { schema, resolvers, loaders, jit: 1, queryDepth: 10 })

await guard.open()
await serve(app, async () => {
  guard.close()
  await prisma.$disconnect()
})
