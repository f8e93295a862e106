import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Query, Undo } from '../src/engines/postgres/index.js'
import { createDeadline } from '../src/gateway/context/index.js'
import { emptyStore, resetStore, times } from './support/calls.js'
import { type Answer, type Call, type Gateway, sharedGateway } from './support/gateway.js'
import { testDatabaseUrl, useClient, waitingForLocks } from './support/postgres.js'
import { sql } from './support/sql.js'

const gateway = await sharedGateway()
beforeEach(() => resetStore(gateway.prisma))

let count = 0
const newKey = () => `test-${process.pid}-${count++}`

const order = (idempotencyKey: string, body: unknown = { petId: 1 }, call: Call = {}, of = gateway) =>
  of.post('/store/orders', body, { ...call, headers: { 'idempotency-key': idempotencyKey, ...call.headers } })

const countOrders = () => gateway.prisma.order.count()
const replayed = ({ headers }: { headers: Headers }) => headers.get('idempotency-replayed')

const create = 'mutation { createOrder(input: { petId: 1 }) { id } }'
const surfaces: [string, (key: string, of?: Gateway) => Promise<Answer>][] = [
  ['POST', (key, of = gateway) => order(key, undefined, { key: of.key }, of)],
  ['mutation', (key, of = gateway) => of.graphql(create, undefined, { headers: { 'idempotency-key': key } })],
]

/** Makes a kept answer as old as this. */
const age = (key: string, interval: string) =>
  gateway.prisma
    .$executeRaw`UPDATE "IdempotentAnswer" SET "createdAt" = now() - ${interval}::interval WHERE key = ${key}`

describe('a transaction', () => {
  const transaction = <T>(work: (query: Query, undo: Undo) => Promise<T>) =>
    createDeadline(10_000).runTransaction(() => gateway.database.transaction(work))
  const conflict = sql(`DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END $$`)

  test('that PostgreSQL rolls back because of a conflict is repeated, also if its work has caught the error', async () => {
    let attempts = 0
    const result = await transaction(async (query) => {
      if (attempts++ === 0) {
        await query(conflict, []).catch(() => {})
        await expect(query(sql('SELECT 1'), [])).rejects.toThrow('conflict')
      }
      return attempts
    })
    expect(result).toBe(2)
  })

  test('is repeated as a whole: a conflict cannot be undone', async () => {
    let attempts = 0
    const result = await transaction(async (query, undo) => {
      if (attempts++ === 0)
        await query(conflict, [])
          .catch(undo)
          .catch(() => {})
      return attempts
    })
    expect(result).toBe(2)
  })

  test.skipIf(!testDatabaseUrl)('has ended when its request gives up, however often it was repeated', async () => {
    const before = await gateway.prisma.category.findMany()
    const { endsAt, runTransaction } = createDeadline(1_500)
    let attempts = 0
    const late = runTransaction(() =>
      gateway.database.transaction(
        async (query) => {
          await query(sql('UPDATE "public"."Category" SET name = $1'), ['late'])
          await query(sql(`SELECT pg_sleep($1)`), [attempts === 0 ? 0.6 : 1])
          if (attempts++ === 0) await query(conflict, [])
        },
        { endsAt },
      ),
    )
    await expect(late).rejects.toThrow()
    await new Promise((done) => setTimeout(done, 1_000))
    expect(await gateway.prisma.category.findMany()).toEqual(before)
  })

  test('is not repeated because of any other error', async () => {
    let attempts = 0
    const refused = transaction(async (query) => {
      attempts++
      await query(sql('SELECT 1 / 0'), [])
    })
    await expect(refused).rejects.toThrow('division by zero')
    expect(attempts).toBe(1)
  })

  test('that PostgreSQL cannot commit is an error, also if its work has caught the cause', async () => {
    const refused = transaction((query) => query(sql('SELECT 1 / 0'), []).catch(() => {}))
    await expect(refused).rejects.toThrow('division by zero')
  })
})

