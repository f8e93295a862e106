import { beforeEach, describe, expect, test } from 'vitest'
import { resetStore, times } from './support/calls.js'
import { type Call, sharedGateway } from './support/gateway.js'
import { openWatchedDatabase } from './support/statements.js'

const database = await openWatchedDatabase()
const { statements } = database
// All requests of a test may be at work concurrently.
const gateway = await sharedGateway({ database, limits: { concurrent: 1_000, share: 1_000, waiting: 10_000 } })
beforeEach(async () => {
  await resetStore(gateway.prisma)
  await gateway.get('/quota')
})

/** The number of statements that read pets, categories, orders or stock while `work` runs. */
async function counted(work: () => Promise<unknown>) {
  statements.length = 0
  await work()
  return statements.filter((statement) => !statement.includes('"ApiKey')).length
}

const petIds = [1, 2, 3, 2, 1, 3, 3]
const nested = 'query ($id: Int64!) { pet(petId: $id) { name category { name } inventory { quantity } } }'

describe('reads that arrive together', () => {
  test('for single pets over REST share one statement, and each gets its own result', async () => {
    const statements = await counted(async () => {
      const answers = await Promise.all(petIds.map((id) => gateway.get(`/pets/${id}`)))
      expect(answers.map(({ body }) => body.id)).toEqual(petIds)
    })
    expect(statements).toBe(1)
  })

  test('for single pets over GraphQL share one statement for each table', async () => {
    const statements = await counted(async () => {
      const answers = await Promise.all(petIds.map((id) => gateway.graphql(nested, { id })))
      const names = answers.map(({ body }) => body.data.pet.name)
      expect(names).toEqual(
        (await Promise.all(petIds.map((id) => gateway.get(`/pets/${id}`)))).map(({ body }) => body.name),
      )
    })
    // Three for GraphQL: the pets, then together their categories and their stock.
    expect(statements).toBe(4)
  })

  test('aliases of one document share one statement', async () => {
    const query = `{ ${petIds.map((id, i) => `a${i}: pet(petId: ${id}) { id }`).join(' ')} }`
    const statements = await counted(async () => {
      const { body } = await gateway.graphql(query)
      expect(Object.values(body.data)).toEqual(petIds.map((id) => ({ id })))
    })
    expect(statements).toBe(1)
  })

  test('return not_found for a missing row, and the rows that exist for the others', async () => {
    const answers = await Promise.all([1, 99, 2, 100].map((id) => gateway.get(`/pets/${id}`)))
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 200, 404])
  })

  test('are split into batches of 100', async () => {
    const ids = times(250, (i) => i + 1)
    const statements = await counted(async () => {
      const answers = await Promise.all(ids.map((id) => gateway.get(`/pets/${id}`)))
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(3)
    })
    expect(statements).toBe(3)
  })

  test('all fail if the statement fails, and later ones succeed', async () => {
    await gateway.prisma.$executeRawUnsafe('ALTER TABLE "Order" RENAME COLUMN "quantity" TO "amount"')
    const failed = await Promise.all([1, 2].map((id) => gateway.get(`/store/orders/${id}`)))
    await gateway.prisma.$executeRawUnsafe('ALTER TABLE "Order" RENAME COLUMN "amount" TO "quantity"')
    expect(failed.map(({ status }) => status)).toEqual([500, 500])
    expect((await gateway.get('/store/orders/1')).status).not.toBe(500)
  })
})

describe('totals that are asked for together', () => {
  const total = (search: string) => `petsConnection(search: "${search}") { totalCount }`

  test('are counted once each, however many ask', async () => {
    const statements = await counted(async () => {
      const answers = await Promise.all(times(8, (i) => gateway.graphql(`{ ${total(i % 2 ? 'x' : 'y')} }`)))
      for (const { body } of answers) expect(body.errors).toBeUndefined()
    })
    expect(statements).toBe(2)
  })

  test('do not fail with another one', async () => {
    const [{ definition }] = (await gateway.prisma.$queryRaw`
      SELECT pg_get_functiondef('plain'::regproc) AS definition`) as [{ definition: string }]
    await gateway.prisma.$executeRawUnsafe(`CREATE OR REPLACE FUNCTION "plain"("text" text) RETURNS text LANGUAGE plpgsql
      IMMUTABLE STRICT AS 'BEGIN IF $1 = ''broken'' THEN RAISE ''broken''; END IF; RETURN $1; END'`)
    const answers = await Promise.all(['broken', 'none'].map((search) => gateway.graphql(`{ ${total(search)} }`)))
    await gateway.prisma.$executeRawUnsafe(definition)
    expect(answers.map(({ body }) => body.data.petsConnection)).toEqual([{ totalCount: null }, { totalCount: 0 }])
  })
})

