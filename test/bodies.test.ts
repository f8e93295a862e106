import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type Gateway, useGateway } from './support/gateway.js'
import { testDatabaseUrl, useClient, waitingForLocks } from './support/postgres.js'
import { dial, statuses } from './support/sockets.js'

/** Room for four bodies. */
const uploadBudget = 131_072

const head = (key: string, headers: string, path = '/categories') =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\n${headers}\r\n`

const chunked = 'Transfer-Encoding: chunked\r\n'
const inChunks = (text: string, size: number) =>
  `${text.replace(new RegExp(`[^]{1,${size}}`, 'g'), (piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`)}0\r\n\r\n`

test.runIf(testDatabaseUrl)(
  'a request whose client leaves while its key is looked up ends, and is logged and counted',
  async () => {
    const gateway = await useGateway()
    const { key, row } = await gateway.createKey()
    const admin = await useClient(gateway.database.url)
    await admin.query('BEGIN; LOCK TABLE "ApiKey"')
    const socket = await dial(gateway)
    socket.write(`${head(key, 'Content-Length: 20\r\n')}{"name"`)
    await expect.poll(() => waitingForLocks(admin)).toBe(1)
    socket.destroy()
    await expect.poll(() => socket.closed).toBe(true)
    await sleep(50)
    await admin.query('COMMIT')
    const requests = () => gateway.logged.map((line) => JSON.parse(line)).filter(({ method }) => method === 'POST')
    await expect.poll(requests).toMatchObject([{ msg: 'request', key: row.prefix, refusal: 'invalid_request' }])
  },
)

describe('a body in many pieces', () => {
  const json = (length: number) => `{"name":"Cats"}`.padEnd(length, ' ')
  const post = async (gateway: Gateway, body: string, size: number) => {
    const socket = await dial(gateway)
    const answered = statuses(socket)
    socket.write(head(gateway.key, `Connection: close\r\n${chunked}`) + inChunks(body, size))
    return answered
  }

  test('is taken up to 1,024 and one more for each 64 bytes, and refused with 413 one past that', async () => {
    const gateway = await useGateway()
    // 1,040 is the most n with n <= 1,024 + n / 64.
    expect(await post(gateway, json(1_040), 1)).toEqual([201])
    expect(await post(gateway, json(1_041), 1)).toEqual([413])
    expect(await post(gateway, json(131_072), 64)).toEqual([201])
    expect(await gateway.prisma.category.count()).toBe(2)
  })

  test('does not cost the connection, wherever its pieces end', async () => {
    const gateway = await useGateway()
    const socket = await dial(gateway)
    const answered = statuses(socket)
    for (const [path, body] of [
      ['/categories', inChunks(json(500), 1)],
      ['/nowhere', inChunks(json(500), 1)],
      ['/nowhere', '0\r\n\r\n'],
      ['/categories', '0\r\n\r\n'],
    ]) {
      socket.write(head(gateway.key, chunked, path))
      await sleep(50)
      socket.write(body as string)
      socket.write(head(gateway.key, chunked, path) + body)
    }
    socket.write(head(gateway.key, `Connection: close\r\n${chunked}`) + inChunks(json(500), 7))
    expect(await answered).toEqual([201, 201, 404, 404, 404, 404, 400, 400, 201])
  })

  test('is refused as soon as there are too many, however many would follow', async () => {
    const gateway = await useGateway()
    const socket = await dial(gateway)
    const answered = statuses(socket)
    socket.write(head(gateway.key, chunked) + '1\r\n \r\n'.repeat(1_041))
    expect(await answered).toEqual([413])
  })

  test.each([
    ['that is needed', '/categories', '', 413],
    ['that nobody needs', '/nowhere', '', 404],
    ['that is needed, and arrives whole', '/categories', '0\r\n\r\n', 413],
    ['that nobody needs, and arrives whole', '/nowhere', '0\r\n\r\n', 404],
  ])('%s costs the connection, and its answer comes after those of others', async (_, path, end, status) => {
    const gateway = await useGateway()
    const socket = await dial(gateway)
    const other = () => gateway.get('/healthz', { key: null })
    await other()
    let isAnswered = false
    socket.once('data', () => {
      isAnswered = true
    })
    const answered = statuses(socket)
    socket.write(head(gateway.key, chunked, path) + '1\r\n \r\n'.repeat(2_000) + end)
    let others = 0
    for (; !isAnswered; others++) {
      expect((await other()).status).toBe(200)
      await sleep(10)
    }
    expect(others).toBeGreaterThan(5)
    expect(await answered).toEqual([status])
  })

  test('says how it must be sent, on both surfaces', async () => {
    const gateway = await useGateway()
    for (const path of ['/categories', '/graphql']) {
      const socket = await dial(gateway)
      socket.write(head(gateway.key, chunked, path) + inChunks(json(2_000), 1))
      let text = ''
      for await (const chunk of socket) text += chunk
      expect(text).toContain('The body arrives in too many pieces')
      expect(text).toContain('payload_too_large')
    }
  })
})

describe('a body that is larger than allowed', () => {
  const MB = 1_048_576

  test.each([
    ['with its length', `Content-Length: ${5 * MB}\r\n`, 'x'.repeat(5 * MB)],
    ['in chunks', chunked, inChunks('x'.repeat(5 * MB), 16_384)],
  ])('of 5 MB, %s, gets its 413 also if the client sends all of it before it reads', async (_, headers, body) => {
    const gateway = await useGateway()
    // Each has two seconds, so that one after the other gets its answer on a busy machine too.
    for (let i = 0; i < 20; i++) {
      const socket = await dial(gateway)
      socket.pause()
      socket.write(head(gateway.key, headers))
      await new Promise((sent) => socket.write(body, sent))
      expect(await statuses(socket)).toEqual([413])
    }
  })

  test('is refused by its length, before any of it is sent', async () => {
    const gateway = await useGateway()
    const socket = await dial(gateway)
    socket.write(head(gateway.key, `Content-Length: ${5 * MB}\r\n`))
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 413/)
  })

  test('is cut off if it goes on for more than a moment', async () => {
    const gateway = await useGateway()
    const socket = await dial(gateway)
    let sent = 0
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(head(gateway.key, chunked))
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
    while (!socket.destroyed && sent < 500 * MB) {
      sent += 65_536
      await new Promise((next) => socket.write(chunk, next))
    }
    await closed
    expect(sent).toBeLessThan(100 * MB)
  })
})

describe('a body that nobody needs', () => {
  test('does not cost the connection of a client without a key', async () => {
    const gateway = await useGateway()
    const socket = await dial(gateway)
    socket.write(head('wrong', 'Content-Length: 20\r\n'))
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 401/)
    socket.write(`${' '.repeat(20)}${head(gateway.key, 'Content-Length: 15\r\nConnection: close\r\n')}{"name":"Cats"}`)
    expect(await statuses(socket)).toEqual([201])
  })

  test('is not waited for if the quota of the key refuses the request anyway', async () => {
    const gateway = await useGateway()
    const { key } = await gateway.createLimitedKey(1, 1)
    for (const status of [200, 429]) expect((await gateway.get('/pets', { key })).status).toBe(status)
    const socket = await dial(gateway)
    socket.write(head(key, 'Content-Length: 20\r\n'))
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 429/)
  })

  test('is taken again as soon as the quota admits the request', async () => {
    const gateway = await useGateway({ keyTtlMs: 0 })
    const { key, row } = await gateway.createLimitedKey(1, 1)
    for (const status of [200, 429]) expect((await gateway.get('/pets', { key })).status).toBe(status)
    await gateway.prisma.apiKey.update({ where: { id: row.id }, data: { minuteLimit: 9, dayLimit: 9 } })
    await sleep(10)
    expect((await gateway.post('/categories', { name: 'Cats' }, { key })).status).toBe(201)
  })
})

