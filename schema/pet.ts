import { Category } from './category.js'
import { batchArg, builder, columnDescription, graphqlOnly, idArg, inputArg } from './kit/builder.js'
import { allFound, conflict, found } from './kit/errors.js'
import { name } from './kit/input/rules.js'
import { addList, addListBelow, beginsWith, defineList, equals } from './kit/lists/define.js'
import { Node } from './kit/node.js'
import { selects, toOne } from './kit/relations.js'

export const PetStatus = builder.enumType('PetStatus', {
  description:
    'Sales status of an animal: a label that the shop sets. Any status may follow any other. The service attaches no rule to it: animals of any status can be ordered, and orders change no status.',
  values: {
    available: { description: 'The shop has labeled the animal as available. The default.' },
    pending: { description: 'The shop has labeled the animal as pending.' },
    sold: { description: 'The shop has labeled the animal as sold.' },
  } as const,
})

export const Pet = builder.prismaObject('Pet', {
  interfaces: [Node],
  fields: (t) => ({
    id: t.expose('id', { type: 'Int64' }),
    name: t.exposeString('name', { example: 'Rex' }),
    categoryId: t.expose('categoryId', { type: 'Int64' }),
    status: t.expose('status', { type: PetStatus }),
    category: t.field({
      ...graphqlOnly,
      type: Category,
      description: columnDescription('Pet', 'category'),
      ...toOne('Category', 'id', 'categoryId'),
    }),
  }),
})

const pets = defineList({
  model: 'Pet',
  type: Pet,
  name: 'pets',
  key: 'id',
  filters: {
    status: equals('status', { type: PetStatus, description: 'Only pets with this status.', example: 'available' }),
    categoryId: equals('categoryId', { type: 'Int64', description: 'Only pets of this category.', example: 2 }),
    search: beginsWith('name', {
      type: 'String',
      validate: name,
      description: 'Only pets whose name begins with this, whatever the case.',
      example: 'Lu',
    }),
  },
  sorts: ['name'],
  indexes: [
    [],
    ['status'],
    ['categoryId'],
    ['status', 'categoryId'],
    ['status', 'name'],
    ['categoryId', 'status', 'name'],
  ],
})

const NewPet = builder.inputType('NewPet', {
  description: 'A pet to create.',
  fields: (t) => ({
    name: t.string({ required: true, validate: name, description: columnDescription('Pet', 'name') }),
    categoryId: t.field({ type: 'Int64', required: true, description: columnDescription('Pet', 'categoryId') }),
    status: t.field({ type: PetStatus, defaultValue: 'available', description: columnDescription('Pet', 'status') }),
  }),
})

const PetUpdate = builder.inputType('PetUpdate', {
  description: 'What changes in a pet. A field that is not sent stays as it is.',
  fields: (t) => ({
    name: t.string({ validate: name, description: columnDescription('Pet', 'name') }),
    categoryId: t.field({ type: 'Int64', description: columnDescription('Pet', 'categoryId') }),
    status: t.field({ type: PetStatus, description: columnDescription('Pet', 'status') }),
  }),
})

const PetChange = builder.inputType('PetChange', {
  description: 'What changes in which pet. A field that is not sent stays as it is.',
  fields: (t) => ({
    id: t.field({ type: 'Int64', required: true, description: columnDescription('Pet', 'id') }),
    name: t.string({ validate: name, description: columnDescription('Pet', 'name') }),
    categoryId: t.field({ type: 'Int64', description: columnDescription('Pet', 'categoryId') }),
    status: t.field({ type: PetStatus, description: columnDescription('Pet', 'status') }),
  }),
})

addList(pets, {
  description: 'The pets',
  rest: { method: 'GET', path: '/pets', tag: 'Pets', summary: 'List pets' },
})
addListBelow(pets, Category, 'categoryId', 'The pets of the category')

builder.queryFields((t) => ({
  pet: t.field({
    type: Pet,
    description: 'One pet.',
    rest: {
      method: 'GET',
      path: '/pets/{petId}',
      tag: 'Pets',
      summary: 'Get a pet',
      deprecation: {
        since: new Date('2025-12-05T00:00:00Z'),
        sunset: 'PET_BY_ID_SUNSET',
        successor: '/pets?id={petId}',
      },
    },
    args: { petId: idArg(t.arg, 'Pet') },
    resolve: async (_root, { petId: id }, { reads }) => found(await reads.row('Pet', 'id', id), 'pet', id),
  }),
}))

builder.mutationFields((t) => ({
  createPet: t.field({
    type: Pet,
    description: 'Creates a pet, and its inventory entry with a stock of 0.',
    rest: { method: 'POST', path: '/pets', tag: 'Pets', summary: 'Create a pet', location: '/pets/{id}' },
    args: { input: inputArg(t.arg, NewPet, 'The pet to create.') },
    resolve: (_root, { input }, { writes }) => writes.create('Pet', input),
  }),
  createPets: t.field({
    type: [Pet],
    description:
      'Creates pets, and the inventory entry of each with a stock of 0. Returns them in the order of the items.',
    rest: { method: 'POST', path: '/pets/batch', tag: 'Pets', summary: 'Create several pets' },
    args: { input: batchArg(t.arg, NewPet, 'The pets to create.') },
    resolve: (_root, { input }, { writes }) => writes.createMany('Pet', input),
  }),
  updatePets: t.field({
    type: [Pet],
    description: 'Changes the fields of pets that are sent. Returns the pets in the order of the items.',
    rest: { method: 'PATCH', path: '/pets/batch', tag: 'Pets', summary: 'Update several pets' },
    args: { input: batchArg(t.arg, PetChange, 'What changes in which pets.', 'id') },
    resolve: async (_root, { input }, { writes }) => {
      const ids = input.map(({ id }) => id)
      return allFound(await writes.updateMany('Pet', input), 'pet', ids)
    },
  }),
  updatePet: t.field({
    type: Pet,
    description: 'Changes the fields of a pet that are sent.',
    rest: { method: 'PATCH', path: '/pets/{petId}', tag: 'Pets', summary: 'Update a pet' },
    args: { petId: idArg(t.arg, 'Pet'), input: inputArg(t.arg, PetUpdate, 'What changes.') },
    resolve: async (_root, { petId: id, input }, { writes }) =>
      found(await writes.update('Pet', { ...input, id }), 'pet', id),
  }),
  deletePet: t.field({
    type: Pet,
    description: 'Deletes a pet that no order refers to, with its inventory entry. GraphQL returns the deleted pet.',
    rest: { method: 'DELETE', path: '/pets/{petId}', tag: 'Pets', summary: 'Delete a pet', errors: ['conflict'] },
    args: { petId: idArg(t.arg, 'Pet') },
    example: { id: 12, name: 'Finn', categoryId: 4, status: 'pending' },
    resolve: async (_root, { petId: id }, { writes, transaction }, info) => {
      const refusal = conflict(`Pet ${id} has orders. Delete or change them first.`)
      if (!selects(info, 'inventory')) return found(await writes.delete('Pet', { id }, refusal), 'pet', id)
      // Its entry goes with it. All that lock both lock the pet first.
      return transaction(async ({ reads, writes }) => {
        await reads.lock('Pet', 'id', id)
        const inventory = await reads.lock('InventoryItem', 'petId', id)
        const pet = found(await writes.delete('Pet', { id }, refusal), 'pet', id)
        return Object.assign(pet, { inventory: Object.assign(inventory as object, { pet }) })
      })
    },
  }),
}))
