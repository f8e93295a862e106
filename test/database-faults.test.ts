import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createLog } from '../src/engines/observe/log.js'
import { toApiError } from '../src/gateway/http/errors.js'
import { createSecret } from '../src/gateway/keys/index.js'
import { times } from './support/calls.js'
import { openProxiedDatabase, openTestDatabase } from './support/database.js'
import { type Answer, type Gateway, type GatewayOptions, openGateway } from './support/gateway.js'
import { testDatabaseUrl, useClient, waitingForLocks } from './support/postgres.js'
import type { TcpProxy } from './support/proxy.js'
import { watched } from './support/statements.js'

interface UseOptions extends Pick<GatewayOptions, 'keyTtlMs' | 'limits'> {
  timeoutMs?: number
}

/** A gateway whose database is behind a proxy, and a connection of an administrator. */
async function useGateway({ keyTtlMs, timeoutMs, limits }: UseOptions = {}) {
  const states: { msg: string; statements?: string }[] = []
  const log = createLog('info', { write: (line) => void states.push(JSON.parse(line)) })
  const { database, proxy, behind } = await openProxiedDatabase({ log, timeoutMs })
  const gateway = await openGateway({ database: behind, keyTtlMs, limits })
  onTestFinished(async () => {
    proxy.resume()
    await gateway.close()
  })
  const admin = await useClient(database.url)
  const category = await database.prisma.category.create({ data: { name: 'Dogs' } })
  const pet = await database.prisma.pet.create({ data: { name: 'Rex', categoryId: category.id } })
  await gateway.get('/pets')
  return { gateway, database, proxy, admin, states, pet, category }
}

/** It returns although the database goes on to hang. `npm run test:faults` measures after how long. */
async function expectUnavailable(request: Promise<Answer>) {
  const { status, code, body, headers, text } = await request
  expect([status, code]).toEqual([503, 'unavailable'])
  expect(text).not.toMatch(/prisma|127\.0\.0\.1|ECONN/i)
  expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
  expect(body).not.toHaveProperty('data')
}

const idempotent = { headers: { 'idempotency-key': 'one' } }
const fresh = () => ({ headers: { 'idempotency-key': randomUUID() } })

/** Thirty requests, whose statuses come when they have all ended, and whether one has. */
function many(request: () => Promise<Answer>) {
  let isOver = false
  const statuses = times(30, async () => {
    const { status } = await request()
    isOver = true
    return status
  })
  return { stuck: Promise.all(statuses), ended: () => isOver }
}

test('while a database hangs, what does not need it is served, also by a process that looks busy', async () => {
  const limits = { concurrent: 4, share: 4, waiting: 100 }
  const { gateway, proxy } = await useGateway({ timeoutMs: 30_000, limits })
  const [{ key: known }, { key: other }] = [await gateway.createKey(), await gateway.createKey()]
  for (const key of [known, other]) await gateway.get('/quota', { key })
  proxy.hang()
  const stuck = Promise.all(times(4, () => gateway.get('/pets', { key: other })))
  // As where other programs take the cores: what waits for a core looks like work.
  const busy = setInterval(() => {
    for (const end = performance.now() + 90; performance.now() < end; );
  }, 100)
  const { status } = await gateway.get('/quota', { key: known })
  clearInterval(busy)
  proxy.resume()
  expect(status).toBe(200)
  await stuck
})

