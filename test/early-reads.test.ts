import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { resetStore, times } from './support/calls.js'
import { openTestDatabase, type TestDatabase } from './support/database.js'
import { openGateway, testRedisUrl, useGateway } from './support/gateway.js'
import { TcpProxy } from './support/proxy.js'
import { watched } from './support/statements.js'

describe.runIf(testRedisUrl)('while the decision of Redis is on its way', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await openTestDatabase()
  })
  afterAll(() => database.close())

  /** A gateway that waits for Redis as long as it takes, and a key of a few requests per minute. */
  async function open(minuteLimit: number, keyPrefix = randomUUID()) {
    const proxy = await TcpProxy.open(testRedisUrl as string)
    const { prisma, query: send, statements } = watched(database)
    const isSeen = (text: string) => /"(Pet|Category)"/.test(text)
    let ready = Promise.resolve()
    const query: typeof send = async (statement, values) => {
      const rows = await send(statement, values)
      if (isSeen(statement.text)) await ready
      return rows
    }
    const gateway = await openGateway({
      database: { ...database, prisma, query, close: () => prisma.$disconnect() },
      redisUrl: proxy.url,
      redisTimeoutMs: 30_000,
      keyPrefix,
    })
    onTestFinished(async () => {
      proxy.resume()
      await gateway.close()
      await proxy.cut()
    })
    await resetStore(prisma)
    const { key } = await gateway.createKey({ plan: 'Enterprise', minuteLimit, dayLimit: 1_000 })
    // The first decision tells what the key has left.
    expect((await gateway.get('/pets/1', { key })).status).toBe(200)
    statements.length = 0
    /** Statements on the tables that requests are about. */
    const seen = () => statements.filter(isSeen)
    /** Lets what these statements return wait until the function that it returns is called. */
    const holdRows = () => {
      let release = () => {}
      ready = new Promise((resolve) => {
        release = resolve
      })
      return release
    }
    return { gateway, proxy, key, seen, holdRows, keyPrefix }
  }

  test.each([
    ['REST', '/pets/2'],
    ['REST, a list', '/pets?limit=3'],
    ['GraphQL', '{ pet(petId: 2) { id } quota { minute { remaining } } }'],
  ])('a read begins, and is answered after it: %s', async (_, what) => {
    const { gateway, proxy, key, seen } = await open(100)
    proxy.hang()
    let answered = false
    const answer = what.startsWith('/') ? gateway.get(what, { key }) : gateway.graphql(what, {}, { key })
    void answer.then(() => {
      answered = true
    })
    await expect.poll(seen).toHaveLength(1)
    await sleep(50)
    expect(answered).toBe(false)
    proxy.resume()
    const { status, body, headers } = await answer
    expect(status).toBe(200)
    expect(body.errors).toBeUndefined()
    if (body.data)
      expect(body.data.quota.minute.remaining).toBe(Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]))
  })

  test('a write does not begin', async () => {
    const { gateway, proxy, key, seen } = await open(100)
    proxy.hang()
    const writes = [
      gateway.post('/categories', { name: 'Fish' }, { key }),
      gateway.graphql('mutation { createCategory(name: "Birds") { id } }', {}, { key }),
    ]
    const read = gateway.get('/pets/2', { key })
    await expect.poll(seen).toHaveLength(1)
    await sleep(50)
    expect(seen()).toHaveLength(1)
    proxy.resume()
    expect((await Promise.all([...writes, read])).map(({ status }) => status)).toEqual([201, 200, 200])
  })

  test('no more reads begin than the key is known to have left, less a tenth of its limit', async () => {
    const { gateway, proxy, key, seen } = await open(20)
    proxy.hang()
    const answers = []
    // In less than the two seconds after which a silent connection is given up.
    for (let i = 0; i < 25; i++) {
      answers.push(gateway.get('/pets/2', { key }))
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    }
    // 19 are left, and 2 are kept. Reads that arrive together share a statement.
    await expect.poll(() => seen().length).toBeGreaterThan(0)
    expect(seen().length).toBeLessThanOrEqual(17)
    proxy.resume()
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(19)
    expect(statuses.filter((status) => status === 429)).toHaveLength(6)
  })

  test('a read that has begun and is refused shows what any refusal shows, and is not counted', async () => {
    const { gateway, key, keyPrefix, seen, proxy } = await open(20)
    const other = await useGateway({ database: { ...database, close: async () => {} }, keyPrefix })
    await Promise.all(times(19, () => other.get('/quota/none', { key })))
    const refusal = await other.get('/pets/2', { key })
    expect(refusal.status).toBe(429)
    proxy.hang()
    const answers = [gateway.get('/pets/2', { key }), gateway.get('/pets/999999', { key })]
    await expect.poll(() => seen().length).toBeGreaterThan(0)
    proxy.resume()
    for (const { status, body, headers } of await Promise.all(answers)) {
      expect(status).toBe(429)
      expect(body.code).toBe('rate_limited')
      expect(Object.keys(body)).toEqual(Object.keys(refusal.body))
      expect([...headers.keys()].sort()).toEqual([...refusal.headers.keys()].sort())
    }
    // The first one is known to be the last that Redis allows.
    const before = seen().length
    expect((await gateway.get('/pets/2', { key })).status).toBe(429)
    expect(seen()).toHaveLength(before)
  })

  test('a read that has begun and is refused counts as work until it ends', async () => {
    const { gateway, key, keyPrefix, seen, holdRows, proxy } = await open(20)
    const other = await useGateway({ database: { ...database, close: async () => {} }, keyPrefix })
    await Promise.all(times(19, () => other.get('/quota/none', { key })))
    const working = async () =>
      /^petstore_requests\{state="working"\} (\d+)$/m.exec((await gateway.get('/metrics')).text)?.[1]
    const release = holdRows()
    proxy.hang()
    const answer = gateway.get('/pets/2', { key })
    await expect.poll(() => seen().length).toBeGreaterThan(0)
    proxy.resume()
    expect((await answer).status).toBe(429)
    expect(await working()).toBe('1')
    release()
    await expect.poll(working).toBe('0')
  })
})
