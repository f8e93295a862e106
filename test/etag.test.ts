import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import { operations } from '../schema/index.js'
import { fill } from '../schema/kit/operations.js'
import { cases } from './resources/index.js'
import type { Case } from './resources/resource.js'
import { contents, expectCommonHeaders, resetStore, times } from './support/calls.js'
import { type Answer, type Gateway, sharedGateway } from './support/gateway.js'
import { testDatabaseUrl, useClient } from './support/postgres.js'

const gateway = await sharedGateway()
const other = await sharedGateway({ database: { ...gateway.database, close: async () => {} } })
beforeEach(() => resetStore(gateway.prisma))

const etagOf = ({ headers }: Answer) => headers.get('etag') ?? ''
const tagOf = async (path: string) => etagOf(await gateway.get(path))

// One row of each stored type: its path, how GraphQL reads it, and what changes it.
const resources = [
  { path: '/pets/2', field: 'pet(petId: 2)', update: 'updatePet(petId: 2', change: { name: 'Kit' } },
  {
    path: '/categories/1',
    field: 'category(categoryId: 1)',
    update: 'updateCategory(categoryId: 1',
    change: { name: 'Hounds' },
  },
  { path: '/store/orders/1', field: 'order(orderId: 1)', update: 'updateOrder(orderId: 1', change: { quantity: 9 } },
  {
    path: '/inventory/2',
    field: 'inventoryItem(petId: 2)',
    update: 'updateInventory(petId: 2',
    change: { quantity: 9 },
  },
]

describe('ETag', () => {
  test('is a strong tag on every result of REST that is stored, and on nothing else', async () => {
    const paths = ['/pets', '/pets/1', '/categories', '/categories/1', '/store/orders', '/store/orders/1', '/inventory']
    for (const path of [...paths, '/inventory/1']) expect(await tagOf(path), path).toMatch(/^"[\w-]{27}"$/)
    expect(await tagOf('/quota')).toBe('')
    expect(await tagOf('/pets/99')).toBe('')
    expect(etagOf(await gateway.delete('/pets/1'))).toBe('')
  })

  test.each(resources)(
    '$path: equal in GET, HEAD, PATCH, GraphQL, and on another gateway',
    async ({ path, field, change }) => {
      const before = await tagOf(path)
      const after = etagOf(await gateway.patch(path, change))
      expect(after).not.toBe(before)
      const { data } = (await gateway.graphql(`{ read: ${field} { etag } }`)).body
      const all = [
        await tagOf(path),
        etagOf(await gateway.call('HEAD', path)),
        etagOf(await other.get(path)),
        data.read.etag,
      ]
      expect(all).toEqual([after, after, after, after])
    },
  )

  test('of a created resource is the one that GET returns', async () => {
    for (const [path, body] of [
      ['/pets', { name: 'Rex', categoryId: 1 }],
      ['/categories', { name: 'Birds' }],
      ['/store/orders', { petId: 1, shipDate: '2026-12-24T18:00:00Z' }],
    ] as const) {
      const created = await gateway.post(path, body)
      expect(etagOf(created)).toBe(await tagOf(`${path}/${created.body.id}`))
    }
  })

  test('in GraphQL is the same in lists, in nested objects and in what mutations return', async () => {
    const { data } = (
      await gateway.graphql(`mutation {
        updateInventory(petId: 2, input: { quantity: 3 }) { etag pet { etag category { etag } orders { etag } } }
        deletePet(petId: 1) { etag inventory { quantity } }
      }`)
    ).body
    expect(data.updateInventory).toEqual({
      etag: await tagOf('/inventory/2'),
      pet: {
        etag: await tagOf('/pets/2'),
        category: { etag: await tagOf('/categories/2') },
        orders: [{ etag: await tagOf('/store/orders/1') }, { etag: await tagOf('/store/orders/2') }],
      },
    })
    const list = (await gateway.graphql('{ pets { id etag inventory { etag } } }')).body.data.pets
    for (const { id, etag, inventory } of list)
      expect([etag, inventory.etag]).toEqual([await tagOf(`/pets/${id}`), await tagOf(`/inventory/${id}`)])
  })

  test.each([
    ['/pets/2', `UPDATE "Pet" SET "name" = 'Kit'`],
    ['/pets', `UPDATE "Pet" SET "categoryId" = 1 WHERE "id" = 3`],
    ['/categories/1', 'UPDATE "Category" SET "description" = NULL'],
    ['/store/orders/2', 'UPDATE "Order" SET "shipDate" = "shipDate" + interval \'1 ms\''],
    ['/inventory/2', 'UPDATE "InventoryItem" SET "quantity" = "quantity" + 1'],
    ['/inventory/2', `UPDATE "Pet" SET "status" = 'available'`],
    ['/pets?limit=3', `INSERT INTO "Pet" ("name", "categoryId") VALUES ('Rex', 1)`],
  ])('of %s changes with %s, and again when that is undone', async (path, sql) => {
    const before = await tagOf(path)
    await gateway.prisma.$executeRawUnsafe(sql)
    expect(await tagOf(path)).not.toBe(before)
    await resetStore(gateway.prisma)
    expect(await tagOf(path)).toBe(before)
  })

  test('does not change from one version to the next while the representation is the same', async () => {
    expect(await tagOf('/pets/1')).toBe('"BcC7XvMJmisvq5no_wj2iIhx9El"')
  })
})