describe('a POST with an Idempotency-Key', () => {
  test('is performed once; a repeated one gets the same status, headers and body, and is marked', async () => {
    const key = newKey()
    const before = await countOrders()
    const first = await order(key)
    const again = await order(key)
    expect([first.status, replayed(first)]).toEqual([201, null])
    expect([again.status, replayed(again)]).toEqual([201, 'true'])
    expect([again.text, again.headers.get('location')]).toEqual([first.text, first.headers.get('location')])
    expect(await countOrders()).toBe(before + 1)
  })

  test('does not even begin to perform what it replays: no id is lost', async () => {
    const lastId = () => gateway.prisma.$queryRaw`SELECT last_value FROM "Order_id_seq"`
    const key = newKey()
    await order(key)
    const before = await lastId()
    const answers = await Promise.all([order(key), order(key), order(key, { petId: 2 })])
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 422])
    expect(await lastId()).toEqual(before)
  })

  test('is replayed by every gateway', async () => {
    const other = await gateway.openBeside()
    const key = newKey()
    const first = await order(key)
    expect(await order(key, undefined, { key: gateway.key }, other)).toMatchObject({ status: 201, text: first.text })
  })

  test('belongs to one caller, and still works after a rotation of the API key', async () => {
    const key = newKey()
    const { key: old, row } = await gateway.createKey()
    const { key: rotated } = await gateway.createKey({ originId: row.id })
    const { key: stranger } = await gateway.createKey()
    const first = await order(key, undefined, { key: old })
    expect((await order(key, undefined, { key: rotated })).text).toBe(first.text)
    expect(replayed(await order(key, undefined, { key: stranger }))).toBeNull()
  })

  test('with another body or path is 422 idempotency_mismatch, and changes nothing', async () => {
    const key = newKey()
    await order(key)
    const before = await countOrders()
    const mismatch = { status: 422, body: { code: 'idempotency_mismatch', status: 422 } }
    expect(await order(key, { petId: 2 })).toMatchObject(mismatch)
    expect(await order(key, '{"petId": 1}')).toMatchObject(mismatch)
    expect(await gateway.post('/categories', { name: 'Birds' }, { headers: { 'idempotency-key': key } })).toMatchObject(
      mismatch,
    )
    expect(await countOrders()).toBe(before)
  })

  test('that is refused because of stored data is refused again, even if the data has changed', async () => {
    const key = newKey()
    const first = await order(key, { petId: 4 })
    expect(first).toMatchObject({ status: 422, body: { code: 'unknown_reference' } })
    await gateway.post('/pets', { name: 'Late', categoryId: 2 })
    expect(await order(key, { petId: 4 })).toMatchObject({ status: 422, text: first.text })
    expect(replayed(await order(key, { petId: 4 }))).toBe('true')
    expect((await order(newKey(), { petId: 4 })).status).toBe(201)
  })

  test('that is not valid is checked again each time', async () => {
    const key = newKey()
    expect((await order(key, { petId: 1, quantity: 0 })).status).toBe(400)
    expect((await order(key, { petId: 1 })).status).toBe(201)
  })

  test('costs what the request costs, and is refused like any other once the quota is used up', async () => {
    const { key } = await gateway.createKey({ plan: 'Enterprise', minuteLimit: 2, dayLimit: 2 })
    const idempotencyKey = newKey()
    const answers = [1, 2, 3].map(() => order(idempotencyKey, undefined, { key }))
    const statuses = []
    for (const answer of answers) statuses.push((await answer).status)
    expect(statuses.filter((status) => status === 429)).toHaveLength(1)
  })

  test('performs at most one of many concurrent ones; the others get its response, or 409 with Retry-After', async () => {
    for (let round = 0; round < 10; round++) {
      const key = newKey()
      const before = await countOrders()
      const answers = await Promise.all(times(8, () => order(key)))
      const created = answers.filter(({ status }) => status === 201)
      expect(created.length).toBeGreaterThan(0)
      expect(new Set(created.map(({ text }) => text)).size).toBe(1)
      for (const { status, headers, body } of answers)
        if (status !== 201) expect([body.code, headers.get('retry-after')]).toEqual(['conflict', '1'])
      expect(await countOrders()).toBe(before + 1)
      expect(await order(key)).toMatchObject({ status: 201, text: created[0]?.text })
    }
  })

  describe.skipIf(!testDatabaseUrl)(
    'blocks neither another caller’s with the same key nor the caller’s own with another',
    () => {
      test.each(['', '?takeStock=true'])('%s', async (query) => {
        const order = (idempotencyKey: string, petId: number, key: string) =>
          gateway.post(`/store/orders${query}`, { petId }, { key, headers: { 'idempotency-key': idempotencyKey } })
        for (const id of [1, 2]) await gateway.patch(`/inventory/${id}`, { quantity: 5 })
        const admin = await useClient(gateway.database.url)
        const [ann, bob] = [await gateway.createKey(), await gateway.createKey()]
        const key = newKey()
        const before = await countOrders()
        await admin.query('BEGIN; SELECT FROM "Pet" WHERE id = 1 FOR UPDATE')
        const first = order(key, 1, ann.key)
        await expect.poll(() => waitingForLocks(admin)).toBe(1)
        expect((await order(key, 1, ann.key)).body.code).toBe('conflict')
        expect((await order(key, 2, bob.key)).status).toBe(201)
        expect((await order(newKey(), 2, ann.key)).status).toBe(201)
        await admin.query('COMMIT')
        expect((await first).status).toBe(201)
        expect(await countOrders()).toBe(before + 3)
      })
    },
  )

  test.skipIf(!testDatabaseUrl)('whose answer another kept first is rolled back and replayed', async () => {
    const kept = newKey()
    const first = await order(kept)
    const before = await countOrders()
    const admin = await useClient(gateway.database.url)
    await admin.query('BEGIN; SELECT FROM "Pet" WHERE id = 1 FOR UPDATE')
    const key = newKey()
    const second = order(key)
    await expect.poll(() => waitingForLocks(admin)).toBe(1)
    await admin.query(
      `INSERT INTO "IdempotentAnswer" SELECT "callerId", '${key}', fingerprint, status, headers, body, "createdAt"
        FROM "IdempotentAnswer" WHERE key = '${kept}'; COMMIT`,
    )
    const answer = await second
    expect([answer.status, answer.text, replayed(answer)]).toEqual([201, first.text, 'true'])
    expect(await countOrders()).toBe(before)
  })

  test('is forgotten after 24 hours', async () => {
    const key = newKey()
    const first = await order(key)
    await age(key, '23:59:00')
    expect((await order(key)).text).toBe(first.text)
    await age(key, '24:00:01')
    const second = await order(key)
    expect(second.body.id).not.toBe(first.body.id)
    expect((await order(key)).text).toBe(second.text)
    await age(key, '24:00:01')
    await emptyStore(gateway.prisma)
    const refused = await order(key)
    expect([refused.status, (await order(key)).text]).toEqual([422, refused.text])
  })

  test('is performed exactly once more after 24 hours, however many are sent at the same time', async () => {
    for (let round = 0; round < 10; round++) {
      const key = newKey()
      const first = await order(key)
      await age(key, '24:00:01')
      const before = await countOrders()
      const answers = await Promise.all(times(8, () => order(key)))
      const created = answers.filter(({ status }) => status === 201)
      expect(new Set(created.map(({ text }) => text)).size).toBe(1)
      expect(created[0]?.text).not.toBe(first.text)
      expect(await countOrders()).toBe(before + 1)
    }
  })
})

