import { GraphQLError, GraphQLScalarType, Kind } from 'graphql'
import mercurius, { type IResolvers, type MercuriusLoaders } from 'mercurius'
import type { Category, Order, Pet } from '../../../../prisma/generated/client/client.js'
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
  type Category {
    id: Int64!
    name: String!
    description: String
    pets(limit: Int = 20, after: Int64): [Pet!]!
  }
  type InventoryItem { petId: Int64! quantity: Int! }
  type Order { id: Int64! petId: Int64! quantity: Int! complete: Boolean! pet: Pet! }
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
    categories(limit: Int = 20): [Category!]
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
    categories: (_root: unknown, { limit }: Page) => prisma.category.findMany({ orderBy: { id: 'asc' }, take: limit }),
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

type Queries<Parent, Params = object> = { obj: Parent; params: Params }[]

/** The rows with these ids, in their order. */
async function byIds<Row extends { id: bigint }>(ids: bigint[], find: (ids: bigint[]) => Promise<Row[]>) {
  const found = new Map((await find([...new Set(ids)])).map((row) => [row.id, row]))
  return ids.map((id) => found.get(id))
}

/** A page below each parent, by one statement: Prisma's own `take` in a relation would join and build JSON. */
async function pagesBelow<Row>(
  queries: Queries<{ id: bigint }, Page>,
  find: (ids: bigint[], page: Required<Page>) => Promise<Row[]>,
  parentOf: (row: Row) => bigint,
) {
  const [{ params: { limit, after = 0 } } = { params: { limit: 0 } }] = queries // biome-ignore format: one line
  if (!queries.every(({ params }) => params.limit === limit && (params.after ?? 0) === after))
    throw new GraphQLError('Aliases of a list with different arguments are not supported.')
  const ids = queries.map(({ obj }) => obj.id)
  const byParent = new Map<bigint, Row[]>(ids.map((id) => [id, []]))
  for (const row of await find(ids, { limit, after })) byParent.get(parentOf(row))?.push(row)
  return ids.map((id) => byParent.get(id))
}

const findCategories = (ids: bigint[]) => prisma.category.findMany({ where: { id: { in: ids } } })
const findPets = (ids: bigint[]) => prisma.pet.findMany({ where: { id: { in: ids } } })
const findItems = (petIds: bigint[]) => prisma.inventoryItem.findMany({ where: { petId: { in: petIds } } })

const findOrdersOf = (petIds: bigint[], { limit, after }: Required<Page>) => prisma.$queryRaw<Order[]>`
  SELECT o.id, o."petId", o.quantity, o.complete FROM unnest(${petIds}::bigint[]) AS pet(id)
  CROSS JOIN LATERAL (
    SELECT * FROM "Order" WHERE "petId" = pet.id AND id > ${after} ORDER BY id LIMIT ${limit}
  ) AS o`

const findPetsOf = (categoryIds: bigint[], { limit, after }: Required<Page>) => prisma.$queryRaw<Pet[]>`
  SELECT p.id, p.name, p."categoryId", p.status FROM unnest(${categoryIds}::bigint[]) AS category(id)
  CROSS JOIN LATERAL (
    SELECT * FROM "Pet" WHERE "categoryId" = category.id AND id > ${after} ORDER BY id LIMIT ${limit}
  ) AS p`

// One query for each relation and level, whatever the number of parents. Mercurius' own cache of loaders lives for one
// request and would only cost here: loaders ask for each row once.
const opts = { cache: false }
const loaders = {
  Category: {
    pets: {
      opts,
      loader: (queries: Queries<Category, Page>) => pagesBelow(queries, findPetsOf, (pet) => pet.categoryId),
    },
  },
  Order: {
    pet: {
      opts,
      loader: (queries: Queries<Order>) =>
        byIds(
          queries.map(({ obj }) => obj.petId),
          findPets,
        ),
    },
  },
  Pet: {
    category: {
      opts,
      loader: (queries: Queries<Pet>) =>
        byIds(
          queries.map(({ obj }) => obj.categoryId),
          findCategories,
        ),
    },
    inventory: {
      opts,
      loader: (queries: Queries<Pet>) =>
        byIds(
          queries.map(({ obj }) => obj.id),
          async (ids) => (await findItems(ids)).map((item) => ({ id: item.petId, ...item })),
        ),
    },
    orders: {
      opts,
      loader: (queries: Queries<Pet, Page>) => pagesBelow(queries, findOrdersOf, (order) => order.petId),
    },
  },
} as unknown as MercuriusLoaders

app.register(mercurius, { schema, resolvers, loaders, jit: 1, queryDepth: 10 })

await guard.open()
await serve(app, async () => {
  guard.close()
  await prisma.$disconnect()
})