describe('the ETag of a list that was asked for one id alone', () => {
  test.each(resources)('is that of $path, so If-Match takes it', async ({ path, change }) => {
    const [, list = '', id = ''] = /^(.*)\/(\d+)$/.exec(path) ?? []
    const name = list === '/inventory' ? 'petId' : 'id'
    const alone = `${list}?${name}=${id}`
    const item = await tagOf(path)
    expect(await tagOf(alone)).toBe(item)
    expect((await gateway.get(alone, { headers: { 'if-none-match': item } })).status).toBe(304)
    for (const other of ['', '&limit=1', '&count=true', `&${name}=${id}`, `&${name}=1`, `&${name}=999`])
      expect(await tagOf(other ? alone + other : `${list}?limit=1`), other).not.toBe(item)
    const changed = await gateway.patch(path, change, { headers: { 'if-match': await tagOf(alone) } })
    expect(changed.status).toBe(200)
    expect(await tagOf(alone)).toBe(etagOf(changed))
  })

  test('which nothing has, is that of an empty list', async () => {
    expect(await tagOf('/pets?id=999')).toBe(await tagOf('/pets?search=nobody&sort=name'))
  })
})

describe('If-None-Match', () => {
  const ask = (path: string, ifNoneMatch: string, method = 'GET') =>
    gateway.call(method, path, { headers: { 'if-none-match': ifNoneMatch } })

  test.each([
    ['the tag', (etag: string) => etag, 304],
    ['the tag as a weak one', (etag: string) => `W/${etag}`, 304],
    ['a list with the tag', (etag: string) => `"a,b" ,,W/"",${etag}`, 304],
    ['*', () => '*', 304],
    ['another tag', () => '"x"', 200],
    ['another list', (etag: string) => `"x", W/"y", "${etag.slice(2)}`, 200],
  ])('with %s', async (_, value, status) => {
    for (const path of ['/pets/2', '/inventory/2', '/pets?limit=1']) {
      const plain = await gateway.get(path)
      for (const method of ['GET', 'HEAD']) {
        const answer = await ask(path, value(etagOf(plain)), method)
        expect([answer.status, etagOf(answer)]).toEqual([status, etagOf(plain)])
        expect(answer.text).toBe(status === 304 || method === 'HEAD' ? '' : plain.text)
        expectCommonHeaders(answer)
      }
    }
  })

  test('a 304 has no header of a body, and keeps those of the operation', async () => {
    const plain = await gateway.get('/pets/1')
    const answer = await ask('/pets/1', '*')
    for (const name of ['content-type', 'content-length', 'transfer-encoding'])
      expect(answer.headers.has(name)).toBe(false)
    for (const name of ['deprecation', 'sunset', 'link', 'cache-control'])
      expect(answer.headers.get(name), name).toBe(plain.headers.get(name))
  })

  test('a 304 costs what a 200 costs', async () => {
    const { key } = await gateway.createKey()
    await gateway.get('/pets', { key })
    const answer = await gateway.get('/pets', { key, headers: { 'if-none-match': '*' } })
    expect([answer.status, answer.headers.get('x-ratelimit-remaining')]).toEqual([304, '58'])
  })

  test('does not hide an error', async () => {
    expect((await ask('/pets/99', '*')).status).toBe(404)
    expect((await ask('/pets?limit=0', '*')).status).toBe(400)
  })
})