describe('an error of the service', () => {
  /** While this is set, the database refuses new orders with the SQLSTATE. */
  async function failOrders(state: string | undefined) {
    await gateway.prisma.$executeRawUnsafe('DROP TRIGGER IF EXISTS fail ON "Order"')
    if (!state) return
    await gateway.prisma.$executeRawUnsafe(
      `CREATE OR REPLACE FUNCTION fail_order() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'out of order' USING ERRCODE = '${state}'; END $$`,
    )
    await gateway.prisma.$executeRawUnsafe(
      'CREATE TRIGGER fail BEFORE INSERT ON "Order" FOR EACH ROW EXECUTE FUNCTION fail_order()',
    )
    onTestFinished(async () => {
      await gateway.prisma.$executeRawUnsafe('DROP FUNCTION IF EXISTS fail_order CASCADE')
    })
  }
  test.each(
    surfaces.flatMap(([name, send]) => [
      { name, send, code: 'internal', state: 'P0001' },
      { name, send, code: 'unavailable', state: '53200' },
    ]),
  )('$code is not kept: the same $name is performed when the database works again', async ({ send, code, state }) => {
    const key = newKey()
    const before = await countOrders()
    await failOrders(state)
    for (let i = 0; i < 2; i++) {
      const failed = await send(key)
      expect([failed.code, replayed(failed)]).toEqual([code, null])
    }
    await failOrders(undefined)
    const performed = await send(key)
    expect([performed.code, replayed(performed)]).toEqual([undefined, null])
    expect(await countOrders()).toBe(before + 1)
    expect(replayed(await send(key))).toBe('true')
  })
})