test.each<[string, (proxy: TcpProxy) => unknown, (proxy: TcpProxy) => unknown]>([
  ['hangs', (proxy) => proxy.hang(), (proxy) => proxy.resume()],
  ['is gone', (proxy) => proxy.cut(), (proxy) => proxy.restore()],
])(
  'a database that %s returns 503 on both surfaces, without details, and is used again as soon as it answers',
  async (_, fail, recover) => {
    const { gateway, proxy, states } = await useGateway()
    const { key: unseen } = await gateway.createKey()
    expect((await gateway.get('/readyz', { key: null })).status).toBe(200)
    await fail(proxy)
    const probes = Promise.all([1, 2, 3].map(() => gateway.get('/readyz', { key: null })))
    const mutation =
      'mutation { a: createCategory(input: {name: "a"}) { id } b: createCategory(input: {name: "b"}) { id } }'
    await Promise.all([
      ...['/pets', '/pets/1', '/store/orders'].map((path) => expectUnavailable(gateway.get(path))),
      expectUnavailable(gateway.get('/pets', { key: unseen })),
      expectUnavailable(gateway.post('/categories', { name: 'Cats' })),
      expectUnavailable(gateway.post('/categories', { name: 'Cats' }, idempotent)),
      expectUnavailable(gateway.graphql('{ pets { id } categories { pets { id } } }')),
      expectUnavailable(gateway.graphql(mutation)),
    ])
    const partial = await gateway.graphql('{ pets { id } quota { plan } }')
    expect([partial.status, partial.body.data]).toEqual([200, { pets: null, quota: { plan: 'Enterprise' } }])
    expect(partial.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
    expect((await probes).map(({ status }) => status)).toEqual([503, 503, 503])

    await recover(proxy)
    const answered = async () => (await gateway.get('/pets')).status
    await expect.poll(answered, { interval: 50 }).toBe(200)
    expect((await gateway.post('/categories', { name: 'Cats' }, idempotent)).status).toBe(201)
    expect((await gateway.get('/readyz', { key: null })).status).toBe(200)
    const messages = states.map(({ msg }) => msg)
    expect(messages.filter((msg) => msg === 'the database is unreachable')).toHaveLength(1)
    expect(messages.filter((msg) => msg === 'the database is reachable again')).toHaveLength(1)
    const failing = states.filter(({ msg }) => msg === 'the database does not answer these statements')
    expect(new Set(failing.map(({ statements }) => statements)).size).toBe(failing.length)
  },
)

test('a database that hangs returns 503 also if the gateway itself stalls while requests wait', async () => {
  const { gateway, proxy } = await useGateway()
  await gateway.get('/pets')
  proxy.hang()
  const ask = (...paths: string[]) => paths.map((path) => expectUnavailable(gateway.get(path)))
  // Some wait for the idle connection and for new ones, others for new ones alone.
  const refused = ask('/pets', '/pets/1', '/store/orders')
  await sleep(50)
  refused.push(...ask('/categories', '/inventory'))
  await sleep(50)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000)
  await Promise.all(refused)
})

test('a database that hangs does not delay requests with a known key that need no row, for five minutes', async () => {
  const { gateway, proxy } = await useGateway({ keyTtlMs: 50 })
  const quota = async () => (await gateway.get('/quota')).status
  expect(await quota()).toBe(200)
  await sleep(60)
  proxy.hang()
  expect(await Promise.all(Array.from({ length: 20 }, quota))).toEqual(new Array(20).fill(200))
  const now = performance.now()
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  vi.advanceTimersByTime(now + 290_000)
  expect(await quota()).toBe(200)
  vi.advanceTimersByTime(20_000)
  expect(await quota()).toBe(503)
  proxy.resume()
  await expect.poll(quota).toBe(200)
})

test('a key that is revoked while its row cannot be read is refused soon after the database answers again', async () => {
  const { gateway, database, proxy } = await useGateway({ keyTtlMs: 50 })
  const { key, row } = await gateway.createKey()
  const quota = async () => (await gateway.get('/quota', { key })).status
  expect(await quota()).toBe(200)
  await sleep(60)
  await proxy.cut()
  expect(await quota()).toBe(200)
  await database.prisma.apiKey.update({ where: { id: row.id }, data: { revokedAt: new Date() } })
  expect(await quota()).toBe(200)
  await proxy.restore()
  await expect.poll(quota, { interval: 50 }).toBe(401)
})

test('/readyz uses one connection for all probes, and finds a new one when it is closed', async () => {
  const { gateway, proxy, states } = await useGateway()
  const probe = async () => (await gateway.get('/readyz', { key: null })).status
  expect(await probe()).toBe(200)
  const { accepted } = proxy
  expect(new Set(await Promise.all(Array.from({ length: 30 }, probe)))).toEqual(new Set([200]))
  for (let i = 0; i < 5; i++) expect(await probe()).toBe(200)
  expect(proxy.accepted).toBe(accepted)
  await proxy.cut()
  expect(await probe()).toBe(503)
  await proxy.restore()
  expect(await probe()).toBe(200)
  expect(states.map(({ msg }) => msg)).toEqual(['the database is unreachable', 'the database is reachable again'])
})

