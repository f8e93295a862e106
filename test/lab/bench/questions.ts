import type { List } from '../../../schema/kit/lists/arguments.js'
import { cursorOf } from '../../../schema/kit/lists/cursor.js'
import { lists } from '../../../schema/kit/lists/define.js'
import { planQuery } from '../../../schema/kit/lists/plan.js'
import { filtersOf } from '../../resources/index.js'
import { combinations, type ListQuestion, questionsOf } from '../tools/list-tables.js'
import { Refusal } from './lifecycle.js'
import type { Bench, Database } from './measure.js'
import type { RunningServer } from './processes.js'
import { headersFor } from './requests.js'
import type { QuestionResult, QuestionResults } from './results.js'
import { startById } from './servers.js'
import { get, query, type Template } from './templates.js'
import { watched } from './watch.js'

// Every question that lists accept (docs/lists.md), asked of the gateway where there are very many rows. PostgreSQL times
// the statements.

const LIMIT = 20
const SHOWN = 10
/** Runs after the first one, which brings the pages into memory. */
const RUNS = 2

const valuesOf = ({ name }: List) => ({
  ...filtersOf(name),
  shipDateFrom: ['2026-03-01T00:00:00Z'],
  shipDateBefore: ['2026-09-01T00:00:00Z'],
})

/** Rows in the middle of an order, and among many equal ones. */
const places = (middle: number): Record<string, Record<string, unknown>[]> => ({
  name: [{ name: `Rex ${middle}` }, { name: 'Bella 195000' }],
  shipDate: [{ shipDate: new Date('2026-06-01T00:00:00Z') }, { shipDate: null }],
  quantity: [{ quantity: 0 }, { quantity: 500 }],
})

/** What staff and shoppers ask most. */
const MAIN = {
  lowStock: 'GET /inventory?status=available&maxQuantity=3&sort=quantity&direction=asc&count=true',
  inStock: 'GET /pets?status=available&categoryId=2&inStock=true&sort=name&direction=asc&count=true',
}

const pathOf = ({ name }: List) => (name === 'orders' ? '/store/orders' : `/${name}`)

/** The first page, with the total, and pages in the middle. */
function requestsFor(list: List, { filters, sort, direction }: ListQuestion, middle: number): Template[] {
  return combinations(filters, valuesOf(list)).flatMap((args) => {
    const request = (place: object) => {
      const parameters = Object.entries({ ...args, sort, direction, ...place }).map(([name, value]) => [
        name,
        String(value),
      ])
      return get(`${pathOf(list)}?${new URLSearchParams(parameters)}`)
    }
    const question = planQuery(list, { ...args, sort, direction })
    const middles =
      sort === list.key
        ? [{ after: middle }]
        : (places(middle)[sort] ?? []).map((row) => ({
            cursor: cursorOf(list, question, { ...row, [list.key]: BigInt(middle) }),
          }))
    return [{ count: true }, ...middles].map(request)
  })
}

/** The same below a row, which only GraphQL has. */
function queriesFor(list: List, parent: string, { filters, direction }: ListQuestion, middle: number): Template[] {
  return combinations([parent, ...filters], valuesOf(list)).flatMap(({ [parent]: id, ...args }) => {
    const given = Object.entries({ ...args, direction }).map(([name, value]) => `${name}: ${value}`)
    const row = (selection: string) =>
      query(`{ ${parent.replace(/Id$/, '')}(${parent}: ${id}) { ${selection} } }`, '{}')
    const total = `${list.name}Connection(${given}) { totalCount }`
    return [
      row(`${list.name}(${[...given, `limit: ${LIMIT}`]}) { id } ${total}`),
      row(`${list.name}(${[...given, `limit: ${LIMIT}`, `after: ${middle}`]}) { id }`),
    ]
  })
}

function everyRequest(rows: number): Template[] {
  const middle = rows / 2
  return lists.flatMap(({ list, parent }) =>
    questionsOf(list, parent)
      .filter(({ answer }) => answer)
      .flatMap((question) =>
        parent ? queriesFor(list, parent, question, middle) : requestsFor(list, question, middle),
      ),
  )
}

/** Asks all questions of each database. */
export async function measureQuestions(
  bench: Bench,
  databases: readonly Database[],
  rows: number,
): Promise<QuestionResults> {
  console.log(`\nQuestions of ${rows.toLocaleString('en-US')} rows`)
  const results: QuestionResult[] = []
  for (const database of databases) results.push(...(await askAll(bench, database, rows)))
  const dearestFirst = results.toSorted((a, b) => b.maxMs - a.maxMs)
  const find = (name: string) => {
    const found = dearestFirst.find(({ request }) => request === name)
    if (!found) throw new Error(`Not asked: ${name}`)
    return found
  }
  const dearest = dearestFirst.slice(0, SHOWN)
  const [lowStock, inStock] = [find(MAIN.lowStock), find(MAIN.inStock)]
  for (const { request, maxMs } of [...dearest, lowStock, inStock])
    console.log(`  ${maxMs.toFixed(1).padStart(6)} ms   ${request}`)
  return { rows, asked: results.length, dearest, lowStock, inStock }
}

async function askAll(bench: Bench, large: Database, rows: number): Promise<QuestionResult[]> {
  await large.client.query('CREATE EXTENSION pg_stat_statements')
  await large.client.query(`DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET pg_stat_statements.track = top', current_database()); END $$`)
  const server = await startById('gateway', { DATABASE_URL: large.url, REDIS_URL: bench.redisUrl })
  const results: QuestionResult[] = []
  await watched(bench.redis, [server], async () => {
    for (const request of everyRequest(rows)) results.push(await time(server, large, request))
  })
  await server.stop()
  return results
}

/** As people can read it: cursors are not. */
const nameOf = ({ path, body }: Template) =>
  path === '/graphql'
    ? JSON.parse(body ?? '').query
    : `GET ${decodeURIComponent(path.replaceAll('+', ' ')).replace(
        /cursor=([\w-]+)\.[\w-]+/,
        (_, place) => `cursor=${Buffer.from(place, 'base64url')}`,
      )}`

async function time(server: RunningServer, { client, keys }: Database, request: Template): Promise<QuestionResult> {
  const name = nameOf(request)
  const { method, path, body } = request
  const send = async () => {
    const response = await fetch(server.url + path, { method, body, headers: headersFor(keys[0] as string, body) })
    const text = await response.text()
    if (!response.ok || text.includes('"errors"')) throw new Refusal(`${name}: ${response.status} ${text}`)
  }
  await send()
  await client.query(`SELECT pg_stat_statements_reset(0, oid, 0) FROM pg_database WHERE datname = current_database()`)
  for (let run = 0; run < RUNS; run++) await send()
  // The gateway calls the rows of a list so; look-ups of keys have other names.
  const { rows } = await client.query<{ max: number | null; mean: number }>(`
    SELECT max(max_exec_time) AS max, max(mean_exec_time) AS mean
    FROM pg_stat_statements JOIN pg_database ON oid = dbid AND datname = current_database()
    WHERE query LIKE 'SELECT%"row"%'`)
  const [measured] = rows
  if (!measured || measured.max === null) throw new Refusal(`${name}: PostgreSQL timed no statement.`)
  return { request: name, maxMs: measured.max, meanMs: measured.mean }
}
