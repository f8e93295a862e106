import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { times } from './support/calls.js'
import { type Gateway, openGateway, useGateway } from './support/gateway.js'
import { repeat } from './support/hostile-documents.js'
import { testDatabaseUrl, useClient } from './support/postgres.js'
import { dial, statuses } from './support/sockets.js'

const work = { concurrent: 4, share: 2, waiting: 8 }

const head = (line: string, key: string, headers = '') =>
  `${line} HTTP/1.1\r\nHost: a\r\nX-API-Key: ${key}\r\n${headers}\r\n`

/** An operation of so many units. */
const pets = (count: number) => `{ ${repeat(count, (i) => `a${i}: pet(petId: ${i + 1}) { id }`)} }`

describe('more requests than there is room for', () => {
  test.each([
    ['REST', (gateway: Gateway, key: string) => gateway.get('/pets', { key })],
    ['GraphQL', (gateway: Gateway, key: string) => gateway.graphql('{ pets { id } }', {}, { key })],
  ])(
    'return 503 with Retry-After and all headers, cost nothing, and do not shut out other keys: %s',
    async (_, call) => {
      const gateway = await useGateway({ limits: work })
      const [ann, bob] = [await gateway.createKey({ plan: 'Pro' }), await gateway.createKey()]
      // Two at work, four wait: half of the places.
      const many = Promise.all(times(20, () => call(gateway, ann.key)))
      const other = await call(gateway, bob.key)
      const answers = await many
      const shed = answers.filter(({ status }) => status === 503)
      expect(other.status).toBe(200)
      expect(shed).toHaveLength(14)
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(6)
      for (const { code, headers } of shed) {
        const shown = ['retry-after', 'x-ratelimit-limit'].map((name) => headers.get(name))
        expect([code, ...shown]).toEqual(['unavailable', '1', '300'])
      }
      expect((await gateway.get('/quota', { key: ann.key })).body.minute.remaining).toBe(294)
      const metrics = (await gateway.get('/metrics')).text
      expect(metrics).toMatch(/^petstore_shed_requests_total 14$/m)
      expect(metrics).toMatch(/^petstore_requests\{state="working"\} 0$/m)
    },
  )

  test('leave the operational endpoints, the pages and free requests alone', async () => {
    const gateway = await useGateway({ limits: { concurrent: 0, share: 0, waiting: 0 } })
    expect((await gateway.get('/pets')).status).toBe(503)
    expect((await gateway.get('/quota')).body.plan).toBe('Enterprise')
    expect((await gateway.graphql('{ quota { plan } }')).body).toEqual({ data: { quota: { plan: 'Enterprise' } } })
    expect((await gateway.graphql('{ quota { plan } pets { id } }')).status).toBe(503)
    for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json'])
      expect((await gateway.get(path, { key: null })).status).toBe(200)
  })

  test('are refused immediately if as many wait as may, of whichever keys', async () => {
    const gateway = await useGateway({ limits: { concurrent: 0, share: 0, waiting: 4 } })
    const keys = [(await gateway.createKey()).key, (await gateway.createKey()).key]
    const metrics = async () => (await gateway.get('/metrics', { key: null })).text
    let isOver = false
    const waiting = [...keys, ...keys].map(async (key) => {
      const { status } = await gateway.get('/pets', { key })
      isOver = true
      return status
    })
    await expect.poll(metrics, { interval: 5 }).toMatch(/^petstore_requests\{state="waiting"\} 4$/m)
    expect([(await gateway.get('/pets')).status, isOver]).toEqual([503, false])
    expect(await Promise.all(waiting)).toEqual([503, 503, 503, 503])
  })

  test.each([
    ['POST', (gateway: Gateway) => gateway.post('/categories', { name: 'Cats' })],
    ['PATCH', (gateway: Gateway) => gateway.patch('/categories/1', { name: 'Cats' })],
    ['mutation', (gateway: Gateway) => gateway.graphql('mutation { createCategory(input: { name: "Cats" }) { id } }')],
    ['query', (gateway: Gateway) => gateway.graphql('{ pets { id } }')],
  ])('need a place at work also after their body had room: %s', async (_, call) => {
    const gateway = await useGateway({ limits: { concurrent: 0, share: 0, waiting: 8 } })
    expect((await call(gateway)).status).toBe(503)
    expect(await gateway.prisma.category.count()).toBe(0)
    expect((await gateway.get('/metrics')).text).toMatch(/^petstore_requests\{state="uploading"\} 0$/m)
  })

  test('large GraphQL operations of a key wait for each other or are refused, and do not delay other keys', async () => {
    const gateway = await useGateway({ limits: { concurrent: 40, share: 30, waiting: 40 } })
    const { key } = await gateway.createKey()
    const large = pets(60)
    const answers = Promise.all(times(5, () => gateway.graphql(large)))
    expect((await gateway.graphql('{ pets { id } }', {}, { key })).status).toBe(200)
    for (const { status } of await answers) expect([200, 503]).toContain(status)
  })

  test('a GraphQL operation that costs as much as one key may have inside is served, again and again', async () => {
    const gateway = await useGateway()
    const large = pets(100)
    for (let i = 0; i < 3; i++) expect((await gateway.graphql(large)).status).toBe(200)
  })

  describe.skipIf(!testDatabaseUrl)('while they wait for a locked table', () => {
    async function useLocked() {
      const gateway = await useGateway()
      const admin = await useClient(gateway.database.url)
      await admin.query('BEGIN; LOCK TABLE "Pet"')
      const state = async (name: string) =>
        Number(new RegExp(`state="${name}"\\} (\\d+)`).exec((await gateway.get('/metrics', { key: null })).text)?.[1])
      return { gateway, admin, states: async () => [await state('working'), await state('waiting')] }
    }

    test.each([
      [50, [3, 0]],
      [51, [2, 1]],
    ])('large GraphQL operations have room for 250 units together: 100, 100 and %i', async (units, expected) => {
      const { gateway, admin, states } = await useLocked()
      const answers: Promise<unknown>[] = []
      for (const [i, cost] of [100, 100, units].entries()) {
        const { key } = await gateway.createLimitedKey(1_000)
        answers.push(gateway.graphql(pets(cost), {}, { key }))
        if (i < 2) await expect.poll(async () => (await states())[0], { interval: 10 }).toBe(i + 1)
      }
      await expect.poll(states, { interval: 10 }).toEqual(expected)
      await admin.query('COMMIT')
      await Promise.all(answers)
    })

    test('a small GraphQL operation has room beside a large one of its key', async () => {
      const { gateway, admin, states } = await useLocked()
      const large = gateway.graphql(pets(60))
      await expect.poll(states, { interval: 10 }).toEqual([1, 0])
      expect((await gateway.graphql('{ categories { id } }')).status).toBe(200)
      expect(await states()).toEqual([1, 0])
      await admin.query('COMMIT')
      expect((await large).status).toBe(200)
    })

    test('they have all their room again soon after a connection was accepted', async () => {
      const { gateway, admin, states } = await useLocked()
      await dial(gateway)
      for (let turn = 0; turn < 50; turn++) await new Promise((next) => setImmediate(next))
      const answers = times(20, (i) => gateway.get(`/pets?limit=${i + 1}`))
      await expect.poll(states, { interval: 10 }).toEqual([20, 0])
      await admin.query('COMMIT')
      for (const { status } of await Promise.all(answers)) expect(status).toBe(200)
    })
  })

  test('are refused immediately with 429 when the quota of their key is used up', async () => {
    const gateway = await useGateway({ limits: { ...work, waiting: 200 } })
    const { key } = await gateway.createLimitedKey(3)
    const answers = await Promise.all(times(90, () => gateway.get('/pets', { key })))
    const counts = [200, 429].map((status) => answers.filter((answer) => answer.status === status).length)
    expect(counts).toEqual([3, 87])
    expect((await gateway.get('/metrics')).text).toMatch(/^petstore_requests\{state="working"\} 0$/m)
  })
})

