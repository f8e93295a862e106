import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Condition, Model, Models, PageRead, Reads } from '../schema/kit/context.js'
import { createReads } from '../src/engines/postgres/reads.js'
import { openTestDatabase, type TestDatabase } from './support/database.js'
import { fillStore, optional, orNull } from './support/lists.js'
import { sql } from './support/sql.js'

// Our own reads return what Prisma returns: over random rows, conditions and cursors, on the pool and inside a transaction.

let database: TestDatabase
let readsBy: ReturnType<typeof createReads<Models>>
let reads: Reads
beforeAll(async () => {
  database = await openTestDatabase()
  readsBy = createReads(database.tables)
  reads = readsBy(database.query)
})
afterAll(() => database.close())

const statuses = ['available', 'pending', 'sold'] as const
const PETS = 12
const name = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 30 })
  .map((text) => `n${text.replaceAll('\0', '')}n`)
const moment = fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true })
const quantity = fc.integer({ min: 1, max: 2_147_483_647 })
const store = fc.record({
  categories: fc.array(fc.record({ name, description: orNull(name) }), { minLength: 3, maxLength: 3 }),
  pets: fc.array(fc.record({ name, categoryId: fc.bigInt(1n, 3n), status: fc.constantFrom(...statuses), quantity }), {
    minLength: PETS,
    maxLength: PETS,
  }),
  orders: fc.array(
    fc.record({ petId: fc.bigInt(1n, BigInt(PETS)), quantity, shipDate: orNull(moment), complete: fc.boolean() }),
    { maxLength: 40 },
  ),
})
const id = fc.oneof(fc.bigInt(0n, 45n), fc.constantFrom(2n ** 53n, 2n ** 63n - 1n, 1n - 2n ** 63n))
const filters = {
  Category: {},
  Pet: { id: fc.array(id, { minLength: 1, maxLength: 100 }), status: fc.constantFrom(...statuses), categoryId: id },
  Order: { petId: id, complete: fc.boolean() },
  InventoryItem: { status: fc.constantFrom(...statuses), quantity },
} as const
const key = (model: string) => (model === 'InventoryItem' ? 'petId' : 'id')

interface Question {
  model: keyof typeof filters
  where: Record<string, unknown>
  direction: 'asc' | 'desc'
  after?: bigint
  inclusive: boolean
  limit: number
}

const question = fc.constantFrom(...(Object.keys(filters) as (keyof typeof filters)[])).chain(
  (model): fc.Arbitrary<Question> =>
    fc.record({
      model: fc.constant(model),
      where: fc.record(
        Object.fromEntries(Object.entries(filters[model]).map(([name, value]) => [name, optional(value)])),
      ),
      direction: fc.constantFrom('asc', 'desc'),
      after: optional(id),
      inclusive: fc.boolean(),
      limit: fc.integer({ min: 1, max: 101 }),
    }),
)

const conditionsOf = ({ where }: Question) =>
  Object.entries(where).flatMap(([column, value]): Condition[] =>
    value === undefined ? [] : [[column, Array.isArray(value) ? '= ANY' : '=', value]],
  )

/** As our own reads are asked. */
function pageOf(question: Question): PageRead {
  const { model, direction, after, inclusive, limit } = question
  const place = after === undefined ? undefined : { values: [after], inclusive }
  return { conditions: conditionsOf(question), order: [key(model)], direction, after: place, limit }
}

/** As Prisma is asked. */
function asked({ model, where, direction, after, inclusive }: Question) {
  const conditions = Object.entries(where).map(([column, value]) => ({
    [column]: Array.isArray(value) ? { in: value } : value,
  }))
  const operator = (direction === 'asc' ? 'gt' : 'lt') + (inclusive ? 'e' : '')
  return { AND: [...conditions, { [key(model)]: { [operator]: after } }] }
}

const modelOf = ({ model }: Question) => database.prisma[(model.charAt(0).toLowerCase() + model.slice(1)) as 'pet']

const findMany = (question: Question): Promise<unknown[]> =>
  modelOf(question).findMany({
    where: asked(question),
    orderBy: { [key(question.model)]: question.direction },
    take: question.limit,
  })

const count = (question: Question) => modelOf(question).count({ where: asked({ ...question, after: undefined }) })

const first = { where: {}, direction: 'asc', inclusive: false, limit: 1 } as const

const row = (reads: Reads, model: Model, value: bigint) => reads.row(model, key(model) as never, value)

