import { builder, graphqlOnly, idArg, inputArg } from './builder.js'
import { found, notFound, related } from './errors.js'
import { page, pageArgs } from './pagination.js'
import { PetStatus } from './pet.js'
import { stock } from './validation.js'

const InventoryItem = builder.prismaObject('InventoryItem', {
  include: { pet: { select: { status: true } } },
  fields: (t) => ({
    petId: t.expose('petId', { type: 'Int64' }),
    quantity: t.exposeInt('quantity', { example: 3 }),
    status: t.field({
      type: PetStatus,
      description: 'Sales status of the tracked animal.',
      resolve: ({ pet }) => pet.status,
    }),
    pet: t.relation('pet', {
      ...graphqlOnly,
      resolve: async (_query, { petId }, _args, { reads }) => related(await reads.row('Pet', 'id', petId)),
    }),
  }),
})

const InventoryUpdate = builder.inputType('InventoryUpdate', {
  description: 'A new stock count.',
  fields: (t) => ({ quantity: t.int({ required: true, validate: stock, description: 'The new stock count.' }) }),
})

builder.queryFields((t) => ({
  inventory: t.field({
    type: [InventoryItem],
    description: 'The inventory entries, in ascending order of petId.',
    rest: { method: 'GET', path: '/inventory', tag: 'Store', summary: 'List inventory' },
    args: {
      ...pageArgs(t.arg, 'petId'),
      status: t.arg({ type: PetStatus, description: 'Only entries of animals with this status.' }),
    },
    resolve: (_root, { status, ...args }, context) =>
      page(context, InventoryItem, args, [['pet.status', '=', status]], 'petId'),
  }),
  inventoryItem: t.field({
    type: InventoryItem,
    description: 'The inventory entry of one animal.',
    rest: { method: 'GET', path: '/inventory/{petId}', tag: 'Store', summary: 'Get the stock of a pet' },
    args: { petId: idArg(t.arg, 'InventoryItem', 'petId') },
    resolve: async (_root, { petId }, { reads }) =>
      found(await reads.row(InventoryItem, 'petId', petId), 'inventory entry for pet', petId),
  }),
}))

builder.mutationFields((t) => ({
  updateInventory: t.field({
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
    // transaction of three.
    resolve: async (_root, { petId, input: { quantity } }, { prisma }) => {
      const [pet] = await prisma.$queryRaw<{ status: typeof PetStatus.$inferType }[]>`
        UPDATE "InventoryItem" SET "quantity" = ${quantity} FROM "Pet"
        WHERE "InventoryItem"."petId" = ${petId} AND "Pet"."id" = ${petId} RETURNING "Pet"."status"::text AS "status"`
      if (!pet) throw notFound('inventory entry for pet', petId)
      return { petId, quantity, pet }
    },
  }),
}))
