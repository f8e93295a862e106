import pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { createSecret } from '../src/gateway/keys/index.js'
import { times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'

// What an admin can write with Prisma Studio or SQL. The database refuses rows that the service cannot use and says why;
// the service handles all others.

const gateway = await sharedGateway({ keyTtlMs: 1 })
const admin = new pg.Client({ connectionString: gateway.database.url })
await admin.connect()
afterAll(() => admin.end())
const category: number = (await gateway.post('/categories', { name: 'Dogs' })).body.id
const pet: number = (await gateway.post('/pets', { name: 'Rex', categoryId: category })).body.id
await gateway.post('/store/orders', { petId: pet })

const everything = `{
  categories(limit: 100) { id name description pets { id } }
  pets(limit: 100) { id name status category { id } inventory { quantity } orders { id } }
  orders(limit: 100) { id quantity shipDate complete pet { id } }
  inventory(limit: 100) { petId quantity status pet { id } }
}`

/** The service still lists everything and creates one of each kind, on both surfaces. */
async function expectWorking() {
  for (const path of ['/categories', '/pets', '/store/orders', '/inventory'])
    expect(await gateway.get(`${path}?limit=100`)).toMatchObject({ status: 200 })
  expect((await gateway.graphql(everything)).body).not.toHaveProperty('errors')
  const { body: made } = await gateway.post('/categories', { name: 'More' })
  const { body: animal } = await gateway.post('/pets', { name: 'More', categoryId: made.id })
  const { body: order } = await gateway.post('/store/orders', { petId: animal.id })
  expect([made.id, animal.id, order.id]).toEqual([expect.any(Number), expect.any(Number), expect.any(Number)])
  const { body } = await gateway.graphql(
    `mutation ($category: Int64!, $pet: Int64!) {
      createCategory(input: { name: "More" }) { id }
      createPet(input: { name: "More", categoryId: $category }) { id inventory { quantity } }
      createOrder(input: { petId: $pet }) { id }
    }`,
    { category: made.id, pet: animal.id },
  )
  expect(body).not.toHaveProperty('errors')
}

/** Writes a key as an admin would; each field is an SQL expression. Returns the secret. */
async function insertKey(fields: Record<string, string> = {}) {
  const { key, prefix, hash } = createSecret()
  const values = { name: `'Ann'`, prefix: `'${prefix}'`, hash: `'${hash}'`, ...fields }
  const columns = Object.keys(values).map((name) => `"${name}"`)
  await admin.query(`INSERT INTO "ApiKey" (${columns}) VALUES (${Object.values(values)})`)
  return key
}

describe('the database refuses', () => {
  const rows: [what: string, sql: string, reason: RegExp][] = []
  const refused = (what: string, sql: string, reason: RegExp) => rows.push([what, sql, reason])

  for (const [what, name] of [
    ['an empty name', ''],
    ['a name of spaces', '   '],
    ['a name of Unicode spaces', '\u3000\u00a0'],
    ['a name with a space at its start', ' Rex'],
    ['a name with a line break at its end', 'Rex\n'],
    ['a name of 101 characters', 'x'.repeat(101)],
  ] as const) {
    refused(`${what} (Category)`, `INSERT INTO "Category" ("name") VALUES ('${name}')`, /"name must (have|not)/)
    refused(`${what} (Pet)`, `UPDATE "Pet" SET "name" = '${name}' WHERE "id" = ${pet}`, /"name must (have|not)/)
    refused(`${what} (ApiKey)`, `UPDATE "ApiKey" SET "name" = '${name}'`, /"name must (have|not)/)
  }
  refused('a name with U+0000', `UPDATE "Pet" SET "name" = E'a\\u0000b'`, /Unicode|escape/)
  refused('no name', `UPDATE "Pet" SET "name" = NULL`, /null value in column "name"/)
  refused(
    'a description of 1,001 characters',
    `UPDATE "Category" SET "description" = repeat('x', 1001)`,
    /description must have at most 1000/,
  )

  for (const owner of ['', ' ', ' Ann', 'Ann\u00a0', 'x'.repeat(101)])
    refused(`the owner "${owner.slice(0, 9)}"`, `UPDATE "ApiKey" SET "owner" = '${owner}'`, /"owner must (have|not)/)
  for (const email of ['', 'ann', '@x', 'a@', 'a@b@c', 'a b@c', 'a@b\n', `a@${'x'.repeat(253)}`])
    refused(
      `the address "${email.slice(0, 9)}"`,
      `UPDATE "ApiKey" SET "email" = '${email}'`,
      /"email must be an address/,
    )
  refused('an empty note', `UPDATE "ApiKey" SET "note" = ''`, /"note must have 1 to 1000 characters"/)
  refused('a note of 1,001 characters', `UPDATE "ApiKey" SET "note" = repeat('x', 1001)`, /"note must have 1 to 1000/)

  for (const date of ['infinity', '-infinity', '1969-12-31T23:59:59.999Z', '10000-01-01T00:00:00Z', '0044-03-15 BC']) {
    refused(
      `shipDate ${date}`,
      `UPDATE "Order" SET "shipDate" = '${date}'`,
      /shipDate must be in the years 1970 to 9999/,
    )
    for (const column of ['createdAt', 'expiresAt', 'revokedAt', 'bannedUntil', 'lastUsedAt'])
      refused(
        `${column} ${date}`,
        `UPDATE "ApiKey" SET "${column}" = '${date}'`,
        new RegExp(`${column} must be in the years 1970 to 9999`),
      )
  }

  for (const table of ['Category', 'Pet', 'Order']) {
    const values: Record<string, string> = {
      Category: `("id", "name") VALUES (ID, 'x')`,
      Pet: `("id", "name", "categoryId") VALUES (ID, 'x', ${category})`,
      Order: `("id", "petId") VALUES (ID, ${pet})`,
    }
    const insert = (id: string) => `INSERT INTO "${table}" ${values[table]?.replace('ID', id)}`
    refused(`${table} with id 0`, insert('0'), /id must be from 1 to 9007199254740991/)
    refused(`${table} with a negative id`, insert('-1'), /id must be from 1 to 9007199254740991/)
    refused(`${table} with an id above 2^53 - 1`, insert('9007199254740992'), /id must be from 1 to 9007199254740991/)
  }

  refused('a status that is not one', `UPDATE "Pet" SET "status" = 'lost'`, /invalid input value for enum/)
  refused('a plan that is not one', `UPDATE "ApiKey" SET "plan" = 'Gold'`, /invalid input value for enum/)
  refused('a negative stock', `UPDATE "InventoryItem" SET "quantity" = -1`, /quantity must be at least 0/)
  refused('an order of nothing', `UPDATE "Order" SET "quantity" = 0`, /quantity must be at least 1/)
  refused('an order of a negative quantity', `UPDATE "Order" SET "quantity" = -1`, /quantity must be at least 1/)
  refused('an order of no pet', `UPDATE "Order" SET "petId" = 4711`, /foreign key/)
  refused('the deletion of a category with pets', `DELETE FROM "Category" WHERE "id" = ${category}`, /foreign key/)
  refused('the deletion of a pet with orders', `DELETE FROM "Pet" WHERE "id" = ${pet}`, /foreign key/)
  refused('the deletion of a stock row alone', `DELETE FROM "InventoryItem"`, /needs its inventory entry/)
  refused('the deletion of all stock rows', `TRUNCATE "InventoryItem"`, /Every pet has an inventory entry/)
  refused(
    'a stock row that moves to another pet',
    `UPDATE "InventoryItem" SET "petId" = 4711 WHERE "petId" = ${pet}`,
    /needs its inventory entry/,
  )

  refused(
    'Enterprise without limits',
    `UPDATE "ApiKey" SET "plan" = 'Enterprise', "minuteLimit" = NULL`,
    /(minute|day)Limit: at least 1 for Enterprise/,
  )
  for (const [one, other] of [
    ['minute', 'day'],
    ['day', 'minute'],
  ] as const) {
    const limits = `"${one}Limit" = 5, "${other}Limit" = NULL`
    refused(
      `Enterprise with a limit per ${one} alone`,
      `UPDATE "ApiKey" SET "plan" = 'Enterprise', ${limits}`,
      new RegExp(`${other}Limit: at least 1 for Enterprise`),
    )
    refused(`Pro with a limit per ${one}`, `UPDATE "ApiKey" SET "plan" = 'Pro', ${limits}`, /Limit: at least 1 for/)
  }
  for (const column of ['minuteLimit', 'dayLimit'])
    for (const limit of [0, -1])
      refused(
        `a ${column} of ${limit}`,
        `UPDATE "ApiKey" SET "${column}" = ${limit}`,
        new RegExp(`${column}: at least 1 for Enterprise`),
      )
  refused(
    'limits on another plan',
    `UPDATE "ApiKey" SET "plan" = 'Free'`,
    /(minute|day)Limit: at least 1 for Enterprise/,
  )
  for (const prefix of ['', 'petstore_', 'petstore_0123ABCD', 'other_01234567'])
    refused(`the prefix "${prefix}"`, `UPDATE "ApiKey" SET "prefix" = '${prefix}'`, /prefix must be petstore_ and 8/)
  for (const hash of ['', 'x'.repeat(64), 'A'.repeat(64)])
    refused(`the hash "${hash.slice(0, 3)}"`, `UPDATE "ApiKey" SET "hash" = '${hash}'`, /hash must be a SHA-256/)
  refused('a key with id 0', `UPDATE "ApiKey" SET "id" = 0`, /id must be at least 1/)

  test.each(rows)('%s', async (_, sql, reason) => {
    await expect(admin.query(sql)).rejects.toThrow(reason)
  })

  test('by the name of a constraint that says why, in every table', async () => {
    const { rows } = await admin.query(`SELECT conname AS name FROM pg_constraint
      WHERE contype = 'c' AND connamespace = current_schema()::regnamespace`)
    expect(rows.length).toBeGreaterThan(20)
    for (const { name } of rows) expect(name).toMatch(/^\w+( must (be|have|not) |: at least )/)
  })

  test('… and the service works on as before', async () => {
    await expectWorking()
  })
})

describe('the service understands', () => {
  test('rows with ids far ahead of their sequence, added or renumbered, several together: later creates get higher ids', async () => {
    await admin.query(`INSERT INTO "Category" ("id", "name") VALUES (1010, 'x'), (1008, 'x')`)
    await admin.query(`INSERT INTO "Pet" ("id", "name", "categoryId") VALUES (1010, 'x', 1010), (1008, 'x', 1008)`)
    await admin.query(`INSERT INTO "Order" ("id", "petId") VALUES (1010, 1010), (1008, 1010)`)
    expect((await gateway.post('/categories', { name: 'Next' })).body.id).toBe(1011)
    expect((await gateway.post('/pets', { name: 'Next', categoryId: 1010 })).body.id).toBe(1011)
    expect((await gateway.post('/store/orders', { petId: 1010 })).body.id).toBe(1011)
    for (const table of ['Category', 'Pet', 'Order'])
      await admin.query(`UPDATE "${table}" SET "id" = 2000 WHERE "id" = 1010`)
    expect((await gateway.post('/pets', { name: 'Next', categoryId: 2000 })).body.id).toBe(2001)
    expect((await gateway.get('/inventory/2000')).body).toEqual({ petId: 2000, quantity: 0, status: 'available' })
    expect((await gateway.get('/store/orders/2000')).body.petId).toBe(2000)
    expect((await gateway.get('/inventory/1010')).status).toBe(404)
    await expectWorking()
  })

  test('rows with the last ids of all: creates go on where they were', async () => {
    const { body } = await gateway.post('/pets', { name: 'Last', categoryId: category })
    await admin.query(`INSERT INTO "Category" ("id", "name") VALUES (9007199254740991, 'x')`)
    await admin.query(`INSERT INTO "Pet" ("id", "name", "categoryId") VALUES (9007199254740991, 'x', ${category})`)
    await admin.query(`INSERT INTO "Order" ("id", "petId") VALUES (9007199254740991, ${pet})`)
    await insertKey({ id: '2147483647' })
    expect((await gateway.post('/pets', { name: 'Next', categoryId: category })).body.id).toBe(body.id + 1)
    await gateway.createKey()
    await expectWorking()
  })

  test('rows with the ids that come next: creates go on after them', async () => {
    const { body } = await gateway.post('/categories', { name: 'Last' })
    for (let id = body.id + 1; id < body.id + 4; id++)
      await admin.query(`INSERT INTO "Category" ("id", "name") VALUES (${id}, 'x')`)
    expect((await gateway.post('/categories', { name: 'Next' })).body.id).toBe(body.id + 4)
  })

  test('a pet that is deleted: its stock row goes with it', async () => {
    const { body } = await gateway.post('/pets', { name: 'Gone', categoryId: category })
    await admin.query(`DELETE FROM "Pet" WHERE "id" = ${body.id}`)
    expect((await gateway.get(`/inventory/${body.id}`)).status).toBe(404)
    await expectWorking()
  })

  test('the largest values that a row can hold', async () => {
    const name = '🐕'.repeat(100)
    await admin.query(`INSERT INTO "Category" ("name", "description") VALUES ('${name}', repeat('🐕', 1000))`)
    await admin.query(`UPDATE "InventoryItem" SET "quantity" = 2147483647 WHERE "petId" = ${pet}`)
    await admin.query(
      `INSERT INTO "Order" ("petId", "quantity", "shipDate") VALUES
       (${pet}, 2147483647, '9999-12-31T23:59:59.999Z'), (${pet}, 1, '1970-01-01T00:00:00Z')`,
    )
    const { body } = await gateway.get('/store/orders?limit=100')
    expect(body).toContainEqual(expect.objectContaining({ shipDate: '9999-12-31T23:59:59.999Z' }))
    expect(body).toContainEqual(expect.objectContaining({ shipDate: '1970-01-01T00:00:00.000Z' }))
    await expectWorking()
  })

  test.each([
    ['a key that never expires in practice', { expiresAt: `'9999-12-31T23:59:59.999Z'` }, 200],
    ['a key that expired in 1970', { expiresAt: `'1970-01-01T00:00:00Z'` }, 401],
    ['a key that was revoked in 1970', { revokedAt: `'1970-01-01T00:00:00Z'` }, 401],
    ['a key that is banned until the end of 9999', { bannedUntil: `'9999-12-31T23:59:59.999Z'` }, 429],
    ['a key whose ban ended in 1970', { bannedUntil: `'1970-01-01T00:00:00Z'` }, 200],
    ['a key that was last used in 9999', { lastUsedAt: `'9999-12-31T23:59:59.999Z'` }, 200],
    ['a key with an id of its own', { id: '4711' }, 200],
    ['a key with the smallest limits', { plan: `'Enterprise'`, minuteLimit: '1', dayLimit: '1' }, 200],
    ['a key with the largest limits', { plan: `'Enterprise'`, minuteLimit: '2147483647', dayLimit: '2147483647' }, 200],
  ])('%s', async (_, fields, status) => {
    const key = await insertKey(fields as Record<string, string>)
    const free = status === 429 ? 200 : status
    expect((await gateway.get('/quota', { key })).status).toBe(free)
    expect((await gateway.get('/pets', { key })).status).toBe(status)
    expect((await gateway.graphql('{ quota { plan } }', {}, { key })).status).toBe(free)
    await gateway.createKey()
  })

  test('a key whose id changes while it is in use', async () => {
    const { key, row } = await gateway.createKey()
    expect((await gateway.get('/pets', { key })).status).toBe(200)
    await admin.query(`UPDATE "ApiKey" SET "id" = 5000 WHERE "id" = ${row.id}`)
    expect((await gateway.get('/pets', { key })).status).toBe(200)
    expect((await gateway.createKey()).row.id).toBe(5001)
  })
})

test('the database and the API trim the same characters', async () => {
  const codes = times(0x10000, (code) => code).filter((code) => code < 0xd800 || code > 0xdfff)
  const white = codes.slice(1).filter((code) => String.fromCharCode(code).trim() === '')
  const { rows } = await admin.query(
    `SELECT code FROM unnest($1::int[]) AS code WHERE "trimmed"(chr(code)) = '' ORDER BY code`,
    [codes.slice(1)],
  )
  expect(rows.map(({ code }) => code)).toEqual(white)
})

test('an insert of an ordinary row does not touch its sequence twice', async () => {
  const last = async () => Number((await admin.query(`SELECT last_value FROM "Category_id_seq"`)).rows[0].last_value)
  const before = await last()
  await gateway.post('/categories', { name: 'One' })
  expect(await last()).toBe(before + 1)
})

test('every table and column has a comment', async () => {
  const { rows } = await admin.query(`
    SELECT relname AS table, attname AS column FROM pg_class
    LEFT JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
      AND col_description(attrelid, attnum) IS NULL
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname <> '_prisma_migrations'
      AND (attname IS NOT NULL OR obj_description(pg_class.oid) IS NULL)`)
  expect(rows).toEqual([])
})