test('an error that repeats a text of the client is 500, whatever the text is', async () => {
  const gateway = await openGateway()
  onTestFinished(async () => {
    await gateway.prisma.$executeRaw`DROP FUNCTION refuse CASCADE`
    await gateway.close()
  })
  await gateway.prisma.$executeRaw`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN RAISE EXCEPTION ''%'', NEW.name; END'`
  await gateway.prisma
    .$executeRaw`CREATE TRIGGER refuse BEFORE INSERT ON "Category" FOR EACH ROW EXECUTE FUNCTION refuse()`
  for (const name of ['ECONNREFUSED', 'Connection terminated', 'terminating connection', 'SocketTimeout']) {
    const { status, body } = await gateway.post('/categories', { name })
    expect([status, body.code]).toEqual([500, 'internal'])
  }
})

test('an error without end or with values that JSON does not have is 500', () => {
  const log = createLog('silent')
  const endless = Object.assign(new Error('endless'), { meta: { id: 1n } as object })
  Object.assign(endless, { cause: endless, meta: endless })
  for (const error of [endless, Object.assign(new Error('ETIMEDOUT'), { code: 1, meta: { id: 1n } }), 'EPIPE', null])
    expect(toApiError(error, log)).toMatchObject({ status: 500, code: 'internal' })
})

