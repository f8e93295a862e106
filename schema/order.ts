import { batchArg, builder, columnDescription, graphqlOnly, idArg, inputArg } from './kit/builder.js'
import { conflict, found, notFound } from './kit/errors.js'
import { orderQuantity } from './kit/input/rules.js'
import { addList, addListBelow, atLeast, below, defineList, equals } from './kit/lists/define.js'
import { Node } from './kit/node.js'
import { toOne } from './kit/relations.js'
import { Pet } from './pet.js'

const Order = builder.prismaObject('Order', {
  interfaces: [Node],
  fields: (t) => ({
    id: t.expose('id', { type: 'Int64', example: 3 }),
    petId: t.expose('petId', { type: 'Int64', example: 2 }),
    quantity: t.exposeInt('quantity'),
    shipDate: t.expose('shipDate', { type: 'DateTime', nullable: true, example: '2026-12-01T10:00:00.000Z' }),
    complete: t.exposeBoolean('complete'),
    pet: t.field({
      ...graphqlOnly,
      type: Pet,
      description: columnDescription('Order', 'pet'),
      ...toOne('Pet', 'id', 'petId'),
    }),
  }),
})

const NewOrder = builder.inputType('NewOrder', {
  description: 'An order to create.',
  fields: (t) => ({
    petId: t.field({ type: 'Int64', required: true, description: columnDescription('Order', 'petId') }),
    quantity: t.int({ defaultValue: 1, validate: orderQuantity, description: columnDescription('Order', 'quantity') }),
    shipDate: t.field({ type: 'DateTime', description: columnDescription('Order', 'shipDate') }),
    complete: t.boolean({ defaultValue: false, description: columnDescription('Order', 'complete') }),
  }),
})

const OrderUpdate = builder.inputType('OrderUpdate', {
  description: 'What changes in an order. A field that is not sent stays as it is.',
  fields: (t) => ({
    petId: t.field({ type: 'Int64', description: columnDescription('Order', 'petId') }),
    quantity: t.int({ validate: orderQuantity, description: columnDescription('Order', 'quantity') }),
    shipDate: t.field({
      type: 'DateTime',
      nullable: true,
      description: `${columnDescription('Order', 'shipDate')} null clears it.`,
    }),
    complete: t.boolean({ description: columnDescription('Order', 'complete') }),
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
    tag: 'Store',
    summary: 'List orders',
    noTryIt: 'Trying this operation in the reference is turned off. It works as described in your own code.',
  },
})
addListBelow(orders, Pet, 'petId', 'The orders for the animal')

builder.queryFields((t) => ({
  order: t.field({
    type: Order,
    description: 'One order.',
    rest: { method: 'GET', path: '/store/orders/{orderId}', tag: 'Store', summary: 'Get an order' },
    args: { orderId: idArg(t.arg, 'Order') },
    resolve: async (_root, { orderId: id }, { reads }) => found(await reads.row('Order', 'id', id), 'order', id),
  }),
}))

builder.mutationFields((t) => ({
  createOrder: t.field({
    type: Order,
    description: 'Creates an order. It changes neither stock nor status.',
    rest: {
      method: 'POST',
      path: '/store/orders',
      tag: 'Store',
      summary: 'Create an order',
      location: '/store/orders/{id}',
    },
    args: { input: inputArg(t.arg, NewOrder, 'The order to create.') },
    resolve: (_root, { input }, { writes }) => writes.create('Order', input),
  }),
  createOrders: t.field({
    type: [Order],
    description: 'Creates orders. They change neither stock nor status. Returns them in the order of the items.',
    rest: { method: 'POST', path: '/store/orders/batch', tag: 'Store', summary: 'Create several orders' },
    args: { input: batchArg(t.arg, NewOrder, 'The orders to create.') },
    resolve: (_root, { input }, { writes }) => writes.createMany('Order', input),
  }),
  updateOrder: t.field({
    type: Order,
    description: 'Changes the fields of an order that are sent. It changes neither stock nor status.',
    rest: {
      method: 'PATCH',
      path: '/store/orders/{orderId}',
      tag: 'Store',
      summary: 'Update an order',
      stability: 'beta',
    },
    args: { orderId: idArg(t.arg, 'Order'), input: inputArg(t.arg, OrderUpdate, 'What changes.') },
    resolve: async (_root, { orderId: id, input }, { writes }) =>
      found(await writes.update('Order', { ...input, id }), 'order', id),
  }),
  deleteOrder: t.field({
    type: Order,
    description: 'Deletes an order that is not complete. GraphQL returns the deleted order.',
    rest: {
      method: 'DELETE',
      path: '/store/orders/{orderId}',
      tag: 'Store',
      summary: 'Delete an order',
      errors: ['conflict'],
    },
    args: { orderId: idArg(t.arg, 'Order') },
    example: { id: 5, petId: 8, quantity: 1, complete: false },
    // One statement checks and deletes, so that no order completed in between is lost.
    resolve: async (_root, { orderId: id }, { reads, writes }) => {
      const deleted = await writes.delete('Order', { id, complete: false })
      if (deleted) return deleted
      const order = await reads.row('Order', 'id', id)
      throw order ? conflict(`Order ${id} is complete and cannot be deleted.`) : notFound('order', id)
    },
  }),
}))
