import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import '../schema/index.js'
import type { Condition, ListRead } from '../schema/kit/context.js'
import type { List } from '../schema/kit/lists/arguments.js'
import { lists } from '../schema/kit/lists/define.js'
import { planQuery } from '../schema/kit/lists/plan.js'
import { combinations, listTables, questionsOf } from './lab/tools/list-tables.js'
import { filtersOf, resources, tables } from './resources/index.js'
import { openTestDatabase, type TestDatabase } from './support/database.js'
import { pageOf, reading, rowsForOne, totalOf } from './support/plans.js'

// Every question that is accepted is answered by its index, which is read from where the page begins: no row is looked at
// that is not returned, and there are no parallel workers. That holds wherever the few rows of a value are, and whatever the
// statistics say.

const ROWS = 20_000
const LIMIT = 21

let database: TestDatabase
let indexes: Record<string, string>
beforeAll(async () => {
  database = await openTestDatabase()
  const run = (sql: string) => database.prisma.$executeRawUnsafe(sql)
  for (const { many } of Object.values(resources)) for (const sql of many?.(ROWS) ?? []) await run(sql)
  indexes = await columnsOfIndexes()
})
afterAll(() => database.close())

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

/** The columns of an index, as lists declare them. */
async function columnsOfIndexes(): Promise<Record<string, string>> {
  const rows = await database.prisma.$queryRaw<{ name: string; definition: string }[]>`
    SELECT indexname AS name, indexdef AS definition FROM pg_indexes WHERE schemaname = current_schema()`
  return Object.fromEntries(
    rows.map(({ name, definition }) => [
      name,
      definition
        .replace(/.*USING btree \((.*)\)/, '$1')
        .replaceAll(/ COLLATE "C"|"|COALESCE\(|, 'infinity'.*?\)/g, '')
        .replace('plainName, ', ''),
    ]),
  )
}

/** What is wrong with how a question is answered. */
async function problems(list: List, args: object, parent?: Condition): Promise<unknown[]> {
  const question = planQuery(list, { ...args }, parent)
  const wrong: unknown[] = []
  const { keyOf, ownerOf } = database.tables
  async function judge(what: string, read: ListRead, most: number, statement: [string, unknown[]]) {
    const { within = [], byOwner, order } = read
    const own = [...within, ...order].join(', ')
    // By an index of its owner, a row is looked up by its id; a total need not look.
    const owner = byOwner ? (ownerOf(list.model) ?? '') : ''
    const others = owner ? [[...within, keyOf(owner).name].join(', '), keyOf(list.model).name] : []
    const expected = owner ? others.slice(0, what === 'total' ? 1 : 2) : [own]
    for (const mode of ['force_generic_plan', 'force_custom_plan'] as const) {
      const { indexes: used, rows, idleBlocks, workers } = await reading(database, ...statement, mode)
      const columns = used.map((name) => indexes[name] ?? name)
      const isRead = within.length === 0 ? columns.length === 1 : `${columns}` === `${expected}`
      if (!isRead || rows > most || idleBlocks > 0 || workers > 0)
        wrong.push({ what, mode, args, columns, expected, rows, idleBlocks, workers })
    }
  }
  const { sort, counted } = question
  const starts = sort === list.key ? [undefined, [9_000]] : [undefined, ...(places[sort] ?? [])]
  const read = question.rows()
  for (const start of starts)
    await judge(
      `after ${start}`,
      read,
      rowsForOne(database, list.model, read) * LIMIT,
      pageOf(database, list.model, question, LIMIT, start),
    )
  // Some versions round the rows of each loop.
  await judge('total', counted, 10_001 + 2, totalOf(database, list.model, question))
  return wrong
}

const subjects = lists.map(({ list, parent }) => ({
  name: `${list.name}${parent ? ` by ${parent}` : ''}`,
  list,
  parent,
}))

test.each(lists)('$list.name has rows: `many` in test/resources adds them', async ({ list }) => {
  const [{ count }] = await database.prisma.$queryRawUnsafe<[{ count: bigint }]>(
    `SELECT count(*) FROM ${database.tables.tableOf(list.model)}`,
  )
  expect(Number(count)).toBeGreaterThanOrEqual(ROWS)
})

describe.each([
  ['with statistics', `ANALYZE "InventoryItem", ${tables.map((table) => `"${table}"`)}`],
  [
    'without any',
    `DELETE FROM pg_statistic WHERE starelid IN (SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace)`,
  ],
])('%s', (_, statistics) => {
  beforeAll(async () => void (await database.prisma.$executeRawUnsafe(statistics)))

  describe.each(subjects)('$name', ({ list, parent }: { list: List; parent?: string }) => {
    const questions = questionsOf(list, parent).filter(({ answer }) => answer)
    test.each(questions)('$title', async ({ filters, sort, direction }) => {
      const wrong: unknown[] = []
      for (const args of combinations(parent ? [parent, ...filters] : filters, filtersOf(list.name))) {
        const { [parent ?? '']: id, ...own } = args
        wrong.push(...(await problems(list, { ...own, sort, direction }, parent ? [parent, '=', id] : undefined)))
      }
      expect(wrong).toEqual([])
    })

    test.runIf(!parent)('with ids, in each order', async () => {
      const ids = Array.from({ length: 100 }, (_, i) => BigInt(1 + 150 * i))
      const wrong: unknown[] = []
      for (const sort of [list.key, ...list.sorts])
        for (const direction of ['asc', 'desc']) {
          const question = planQuery(list, { [list.key]: ids, sort, direction })
          const statements = [pageOf(database, list.model, question, 101), totalOf(database, list.model, question)]
          for (const statement of statements) {
            const { indexes: used, rows, workers } = await reading(database, ...statement)
            if (rows > 100 || !used[0]?.endsWith('_pkey') || workers > 0)
              wrong.push({ sort, direction, used, rows, workers })
          }
        }
      expect(wrong).toEqual([])
    })
  })
})

test('the documentation shows which questions are answered by which index', () => {
  expect(readFileSync('docs/lists.md', 'utf8')).toContain(listTables())
})