const malformed = [
  ...['', ',', 'x', '"x', 'x"', '"x" "y"', '"x", y', '*, "x"', '**', "'x'", 'w/"x"', 'W/x'],
  ...['"a b"', '"x";', 'y"x" ,'],
]

test.each(malformed)('a malformed condition returns 400 and names the header: %o', async (value) => {
  const before = await contents(gateway.prisma)
  const conditional = (method: string, path: string, name: string) =>
    gateway.call(method, path, { headers: { [name]: value }, ...(method === 'PATCH' && { body: {} }) })
  for (const [method, path, name] of [
    ['GET', '/pets/1', 'If-None-Match'],
    ['PATCH', '/pets/1', 'If-Match'],
    ['DELETE', '/pets/1', 'If-Match'],
  ] as const) {
    const { body } = await conditional(method, path, name)
    expect(body).toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(`^The header ${name} is .*; it must be [*] or`),
    })
  }
  const query = 'mutation ($ifMatch: String) { deletePet(petId: 1, ifMatch: $ifMatch) { id } }'
  const { errors } = (await gateway.graphql(query, { ifMatch: value })).body
  expect(errors[0].extensions).toEqual({ code: 'invalid_request', status: 400 })
  expect(await contents(gateway.prisma)).toEqual(before)
})

test.each([
  ['GET', '/pets/1', 'If-Match'],
  ['POST', '/categories', 'If-Match'],
  ['POST', '/categories', 'If-None-Match'],
  ['PATCH', '/pets/1', 'If-None-Match'],
  ['DELETE', '/pets/1', 'If-None-Match'],
])('%s %s refuses %s, because it could not keep what the client relies on', async (method, path, name) => {
  const body = { GET: undefined, DELETE: undefined, POST: { name: 'Birds' }, PATCH: { name: 'Kit' } }[method]
  const before = await contents(gateway.prisma)
  const answer = await gateway.call(method, path, { headers: { [name]: '*' }, body })
  expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining(`${name} is supported by`)])
  expect(await contents(gateway.prisma)).toEqual(before)
})

