import { builder, columnDescription, expandable, flagArg } from './kit/builder.js'
import type { Context } from './kit/context.js'
import { conflict } from './kit/errors.js'
import { orderQuantity } from './kit/input/rules.js'
import { addList, addListBelow, atLeast, below, defineList, equals } from './kit/lists/define.js'
import { Node } from './kit/node.js'
import type { Tag } from './kit/plugin.js'
import { toOne } from './kit/relations.js'
import { defineResource } from './kit/resource.js'
import { Pet } from './pet.js'
import { returnStock, sale, saleOfMany, takeStockArg } from './stock.js'

export const storeTag: Tag = {
  name: 'Store',
  description: 'Orders, the stock of each animal, and the quota of the calling key.',
}

const Order = builder.prismaObject('Order', {
  interfaces: [Node],
  fields: (t) => ({
    // The specification requires none of them (docs/specification.md, Resources).
    id: t.expose('id', { type: 'Int64', example: 3, optional: true }),
    petId: t.expose('petId', { type: 'Int64', example: 2, optional: true }),
    quantity: t.exposeInt('quantity', { optional: true }),
    shipDate: t.expose('shipDate', {
      type: 'DateTime',
      nullable: true,
      example: '2026-12-01T10:00:00.000Z',
      bounds: { minLength: 24, maxLength: 24 },
    }),
    complete: t.exposeBoolean('complete', { optional: true }),
    pet: t.field({
      ...expandable,
      type: Pet,
      description: columnDescription('Order', 'pet'),
      example: { id: 2, name: 'Bella', categoryId: 1, status: 'pending' },
      ...toOne('Pet', 'id', 'petId'),
    }),
  }),
})

const orders = defineList({
  model: 'Order',
  type: Order,
  name: 'orders',
  key: 'id',
  filters: {
    petId: equals('petId', { type: 'Int64', description: 'Only orders for this animal.', example: 10 }),
    complete: equals('complete', {
      type: 'Boolean',
      description: 'Only orders that have been fulfilled, or only those that have not.',
      example: false,
    }),
    shipDateFrom: atLeast('shipDate', {
      type: 'DateTime',
      description: 'Only orders with a ship date at this moment or later.',
      example: '2026-12-01T00:00:00Z',
    }),
    shipDateBefore: below('shipDate', {
      type: 'DateTime',
      description: 'Only orders with a ship date before this.',
      example: '2027-01-01T00:00:00Z',
    }),
  },
  sorts: ['shipDate'],
  indexes: [
    [],
    ['petId'],
    ['complete'],
    ['petId', 'complete'],
    ['complete', 'shipDate'],
    ['petId', 'complete', 'shipDate'],
  ],
})

addList(orders, {
  description: 'The orders',
  rest: {
    method: 'GET',
    path: '/store/orders',
    tag: storeTag,
    summary: 'List orders',
    noTryIt: 'Trying this operation in the reference is turned off. It works as described in your own code.',
  },
})
addListBelow(orders, Pet, 'petId', 'The orders for the animal')

const order = defineResource({
  model: 'Order',
  type: Order,
  path: '/store/orders',
  tag: storeTag,
  columns: {
    petId: { example: 10 },
    quantity: { validate: orderQuantity, preset: 1 },
    shipDate: {},
    complete: { preset: false },
  },
})

builder.queryField('order', order.get())
builder.mutationField(
  'createOrder',
  order.create({
    description: 'Creates an order. It changes no status, and no stock unless `takeStock` is true.',
    rest: { errors: ['conflict'] },
    args: takeStockArg(
      'Whether the order takes its quantity from the stock of the pet. If there is not enough, the error is `conflict`, and nothing changes. Default: false.',
    ),
    resolve: (input, { writes }, { takeStock }) => writes.create('Order', input, takeStock ? sale : undefined),
  }),
)
builder.mutationField(
  'createOrders',
  order.createMany({
    description: 'Creates orders. They change no status, and no stock unless `takeStock` is true.',
    rest: { errors: ['conflict'] },
    args: takeStockArg(
      'Whether the orders take their quantities from the stock. Those for one pet add up. If there is not enough of one of the pets, the error is `conflict`, and nothing changes. Default: false.',
    ),
    resolve: (input, { writes }, { takeStock }) =>
      writes.createMany('Order', input, takeStock ? saleOfMany : undefined),
  }),
)
builder.mutationField(
  'updateOrder',
  order.update({
    description:
      'Changes the fields of an order that are sent. It changes neither stock nor status: to sell more or fewer, delete the order with `returnStock`, and create another one.',
    rest: { stability: 'beta' },
  }),
)
builder.mutationField(
  'updateOrders',
  order.updateMany({
    description:
      'Changes orders, also complete ones: of each, the fields that are sent. It changes neither stock nor status.',
    rest: { stability: 'beta' },
  }),
)

/** One statement checks and deletes, so that no order completed in between is lost. */
async function deleteOpen(id: bigint, { reads, writes }: Pick<Context, 'reads' | 'writes'>) {
  const deleted = await writes.delete('Order', { id, complete: false })
  if (!deleted && (await reads.row('Order', 'id', id)))
    throw conflict(`Order ${id} is complete and cannot be deleted. Set complete to false first.`)
  return deleted
}

builder.mutationField(
  'deleteOrder',
  order.delete({
    description: 'Deletes an order that is not complete.',
    example: { id: 5, petId: 8, quantity: 1, complete: false },
    args: (arg) => ({
      returnStock: flagArg(
        arg,
        'Whether the stock gets back what the order took by `takeStock` when it was created, even if the order was changed since. An order that took nothing returns nothing. Default: false.',
      ),
    }),
    resolve: async (id, context, { args }) => {
      const order = args.returnStock && (await context.reads.row('Order', 'id', id))
      if (!order) return deleteOpen(id, context)
      const work = async (inside: Pick<Context, 'reads' | 'writes'>) => {
        const order = await inside.reads.lock('Order', id)
        if (order && !order.complete) await returnStock(id, inside)
        return deleteOpen(id, inside)
      }
      // Mostly the stock of the pet that it is for.
      return context.transaction(work, [['InventoryItem', order.petId]])
    },
  }),
)
