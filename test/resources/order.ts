import { conditional, numbers, type Resource } from './resource.js'

const shipDate = '2026-12-24T18:00:00+01:00'

export const order: Resource = {
  table: 'Order',
  rows: `INSERT INTO "Order" ("petId", quantity, "shipDate", complete)
    VALUES (2, 2, NULL, false), (2, 1, '2026-12-24T18:00:00Z', true)`,
  contents: ({ order }) => order.findMany({ orderBy: { id: 'asc' } }),
  cases: {
    orders: [
      ['success', {}],
      ['success', { limit: 1, after: 1, petId: 2, complete: true }],
      ['success', { complete: false }],
      [
        'success',
        {
          id: [2],
          sort: 'shipDate',
          direction: 'desc',
          shipDateFrom: shipDate,
          shipDateBefore: '2027-01-01T00:00:00Z',
        },
      ],
      ['invalid_request', { after: 0 }],
      ['invalid_request', { shipDateFrom: shipDate }],
      ['invalid_request', { sort: 'shipDate', shipDateFrom: '2027-01-01T00:00:00Z', shipDateBefore: shipDate }],
    ],
    order: [
      ['success', { orderId: 1 }],
      ['success', { orderId: 2 }],
      ['invalid_request', { orderId: 0 }],
      ['not_found', { orderId: 3 }],
    ],
    createOrder: [
      ['success', { input: { petId: 1 } }],
      ['success', { input: { petId: 1, quantity: 2_147_483_647, shipDate, complete: true } }],
      ['invalid_request', { input: { petId: 1, quantity: 0 } }],
      ['invalid_request', { input: { petId: 1, shipDate: null } }],
      ['unknown_reference', { input: { petId: 4 } }],
      ['success', { input: { petId: 2, quantity: 7 }, takeStock: true }],
      ['success', { input: { petId: 1 }, takeStock: false }],
      ['invalid_request', { input: { petId: 2, quantity: 0 }, takeStock: true }],
      ['invalid_request', { input: { petId: 2 }, takeStock: 'yes' }],
      ['unknown_reference', { input: { petId: 4 }, takeStock: true }],
      ['conflict', { input: { petId: 2, quantity: 8 }, takeStock: true }],
    ],
    createOrders: [
      ['success', { input: [{ petId: 1 }, { petId: 1, quantity: 2_147_483_647, shipDate, complete: true }] }],
      ['invalid_request', { input: [{ petId: 1, quantity: 0 }] }],
      ['unknown_reference', { input: [{ petId: 1 }, { petId: 4 }] }],
      [
        'success',
        {
          input: [
            { petId: 2, quantity: 5 },
            { petId: 2, quantity: 2 },
          ],
          takeStock: true,
        },
      ],
      ['invalid_request', { input: [{ petId: 2, quantity: 0 }], takeStock: true }],
      ['unknown_reference', { input: [{ petId: 2, quantity: 8 }, { petId: 4 }], takeStock: true }],
      [
        'conflict',
        {
          input: [
            { petId: 2, quantity: 5 },
            { petId: 2, quantity: 3 },
          ],
          takeStock: true,
        },
      ],
    ],
    updateOrder: [
      ['success', { orderId: 2, input: {} }],
      ['success', { orderId: 1, input: { petId: 1, quantity: 3, shipDate, complete: true } }],
      ['success', { orderId: 2, input: { shipDate: null } }],
      ['invalid_request', { orderId: 1, input: { complete: null } }],
      ['not_found', { orderId: 3, input: { quantity: 1 } }],
      ['unknown_reference', { orderId: 1, input: { petId: 4 } }],
      ...conditional({ orderId: 1, input: {} }, { orderId: 3 }),
    ],
    updateOrders: [
      ['success', { input: [{ id: 2 }] }],
      [
        'success',
        {
          input: [
            { id: 2, petId: 1, quantity: 3, shipDate: null, complete: false },
            { id: 1, shipDate },
          ],
        },
      ],
      ['invalid_request', { input: [{ id: 1, complete: null }] }],
      ['invalid_request', { input: [{ id: 1 }, { id: 1 }] }],
      ['not_found', { input: [{ id: 1, complete: true }, { id: 3 }] }],
      [
        'unknown_reference',
        {
          input: [
            { id: 2, complete: false },
            { id: 1, petId: 4 },
          ],
        },
      ],
    ],
    deleteOrder: [
      ['success', { orderId: 1 }],
      ['success', { orderId: 1, returnStock: true }],
      ['invalid_request', { orderId: 0 }],
      ['not_found', { orderId: 3 }],
      ['conflict', { orderId: 2 }],
      ['conflict', { orderId: 2, returnStock: true }],
      ['invalid_request', { orderId: 1, returnStock: 1 }],
      ...conditional({ orderId: 1 }, { orderId: 3 }),
    ],
  },
  bounds: {
    'NewOrder.quantity': numbers(1, 2_147_483_647),
    'OrderUpdate.quantity': numbers(1, 2_147_483_647),
    'OrderChange.quantity': numbers(1, 2_147_483_647),
  },
  filters: {
    petId: [1, 2, 3],
    complete: [true, false],
    shipDateFrom: ['2026-01-03T00:00:00Z'],
    shipDateBefore: ['2026-01-09T00:00:00Z'],
  },
}