describe('If-Match', () => {
  const conditional = operations.filter(({ isConditional }) => isConditional)
  /** Whether a case deletes something, or changes a field. */
  const isChange = ([code, { input }]: Case) =>
    code === 'success' && (input === undefined || Object.keys(input as object).length > 0)
  const changes = conditional.map(({ name, rest }) => {
    const [, { input, ...args }] = (cases[name] ?? []).find(isChange) as Case
    return { method: rest.method, path: fill(rest.path, args), body: input }
  })
  const send = (change: (typeof changes)[number], ifMatch: string) =>
    gateway.call(change.method, change.path, { body: change.body, headers: { 'if-match': ifMatch } })

  test('is taken by every update and delete of one thing', () => {
    const changing = operations.filter(({ rest, body }) => /PATCH|DELETE/.test(rest.method) && !body?.extensions.batch)
    expect(conditional).toEqual(changing)
  })

  describe.each(changes)('$method $path', (change) => {
    test.each([
      ['the tag', (etag: string) => etag],
      ['a list with the tag', (etag: string) => `"x", ${etag}`],
      ['*', () => '*'],
    ])('with %s changes it', async (_, value) => {
      const before = await contents(gateway.prisma)
      const { status } = await send(change, value(await tagOf(change.path)))
      expect(status).toBe(change.method === 'PATCH' ? 200 : 204)
      expect(await contents(gateway.prisma)).not.toEqual(before)
    })

    test('with a stale tag or a weak one changes nothing and returns 412, which says what to do', async () => {
      const before = await contents(gateway.prisma)
      const etag = await tagOf(change.path)
      const stale =
        /^Somebody else has changed it since you read it, or the ETag is that of a list or of an answer with expand[.] Read/
      const weak = /weak .*"Accept-Encoding: identity", or its `etag` by GraphQL/
      for (const [value, message] of [
        ['"x"', stale],
        ['W/"x"', stale],
        [`W/${etag}`, weak],
        [`"x", W/${etag}`, weak],
      ] as const) {
        const { body } = await send(change, value)
        expect([value, body.code, body.status]).toEqual([value, 'precondition_failed', 412])
        expect(body.message).toMatch(message)
      }
      expect(await contents(gateway.prisma)).toEqual(before)
    })

    test('of what is gone returns 412, which says so', async () => {
      const gone = { ...change, path: change.path.replace(/\d+$/, '999') }
      expect((await send(gone, '*')).body).toMatchObject({
        code: 'precondition_failed',
        message: expect.stringMatching(/^It is gone: /),
      })
    })
  })

  test('is checked last: after the key, the path, the body and its values', async () => {
    const headers = { 'if-match': '"stale"' }
    const statuses = [
      await gateway.patch('/pets/1', {}, { headers, key: null }),
      await gateway.patch('/nothing/1', {}, { headers }),
      await gateway.patch('/pets/1', '{', { headers }),
      await gateway.patch('/pets/1', { name: '' }, { headers }),
      await gateway.patch('/pets/1', {}, { headers }),
    ].map(({ status }) => status)
    expect(statuses).toEqual([401, 404, 400, 400, 412])
  })

  test('does not change other errors', async () => {
    const headers = { 'if-match': '*' }
    expect((await gateway.delete('/pets/2', { headers })).body.code).toBe('conflict')
    expect((await gateway.delete('/store/orders/2', { headers })).body.code).toBe('conflict')
    expect((await gateway.patch('/pets/1', { categoryId: 99 }, { headers })).body.code).toBe('unknown_reference')
  })

  test('of stock depends on the status of its pet, which it shows', async () => {
    const headers = { 'if-match': await tagOf('/inventory/2') }
    await gateway.patch('/pets/2', { status: 'pending' })
    expect((await gateway.patch('/inventory/2', { quantity: 1 }, { headers })).status).toBe(412)
  })
})

describe('ifMatch', () => {
  test.each(resources)('$update …) changes the row only with its etag, and returns the new one', async (resource) => {
    const { path, update, change } = resource
    const [[name, value] = []] = Object.entries(change)
    const query = `mutation ($ifMatch: String) {
      ${update}, input: { ${name}: ${JSON.stringify(value)} }, ifMatch: $ifMatch) { etag }
    }`
    const before = await tagOf(path)
    const field = update.split('(')[0] as string
    const stale = (await gateway.graphql(query, { ifMatch: '"stale"' })).body
    expect([stale.data, stale.errors[0].extensions]).toEqual([
      { [field]: null },
      { code: 'precondition_failed', status: 412 },
    ])
    expect(await tagOf(path)).toBe(before)
    const { data } = (await gateway.graphql(query, { ifMatch: before })).body
    expect(data[field].etag).toBe(await tagOf(path))
    expect(data[field].etag).not.toBe(before)
  })

  test('of one field leaves the others their data, and what they select is read as without it', async () => {
    const { data, errors } = (
      await gateway.graphql(`mutation {
        stale: deletePet(petId: 1, ifMatch: "\\"stale\\"") { id }
        updatePet(petId: 2, input: { status: pending }, ifMatch: "*") {
          status inventory { status quantity } category { pets(limit: 1) { name } } orders { pet { status } }
        }
      }`)
    ).body
    expect(errors.map(({ path }: { path: string[] }) => path)).toEqual([['stale']])
    expect(data).toEqual({
      stale: null,
      updatePet: {
        status: 'pending',
        inventory: { status: 'pending', quantity: 7 },
        category: { pets: [{ name: 'Tom' }] },
        orders: [{ pet: { status: 'pending' } }, { pet: { status: 'pending' } }],
      },
    })
  })
})

