import { conditional, type Resource } from './resource.js'

export const category: Resource = {
  table: 'Category',
  rows: `INSERT INTO "Category" (name, description) VALUES ('Dogs', 'They bark.'), ('Cats', NULL)`,
  many: (rows) => [`INSERT INTO "Category" (name) SELECT 'Kind ' || i FROM generate_series(1, ${rows}) i`],
  contents: ({ category }) => category.findMany({ orderBy: { id: 'asc' } }),
  cases: {
    categories: [
      ['success', {}],
      ['success', { limit: 1, after: 1 }],
      ['success', { id: [2, 3], search: 'c', sort: 'name', direction: 'asc' }],
      ['invalid_request', { limit: 0 }],
      ['invalid_request', { search: ' ', sort: 'name' }],
    ],
    category: [
      ['success', { categoryId: 1 }],
      ['success', { categoryId: 2 }],
      ['not_found', { categoryId: 3 }],
      ['invalid_request', { categoryId: -1 }],
    ],
    createCategory: [
      ['success', { input: { name: 'Birds' } }],
      ['success', { input: { name: 'Birds', description: '' } }],
      ['invalid_request', { input: { name: 'Birds', description: null } }],
    ],
    createCategories: [
      ['success', { input: [{ name: 'Birds' }, { name: 'Fish', description: '' }] }],
      ['invalid_request', { input: [] }],
      ['invalid_request', { input: [{ name: 'Birds' }, { name: ' ' }] }],
    ],
    updateCategory: [
      ['success', { categoryId: 1, input: {} }],
      ['success', { categoryId: 1, input: { name: 'Hounds', description: 'They run.' } }],
      ['success', { categoryId: 1, input: { description: null } }],
      ['invalid_request', { categoryId: 1, input: { name: null } }],
      ['not_found', { categoryId: 3, input: {} }],
      ...conditional({ categoryId: 1, input: {} }, { categoryId: 3 }),
    ],
    deleteCategory: [
      ['success', { categoryId: 1 }],
      ['invalid_request', { categoryId: 0 }],
      ['not_found', { categoryId: 3 }],
      ['conflict', { categoryId: 2 }],
      ...conditional({ categoryId: 1 }, { categoryId: 3 }),
    ],
  },
  filters: { search: ['r', 'bella 19', '狗'] },
}
