import { skewed } from '../support/skewed.js'
import { conditional, type Resource } from './resource.js'

const tom = { name: 'Tom', categoryId: 1 }

export const pet: Resource = {
  table: 'Pet',
  rows: `INSERT INTO "Pet" (name, "categoryId", status)
    VALUES ('Tom', 2, 'available'), ('Kitty', 2, 'sold'), ('Felix', 2, 'pending')`,
  // With their stock and orders.
  many: (rows) => skewed({ rows, categories: rows }),
  contents: ({ pet }) => pet.findMany({ orderBy: { id: 'asc' } }),
  cases: {
    pets: [
      ['success', {}],
      ['success', { limit: 1 }],
      ['success', { limit: 5, after: 1, id: [1, 2, 3], status: 'sold', categoryId: 2 }],
      ['success', { id: [9_007_199_254_740_993n] }],
      ['success', { search: 'KI', sort: 'name', direction: 'desc' }],
      ['success', { inStock: false, categoryId: 2, status: 'sold', sort: 'name' }],
      ['invalid_request', { limit: 101 }],
      ['invalid_request', { search: 'Ki' }],
      ['invalid_request', { sort: 'name', after: 1 }],
      ['invalid_request', { id: [0] }],
      ['invalid_request', { id: Array(101).fill(1) }],
      ['invalid_request', { status: 'Sold' }],
    ],
    pet: [
      ['success', { petId: 1 }],
      ['not_found', { petId: 4 }],
      ['not_found', { petId: 2n ** 63n - 1n }],
      ['invalid_request', { petId: 2n ** 63n }],
    ],
    createPet: [
      ['success', { input: { name: ' Tom ', categoryId: 1 } }],
      ['success', { input: { name: 'Tom', categoryId: 1, status: 'sold' } }],
      ['invalid_request', { input: {} }],
      ['invalid_request', { input: { name: ' ', categoryId: 1 } }],
      ['invalid_request', { input: { name: 'Tom', categoryId: 1, status: null } }],
      ['invalid_request', { input: { name: 'Tom', categoryId: 1, weight: 1 } }],
      ['unknown_reference', { input: { name: 'Tom', categoryId: 3 } }],
      ['unknown_reference', { input: { name: 'Tom', categoryId: 9_007_199_254_740_993n } }],
    ],
    createPets: [
      ['success', { input: [{ name: ' Tom ', categoryId: 1 }] }],
      ['success', { input: [1, 2].map(() => ({ name: 'Tom', categoryId: 1, status: 'sold' })) }],
      ['invalid_request', { input: [] }],
      ['invalid_request', { input: [tom, { ...tom, name: ' ' }] }],
      ['invalid_request', { input: [{ name: 'Tom', categoryId: 1, status: null }] }],
      ['invalid_request', { input: Array(101).fill({ name: 'Tom', categoryId: 1 }) }],
      ['unknown_reference', { input: [{ name: 'Tom', categoryId: 3 }] }],
    ],
    updatePets: [
      ['success', { input: [{ id: 1 }] }],
      ['success', { input: [{ id: 2, name: 'Jerry', categoryId: 1, status: 'pending' }, { id: 1 }] }],
      ['invalid_request', { input: [{ id: 1, name: null }] }],
      ['invalid_request', { input: [{ id: 1 }, { id: 1 }] }],
      ['not_found', { input: [{ id: 1, name: 'Jerry' }, { id: 4 }] }],
      ['unknown_reference', { input: [{ id: 1, categoryId: 3 }] }],
    ],
    updatePet: [
      ['success', { petId: 1, input: {} }],
      ['success', { petId: 1, input: { name: 'Jerry', categoryId: 1, status: 'pending' } }],
      ['invalid_request', { petId: 1, input: { name: null } }],
      ['not_found', { petId: 4, input: {} }],
      ['not_found', { petId: 4, input: { name: 'Jerry' } }],
      ['unknown_reference', { petId: 1, input: { categoryId: 3 } }],
      ...conditional({ petId: 1, input: {} }, { petId: 4 }),
    ],
    deletePet: [
      ['success', { petId: 1 }],
      ['invalid_request', { petId: 0 }],
      ['not_found', { petId: 4 }],
      ['conflict', { petId: 2 }],
      ...conditional({ petId: 1 }, { petId: 4 }),
    ],
  },
  filters: { status: ['sold', 'available', 'pending'], categoryId: [1, 2, 3], inStock: [true, false] },
}