describe.skipIf(!testDatabaseUrl)('PostgreSQL', () => {
  test('with a locked table: requests that need it return 503, and all others are served without delay', async () => {
    // Longer than a busy machine takes for what is served meanwhile.
    const { gateway, admin, pet, states } = await useGateway({ timeoutMs: 8_000 })
    await admin.query('BEGIN; LOCK TABLE "Order"')
    const order = { petId: Number(pet.id) }
    // Fewer than one key may have at work: on a busy machine, the others would wait for them.
    const stuck = Promise.all(
      times(5, (i) => [
        expectUnavailable(gateway.get(`/store/orders?limit=${i + 1}`)),
        expectUnavailable(gateway.get(`/store/orders/${i + 1}`)),
        expectUnavailable(gateway.post('/store/orders', order)),
        expectUnavailable(gateway.graphql('{ pets { orders { id } } }')),
        expectUnavailable(
          gateway.graphql('mutation ($o: NewOrder!) { createOrder(input: $o) { pet { name } } }', { o: order }),
        ),
      ]).flat(),
    )
    let ended = false
    const end = () => {
      ended = true
    }
    stuck.then(end, end)
    await sleep(300)
    for (let i = 0; i < 3; i++) {
      for (const path of ['/pets', '/pets/1', '/categories', '/inventory', '/readyz'])
        expect((await gateway.get(path)).status).toBe(200)
      expect((await gateway.patch('/inventory/1', { quantity: i })).status).toBe(200)
      expect((await gateway.post('/categories', { name: `c${i}` })).status).toBe(201)
    }
    expect(ended).toBe(false)
    const partial = await gateway.graphql('{ orders { id } categories(limit: 1) { id } }')
    expect([partial.status, partial.body.data]).toEqual([200, { orders: null, categories: [{ id: 1 }] }])
    await stuck
    const stalled = states.filter(({ msg }) => msg === 'the database does not answer these statements')
    expect(stalled.map(({ statements }) => statements)).toContain('SELECT Order')
    await admin.query('ROLLBACK')
    await expect.poll(async () => (await gateway.get('/store/orders')).status).toBe(200)
  })

  test('mutations of several fields with an Idempotency-Key wait with all others: no set of fields is kept', async () => {
    const { gateway, admin, states } = await useGateway()
    await admin.query('BEGIN; LOCK TABLE "Category"')
    const sets = [
      'createPet(input: { name: "x", categoryId: 1 }) { id }',
      'updatePet(petId: 1, input: { name: "x" }) { id }',
    ]
    for (const other of sets) {
      const document = `mutation @atomic { a: createCategory(input: { name: "x" }) { id } b: ${other} }`
      await expectUnavailable(gateway.graphql(document, undefined, fresh()))
    }
    const names = states.flatMap(({ statements = '' }) => (statements.startsWith('keyed') ? statements : []))
    expect(new Set(names)).toEqual(new Set(['keyed several']))
  })

  const update = 'mutation { updatePet(petId: 1, input: { name: "b" }) { id } }'
  const rowLock = 'SELECT 1 FROM "Pet" WHERE id = 1 FOR UPDATE'
  test.each<[what: string, lock: string, status: number, stuck: (of: Gateway) => Promise<Answer>]>([
    [
      'conditional changes wait for its row',
      rowLock,
      200,
      (of) => of.patch('/pets/1', { name: 'b' }, { headers: { 'if-match': '*' } }),
    ],
    ['changes wait for its row', rowLock, 200, (of) => of.patch('/pets/1', { name: 'b' })],
    ['changes with an Idempotency-Key wait for its row', rowLock, 200, (of) => of.graphql(update, undefined, fresh())],
    ['new rows that refer to its row wait', rowLock, 201, (of) => of.post('/store/orders', { petId: 1 })],
    [
      'requests with an Idempotency-Key wait for its table',
      'LOCK TABLE "Order"',
      201,
      (of) => of.post('/store/orders', { petId: 1 }, fresh()),
    ],
  ])('with a lock: what does not need it is served while many %s', async (_, lock, status, change) => {
    const { gateway, admin, category } = await useGateway({ timeoutMs: 30_000 })
    for (const name of ['Max', 'Rio']) await gateway.post('/pets', { name, categoryId: Number(category.id) })
    await admin.query(`BEGIN; ${lock}`)
    const { stuck, ended } = many(() => change(gateway))
    for (let i = 0; i < 10; i++) {
      for (const path of ['/pets', '/pets/1', '/pets/2']) expect((await gateway.get(path)).status).toBe(200)
      if (lock === rowLock) expect((await gateway.get('/store/orders')).status).toBe(200)
      expect((await gateway.patch('/pets/2', { name: `a${i}` })).status).toBe(200)
      expect((await gateway.patch('/pets/3', { name: `a${i}` }, { headers: { 'if-match': '*' } })).status).toBe(200)
      expect((await gateway.post('/categories', { name: 'c' }, fresh())).status).toBe(201)
    }
    expect(ended()).toBe(false)
    await admin.query('ROLLBACK')
    expect(await stuck).toEqual(new Array(30).fill(status))
  })

  test('ends what a killed gateway has left waiting for a lock', async () => {
    const { gateway, proxy, admin } = await useGateway()
    await admin.query('BEGIN; LOCK TABLE "Order"; SELECT 1 FROM "Pet" WHERE id = 1 FOR UPDATE')
    const stuck = [
      ...times(16, (i) => gateway.get(`/store/orders?limit=${i + 1}`)),
      ...times(8, (i) => gateway.patch('/pets/1', { name: `n${i}` })),
      gateway.patch('/pets/1', { name: 'x' }, { headers: { 'if-match': '*' } }),
      gateway.post('/store/orders', { petId: 1 }, fresh()),
    ]
    await expect.poll(() => waitingForLocks(admin)).toBeGreaterThan(3)
    await proxy.cut()
    await expect.poll(() => waitingForLocks(admin)).toBe(0)
    await Promise.all(stuck)
    await admin.query('ROLLBACK')
    await proxy.restore()
  })

  test('with a table that stays locked: others are served before the stuck ones fail, again and again', async () => {
    const { gateway, admin, pet } = await useGateway({ keyTtlMs: 600_000, timeoutMs: 5_000 })
    await admin.query('BEGIN; LOCK TABLE "Order"')
    const order = { petId: Number(pet.id) }
    const others = [
      () => gateway.get('/pets'),
      () => gateway.get('/categories/1'),
      () => gateway.patch('/inventory/1', { quantity: 1 }),
    ]
    // In the first round the gateway does not know yet that the table is locked.
    for (let round = 0; round < 3; round++) {
      let failed = 0
      const stuck: Promise<number>[] = []
      const send = async (request: Promise<Answer>) => {
        const { status } = await request
        failed++
        return status
      }
      for (let i = 0; i < 12; i++) {
        stuck.push(send(gateway.get(`/store/orders?limit=${i + 1}`)), send(gateway.post('/store/orders', order)))
        // In different turns of the event loop, so that they do not share connections.
        await sleep(1)
      }
      for (const { status } of await Promise.all(others.map((request) => request()))) expect(status).toBe(200)
      if (round > 0) expect(failed).toBeLessThan(stuck.length)
      expect(new Set(await Promise.all(stuck))).toEqual(new Set([503]))
    }
    await admin.query('ROLLBACK')
    await expect.poll(async () => (await gateway.get('/store/orders')).status).toBe(200)
  })

  test('ends the transaction of a gateway that it cannot reach, so that a retry on another gateway is soon performed', async () => {
    const { gateway, database, proxy, admin, pet } = await useGateway()
    const other = await openGateway({ database: { ...database, close: async () => {} } })
    onTestFinished(() => other.close())
    const order = { petId: Number(pet.id) }
    await admin.query('BEGIN; LOCK TABLE "Order"')
    const lost = gateway.post('/store/orders', order, idempotent)
    await expect.poll(() => waitingForLocks(admin)).toBe(1)
    proxy.hang()
    await admin.query('COMMIT')
    const retry = async () => (await other.post('/store/orders', order, { key: gateway.key, ...idempotent })).status
    await expect.poll(retry, { interval: 100 }).toBe(201)
    expect((await lost).status).toBe(503)
    expect(await database.prisma.order.count()).toBe(1)
  })

  test('that ends its backends: reads do not notice, and writes return 503 at most', async () => {
    const { gateway, admin } = await useGateway()
    let running = true
    const repeat = async (request: () => Promise<Answer>) => {
      const seen = new Set<number>()
      while (running) seen.add((await request()).status)
      return seen
    }
    const reads = ['/pets', '/pets/1', '/categories'].map((path) => repeat(() => gateway.get(path)))
    let keys = 0
    const writes = [
      repeat(() => gateway.post('/categories', { name: 'c' })),
      repeat(() => gateway.post('/categories', { name: 'c' }, { headers: { 'idempotency-key': `key-${keys++}` } })),
    ]
    for (let round = 0; round < 5; round++) {
      await sleep(50)
      await admin.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
      )
    }
    running = false
    for (const seen of await Promise.all(reads)) expect([...seen]).toEqual([200])
    for (const seen of await Promise.all(writes)) for (const status of seen) expect([201, 503]).toContain(status)
    await gateway.get('/pets')
    expect((await gateway.get('/readyz', { key: null })).status).toBe(200)
  })

  const writes: [string, (to: Gateway, petId: number) => Promise<Answer>][] = [
    ['a POST', (to, petId) => to.post('/store/orders', { petId })],
    [
      'a mutation',
      (to, petId) =>
        to.graphql('mutation ($petId: Int64!) { createOrder(input: { petId: $petId }) { id } }', { petId }),
    ],
  ]
  const terminate = `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`

  test.each(writes)('that ends the backend of %s: it is not sent again', async (_, write) => {
    const { gateway, database, admin, pet } = await useGateway({ timeoutMs: 30_000 })
    await admin.query(`BEGIN; SELECT FROM "Pet" WHERE id = ${pet.id} FOR UPDATE`)
    const sent: Promise<Answer>[] = []
    while (sent.length < 3) {
      sent.push(write(gateway, Number(pet.id)))
      await expect.poll(() => waitingForLocks(admin)).toBe(sent.length)
    }
    await admin.query(terminate)
    await admin.query('COMMIT')
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual([503, 503, 503])
    expect(await database.prisma.order.count()).toBe(0)
    expect((await write(gateway, Number(pet.id))).status).toBeLessThan(300)
    expect(await database.prisma.order.count()).toBe(1)
  })

  test.each(writes)(
    'that performs %s whose answer is lost with the connection: it is performed once',
    async (_, write) => {
      const { gateway, database, proxy, admin, pet } = await useGateway()
      await admin.query(`BEGIN; SELECT FROM "Pet" WHERE id = ${pet.id} FOR UPDATE`)
      const sent = write(gateway, Number(pet.id))
      await expect.poll(() => waitingForLocks(admin)).toBe(1)
      proxy.hang()
      await admin.query('COMMIT')
      await expect.poll(() => database.prisma.order.count()).toBe(1)
      await proxy.cut()
      proxy.resume()
      await proxy.restore()
      expect((await sent).status).toBe(503)
      expect(await database.prisma.order.count()).toBe(1)
    },
  )

  const query = 'mutation($id: Int64!) { updatePet(petId: $id, input: {categoryId: 2}) { category { id } } }'
  test.each([
    ['a statement', (to: Gateway, id: number) => to.patch(`/pets/${id}`, { categoryId: 2 })],
    ['a transaction', (to: Gateway, id: number) => to.graphql(query, { id })],
    ['a request with an Idempotency-Key', (to: Gateway, id: number) => to.graphql(query, { id }, idempotent)],
  ])('that ends %s because of a deadlock: it is repeated', async (_, request) => {
    const { gateway, database, admin, pet } = await useGateway({ timeoutMs: 30_000 })
    const other = await useClient(database.url)
    await gateway.post('/categories', { name: 'Cats' })
    // A session that waits looks for a deadlock once. For the gateway to find it, it has to be the last that waits.
    await admin.query(`SET deadlock_timeout = '10min'`)
    await other.query(`SELECT pg_advisory_lock(1);
      CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END';
      CREATE TRIGGER "Pause" AFTER UPDATE ON "Pet" FOR EACH ROW EXECUTE FUNCTION pause()`)
    onTestFinished(() => other.query('DROP FUNCTION pause CASCADE').then(() => {}))
    await admin.query('BEGIN')
    await admin.query('SELECT 1 FROM "Category" WHERE "id" = 2 FOR UPDATE')
    // It has the lock of the pet, and will ask for that of the category.
    const updated = request(gateway, Number(pet.id))
    await expect.poll(() => waitingForLocks(other)).toBe(1)
    const renamed = admin.query(`UPDATE "Pet" SET "name" = 'Max' WHERE "id" = ${pet.id}`)
    await expect.poll(() => waitingForLocks(other)).toBe(2)
    await other.query('SELECT pg_advisory_unlock(1)')
    await renamed
    await admin.query('COMMIT')
    const answer = await updated
    expect([answer.status, answer.body.errors]).toEqual([200, undefined])
    expect(await gateway.prisma.pet.findUnique({ where: { id: pet.id } })).toMatchObject({
      name: 'Max',
      categoryId: 2n,
    })
  })
})

