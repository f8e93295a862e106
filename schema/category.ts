import { builder, columnDescription, idArg, inputArg } from './kit/builder.js'
import { conflict, found } from './kit/errors.js'
import { description, name } from './kit/input/rules.js'
import { addList, beginsWith, defineList } from './kit/lists/define.js'
import { Node } from './kit/node.js'

export const Category = builder.prismaObject('Category', {
  interfaces: [Node],
  fields: (t) => ({
    id: t.expose('id', { type: 'Int64' }),
    name: t.exposeString('name', { example: 'Dogs' }),
    description: t.exposeString('description', {
      nullable: true,
      example: 'Companions of every size, from lapdogs to livestock guardians.',
    }),
  }),
})

const categories = defineList({
  model: 'Category',
  type: Category,
  name: 'categories',
  key: 'id',
  filters: {
    search: beginsWith('name', {
      type: 'String',
      validate: name,
      description: 'Only categories whose name begins with this, whatever the case.',
      example: 'Re',
    }),
  },
  sorts: ['name'],
  indexes: [[], ['name']],
})

const NewCategory = builder.inputType('NewCategory', {
  description: 'A category to create.',
  fields: (t) => ({
    name: t.string({ required: true, validate: name, description: columnDescription('Category', 'name') }),
    description: t.string({ validate: description, description: columnDescription('Category', 'description') }),
  }),
})

const CategoryUpdate = builder.inputType('CategoryUpdate', {
  description: 'What changes in a category. A field that is not sent stays as it is.',
  fields: (t) => ({
    name: t.string({ validate: name, description: columnDescription('Category', 'name') }),
    description: t.string({
      nullable: true,
      validate: description,
      description: `${columnDescription('Category', 'description')} null clears it.`,
    }),
  }),
})

addList(categories, {
  description: 'The categories',
  rest: { method: 'GET', path: '/categories', tag: 'Pets', summary: 'List categories' },
})

builder.queryFields((t) => ({
  category: t.field({
    type: Category,
    description: 'One category.',
    rest: { method: 'GET', path: '/categories/{categoryId}', tag: 'Pets', summary: 'Get a category' },
    args: { categoryId: idArg(t.arg, 'Category') },
    resolve: async (_root, { categoryId: id }, { reads }) =>
      found(await reads.row('Category', 'id', id), 'category', id),
  }),
}))

builder.mutationFields((t) => ({
  createCategory: t.field({
    type: Category,
    description: 'Creates a category.',
    rest: {
      method: 'POST',
      path: '/categories',
      tag: 'Pets',
      summary: 'Create a category',
      location: '/categories/{id}',
    },
    args: { input: inputArg(t.arg, NewCategory, 'The category to create.') },
    resolve: (_root, { input }, { writes }) => writes.create('Category', input),
  }),
  updateCategory: t.field({
    type: Category,
    description: 'Changes the fields of a category that are sent.',
    rest: { method: 'PATCH', path: '/categories/{categoryId}', tag: 'Pets', summary: 'Update a category' },
    args: { categoryId: idArg(t.arg, 'Category'), input: inputArg(t.arg, CategoryUpdate, 'What changes.') },
    resolve: async (_root, { categoryId: id, input }, { writes }) =>
      found(await writes.update('Category', { ...input, id }), 'category', id),
  }),
  deleteCategory: t.field({
    type: Category,
    description: 'Deletes a category that no pet refers to. GraphQL returns the deleted category.',
    rest: {
      method: 'DELETE',
      path: '/categories/{categoryId}',
      tag: 'Pets',
      summary: 'Delete a category',
      errors: ['conflict'],
    },
    args: { categoryId: idArg(t.arg, 'Category') },
    example: { id: 5, name: 'Reptiles', description: 'Geckos and tortoises, expected in spring.' },
    resolve: async (_root, { categoryId: id }, { writes }) => {
      const refusal = conflict(`Category ${id} has pets. Delete or move them first.`)
      return found(await writes.delete('Category', { id }, refusal), 'category', id)
    },
  }),
}))
