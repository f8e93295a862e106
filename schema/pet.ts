import { Category, petsTag } from './category.js'
import { builder, columnDescription, expandable } from './kit/builder.js'
import { found } from './kit/errors.js'
import { name } from './kit/input/rules.js'
import { addList, addListBelow, beginsWith, defineList, equals } from './kit/lists/define.js'
import { Node } from './kit/node.js'
import { selects, toOne } from './kit/relations.js'
import { defineResource } from './kit/resource.js'

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
    // The specification does not require it (docs/specification.md, Resources).
    status: t.expose('status', { type: PetStatus, optional: true }),
    category: t.field({
      ...expandable,
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
    inStock: equals('inStock', {
      type: 'Boolean',
      description: 'Only pets whose stock is above 0; with false, only those whose stock is 0.',
      example: true,
    }),
    search: beginsWith('name', {
      type: 'String',
      validate: name,
      description: 'Only pets whose name begins with this, whatever the case and the accents.',
      example: 'Lu',
    }),
  },
  sorts: ['name'],
  textKeys: { name: 'plainName' },
  indexes: [
    [],
    ['status'],
    ['categoryId'],
    ['status', 'categoryId'],
    ['status', 'inStock'],
    ['categoryId', 'status', 'inStock'],
    ['status', 'inStock', 'name'],
    ['categoryId', 'status', 'inStock', 'name'],
  ],
})

addList(pets, {
  description: 'The pets',
  rest: { method: 'GET', path: '/pets', tag: petsTag, summary: 'List pets' },
})
addListBelow(pets, Category, 'categoryId', 'The pets of the category')

const pet = defineResource({
  model: 'Pet',
  type: Pet,
  path: '/pets',
  tag: petsTag,
  columns: {
    name: { validate: name },
    categoryId: {},
    status: { type: PetStatus, preset: 'available' },
  },
})

builder.queryField(
  'pet',
  pet.get({
    rest: {
      deprecation: {
        since: new Date('2025-12-05T00:00:00Z'),
        sunset: 'PET_BY_ID_SUNSET',
        successor: '/pets?id={petId}',
      },
    },
  }),
)
builder.mutationField(
  'createPet',
  pet.create({ description: 'Creates a pet, and its inventory entry with a stock of 0.' }),
)
builder.mutationField(
  'createPets',
  pet.createMany({ description: 'Creates pets, and the inventory entry of each with a stock of 0.' }),
)
builder.mutationField('updatePets', pet.updateMany())
builder.mutationField('updatePet', pet.update())
builder.mutationField(
  'deletePet',
  pet.delete({
    description: 'Deletes a pet that no order refers to, with its inventory entry.',
    example: { id: 12, name: 'Finn', categoryId: 4, status: 'pending' },
    resolve: async (id, { writes, transaction }, { info, refusal }) => {
      if (!selects(info, 'inventory')) return writes.delete('Pet', { id }, refusal)
      // Its entry goes with it. All that lock both lock the pet first.
      return transaction(async ({ reads, writes }) => {
        await reads.lock('Pet', id)
        const inventory = await reads.lock('InventoryItem', id)
        const pet = found(await writes.delete('Pet', { id }, refusal), 'pet', id)
        return Object.assign(pet, { inventory: Object.assign(inventory as object, { pet }) })
      })
    },
  }),
)
