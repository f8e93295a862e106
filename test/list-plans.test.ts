import { readFileSync } from 'node:fs'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import '../schema/index.js'
import type { Condition } from '../schema/context.js'
import type { List } from '../schema/list-arguments.js'
import { ask, type Question } from '../schema/list-questions.js'
import { lists } from '../schema/lists.js'
import { createStatements } from '../src/execute/statements.js'
import { openTestDatabase, type TestDatabase } from './support/database.js'
import { combinations, listTables, questionsOf } from './tools/list-tables.js'

// Every question that is accepted is answered by an index: on skewed data, with plans for the given values and with plans
// for all, on the first page, a page in the middle, and in totals.

const ROWS = 20_000
/** Rows that a page or a total may read and not return. */
const MOST_REMOVED = 2_000

let database: TestDatabase
beforeAll(async () => {
  database = await openTestDatabase()
  const { prisma } = database
  await prisma.$executeRaw`INSERT INTO "Category" ("name") SELECT 'Kind ' || i FROM generate_series(1, ${ROWS}::int) i`
  await prisma.$executeRaw`
    INSERT INTO "Pet" ("name", "categoryId", "status")
    SELECT (ARRAY['Rex', 'Bella', 'Zoë'])[1 + i % 3] || ' ' || i, CASE WHEN i % 2 = 0 THEN 1 ELSE 1 + i % 500 END,
      (CASE WHEN i % 10 < 9 THEN 'sold' WHEN i % 20 = 9 THEN 'available' ELSE 'pending' END)::"PetStatus"
    FROM generate_series(1, ${ROWS}::int) i`
  await prisma.$executeRaw`UPDATE "InventoryItem" SET "quantity" = "petId" % 1000 WHERE "status" <> 'sold'`
  await prisma.$executeRaw`
    INSERT INTO "Order" ("petId", "shipDate", "complete")
    SELECT CASE WHEN i % 3 = 0 THEN 7 ELSE 1 + i * 7 % ${ROWS}::int END,
      CASE WHEN i % 4 > 0 THEN timestamptz '2026-01-01Z' + i * interval '1 minute' END, i % 10 > 0
    FROM generate_series(1, ${ROWS}::int) i`
  // In statements of their own: VACUUM cannot run with others.
  for (const table of ['Category', 'Pet', 'InventoryItem', 'Order'])
    await prisma.$executeRawUnsafe(`VACUUM ANALYZE "${table}"`)
})
afterAll(() => database.close())

/** Values that many rows have, and values that few have. */
const values: Record<string, unknown[]> = {
  status: ['sold', 'available'],
  categoryId: [1, 400],
  search: ['r', 'bella 19'],
  petId: [7, 8],
  complete: [true, false],
  shipDateFrom: ['2026-01-03T00:00:00Z'],
  shipDateBefore: ['2026-01-09T00:00:00Z'],
  minQuantity: [0],
  maxQuantity: [3],
}
/** A place in the middle, and one among many equal rows. */
const places: Record<string, unknown[][]> = {
  name: [
    ['Kind 500', 500],
    ['Rex 9', 9],
  ],
  shipDate: [
    ['2026-01-05T00:00:00Z', 9_000],
    [null, 9_000],
  ],
  quantity: [[0, 9_000]],
}

