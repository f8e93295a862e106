import { Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { scratchDatabase, testDatabaseUrl, useClient } from '../../../../test/support/postgres.js'
import { sql } from '../../../../test/support/sql.js'
import { ConnectionPool } from './pool.js'
import { type Description, PreparedQuery, valuesOfPrisma } from './prepared-query.js'
import { RowBytesClient } from './row-bytes.js'

/** The values of each type, in SQL. */
const VALUES = {
  bigint: ['0', '-1', '1', '4294967295', '4294967296', '-4294967296', '9223372036854775807', '-9223372036854775808'],
  integer: ['0', '-1', '2147483647', '-2147483648'],
  boolean: ['true', 'false'],
  text: [`''`, `'a'`, `'Zoë'`, `'😺'`, `'NULL'`, `E'\\\\ \\t\\n\\x01'`, `repeat('x', 7000)`, `repeat('猫', 3000)`],
  mood: [`'sad'`, `'very happy 😺'`],
  timestamptz: [
    `'2026-11-28 22:39:24.123456+05:30'`,
    `'2000-01-01Z'`,
    `'1999-12-31 23:59:59.9995Z'`,
    `'1969-12-31 23:59:59.999999Z'`,
    `'0001-01-01Z'`,
    `'9999-12-31 23:59:59.999999Z'`,
    `'275760-09-12Z'`,
  ],
  date: [`'2026-11-28'`, `'1999-12-31'`, `'0001-01-01'`, `'9999-12-31'`],
  jsonb: [`'{"a": [1, "Zoë", null], "b": {}}'`, `'"text"'`, `'null'`, '\'"\\u0001"\''],
}
const TYPES = Object.keys(VALUES) as (keyof typeof VALUES)[]
const COLUMNS = TYPES.map((type, i) => `"${type} ${i}"`)

/** A row for each value of each type, in which all other columns are null, and one with a value in every column. */
const ROWS = [
  ...TYPES.flatMap((type, i) => VALUES[type].map((value) => TYPES.map((_, j) => (i === j ? value : 'NULL')))),
  TYPES.map((type) => VALUES[type][0]),
].map((row) => `(${row.map((value, i) => `(${value})::${TYPES[i]}`)})`)
const SELECT = `SELECT * FROM (VALUES ${ROWS}) "_" (${COLUMNS})`

/** A socket whose data arrives in pieces. */
class Pieces extends Socket {
  constructor(private readonly size: number) {
    super()
  }

  override emit(event: string, ...args: unknown[]): boolean {
    const [data] = args
    if (event !== 'data' || !Buffer.isBuffer(data)) return super.emit(event as never, ...(args as never[]))
    for (let at = 0; at < data.length; at += this.size) super.emit('data', data.subarray(at, at + this.size))
    return true
  }
}

describe.skipIf(!testDatabaseUrl)('rows in the binary format', () => {
  async function open() {
    const url = await scratchDatabase()
    const plain = await useClient(url)
    await plain.query(`CREATE TYPE mood AS ENUM ('sad', 'very happy 😺')`)
    return { url, plain }
  }
  /** A pool that ends with the test. */
  function openPool(connectionString: string) {
    const pool = new ConnectionPool({ connectionString, timeoutMs: 60_000, kind: 'server', ask: async () => [] })
    onTestFinished(() => pool.end())
    return pool
  }

  test.each([1, 2, 3, 7, 64, 4_096, 1_000_000])(
    'have the values of the text format, also if they arrive in pieces of %i bytes',
    { timeout: 60_000 },
    async (size) => {
      const { url, plain } = await open()
      const expected = (await plain.query({ text: SELECT, types: valuesOfPrisma })).rows
      expect(expected).toHaveLength(ROWS.length)
      const client = new RowBytesClient({ connectionString: url, stream: () => new Pieces(size) })
      await client.connect()
      onTestFinished(() => client.end())
      const description: Description = {}
      const ask = () =>
        new Promise<pg.QueryResult>((resolve, reject) => {
          const done = (error: Error | undefined, result: pg.QueryResult) => (error ? reject(error) : resolve(result))
          client.query(new PreparedQuery({ name: 'values', text: SELECT }, description, done) as never)
        })
      for (let times = 0; times < 3; times++) {
        const { rows, rowCount, command } = await ask()
        expect(rows).toEqual(expected)
        expect({ rowCount, command }).toEqual({ rowCount: ROWS.length, command: 'SELECT' })
      }
      // What is no prepared statement of our own is read by `pg`, over the same connection.
      expect((await client.query({ text: SELECT, types: valuesOfPrisma })).rows).toEqual(expected)
      expect(description.binary).toBeDefined()
    },
  )

  // It fails also if a new version of `pg` no longer attaches its connections as row-bytes.ts expects.
  test('do not depend on the settings of a session', async () => {
    const { url } = await open()
    const pool = openPool(url)
    const text = `SELECT '2026-11-28 22:39:24Z'::timestamptz AS at`
    const rows = await pool.transaction(async (query) => {
      await query(sql(text), [])
      await query(sql(`SET LOCAL DateStyle = 'German'`), [])
      await query(sql(`SET LOCAL TimeZone = 'Asia/Kathmandu'`), [])
      return query(sql(text), [])
    })
    expect(rows).toEqual([{ at: new Date('2026-11-28T22:39:24Z') }])
  })

  test.each([
    `'infinity'::timestamptz`,
    `'-infinity'::timestamptz`,
    `'275760-09-14Z'::timestamptz`,
    `'infinity'::date`,
    `'-infinity'::date`,
  ])('refuse a moment that is no date, in both formats: %s', async (moment) => {
    const { url } = await open()
    const pool = openPool(url)
    const ask = (at: string | null) => pool.query(sql(`SELECT coalesce($1, ${moment}) AS at`), [at])
    await expect(ask(null)).rejects.toMatchObject({ code: 'EBADMSG' })
    const at = new Date('2026-11-28Z')
    expect(await ask('2026-11-28Z')).toEqual([{ at }])
    expect(await ask('2026-11-28Z')).toEqual([{ at }])
    await expect(ask(null)).rejects.toMatchObject({ code: 'EBADMSG' })
  })

  test('leave nothing of themselves with a connection that is idle', async () => {
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc') as () => void
    const { url } = await open()
    const pool = openPool(url)
    const held = () => {
      gc()
      return process.memoryUsage().arrayBuffers
    }
    const before = held()
    await pool.query(sql(`SELECT repeat('x', 40000000)`), [])
    await expect.poll(held).toBeLessThan(before + 10_000_000)
    expect(pool.state.idle).toBe(1)
  })

  test('are asked for only where each of their types is known; others are as `pg` has them', async () => {
    const { url, plain } = await open()
    const pool = openPool(url)
    await plain.query('CREATE TYPE pair AS (a integer, b text); CREATE DOMAIN age AS integer')
    const text = `SELECT 1.50::numeric AS "numeric", ARRAY[1, 2] AS "array", ARRAY['sad']::mood[] AS "moods", (1, 'x')::pair AS "pair",
      1.5::float8 AS "float", '2026-11-28 22:39'::timestamp AS "timestamp", '\\x00ff'::bytea AS "bytea", 7::age AS "age"`
    const [expected] = (await plain.query({ text, types: valuesOfPrisma })).rows
    expect(expected).toMatchObject({ numeric: '1.50', array: [1, 2], moods: '{sad}', age: 7 })
    for (const [name, value] of Object.entries(expected)) {
      const one = `SELECT "${name}" FROM (${text}) "_"`
      for (let times = 0; times < 3; times++) expect(await pool.query(sql(one), [])).toEqual([{ [name]: value }])
    }
  })
})
