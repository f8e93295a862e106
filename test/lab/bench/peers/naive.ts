import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import SchemaBuilder from '@pothos/core'
import PrismaPlugin from '@pothos/plugin-prisma'
import SubGraphPlugin from '@pothos/plugin-sub-graph'
import { createYoga } from 'graphql-yoga'
import { pino } from 'pino'
import { useSofa } from 'sofa-api'
import type PrismaTypes from '../../../../prisma/generated/pothos.js'
import { getDatamodel } from '../../../../prisma/generated/pothos.js'
import { createGuard } from './guard.js'
import { logLevel, logStream } from './http.js'
import { openPrisma } from './prisma.js'

// What the gateway's own parts do when they are put together as their documentation shows: Yoga for GraphQL, SOFA for
// REST, one Pothos schema over Prisma. The key check and the limits are those of the other peers.

const prisma = openPrisma()
const { guard, open, close } = createGuard(prisma)

const builder = new SchemaBuilder<{
  PrismaTypes: PrismaTypes
  SubGraphs: 'rest'
  Scalars: { Int64: { Input: bigint; Output: bigint } }
}>({
  plugins: [PrismaPlugin, SubGraphPlugin],
  prisma: { client: prisma, dmmf: getDatamodel() },
  subGraphs: { defaultForTypes: ['rest'], fieldsInheritFromTypes: true },
})

builder.scalarType('Int64', {
  parseValue: (value) => BigInt(value as number),
  parseLiteral: (node) => BigInt((node as { value: string }).value),
  serialize: Number,
})
const PetStatus = builder.enumType('PetStatus', { values: ['available', 'pending', 'sold'] as const })

// SOFA's representations have no relations.
const graphql = { subGraphs: [] }

builder.prismaObject('Category', {
  fields: (t) => ({ id: t.expose('id', { type: 'Int64' }), name: t.exposeString('name') }),
})
builder.prismaObject('Pet', {
  fields: (t) => ({
    id: t.expose('id', { type: 'Int64' }),
    name: t.exposeString('name'),
    categoryId: t.expose('categoryId', { type: 'Int64' }),
    status: t.expose('status', { type: PetStatus }),
    category: t.relation('category', graphql),
    inventory: t.relation('inventory', graphql),
    orders: t.relation('orders', {
      ...graphql,
      args: { limit: t.arg.int({ defaultValue: 20 }), after: t.arg({ type: 'Int64' }) },
      query: ({ limit, after }) => ({
        where: { id: { gt: after ?? undefined } },
        orderBy: { id: 'asc' },
        take: limit ?? 20,
      }),
    }),
  }),
})
builder.prismaObject('InventoryItem', {
  fields: (t) => ({
    petId: t.expose('petId', { type: 'Int64' }),
    quantity: t.exposeInt('quantity'),
    status: t.field({
      type: PetStatus,
      select: { pet: { select: { status: true } } },
      resolve: ({ pet }) => pet.status,
    }),
  }),
})
builder.prismaObject('Order', {
  fields: (t) => ({
    id: t.expose('id', { type: 'Int64' }),
    petId: t.expose('petId', { type: 'Int64' }),
    quantity: t.exposeInt('quantity'),
    complete: t.exposeBoolean('complete'),
  }),
})

builder.queryType({
  fields: (t) => ({
    pet: t.prismaField({
      type: 'Pet',
      nullable: true,
      args: { petId: t.arg({ type: 'Int64', required: true }) },
      resolve: (query, _root, { petId }) => prisma.pet.findUnique({ ...query, where: { id: petId } }),
    }),
    pets: t.prismaField({
      type: ['Pet'],
      args: {
        limit: t.arg.int({ defaultValue: 20 }),
        after: t.arg({ type: 'Int64' }),
        status: t.arg({ type: PetStatus }),
        categoryId: t.arg({ type: 'Int64' }),
      },
      resolve: (query, _root, { limit, after, status, categoryId }) =>
        prisma.pet.findMany({
          ...query,
          where: {
            id: { gt: after ?? undefined },
            status: status ?? undefined,
            categoryId: categoryId ?? undefined,
          },
          orderBy: { id: 'asc' },
          take: limit ?? 20,
        }),
    }),
  }),
})
builder.mutationType({
  fields: (t) => ({
    createOrder: t.prismaField({
      type: 'Order',
      args: { petId: t.arg({ type: 'Int64', required: true }), quantity: t.arg.int({ defaultValue: 1 }) },
      resolve: (query, _root, { petId, quantity }) =>
        prisma.order.create({ ...query, data: { petId, quantity: quantity ?? 1 } }),
    }),
    updateInventory: t.prismaField({
      type: 'InventoryItem',
      args: { petId: t.arg({ type: 'Int64', required: true }), quantity: t.arg.int({ required: true }) },
      resolve: (query, _root, { petId, quantity }) =>
        prisma.inventoryItem.update({ ...query, where: { petId }, data: { quantity } }),
    }),
  }),
})

const yoga = createYoga({ schema: builder.toSchema() })
const sofa = useSofa({
  basePath: '/',
  schema: builder.toSchema({ subGraph: 'rest' }),
  customScalars: { Int64: { type: 'integer' } },
  routes: {
    'Query.pet': { method: 'GET', path: '/pets/:petId' },
    'Query.pets': { method: 'GET', path: '/pets' },
    'Mutation.createOrder': { method: 'POST', path: '/store/orders', responseStatus: 201 },
    'Mutation.updateInventory': { method: 'PATCH', path: '/inventory/:petId' },
  },
})

const log = pino({ level: logLevel }, logStream())
const server = createServer(async (request, response) => {
  const began = performance.now()
  const { status, code, message, headers, prefix } = await guard(request.headers.authorization)
  response.on('finish', () => {
    const line = { requestId: randomUUID(), method: request.method, key: prefix, status: response.statusCode }
    log.info({ ...line, durationMs: performance.now() - began }, 'request')
  })
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  if (status) {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ code, message, status }))
  } else if (request.url?.startsWith('/graphql')) await yoga(request, response)
  else await sofa(request, response)
})
process.once('SIGTERM', () => {
  server.close(async () => {
    close()
    await prisma.$disconnect()
    process.exit(0)
  })
  server.closeIdleConnections()
})
await open()
server.listen(Number(process.env.PORT), '127.0.0.1')
