import { builder, columnDescription, graphqlOnly, idArg, inputArg } from './builder.js'
import { conflict, found, mapPrismaError, notFound, related, unknownReference } from './errors.js'
import { afterArg, keyset, list, page, pageArgs } from './pagination.js'
import { DEFAULT_LIMIT, given, ids, limit, MAX_LIMIT, name } from './validation.js'

export const PetStatus = builder.enumType('PetStatus', {
  description:
    'Sales status of an animal: a label that the shop sets. Any status may follow any other. The service attaches no rule to it: animals of any status can be ordered, and orders change no status.',
  values: {
    available: { description: 'The shop has labeled the animal as available. The default.' },
    pending: { description: 'The shop has labeled the animal as pending.' },
    sold: { description: 'The shop has labeled the animal as sold.' },
  } as const,
})

const Pet = builder.prismaObject('Pet', {
  fields: (t) => ({
    id: t.expose('id', { type: 'Int64' }),
    name: t.exposeString('name', { example: 'Rex' }),
    categoryId: t.expose('categoryId', { type: 'Int64' }),
    status: t.expose('status', { type: PetStatus }),
    category: t.relation('category', {
      ...graphqlOnly,
      resolve: async (_query, { categoryId }, _args, { reads }) =>
        related(await reads.row('Category', 'id', categoryId)),
    }),
    inventory: t.relation('inventory', {
      ...graphqlOnly,
      nullable: false,
      onNull: 'error',
      // The entry has a part of its pet, which Pothos would take for all of it where the pet is selected again.
      resolve: async (_query, pet, _args, { reads }) => ({
        ...related(await reads.row('InventoryItem', 'petId', pet.id)),
        pet,
      }),
    }),
    orders: t.relation('orders', {
      ...graphqlOnly,
      args: pageArgs(t.arg),
      query: keyset,
      resolve: (_query, { id }, page, { reads }) => reads.page('Order', list(page, [['petId', '=', id]])),
    }),
  }),
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

builder.queryFields((t) => ({
  pets: t.field({
    type: [Pet],
    description: 'The pets, in ascending order of id.',
    rest: { method: 'GET', path: '/pets', tag: 'Pets', summary: 'List pets' },
    args: {
      limit: t.arg.int({
        description: `The maximum number of items on a page, 1 to ${MAX_LIMIT}. Default: ${DEFAULT_LIMIT}, or ${MAX_LIMIT} if \`id\` is given. A page with fewer items is the last one.`,
        validate: limit,
        example: DEFAULT_LIMIT,
      }),
      after: afterArg(t.arg),
      id: t.arg({
        type: ['Int64'],
        validate: ids,
        description: `Only the pets with these ids, at most ${MAX_LIMIT}.`,
        example: [4, 5],
      }),
      status: t.arg({ type: PetStatus, description: 'Only pets with this status.' }),
      categoryId: t.arg({ type: 'Int64', description: 'Only pets of this category.', example: 2 }),
    },
    resolve: (_root, { limit, after, id, status, categoryId }, context) =>
      page(context, Pet, { limit: limit ?? (id ? MAX_LIMIT : undefined), after }, [
        ['id', '= ANY', id],
        ['status', '=', status],
        ['categoryId', '=', categoryId],
      ]),
  }),
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
    resolve: async (_root, { petId: id }, { reads }) => found(await reads.row(Pet, 'id', id), 'pet', id),
  }),
}))

builder.mutationFields((t) => ({
  createPet: t.prismaField({
    type: Pet,
    description: 'Creates a pet, and its inventory entry with a stock of 0.',
    rest: { method: 'POST', path: '/pets', tag: 'Pets', summary: 'Create a pet', location: '/pets/{id}' },
    args: { input: inputArg(t.arg, NewPet, 'The pet to create.') },
    resolve: (query, _root, { input: { name, categoryId, status } }, { prisma }) =>
      prisma.pet
        .create({ data: given({ name, categoryId, status }), ...query })
        .catch(mapPrismaError('P2003', () => unknownReference('categoryId', categoryId))),
  }),
  updatePet: t.prismaField({
    type: Pet,
    description: 'Changes the fields of a pet that are sent.',
    rest: { method: 'PATCH', path: '/pets/{petId}', tag: 'Pets', summary: 'Update a pet' },
    args: { petId: idArg(t.arg, 'Pet'), input: inputArg(t.arg, PetUpdate, 'What changes.') },
    resolve: (query, _root, { petId: id, input: { name, categoryId, status } }, { prisma }) =>
      prisma.pet
        .update({ where: { id }, data: given({ name, categoryId, status }), ...query })
        .catch(mapPrismaError('P2025', () => notFound('pet', id)))
        .catch(mapPrismaError('P2003', () => unknownReference('categoryId', categoryId))),
  }),
  deletePet: t.prismaField({
    type: Pet,
    description: 'Deletes a pet that no order refers to, with its inventory entry. GraphQL returns the deleted pet.',
    rest: { method: 'DELETE', path: '/pets/{petId}', tag: 'Pets', summary: 'Delete a pet', errors: ['conflict'] },
    args: { petId: idArg(t.arg, 'Pet') },
    example: { id: 12, name: 'Finn', categoryId: 4, status: 'pending' },
    resolve: (query, _root, { petId: id }, { prisma }) =>
      prisma.pet
        .delete({ where: { id }, ...query })
        .catch(mapPrismaError('P2025', () => notFound('pet', id)))
        .catch(mapPrismaError('P2003', () => conflict(`Pet ${id} has orders. Delete or change them first.`))),
  }),
}))