describe('aliases of a relation with different arguments', () => {
  const pages = [{ limit: 2 }, { limit: 2, after: 2 }, { limit: 1, after: 3 }, { limit: 20, after: 4 }, { after: 999 }]
  const aliases = (name: string, selection: string) =>
    pages.map((page, i) => `a${i}: ${name}(${JSON.stringify(page).replace(/["{}]/g, '')}) { ${selection} }`).join(' ')
  /** REST leaves out what is null. */
  const withoutNull = (lists: object) =>
    JSON.parse(JSON.stringify(Object.values(lists), (_, value) => value ?? undefined))
  /** What REST returns for the same pages. */
  const expected = (path: string) =>
    Promise.all(
      pages.map(async (page) => {
        const query = Object.entries(page).map(([name, value]) => `&${name}=${value}`)
        return (await gateway.get(path + query.join(''))).body
      }),
    )
  const orders = (petId: number) => expected(`/store/orders?petId=${petId}`)
  const fields = 'id petId quantity shipDate complete'

  beforeEach(async () => {
    const shipDate = new Date('2026-12-01T10:00:00.123Z')
    for (let i = 0; i < 9; i++)
      await gateway.prisma.order.create({
        data: { petId: BigInt(1 + (i % 3)), quantity: i + 1, complete: i % 2 === 0, shipDate: i % 4 ? shipDate : null },
      })
  })

  test('get the pages that REST returns, and one statement loads them for all parents', async () => {
    let pets: Record<string, unknown>[] = []
    const statements = await counted(async () => {
      pets = (await gateway.graphql(`{ pets { id ${aliases('orders', fields)} } }`)).body.data.pets
    })
    for (const { id, ...lists } of pets) expect(withoutNull(lists)).toEqual(await orders(Number(id)))
    expect(pets).toHaveLength(3)
    // The pets, and all their orders.
    expect(statements).toBe(2)
  })

  test('reach the rows below them, whose statements are shared too', async () => {
    const below = `id pet { id etag category { name ${aliases('pets', 'id name categoryId status')} } }`
    // biome-ignore lint/suspicious/noExplicitAny: what a client reads
    let orders: any[] = []
    const statements = await counted(async () => {
      orders = Object.values((await gateway.graphql(`{ pet(petId: 2) { ${aliases('orders', below)} } }`)).body.data.pet)
    })
    expect(orders.flat()).toHaveLength(7)
    for (const { pet, category: { name, ...lists } = pet.category } of orders.flat()) {
      const { headers, body } = await gateway.get(`/pets/${pet.id}`)
      const { body: category } = await gateway.get(`/categories/${body.categoryId}`)
      expect([pet.etag, name]).toEqual([headers.get('etag'), category.name])
      expect(Object.values(lists)).toEqual(await expected(`/pets?categoryId=${category.id}`))
    }
    // The pet, its orders, their pets, the categories, and the pets of these.
    expect(statements).toBe(5)
  })

  test('show what the mutation above them has changed, also with an Idempotency-Key', async () => {
    const calls: Call[] = [{}, { headers: { 'idempotency-key': 'pages' } }]
    for (const call of calls) {
      const mutation = `mutation { createOrder(input: { petId: 3 }) { id pet { ${aliases('orders', fields)} } } }`
      const { body } = await gateway.graphql(mutation, undefined, call)
      const { id, pet } = body.data.createOrder
      expect(withoutNull(pet)).toEqual(await orders(3))
      expect(pet.a3.at(-1).id).toBe(id)
    }
  })

  test('all fail if their statement fails, and the parent keeps its other fields', async () => {
    await gateway.prisma.$executeRawUnsafe('ALTER TABLE "Order" RENAME COLUMN "complete" TO "completed"')
    const { body } = await gateway.graphql(
      `{ pets { id } orders { id } pet(petId: 1) { ${aliases('orders', fields)} } }`,
    )
    await gateway.prisma.$executeRawUnsafe('ALTER TABLE "Order" RENAME COLUMN "completed" TO "complete"')
    expect(body.data).toMatchObject({ pets: [{ id: 1 }, { id: 2 }, { id: 3 }], orders: null, pet: null })
    expect((await gateway.graphql('{ pet(petId: 1) { orders { id } } }')).status).toBe(200)
  })
})

describe('a client', () => {
  test('always sees its own last write, while others read and write', async () => {
    const { url } = await gateway.listen()
    const headers = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' }
    const ask = async (path: string, init: RequestInit = {}) => {
      const response = await fetch(`${url}${path}`, { ...init, headers })
      expect(response.status).toBe(200)
      return response.json()
    }
    let reading = true
    const readers = times(8, async () => {
      while (reading) await Promise.all([1, 2, 3].map((id) => ask(`/inventory/${id}`)))
    })
    const writers = [1, 2, 3].map(async (petId) => {
      for (let quantity = 1; quantity <= 25; quantity++) {
        const written = await ask(`/inventory/${petId}`, { method: 'PATCH', body: JSON.stringify({ quantity }) })
        expect(written.quantity).toBe(quantity)
        const query = `{ inventoryItem(petId: ${petId}) { quantity } }`
        const [rest, graphql] = await Promise.all([
          ask(`/inventory/${petId}`),
          ask('/graphql', { method: 'POST', body: JSON.stringify({ query }) }),
        ])
        expect([rest.quantity, graphql.data.inventoryItem.quantity]).toEqual([quantity, quantity])
      }
    })
    await Promise.all(writers).finally(() => {
      reading = false
    })
    await Promise.all(readers)
  })
})

describe('a stock change', () => {
  test('is one statement, without a transaction', async () => {
    statements.length = 0
    const { status, body } = await gateway.patch('/inventory/2', { quantity: 5 })
    expect([status, body]).toEqual([200, { petId: 2, quantity: 5, status: 'sold' }])
    expect(statements.filter((statement) => !statement.includes('"ApiKey'))).toEqual([
      expect.stringMatching(/^(\/\*.*?\*\/)?\s*UPDATE "public"."InventoryItem"/),
    ])
  })

  test('is visible to the other fields of the same mutation', async () => {
    const { body } = await gateway.graphql(
      'mutation { updateInventory(petId: 2, input: { quantity: 9 }) { quantity pet { inventory { quantity } } } }',
    )
    expect(body.data.updateInventory).toEqual({ quantity: 9, pet: { inventory: { quantity: 9 } } })
  })
})
