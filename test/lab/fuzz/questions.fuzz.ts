import fc from 'fast-check'
import { afterAll, beforeAll } from 'vitest'
import '../../../schema/index.js'
import type { Condition } from '../../../schema/kit/context.js'
import type { List } from '../../../schema/kit/lists/arguments.js'
import { lists } from '../../../schema/kit/lists/define.js'
import { type ListQuery, planQuery } from '../../../schema/kit/lists/plan.js'
import { createStatements } from '../../../src/engines/postgres/read-statements.js'
import { openTestDatabase, type TestDatabase } from '../../support/database.js'
import { pageOf, reading, rowsForOne, totalOf } from '../../support/plans.js'
import { skewed } from '../../support/skewed.js'
import { questionsOf } from '../tools/list-tables.js'
import { fuzz } from './fuzz.js'

// Every statement of an accepted question, with any values, looks at few rows. With all cases, PostgreSQL has a million.

const { FUZZ_CASES = '20000', TEST_DATABASE_URL } = process.env
const rows = Number(FUZZ_CASES) * (TEST_DATABASE_URL ? 50 : 1)
const MAX_ROWS = 200_000
const MAX_TOGETHER = 100

let database: TestDatabase
beforeAll(async () => {
  database = await openTestDatabase()
  const run = (sql: string) => database.prisma.$executeRawUnsafe(sql)
  await run(`INSERT INTO "Category" ("name") SELECT 'Kind ' || i FROM generate_series(1, ${rows}) i`)
  for (const sql of skewed({ rows, categories: rows, inStock: 'most' })) await run(sql)
  await run('ANALYZE')
}, 1_200_000)
afterAll(() => database.close())

const id = fc.oneof(fc.constantFrom(1, 2, 3, 4, rows), fc.integer({ min: 1, max: rows })).map(BigInt)
const quantity = fc.oneof(fc.constantFrom(0, 1, 2 ** 31 - 1), fc.integer({ min: 0, max: 1000 }))
const moment = fc
  .oneof(fc.integer({ min: 0, max: rows }), fc.constantFrom(-1e7, 1e9))
  .map((minutes) => new Date(Date.UTC(2026) + minutes * 60_000))
const name = fc.oneof(
  fc.constantFrom(
    'r',
    'REX',
    'bella 19',
    'Ω',
    '狗',
    '狗'.repeat(90),
    '🐶 R',
    'я'.repeat(90),
    'kind 5',
    'zz',
    'ΩΜΕ',
    '\u0301',
  ),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).map((text) => text.replaceAll('\0', '') || 'x'),
)

const values: Record<string, fc.Arbitrary<unknown>> = {
  status: fc.constantFrom('available', 'pending', 'sold'),
  categoryId: id,
  inStock: fc.boolean(),
  petId: id,
  id,
  search: name,
  name,
  complete: fc.boolean(),
  shipDateFrom: moment,
  shipDateBefore: moment,
  shipDate: fc.option(moment),
  minQuantity: quantity,
  maxQuantity: quantity,
  quantity,
}
const anyOf = (names: readonly string[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, values[name] as fc.Arbitrary<unknown>])))

interface Case {
  list: List
  parent?: string
  args: Record<string, unknown>
  place?: Record<string, unknown>
  limit: number
  together: number
}

const cases: fc.Arbitrary<Case> = fc
  .constantFrom(
    ...lists.flatMap(({ list, parent }) => questionsOf(list, parent).map((asked) => ({ list, parent, asked }))),
  )
  .chain(({ list, parent, asked: { filters, sort, direction } }) =>
    fc.record({
      list: fc.constant(list),
      parent: fc.constant(parent),
      args: fc
        .tuple(
          anyOf(parent ? [parent, ...filters] : filters),
          fc.option(fc.uniqueArray(id, { minLength: 1, maxLength: 100 }), { nil: undefined, freq: 5 }),
        )
        .map(([given, ids]) => ({ ...given, ...(ids && { [list.key]: ids }), sort, direction })),
      place: fc.option(anyOf([list.key, sort]), { nil: undefined }),
      limit: fc.integer({ min: 1, max: 101 }),
      together: fc.integer({ min: 1, max: MAX_TOGETHER }),
    }),
  )

/** What is asked; undefined if it is refused. */
function questionOf({ list, parent, args }: Case): ListQuery | undefined {
  const { [parent ?? '']: above, ...own } = args
  const condition: Condition | undefined = parent ? [parent, '=', above] : undefined
  try {
    return planQuery(list, own, condition)
  } catch {
    return undefined
  }
}

async function run(given: Case) {
  const { list, place, limit, together } = given
  const question = questionOf(given)
  if (!question) return
  const ids = (given.args[list.key] as unknown[] | undefined)?.length
  const judge = async (what: string, [sql, parameters]: [string, unknown[]], most: number) => {
    const { indexes, rows, idleBlocks } = await reading(database, sql, parameters)
    // Each id has a way of its own down the index.
    if (rows > Math.min(most, MAX_ROWS) || (!ids && idleBlocks > 0) || indexes.includes('Seq Scan'))
      throw new Error(
        `${what} looks at ${rows} rows and ${idleBlocks} blocks for nothing by ${indexes}; ${most} rows are enough:\n${sql}`,
      )
  }
  // Some versions round the rows of each loop.
  await judge('the total', totalOf(database, list.model, question), ids ?? 10_001 + 2)
  let asked: ReturnType<ListQuery['rows']>
  try {
    asked = question.rows()
  } catch {
    return
  }
  const after = place && asked.order.map((column) => place[column])
  const page = pageOf(database, list.model, question, limit, after)
  const most = ids ?? rowsForOne(database, list.model, asked) * limit
  await judge('the page', page, most)
  const { batched } = createStatements(database.tables).page(list.model, {
    ...asked,
    after: after && { values: after },
  })
  const parameters = page[1].map((value) =>
    Array.from({ length: together }, () => (Array.isArray(value) ? `{${value}}` : value)),
  )
  await judge(`each of ${together} pages`, [batched.text, parameters], together * most + 2)
}

const show = (given: Case) =>
  JSON.stringify({ ...given, list: given.list.name }, (_, value) => (typeof value === 'bigint' ? Number(value) : value))

fuzz('a question of a list looks at the rows that it returns', 0.1, cases, { run, show })
