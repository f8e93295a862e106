import { batchArg, builder, columnDescription, expandable, idArg, inputArg } from './kit/builder.js'
import { allFound, conflict, found } from './kit/errors.js'
import { int, MAX_INT, stock } from './kit/input/rules.js'
import { addList, atLeast, atMost, defineList, equals } from './kit/lists/define.js'
import { Node } from './kit/node.js'
import { toOne } from './kit/relations.js'
import { storeTag } from './order.js'
import { Pet, PetStatus } from './pet.js'
import { stockOfPets } from './stock.js'

const InventoryItem = builder.prismaObject('InventoryItem', {
  interfaces: [Node],
  fields: (t) => ({
    petId: t.expose('petId', { type: 'Int64' }),
    quantity: t.exposeInt('quantity', { example: 3 }),
    status: t.expose('status', { type: PetStatus }),
    pet: t.field({
      ...expandable,
      type: Pet,
      description: columnDescription('InventoryItem', 'pet'),
      ...toOne('Pet', 'id', 'petId'),
    }),
  }),
})

builder.objectField(Pet, 'inventory', (t) =>
  t.field({
    ...expandable,
    type: InventoryItem,
    description: columnDescription('Pet', 'inventory'),
    ...toOne('InventoryItem', 'petId', 'id'),
  }),
)

const InventoryUpdate = builder.inputType('InventoryUpdate', {
  description: 'A new stock count.',
  fields: (t) => ({ quantity: t.int({ required: true, validate: stock, description: 'The new stock count.' }) }),
})

const InventoryChange = builder.inputType('InventoryChange', {
  description: 'The new stock count of an animal.',
  fields: (t) => ({
    petId: t.field({ type: 'Int64', required: true, description: columnDescription('InventoryItem', 'petId') }),
    quantity: t.int({ required: true, validate: stock, description: 'The new stock count.' }),
  }),
})

const InventoryAdjustment = builder.inputType('InventoryAdjustment', {
  description: 'By how much the stock count of an animal changes.',
  fields: (t) => ({
    petId: t.field({ type: 'Int64', required: true, description: columnDescription('InventoryItem', 'petId') }),
    by: t.int({
      required: true,
      validate: int.refine((by) => by !== 0, 'must not be 0'),
      example: 10,
      description: 'What is added to the stock count; negative to take from it. Not 0.',
    }),
  }),
})

const inventory = defineList({
  model: 'InventoryItem',
  type: InventoryItem,
  name: 'inventory',
  key: 'petId',
  filters: {
    status: equals('status', {
      type: PetStatus,
      description: 'Only entries of animals with this status.',
      example: 'available',
    }),
    categoryId: equals('categoryId', {
      type: 'Int64',
      description: 'Only entries of animals of this category.',
      example: 2,
    }),
    minQuantity: atLeast('quantity', {
      type: 'Int',
      validate: stock,
      description: 'Only entries with at least this stock count.',
      example: 1,
    }),
    maxQuantity: atMost('quantity', {
      type: 'Int',
      validate: stock,
      description: 'Only entries with at most this stock count.',
      example: 3,
    }),
  },
  sorts: ['quantity'],
  indexes: [[], ['status'], ['status', 'quantity'], ['categoryId', 'status', 'quantity']],
  // Indexes of the pets: each index of entries would make every change of a stock dearer.
  ownerIndexes: [['categoryId'], ['status', 'categoryId']],
})

addList(inventory, {
  description: 'The inventory entries',
  rest: { method: 'GET', path: '/inventory', tag: storeTag, summary: 'List inventory' },
})

builder.queryFields((t) => ({
  inventoryItem: t.field({
    type: InventoryItem,
    description: 'The inventory entry of one animal.',
    rest: { method: 'GET', path: '/inventory/{petId}', tag: storeTag, summary: 'Get the stock of a pet' },
    args: { petId: idArg(t.arg, 'InventoryItem', 'petId') },
    resolve: async (_root, { petId }, { reads }) =>
      found(await reads.row('InventoryItem', 'petId', petId), 'inventory entry for pet', petId),
  }),
}))

builder.mutationFields((t) => ({
  updateInventories: t.field({
    type: [InventoryItem],
    description:
      'Sets the stock counts of animals, as after a stock-take. Returns the entries in the order of the items.',
    rest: { method: 'PATCH', path: '/inventory/batch', tag: storeTag, summary: 'Set the stock of several pets' },
    args: { input: batchArg(t.arg, InventoryChange, 'The stock counts.', 'petId') },
    resolve: async (_root, { input }, { writes }) => {
      const ids = input.map(({ petId }) => petId)
      return allFound(await writes.updateMany('InventoryItem', input), 'inventory entry for pet', ids)
    },
  }),
  adjustInventories: t.field({
    type: [InventoryItem],
    description:
      'Adds to the stock counts of animals, or takes from them: a delivery, a loss. If one of them would be negative or too large, none is changed. Returns the entries in the order of the items.',
    rest: {
      method: 'POST',
      path: '/inventory/adjustments',
      tag: storeTag,
      summary: 'Adjust the stock of several pets',
      status: 200,
      stability: 'experimental',
      errors: ['conflict'],
    },
    example: [{ petId: 1, quantity: 13, status: 'available' }],
    args: { input: batchArg(t.arg, InventoryAdjustment, 'The changes of stock counts.', 'petId') },
    resolve: async (_root, { input }, { writes }) => {
      const changes = input.map(({ petId, by }) => ({ id: petId as bigint, by }))
      const changed = await writes.addMany(stockOfPets, changes, ({ petId, quantity }, by, place) =>
        conflict(
          `[${place}].by is ${by}, but pet ${petId} has a stock of ${quantity}: a stock must stay from 0 to ${MAX_INT}.`,
        ),
      )
      return allFound(
        changed,
        'inventory entry for pet',
        changes.map(({ id }) => id),
      )
    },
  }),
  updateInventory: t.field({
    type: InventoryItem,
    description: 'Sets the stock count of an animal.',
    rest: {
      method: 'PATCH',
      path: '/inventory/{petId}',
      tag: storeTag,
      summary: 'Set the stock of a pet',
      stability: 'experimental',
    },
    args: { petId: idArg(t.arg, 'InventoryItem', 'petId'), input: inputArg(t.arg, InventoryUpdate, 'What changes.') },
    resolve: async (_root, { petId, input }, { writes }) =>
      found(await writes.set(stockOfPets, petId, input.quantity), 'inventory entry for pet', petId),
  }),
}))