describe('rows and pages', () => {
  test('are those of Prisma, however many are asked for together', async () => {
    await fc.assert(
      fc.asyncProperty(
        store,
        fc.array(question, { minLength: 1, maxLength: 12 }),
        fc.array(id, { minLength: 1, maxLength: 12 }),
        async (store, questions, ids) => {
          await fillStore(database.prisma, store)
          const models = Object.keys(filters) as Question['model'][]
          const expectedPages = await Promise.all(questions.map(findMany))
          const expectedRows = await Promise.all(
            models.flatMap((model) => ids.map(async (id) => (await findMany({ ...first, model, after: id - 1n }))[0])),
          )
          const expectedTotals = await Promise.all(questions.map(count))
          const compare = async (own: Reads) => {
            const [pages, totals, rows] = await Promise.all([
              Promise.all(questions.map((question) => own.page(question.model, pageOf(question)))),
              Promise.all(questions.map((question) => own.total(question.model, pageOf(question)))),
              Promise.all(models.flatMap((model) => ids.map((id) => row(own, model, id)))),
            ])
            expect(pages).toEqual(expectedPages)
            expect(totals).toEqual(expectedTotals)
            const keyed = models.flatMap((model) => ids.map((id) => [key(model), id] as const))
            const existing = expectedRows.map((row, i) => {
              const [name, id] = keyed[i] as [string, bigint]
              return (row as Record<string, unknown>)?.[name] === id ? row : null
            })
            expect(rows).toEqual(existing)
          }
          await compare(reads)
          await database.transaction((query) => compare(readsBy(query)))
        },
      ),
      { numRuns: 30 },
    )
  })
})

describe('a read of our own', () => {
  test('finds a row by any unique column, with moments and enums as Prisma has them', async () => {
    const data = {
      name: 'Ada',
      prefix: 'petstore_00000001',
      hash: '0'.repeat(64),
      expiresAt: new Date('2031-02-03T04:05:06.789Z'),
    }
    const created = await database.prisma.apiKey.create({ data })
    expect(await reads.row('ApiKey', 'hash', data.hash)).toEqual(created)
    expect(await reads.row('ApiKey', 'prefix', data.prefix)).toEqual(created)
    expect(await reads.row('ApiKey', 'id', created.id)).toEqual(created)
    expect(await reads.row('ApiKey', 'hash', `' OR 1 = 1 --`)).toBeNull()
  })

  test('orders by several columns, and continues after their values', async () => {
    const all = await database.prisma.inventoryItem.findMany({ orderBy: [{ quantity: 'desc' }, { petId: 'desc' }] })
    const list = { conditions: [], order: ['quantity', 'petId'], direction: 'desc', within: ['status'] } as const
    const seen: (typeof all)[number][] = []
    while (seen.length < all.length) {
      const last = seen.at(-1)
      const after = last && { values: [last.quantity, last.petId] }
      seen.push(...(await reads.page('InventoryItem', { ...list, after, limit: 5 })))
    }
    expect(seen).toEqual(all)
  })

  test('survives a migration that changes its table', async () => {
    const { prisma } = database
    const read = () => Promise.all([1n, 2n].map((id) => reads.row('Category', 'id', id)))
    const before = await read()
    await prisma.$executeRaw`ALTER TABLE "Category" ADD COLUMN "added" TEXT DEFAULT 'x'`
    expect(await read()).toEqual(before)
    await prisma.$executeRaw`ALTER TABLE "Category" DROP COLUMN "added"`
    expect(await read()).toEqual(before)
  })

  test('have the type that a column has now', async () => {
    const { prisma, query } = database
    await prisma.$executeRaw`ALTER TABLE "Category" ADD COLUMN "added" INTEGER DEFAULT 7`
    const read = () =>
      Promise.all([1, 2, 3].map((id) => query(sql('SELECT "added" FROM "Category" WHERE "id" = $1'), [id])))
    for (const [type, value] of [
      ['INTEGER', 7],
      ['BIGINT', 7n],
      ['TEXT', '7'],
    ] as const) {
      await prisma.$executeRawUnsafe(`ALTER TABLE "Category" ALTER COLUMN "added" TYPE ${type}`)
      for (let again = 0; again < 2; again++) expect(await read()).toEqual(Array(3).fill([{ added: value }]))
    }
    await prisma.$executeRaw`ALTER TABLE "Category" DROP COLUMN "added"`
  })
})