describe('the clean-up of kept answers', () => {
  test('deletes all that are older than 24 hours, and no other', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const own = await gateway.openBeside()
    const { key, row } = await own.createKey()
    const keys = [newKey(), newKey(), newKey()] as const
    const send = (idempotencyKey: string) => order(idempotencyKey, { petId: 1 }, { key }, own)
    const [fresh, old, expired] = [await send(keys[0]), await send(keys[1]), await send(keys[2])]
    await age(keys[1], '23:50:00')
    await age(keys[2], '24:00:01')
    await own.prisma.$executeRaw`
      INSERT INTO "IdempotentAnswer" ("callerId", key, fingerprint, status, headers, body, "createdAt")
      SELECT ${row.id}::int, 'old-' || n, '', 201, '{}', '', now() - interval '25 hours' FROM generate_series(1, 1200) AS n`
    const kept = async () => {
      vi.advanceTimersByTime(60_000)
      const rows = await own.prisma.idempotentAnswer.findMany({ where: { callerId: row.id }, select: { key: true } })
      return rows.map((answer) => answer.key).sort()
    }
    await expect.poll(kept).toEqual([keys[0], keys[1]].sort())
    expect((await send(keys[0])).text).toBe(fresh.text)
    expect((await send(keys[1])).text).toBe(old.text)
    expect((await send(keys[2])).text).not.toBe(expired.text)
  })
})