describe('forged keys', () => {
  test('rarely reach the database, and valid keys behind the same address are served', async () => {
    const database = await openTestDatabase()
    const { statements, ...watching } = watched(database)
    const close = () => watching.prisma.$disconnect().then(() => database.close())
    const gateway = await openGateway({ database: { ...database, ...watching, close }, keyTtlMs: 100 })
    onTestFinished(() => gateway.close())
    const { key: unseen } = await gateway.createKey()
    expect((await gateway.get('/quota')).status).toBe(200)
    statements.length = 0

    const forged = times(2_000, () => createSecret().key)
    const seen = new Set<number>()
    const guess = async () => {
      for (let key = forged.pop(); key; key = forged.pop()) seen.add((await gateway.get('/quota', { key })).status)
    }
    const attack = Promise.all(Array.from({ length: 50 }, guess))
    await sleep(200)
    for (let i = 0; i < 5; i++) {
      expect((await gateway.get('/quota')).status).toBe(200)
      await sleep(20)
    }
    expect((await gateway.get('/quota', { key: unseen })).status).toBe(200)
    await Promise.race([attack, sleep(3_000)])
    expect(statements.filter((sql) => sql.includes('"ApiKey"')).length).toBeLessThan(150)
    forged.length = 0
    await attack
    expect([...seen].sort()).toEqual([401, 429])
  })
})
