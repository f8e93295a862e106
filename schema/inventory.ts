import { builder, graphqlOnly, idArg, inputArg } from './builder.js'
import { found, notFound } from './errors.js'
import { page, pageArgs } from './pagination.js'
import { PetStatus } from './pet.js'
import { stock } from './validation.js'

const InventoryItem = builder.prismaObject('InventoryItem', {
  fields: (t) => ({
    petId: t.expose('petId', { type: 'Int64' }),
    quantity: t.exposeInt('quantity', { example: 3 }),
    status: t.field({
      type: PetStatus,
      description: 'Sales status of the tracked animal.',
      select: { pet: { select: { status: true } } },
      resolve: ({ pet }) => pet.status,
    }),
    pet: t.relation('pet', {
      ...graphqlOnly,
      resolve: (_query, { petId: id }, _args, { prisma }) => prisma.pet.findUniqueOrThrow({ where: { id } }),
    }),
  }),
})

const InventoryUpdate = builder.inputType('InventoryUpdate', {
  description: 'A new stock count.',
  fields: (t) => ({ quantity: t.int({ required: true, validate: stock, description: 'The new stock count.' }) }),
})

builder.queryFields((t) => ({
  inventory: t.prismaField({
    type: [InventoryItem],
    description: 'The inventory entries, in ascending order of petId.',
    rest: { method: 'GET', path: '/inventory', tag: 'Store', summary: 'List inventory' },
    args: {
      ...pageArgs(t.arg, 'petId'),
      status: t.arg({ type: PetStatus, description: 'Only entries of animals with this status.' }),
    },
    resolve: (query, _root, { status, ...args }, context) =>
      page(context, args, 'petId', ({ where: { id: petId }, take }) =>
        context.prisma.inventoryItem.findMany({
          ...query,
          where: { petId, pet: status ? { status } : undefined },
          orderBy: { petId: 'asc' },
          take,
        }),
      ),
  }),
  inventoryItem: t.prismaField({
    type: InventoryItem,
    description: 'The inventory entry of one animal.',
    rest: { method: 'GET', path: '/inventory/{petId}', tag: 'Store', summary: 'Get the stock of a pet' },
    args: { petId: idArg(t.arg, 'InventoryItem', 'petId') },
    resolve: async (query, _root, { petId }, { prisma }) =>
      found(await prisma.inventoryItem.findUnique({ where: { petId }, ...query }), 'inventory entry for pet', petId),
  }),
}))

builder.mutationFields((t) => ({
  updateInventory: t.prismaField({
    type: InventoryItem,
    description: 'Sets the stock count of an animal.',
    rest: {
      method: 'PATCH',
      path: '/inventory/{petId}',
      tag: 'Store',
      summary: 'Set the stock of a pet',
      stability: 'experimental',
    },
    args: { petId: idArg(t.arg, 'InventoryItem', 'petId'), input: inputArg(t.arg, InventoryUpdate, 'What changes.') },
    // One statement writes the entry and reads the status of its pet, for which Prisma's own update would need a
    // transaction of three. What GraphQL selects beyond that is read afterwards.
    resolve: async (query, _root, { petId, input: { quantity } }, { prisma }) => {
      const [pet] = await prisma.$queryRaw<{ status: typeof PetStatus.$inferType }[]>`
        UPDATE "InventoryItem" SET "quantity" = ${quantity} FROM "Pet"
        WHERE "InventoryItem"."petId" = ${petId} AND "Pet"."id" = ${petId} RETURNING "Pet"."status"::text AS "status"`
      if (!pet) throw notFound('inventory entry for pet', petId)
      const { select } = (query as { include?: { pet?: { select?: object } } }).include?.pet ?? {}
      if (select && Object.keys(select).join() === 'status') return { petId, quantity, pet }
      const item = await prisma.inventoryItem.findUnique({ where: { petId }, ...query })
      return { ...found(item, 'inventory entry for pet', petId), quantity }
    },
  }),
}))
