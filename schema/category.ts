import { builder } from './kit/builder.js'
import { description, name } from './kit/input/rules.js'
import { addList, beginsWith, defineList } from './kit/lists/define.js'
import { Node } from './kit/node.js'
import type { Tag } from './kit/plugin.js'
import { defineResource } from './kit/resource.js'

export const petsTag: Tag = { name: 'Pets', description: 'Animals, and the categories that group them.' }

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
      description: 'Only categories whose name begins with this, whatever the case and the accents.',
      example: 'Re',
    }),
  },
  sorts: ['name'],
  textKeys: { name: 'plainName' },
  indexes: [[], ['name']],
})

addList(categories, {
  description: 'The categories',
  rest: { method: 'GET', path: '/categories', tag: petsTag, summary: 'List categories' },
})

const category = defineResource({
  model: 'Category',
  type: Category,
  path: '/categories',
  tag: petsTag,
  columns: { name: { validate: name }, description: { validate: description } },
})

builder.queryField('category', category.get())
builder.mutationField('createCategory', category.create())
builder.mutationField('createCategories', category.createMany())
builder.mutationField('updateCategory', category.update())
builder.mutationField(
  'deleteCategory',
  category.delete({
    description: 'Deletes a category that no pet refers to.',
    example: { id: 5, name: 'Reptiles', description: 'Geckos and tortoises, expected in spring.' },
  }),
)