const clients = 10
const increments = 5

test(`${clients} clients on two gateways that each add 1 to one stock ${increments} times lose no update`, async () => {
  const gateways = [gateway, other]
  await gateway.patch('/inventory/1', { quantity: 0 })
  let refused = 0
  async function increment(through: Gateway) {
    for (let failures = 0; ; failures++) {
      const read = await through.get('/inventory/1')
      const headers = { 'if-match': etagOf(read) }
      const { status } = await through.patch('/inventory/1', { quantity: read.body.quantity + 1 }, { headers })
      if (status === 200) return
      expect(status).toBe(412)
      refused++
      await sleep(Math.random() * 10 * 2 ** failures)
    }
  }
  await Promise.all(
    times(clients, async (i) => {
      for (let n = 0; n < increments; n++) await increment(gateways[i % 2] as Gateway)
    }),
  )
  expect((await gateway.get('/inventory/1')).body.quantity).toBe(clients * increments)
  expect(refused).toBeGreaterThan(0)
})

describe.skipIf(!testDatabaseUrl)('between the comparison and the change', () => {
  const stock = 'UPDATE "InventoryItem" SET quantity = 5 WHERE "petId" = 1'
  test.each([
    ['PATCH', '/pets/1', 'Pet', `UPDATE "Pet" SET name = 'Other' WHERE id = 1`],
    ['PATCH', '/categories/1', 'Category', `UPDATE "Category" SET description = 'Other' WHERE id = 1`],
    ['PATCH', '/store/orders/1', 'Order', 'UPDATE "Order" SET complete = true WHERE id = 1'],
    ['PATCH', '/inventory/1', 'InventoryItem', stock],
    // Stock shows the status of its pet.
    ['PATCH', '/inventory/1', 'InventoryItem', `UPDATE "Pet" SET status = 'sold' WHERE id = 1`],
    ['DELETE', '/pets/1', 'Pet', `UPDATE "Pet" SET name = 'Other' WHERE id = 1`],
    ['DELETE', '/categories/1', 'Category', `UPDATE "Category" SET description = 'Other' WHERE id = 1`],
    ['DELETE', '/store/orders/1', 'Order', 'UPDATE "Order" SET quantity = 5 WHERE id = 1'],
  ])('of %s %s nothing changes what it depends on: %s, %s', async (method, path, table, intruder) => {
    const admin = await useClient(gateway.database.url)
    const { change } = resources.find((resource) => resource.path.startsWith(path.replace(/\d$/, ''))) ?? {}
    const headers = { 'if-match': await tagOf(path) }
    // The change can lock rows and compare, but has to wait before it writes.
    await admin.query(`BEGIN; LOCK TABLE "${table}" IN SHARE MODE`)
    const answer = gateway.call(method, path, { headers, ...(method === 'PATCH' && { body: change }) })
    const waiting = async () =>
      (await admin.query('SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))')).rowCount
    await expect.poll(waiting).toBe(1)
    await admin.query(`SAVEPOINT intruder; SET LOCAL lock_timeout = '100ms'`)
    const changed = await admin.query(intruder).then(
      () => true,
      () => false,
    )
    await admin.query(`${changed ? '' : 'ROLLBACK TO intruder;'} COMMIT`)
    const { status } = await answer
    if (changed) expect(status).toBe(412)
    else expect(status).toBe(method === 'PATCH' ? 200 : 204)
  })
})