interface Plan {
  'Node Type': string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Index Cond'?: string
  Plans?: Plan[]
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** What is wrong with the plan of a statement. */
async function problems(mode: string, sql: string, parameters: unknown[], isFiltered: boolean): Promise<string[]> {
  const literals = parameters.map((value) => (typeof value === 'string' ? `'${value}'` : String(value)))
  const rows = await database.prisma.$transaction(async (tx) => {
    await tx.$executeRawUnsafe(`SET LOCAL plan_cache_mode = ${mode}`)
    await tx.$executeRawUnsafe(`PREPARE question AS ${sql}`)
    const rows = await tx.$queryRawUnsafe<{ 'QUERY PLAN': [{ Plan: Plan }] }[]>(
      `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE question (${literals.join(', ')})`,
    )
    await tx.$executeRawUnsafe('DEALLOCATE question')
    return rows
  })
  const nodes = nodesOf(rows[0]?.['QUERY PLAN'][0].Plan as Plan)
  const scans = nodes.filter((node) => node['Node Type'].includes('Scan') && node['Node Type'] !== 'Subquery Scan')
  return [
    ...scans.filter((node) => !node['Node Type'].startsWith('Index')).map((node) => node['Node Type']),
    ...(isFiltered
      ? scans.filter((node) => !node['Index Cond']).map(() => 'an index is read without a condition')
      : []),
    ...nodes
      .filter((node) => (node['Rows Removed by Filter'] ?? 0) > MOST_REMOVED)
      .map((node) => `${node['Rows Removed by Filter']} rows are read in vain`),
    // Pages that are read apart are merged by a sort of their rows, or a sort of the rows with given ids.
    ...nodes
      .filter((node) => node['Node Type'] === 'Sort' && (node.Plans?.[0]?.['Actual Rows'] ?? 0) > 400)
      .map(() => 'many rows are sorted'),
  ]
}

describe.each(
  lists.map(({ list, parent }) => ({ name: `${list.name}${parent ? ` by ${parent}` : ''}`, list, parent })),
)('$name', ({ list, parent }: { list: List; parent?: string }) => {
  const questions = questionsOf(list, parent).filter(({ answer }) => answer)
  test.each(questions.map((question) => ({ ...question, title: question.title })))(
    '$title',
    async ({ filters, sort, direction }) => {
      const { page, total } = createStatements(database.prisma)
      const wrong: unknown[] = []
      for (const args of combinations(filters, values)) {
        const above: Condition | undefined = parent ? [parent, '=', values[parent]?.[0]] : undefined
        const question: Question = ask(list, { ...args, sort, direction }, above)
        const given = question.conditions.map(([, , value]) => value)
        const starts = sort === list.key ? [[9_000]] : [undefined, ...(places[sort] ?? [])]
        const pages = starts.map((start): [string, string, unknown[]] => [
          `after ${start}`,
          page(list.model, { ...question, after: start && { values: start } }).one,
          [...given, ...(start ?? []), 21],
        ])
        for (const mode of ['force_custom_plan', 'force_generic_plan'])
          for (const [what, sql, parameters] of [
            ...pages,
            ['total', total(list.model, question.counted).one, [...given, 10_001]] as const,
          ]) {
            const found = await problems(mode, sql, [...parameters], given.length > 0)
            if (found.length > 0) wrong.push([what, mode, args, found])
          }
      }
      expect(wrong).toEqual([])
    },
  )
})

test('the function that makes the keys of names is inlined: a call of it would be parsed by each write', async () => {
  const plan = await database.prisma.$queryRaw`EXPLAIN (VERBOSE) SELECT "folded"("name") FROM "Category"`
  expect(JSON.stringify(plan)).not.toContain('folded(')
})

test.runIf(process.env.TEST_DATABASE_URL)(
  'a connection that is open while that function becomes inlined reads names by their indexes before and after',
  async () => {
    const [admin, reader] = ['', '-c enable_sort=off'].map(
      (options) => new pg.Client({ connectionString: database.env.DATABASE_URL, options }),
    ) as [pg.Client, pg.Client]
    onTestFinished(async () => void (await Promise.all([admin.end(), reader.end()])))
    await Promise.all([admin.connect(), reader.connect()])
    await admin.query('ALTER FUNCTION "folded"("text" text) STRICT')
    const usedFor = async (rows: string) => {
      const order = '"folded"("name") COLLATE "C", "name" COLLATE "C", "id"'
      const plan = await reader.query(`EXPLAIN SELECT "id" FROM ${rows} ORDER BY ${order} LIMIT 5`)
      return plan.rows.flatMap((row) => /using "(\w+)"/.exec(row['QUERY PLAN'])?.[1] ?? [])
    }
    const assertIndexes = async () => {
      expect(await usedFor('"Category"')).toEqual(['Category_name_id_idx'])
      expect(await usedFor(`"Pet" WHERE status = 'sold'`)).toEqual(['Pet_status_name_id_idx'])
      const few = await usedFor(`"Pet" WHERE status = 'sold' AND "categoryId" = 400`)
      expect(few).toEqual(['Pet_categoryId_status_name_id_idx'])
    }
    await assertIndexes()
    await admin.query(readFileSync('prisma/migrations/20261123000600_inline_folded/migration.sql', 'utf8'))
    await assertIndexes()
  },
)

test('the documentation shows which questions are answered by which index', () => {
  expect(readFileSync('docs/lists.md', 'utf8')).toContain(listTables())
})