describe('a replay', () => {
  test.each(surfaces)('of a successful %s counts as refused neither in the metrics nor in the log', async (_, send) => {
    const own = await gateway.openBeside()
    const key = newKey()
    await send(key, own)
    expect(replayed(await send(key, own))).toBe('true')
    const lines = own.logged.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request')
    expect(lines).toHaveLength(2)
    for (const line of lines) expect(line).not.toHaveProperty('refusal')
    expect((await own.get('/metrics', { key: null })).text).not.toMatch(/^petstore_refusals_total\{/m)
  })
})

describe('the Idempotency-Key', () => {
  test.each([
    ['has 1 character', 'k', 201],
    ['has 255 characters', 'k'.repeat(255), 201],
    ['has spaces and quotes', '"a b"', 201],
    ['is empty', '', 400],
    ['has 256 characters', 'k'.repeat(256), 400],
    ['is not ASCII', 'kéy', 400],
    ['has a control character', 'k\ty', 400],
  ])('%s: %#', async (_name, key, status) => {
    const answer = await order(key)
    expect(answer.status).toBe(status)
    if (status === 400) expect(answer.body.message).toContain('Idempotency-Key must be 1 to 255 printable ASCII')
  })

  test('must not be repeated, not even with the same value', async () => {
    const { url } = await gateway.listen()
    const send = async (headers: Record<string, string | string[]>) => {
      const sent = request(`${url}/store/orders`, {
        method: 'POST',
        headers: { 'x-api-key': gateway.key, 'content-type': 'application/json', ...headers },
      })
      sent.end('{"petId": 1}')
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      return [response.statusCode, ((await json(response)) as { message?: string }).message]
    }
    const before = await countOrders()
    const repeated = [400, expect.stringContaining('Idempotency-Key must not be repeated')]
    expect(await send({ 'idempotency-key': [newKey(), newKey()] })).toEqual(repeated)
    expect(await send({ 'idempotency-key': ['one', 'one'] })).toEqual(repeated)
    expect(await countOrders()).toBe(before)
    // A value is no name.
    const other = { 'x-one': 'idempotency-key', 'x-two': 'idempotency-key' }
    expect(await send({ 'idempotency-key': newKey(), ...other })).toEqual([201, undefined])
  })

  test.each(['PATCH', 'DELETE', 'GET'])('is ignored on %s', async (method) => {
    const headers = { 'idempotency-key': '' }
    const call = { headers, ...(method === 'PATCH' && { body: { quantity: 3 } }) }
    for (const status of [method === 'DELETE' ? 204 : 200, method === 'DELETE' ? 404 : 200]) {
      const answer = await gateway.call(method, '/store/orders/1', call)
      expect([answer.status, replayed(answer)]).toEqual([status, null])
    }
  })
})

describe('a GraphQL mutation with an Idempotency-Key', () => {
  const mutate = (key: string, query: string, variables?: object) =>
    gateway.graphql(query, variables, { headers: { 'idempotency-key': key } })
  const nested = 'mutation { createOrder(input: { petId: 1 }) { id pet { name orders { id } } } }'

  test('is performed once, and its nested fields are part of the answer', async () => {
    const key = newKey()
    const before = await countOrders()
    const first = await mutate(key, nested)
    const again = await mutate(key, nested)
    expect(first.body.data.createOrder.pet.orders).toContainEqual({ id: first.body.data.createOrder.id })
    expect([again.status, again.text, replayed(again)]).toEqual([200, first.text, 'true'])
    expect(await countOrders()).toBe(before + 1)
  })

  test('that is not valid is checked again each time', async () => {
    const key = newKey()
    expect((await mutate(key, 'mutation { createOrder(input: { petId: 1 }) { nothing } }')).body.data).toBeUndefined()
    expect((await mutate(key, nested)).body.data.createOrder.id).toEqual(expect.any(Number))
  })

  test.each([
    ['not_found', 'updateCategory(categoryId: 99, input: { name: "Birds" })'],
    ['conflict', 'deleteCategory(categoryId: 98)'],
    ['unknown_reference', 'createPet(input: { name: "Rex", categoryId: 99 })'],
  ])('that is refused with %s is refused again, even if the data has changed', async (code, field) => {
    const key = newKey()
    const query = `mutation { ${field} { id } }`
    await gateway.prisma.category.create({ data: { id: 98, name: 'Fish', pets: { create: { name: 'Nemo' } } } })
    const first = await mutate(key, query)
    expect([first.body.errors[0].extensions.code, replayed(first)]).toEqual([code, null])
    await emptyStore(gateway.prisma)
    await gateway.prisma.category.createMany({ data: [98, 99].map((id) => ({ id, name: `Late ${id}` })) })
    const again = await mutate(key, query)
    expect([again.text, replayed(again)]).toEqual([first.text, 'true'])
    expect((await mutate(newKey(), query)).body.errors).toBeUndefined()
  })

  test('must have exactly one mutation field; on a query the key is ignored', async () => {
    const before = await countOrders()
    const two = 'mutation { a: createOrder(input: { petId: 1 }) { id } b: createOrder(input: { petId: 1 }) { id } }'
    const { status, body } = await mutate(newKey(), two)
    expect([status, body.errors[0].message]).toEqual([400, expect.stringContaining('this one has 2')])
    expect(await countOrders()).toBe(before)
    expect((await mutate('', '{ a: pets { id } b: pets { id } }')).body.errors).toBeUndefined()
  })

  test('can have an answer of 64 KiB; a longer one returns 400, and nothing has changed', async () => {
    const before = await countOrders()
    // A document can have 64 KiB too.
    const names = times(10, (i) => `${'n'.repeat(6_000)}${i}: name`).join(' ')
    const long = (padding: number) =>
      `mutation { createOrder(input: { petId: 1 }) { id pet { ${names} ${'p'.repeat(padding)}: name } } }`
    const padded = await mutate(newKey(), long(1))
    const padding = 1 + 65_536 - Buffer.byteLength(padded.text)
    const longest = await mutate(newKey(), long(padding))
    expect([longest.status, Buffer.byteLength(longest.text)]).toEqual([200, 65_536])
    const key = newKey()
    const { status, body } = await mutate(key, long(padding + 1))
    expect([status, body.errors[0].message]).toEqual([400, expect.stringContaining('65537 bytes')])
    expect(await countOrders()).toBe(before + 2)
  })

  test('of a batch can have an answer of 256 KiB', async () => {
    const name = '\u0001'.repeat(100)
    const send = (count: number, key: string) =>
      gateway.post(
        '/pets/batch',
        times(count, () => ({ name, categoryId: 1 })),
        { headers: { 'idempotency-key': key } },
      )
    const key = newKey()
    const first = await send(100, key)
    expect([first.status, first.body.length]).toEqual([201, 100])
    const again = await send(100, key)
    expect([again.text, replayed(again)]).toEqual([first.text, 'true'])

    const variables = { pets: times(100, () => ({ name, categoryId: 1 })) }
    const names = times(4, (i) => `name${i}: name`)
    const mutatePets = (padding: number) =>
      mutate(
        newKey(),
        `mutation ($pets: [NewPet!]!) { ${'p'.repeat(padding)}: createPets(input: $pets) { ${names} } }`,
        variables,
      )
    const padding = 1 + 262_144 - Buffer.byteLength((await mutatePets(1)).text)
    const longest = await mutatePets(padding)
    expect([longest.status, Buffer.byteLength(longest.text)]).toEqual([200, 262_144])
    const before = await gateway.prisma.pet.count()
    const { status, body } = await mutatePets(padding + 1)
    expect([status, body.errors[0].message]).toEqual([400, expect.stringContaining('262145 bytes')])
    expect(await gateway.prisma.pet.count()).toBe(before)
  })

  test('joins an ifMatch to the same transaction: both hold', async () => {
    const { etag } = (await gateway.graphql('{ inventoryItem(petId: 1) { etag } }')).body.data.inventoryItem
    const update = `mutation { updateInventory(petId: 1, ifMatch: ${JSON.stringify(etag)}, input: { quantity: 9 }) { quantity } }`
    const key = newKey()
    const first = await mutate(key, update)
    expect(first.body.data.updateInventory.quantity).toBe(9)
    expect((await mutate(key, update)).text).toBe(first.text)
    expect((await mutate(newKey(), update)).body.errors[0].extensions.code).toBe('precondition_failed')
  })
})
