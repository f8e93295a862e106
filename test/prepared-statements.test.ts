import { getNamedType, isEnumType } from 'graphql'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { schema } from '../schema/index.js'
import { lists } from '../schema/kit/lists/define.js'
import { MAX_PREPARED } from '../src/engines/postgres/pool/shapes.js'
import { combinations, questionsOf } from './lab/tools/list-tables.js'
import { filtersOf } from './resources/index.js'
import { resetStore } from './support/calls.js'
import { openTestDatabase, type TestDatabase } from './support/database.js'
import { type Gateway, openGateway } from './support/gateway.js'
import { sql } from './support/sql.js'

// What a client asks costs no memory that lasts: neither in the gateway nor in PostgreSQL.

const MAX_BYTES = 24_000_000

/** Whether an argument of a list is an enum. */
function isEnum(list: string, name: string) {
  const arg = schema
    .getQueryType()
    ?.getFields()
    [list]?.args.find((arg) => arg.name === name)
  return arg !== undefined && isEnumType(getNamedType(arg.type))
}

/** A document that asks a question in each form: pages and totals, one and several at a time, forward and backward. */
const documents = lists.flatMap(({ list, parent }) =>
  questionsOf(list, parent)
    .filter(({ answer }) => answer)
    .flatMap(({ filters, sort, direction }) =>
      ['', `${list.key}: [1, 2], `].map((ids) => {
        const [args] = combinations(filters, filtersOf(list.name))
        const enums = { ...args, ...(!parent && { sort }), direction }
        const given = Object.entries(enums).map(
          ([name, value]) => `${name}: ${isEnum(list.name, name) ? value : JSON.stringify(value)}`,
        )
        const all = `${ids}${given.join(', ')}`
        const connection = (page: string) => `${list.name}Connection(${page}${all})`
        const fields = `a: ${connection('first: 1, ')} { nodes { ${list.key} } totalCount }
          b: ${connection('last: 2, ')} { nodes { ${list.key} } } c: ${connection('last: 1, ')} { nodes { ${list.key} } }
          d: ${connection('first: 3, ')} { pageInfo { endCursor startCursor } }`
        return parent ? `{ ${parent.replace(/Id$/, '')}(${parent}: 1) { ${fields} } }` : `{ ${fields} }`
      }),
    ),
)

describe.runIf(process.env.TEST_DATABASE_URL)('each connection to PostgreSQL, whatever was asked,', () => {
  let gateway: Gateway
  let database: TestDatabase
  beforeAll(async () => {
    database = await openTestDatabase()
    gateway = await openGateway({ database })
    await resetStore(gateway.prisma)
  })
  afterAll(() => gateway.close())

  /** What each connection of the gateway keeps. */
  async function kept() {
    const KEPT = sql(`SELECT pg_backend_pid() AS pid, pg_sleep(0.2)::text,
      (SELECT count(*) FROM pg_prepared_statements)::int AS statements,
      (SELECT max(generic_plans) FROM pg_prepared_statements
        WHERE statement LIKE 'SELECT%"Pet" "row" WHERE "row"."id" = $1')::int AS usual,
      (SELECT sum(total_bytes) FROM pg_backend_memory_contexts)::int AS bytes`)
    const asked = []
    for (let i = 0; i < 8; i++) {
      asked.push(database.query(KEPT, []))
      // Reads that arrive in one turn of the event loop share a connection.
      await new Promise(setImmediate)
    }
    return (await Promise.all(asked)).flat() as { pid: number; statements: number; usual: number; bytes: number }[]
  }

  test('keeps few statements prepared, in at most 24 MB, and the usual ones are among them', async () => {
    for (const document of documents) {
      const [{ body }] = await Promise.all([gateway.graphql(document), gateway.get('/pets/1')])
      expect(body.errors, document).toBeUndefined()
      // After the cursors of the last part.
      const { endCursor, startCursor } = (body.data.d ?? body.data.pet?.d ?? body.data.category.d).pageInfo
      const places = {
        'first: 1, ': `first: 1, after: "${endCursor}", `,
        'last: 2, ': `last: 2, before: "${startCursor}", `,
      }
      if (!endCursor) continue
      let next = document
      for (const [page, place] of Object.entries(places)) next = next.replace(page, place)
      expect((await gateway.graphql(next)).body.errors, next).toBeUndefined()
    }
    const connections = await kept()
    expect(Math.max(...connections.map(({ statements }) => statements))).toBeLessThanOrEqual(MAX_PREPARED)
    expect(Math.max(...connections.map(({ bytes }) => bytes))).toBeLessThanOrEqual(MAX_BYTES)
    // It was prepared once for each connection, and has been executed again and again.
    expect(connections.reduce((sum, { usual }) => sum + usual, 0)).toBeGreaterThan(documents.length / 2)
  })
})