describe('clients that are slow', () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await openGateway({ limits: work, stallMs: 600_000 })
    return () => gateway.close()
  })

  describe('to read their responses', () => {
    let body: string
    beforeAll(async () => {
      const { prisma } = gateway
      const { id } = await prisma.category.create({ data: { name: 'Cats', description: 'c'.repeat(1_000) } })
      await prisma.pet.createMany({ data: times(100, () => ({ name: 'Tom', categoryId: id })) })
      const aliases = times(80, (i) => `a${i}: description`).join(' ')
      body = JSON.stringify({ query: `{ pets(limit: 100, categoryId: ${id}) { category { ${aliases} } } }` })
    })

    const figure = async (of: Gateway, pattern: string) =>
      Number(new RegExp(`^${pattern} (\\d+)$`, 'm').exec((await of.get('/metrics', { key: null })).text)?.[1] ?? 0)
    const unread = (of = gateway) => figure(of, 'petstore_unread_bytes')
    const answered = (of: Gateway) =>
      figure(of, 'petstore_requests_total\\{surface="graphql",.*,plan="Business",status="200"\\}')
    const createKey = async () => (await gateway.createKey({ plan: 'Business' })).key

    /** Asks for 8 MB, waits until they are sent, and reads nothing until the connection is resumed. */
    async function ask(key: string, of = gateway) {
      const before = await answered(of)
      const json = `Content-Type: application/json\r\nConnection: close\r\nContent-Length: ${body.length}\r\n`
      const socket = await dial(of)
      socket.pause().write(head('POST /graphql', key, json) + body)
      await expect.poll(() => answered(of)).toBe(before + 1)
      return socket
    }

    test('may leave 64 MiB together; then the one with most of it loses connections, and no other does', async () => {
      await expect.poll(() => unread()).toBe(0)
      const greedy = await createKey()
      const sockets = [await ask(await createKey())]
      let held = await unread()
      for (let before = 0; held > before; ) {
        before = held
        sockets.push(await ask(greedy))
        held = await unread()
        expect(held).toBeLessThanOrEqual(67_108_864)
      }
      expect(held).toBeGreaterThan(50_000_000)
      const lengths = await Promise.all(
        sockets.map(async (socket) => {
          let length = 0
          for await (const chunk of socket.resume()) length += chunk.length
          return length
        }),
      )
      expect(lengths.map((length) => length > 8_000_000)).toEqual(lengths.map((_, i) => i !== 1))
      await expect.poll(() => unread()).toBe(0)
    })

    test('lose the connection after some seconds in which they read nothing', async () => {
      const impatient = await gateway.openBeside({ stallMs: 200 })
      const socket = await ask(await createKey(), impatient)
      await expect.poll(() => unread(impatient)).toBe(0)
      let length = 0
      for await (const chunk of socket.resume()) length += chunk.length
      expect(length).toBeLessThan(8_000_000)
    })
  })

  test('do not delay others after they disconnect', async () => {
    const { key } = await gateway.createKey()
    for (let i = 0; i < 5; i++) {
      const socket = await dial(gateway)
      socket.write(`${head('POST /categories', key, 'Content-Type: application/json\r\nContent-Length: 20\r\n')}{`)
      await sleep(20)
      socket.destroy()
    }
    const post = async () => (await gateway.post('/categories', { name: 'Cats' }, { key })).status
    await expect.poll(post).toBe(201)
  })
})

describe('pipelined requests', () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await openGateway()
    return () => gateway.close()
  })
  const get = (headers = '') => head('GET /pets', gateway.key, headers)

  test('are answered one after another, in order', async () => {
    const socket = await dial(gateway)
    socket.write(get().repeat(99) + head('GET /nowhere', gateway.key, 'Connection: close\r\n'))
    expect(await statuses(socket)).toEqual([...Array(99).fill(200), 404])
  })

  test('end the connection if more than 100 wait for the one before', async () => {
    const socket = await dial(gateway)
    socket.write(get().repeat(102))
    expect((await statuses(socket).catch(() => [])).length).toBeLessThan(102)
    expect((await gateway.get('/pets')).status).toBe(200)
  })
})
