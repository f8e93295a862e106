import { conditional, numbers, type Resource } from './resource.js'

const stock = (quantity: number, ...petIds: number[]) => ({ input: petIds.map((petId) => ({ petId, quantity })) })

const adjust = (...changes: [petId: number, by: number][]) => ({ input: changes.map(([petId, by]) => ({ petId, by })) })

export const inventory: Resource = {
  rows: `UPDATE "InventoryItem" SET quantity = 7 WHERE "petId" = 2`,
  contents: ({ inventoryItem }) => inventoryItem.findMany({ orderBy: { petId: 'asc' } }),
  cases: {
    inventory: [
      ['success', {}],
      ['success', { limit: 1, after: 1, status: 'sold', categoryId: 2 }],
      ['success', { petId: [1, 2], minQuantity: 1, maxQuantity: 7, sort: 'quantity', direction: 'desc' }],
      ['invalid_request', { limit: -1 }],
      ['invalid_request', { minQuantity: 1 }],
      ['invalid_request', { sort: 'quantity', minQuantity: 2, maxQuantity: 1 }],
    ],
    inventoryItem: [
      ['success', { petId: 2 }],
      ['invalid_request', { petId: 0 }],
      ['not_found', { petId: 4 }],
    ],
    updateInventories: [
      ['success', { input: [{ petId: 2, quantity: 3 }, ...stock(0, 1).input] }],
      ['invalid_request', stock(-1, 2)],
      ['invalid_request', stock(1, 2, 2)],
      ['not_found', stock(1, 2, 4)],
    ],
    adjustInventories: [
      ['success', adjust([2, -7], [1, 2_147_483_647])],
      ['invalid_request', adjust([2, 0])],
      ['invalid_request', adjust([2, 1], [2, 1])],
      ['not_found', adjust([2, -8], [4, 1])],
      ['conflict', adjust([1, 1], [2, -8])],
      ['conflict', adjust([2, 2_147_483_641])],
    ],
    updateInventory: [
      ['success', { petId: 2, input: { quantity: 0 } }],
      ['invalid_request', { petId: 2, input: { quantity: -1 } }],
      ['not_found', { petId: 4, input: { quantity: 1 } }],
      ...conditional({ petId: 2, input: { quantity: 0 } }, { petId: 4 }),
    ],
  },
  bounds: {
    'InventoryUpdate.quantity': numbers(0, 2_147_483_647),
    'InventoryChange.quantity': numbers(0, 2_147_483_647),
    // Of a stock of 0, which cannot become less.
    'InventoryAdjustment.by': {
      accepted: [1, 2_147_483_647],
      rejected: [...numbers(-2_147_483_648, 2_147_483_647).rejected, [0, '0']],
      conflicting: [-1, -2_147_483_648],
    },
    minQuantity: numbers(0, 2_147_483_647),
    maxQuantity: numbers(0, 2_147_483_647),
  },
  filters: { minQuantity: [0], maxQuantity: [3] },
}