describe('if more bodies arrive than there is room for', () => {
  const length = 'Content-Length: 20\r\n'
  const uploading = async (gateway: Gateway) =>
    Number(/uploading"\} (\d+)/.exec((await gateway.get('/metrics', { key: null })).text)?.[1])

  /** Connections that send the first byte of a body. */
  async function begin(gateway: Gateway, count: number, key: string, headers = '') {
    const before = await uploading(gateway)
    const sockets: Socket[] = []
    for (let i = 0; i < count; i++) {
      const socket = await dial(gateway)
      socket.write(`${head(key, length + headers)}{`)
      sockets.push(socket)
    }
    await expect.poll(() => uploading(gateway)).toBe(before + count)
    return sockets
  }

  /** Sends a body in two pieces. */
  async function post(gateway: Gateway, key: string, headers = '') {
    const socket = await dial(gateway)
    const answered = statuses(socket)
    socket.write(`${head(key, `${length}Connection: close\r\n${headers}`)}{"name"`)
    await sleep(50)
    socket.write(':"12345678" }')
    return answered
  }

  test('the key with most of them loses the one that has taken longest, with 503, and pays nothing for it', async () => {
    const gateway = await useGateway({ uploadBudget })
    const [ann, bob] = [await gateway.createKey(), await gateway.createKey()]
    const [oldest, ...others] = (await begin(gateway, 4, ann.key)) as [Socket, ...Socket[]]
    // Requests without a body are served.
    expect((await gateway.get('/pets', { key: ann.key })).status).toBe(200)
    const first = statuses(oldest)
    expect(await post(gateway, bob.key)).toEqual([201])
    expect(await first).toEqual([503])
    expect(await uploading(gateway)).toBe(3)
    expect((await gateway.get('/metrics', { key: null })).text).toMatch(/^petstore_shed_requests_total 1$/m)
    expect((await gateway.get('/quota', { key: ann.key })).body.minute.remaining).toBe(59)
    for (const socket of others) socket.destroy()
    await expect.poll(() => uploading(gateway)).toBe(0)
  })

  test('the address with most of them loses one, also if each of its keys has only one', async () => {
    const gateway = await useGateway({ uploadBudget, env: { TRUST_PROXY: '1' } })
    const keys: string[] = []
    for (let i = 0; i < 5; i++) keys.push((await gateway.createKey()).key)
    const from = (n: number) => `X-Forwarded-For: 203.0.113.${n}\r\n`
    const [lone] = (await begin(gateway, 1, keys[0] as string, from(1))) as [Socket]
    const many: Socket[] = []
    for (const key of keys.slice(1, 4)) many.push(...(await begin(gateway, 1, key, from(2))))
    const first = statuses(many[0] as Socket)
    expect(await post(gateway, keys[4] as string, from(3))).toEqual([201])
    expect(await first).toEqual([503])
    lone.write('"name":"12345678" }')
    expect(String((await once(lone, 'data'))[0])).toMatch(/^HTTP\/1.1 201/)
  })

  test.skipIf(!testDatabaseUrl)('one that has arrived takes no room, also while its request is at work', async () => {
    const gateway = await useGateway({ uploadBudget })
    const admin = await useClient(gateway.database.url)
    await admin.query('BEGIN; LOCK TABLE "Category"')
    const stuck = post(gateway, gateway.key)
    const figures = async () => (await gateway.get('/metrics', { key: null })).text
    await expect.poll(figures).toMatch(/^petstore_requests\{state="working"\} 1$/m)
    expect(await uploading(gateway)).toBe(0)
    await admin.query('COMMIT')
    expect(await stuck).toEqual([201])
  })

  test('a body that grows gives way like any other', async () => {
    const gateway = await useGateway({ uploadBudget })
    const socket = await dial(gateway)
    const answered = statuses(socket)
    const [other] = (await begin(gateway, 1, (await gateway.createKey()).key)) as [Socket]
    // 100 KB in one piece may become twice as much.
    socket.write(`${head(gateway.key, chunked)}186a0\r\n${' '.repeat(100_000)}\r\n`)
    expect(await answered).toEqual([503])
    other.write('"name":"12345678" }')
    expect(String((await once(other, 'data'))[0])).toMatch(/^HTTP\/1.1 201/)
  })
})
