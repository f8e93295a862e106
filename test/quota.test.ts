import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { ApiKey } from '../prisma/generated/client/client.js'
import { openPaths, preflight, times } from './support/calls.js'
import { type Answer, type Gateway, type GatewayOptions, sharedGateway, testRedisUrl } from './support/gateway.js'
import { dial, received } from './support/sockets.js'

const gateway = await sharedGateway()
const { database } = gateway
await gateway.post('/categories', { name: 'Cats' })
await gateway.post('/pets', { name: 'Tom', categoryId: 1 })

const useGateway = (options?: GatewayOptions) => gateway.openBeside(options)
const left = ({ headers }: Answer) =>
  /"minute";r=(\d+);.*"day";r=(\d+);/
    .exec(headers.get('ratelimit') ?? '')
    ?.slice(1)
    .map(Number)
const codes = (answers: Answer[]) => answers.map(({ status, code }) => [status, code])
const bannedUntil = async (id: number) => (await database.prisma.apiKey.findUnique({ where: { id } }))?.bannedUntil

describe.runIf(testRedisUrl).each([-45_000, 45_000])('a gateway whose clock is off by %i ms', (ms) => {
  test('computes Retry-After with the clock of Redis', async () => {
    const other = await useGateway()
    const { key } = await other.createLimitedKey(1, 10)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms })
    onTestFinished(() => void vi.useRealTimers())
    await other.get('/inventory', { key })
    const { status, headers } = await other.get('/inventory', { key })
    const now = (performance.timeOrigin + performance.now()) / 1000
    expect(status).toBe(429)
    for (const left of [Number(headers.get('retry-after')), Number(headers.get('x-ratelimit-reset')) - now]) {
      expect(left).toBeGreaterThan(55)
      expect(left).toBeLessThan(62)
    }
  })
})

describe.each([
  { store: 'memory', redisUrl: '' },
  ...(testRedisUrl ? [{ store: 'redis', redisUrl: testRedisUrl }] : []),
])('quotas in $store', ({ redisUrl }) => {
  test('admits exactly 60 of 300 concurrent requests of both surfaces with a new Free key, and does not ban it', async () => {
    const other = await useGateway({ redisUrl })
    const { key, row } = await other.createKey()
    const paths = ['/inventory', '/pets', '/nowhere', '/graphql?query={pets{id}}']
    const answers = await Promise.all(times(300, (i) => other.get(paths[i % 4] as string, { key })))
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(240)
    expect(new Set(codes(refused).flat())).toEqual(new Set([429, 'rate_limited']))
    expect(left(await other.get('/quota', { key }))).toEqual([0, 940])
    expect(await bannedUntil(row.id)).toBeNull()
  })

  test('a GraphQL operation consumes its whole cost or nothing', async () => {
    const other = await useGateway({ redisUrl })
    const { key } = await other.createKey()
    const cost = (count: number) =>
      other.graphql(`{ ${times(count, (i) => `a${i}: inventory { petId }`).join(' ')} }`, {}, { key })
    expect(left(await cost(50))).toEqual([10, 950])
    const refused = await cost(11)
    expect([...codes([refused]), left(refused)]).toEqual([
      [429, 'rate_limited'],
      [10, 950],
    ])
    expect(refused.body).not.toHaveProperty('data')
    expect(left(await cost(10))).toEqual([0, 940])
  })

  test('quota is free and works for a limited key', async () => {
    const other = await useGateway({ redisUrl })
    const { key } = await other.createLimitedKey(1, 9)
    const fresh = await other.get('/quota', { key })
    const soon = Date.now() / 1000
    expect(fresh.body).toEqual({
      plan: 'Enterprise',
      key: expect.objectContaining({ name: 'test', access: 'write' }),
      minute: { limit: 1, remaining: 1, reset: expect.closeTo(soon + 60, -1) },
      day: { limit: 9, remaining: 9, reset: expect.closeTo(soon + 86_400, -1) },
    })
    await other.get('/pets', { key })
    expect((await other.get('/pets', { key })).status).toBe(429)
    const rest = await other.get('/quota', { key })
    const query = '{ quota { plan minute { limit remaining reset } day { limit remaining reset } } }'
    const graphql = await other.graphql(query, {}, { key })
    expect([rest.status, rest.headers.get('retry-after')]).toEqual([200, null])
    expect(rest.body).toMatchObject({ minute: { remaining: 0 }, day: { remaining: 8 } })
    expect({ ...graphql.body.data.quota, key: rest.body.key }).toEqual(rest.body)
    expect(rest.headers.get('x-ratelimit-reset')).toBe(String(rest.body.minute.reset))
  })

  test('free requests of both surfaces are at most 600 a minute for each key', async () => {
    // The window does not end while they are sent.
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const other = await useGateway({ redisUrl })
    const [{ key }, { key: another }] = [await other.createKey(), await other.createKey()]
    const free = (i: number) =>
      i % 2 ? other.get('/quota', { key }) : other.graphql('{ quota { plan } }', {}, { key })
    for (let i = 0; i < 600; i += 50)
      expect((await Promise.all(times(50, free))).map(({ status }) => status)).toEqual(times(50, () => 200))
    for (const { status, headers, message } of await Promise.all(times(2, free))) {
      const wait = Number(headers.get('retry-after'))
      const text = `The limit of 600 free requests per minute is used up. Wait ${wait} seconds (Retry-After).`
      expect([status, message]).toEqual([429, text])
      expect(['limit', 'remaining'].map((name) => headers.get(`x-ratelimit-${name}`))).toEqual(['600', '0'])
      expect(headers.get('ratelimit')).toMatch(/^"free";r=0;t=\d+$/)
      expect(headers.get('ratelimit-policy')).toBe('"free";q=600;w=60')
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(50)
      // It ends with the reset, which is rounded up to a whole second.
      expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(61)
    }
    expect((await other.get('/quota', { key: another })).status).toBe(200)
    const paid = await other.get('/pets', { key })
    expect([paid.status, left(paid)]).toEqual([200, [59, 999]])
  })

  test('a client that continues after 429 is banned, and the row stores the end of the ban', async () => {
    const other = await useGateway({ redisUrl, env: { BAN_AFTER: '3', BAN_SECONDS: '600' } })
    const { key, row } = await other.createLimitedKey(1, 100)
    const ask = () => other.get('/pets', { key })
    const began = Date.now()
    await ask()
    expect(codes(await Promise.all(times(20, ask))).flat()).not.toContain('key_banned')
    await sleep(1100)
    const strikes = [await ask(), await ask(), await ask()]
    expect(codes(strikes)).toEqual(times(3, () => [429, 'rate_limited']))

    const answer = await ask()
    const until = await vi.waitUntil(() => bannedUntil(row.id), 60_000)
    const reset = Math.ceil(until.getTime() / 1000)
    expect(until.getTime()).toBeGreaterThanOrEqual(began + 600_000)
    const later = await ask()
    const now = Math.ceil(Date.now() / 1000)
    for (const { status, headers, body } of [answer, later]) {
      expect([status, body.code, body.status]).toEqual([429, 'key_banned', 429])
      expect(headers.get('x-ratelimit-remaining')).toBe('0')
      expect(headers.get('x-ratelimit-reset')).toBe(String(reset))
      expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(reset - now)
      expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(reset - Math.floor(began / 1000))
    }
    const graphql = await other.graphql('{ pets { id } }', {}, { key })
    expect(codes([graphql])).toEqual([[429, 'key_banned']])
    const quota = await other.get('/quota', { key })
    const shown = ['x-ratelimit-remaining', 'retry-after'].map((name) => quota.headers.get(name))
    expect([quota.status, ...shown]).toEqual([200, '0', null])
    expect(quota.body.key.bannedUntil).toBe(until.toISOString())
  })
})

describe('a free operation', () => {
  const fields = '{ quota { plan minute { limit remaining reset } day { limit remaining reset } } }'
  const padded = (query: string, bytes: number) => `${query.padEnd(bytes - 1)}}`
  const exponential = times(40, (i) => `fragment F${i} on Query { ...F${i + 1} ... { ...F${i + 1} } }`).join(' ')
  const cases: [string, string, 0 | 1][] = [
    ['ten fields', fields, 0],
    ['eleven fields', fields.replace('plan', 'plan p: plan'), 1],
    [
      'ten fields in fragments',
      '{ ...Q } fragment Q on Query { a: quota { ...W } b: quota { ...W } } fragment W on Quota { plan p: plan q: plan r: plan }',
      0,
    ],
    [
      'fragments that are eleven fields when they are expanded',
      '{ x: __typename ...Q } fragment Q on Query { a: quota { ...W } b: quota { ...W } } fragment W on Quota { plan p: plan q: plan r: plan }',
      1,
    ],
    ['fragments that expand to 2^40 fields', `{ ...F0 } ${exponential} fragment F40 on Query { __typename }`, 1],
    ['98 aliases', `{ ${times(98, (i) => `a${i}: quota { plan }`).join(' ')} }`, 1],
    ['2 KiB', padded('{ quota { plan } ', 2_048), 0],
    ['2 KiB and one byte', padded('{ quota { plan } ', 2_049), 1],
    ['2 KiB in characters, but not in bytes', padded('{ quota { plan } \n#é\n', 2_048), 1],
    ['200 tokens', `{ quota { plan } ${times(194, () => '#').join('\n')}\n}`, 0],
    ['201 tokens', `{ quota { plan } ${times(195, () => '#').join('\n')}\n}`, 1],
    ['a field that does not exist', '{ quota { nonsense } }', 1],
  ]
  test.each(cases)(
    'has at most ten fields, 200 tokens and 2 KiB, otherwise it costs 1 and is refused to a banned key: %s',
    async (_, query, cost) => {
      const { key } = await gateway.createKey({ bannedUntil: new Date(Date.now() + 60_000) })
      expect((await gateway.graphql(query)).headers.get('x-ratelimit-cost')).toBe(String(cost))
      for (const banned of [
        await gateway.graphql(query, {}, { key }),
        await gateway.get(`/graphql?query=${encodeURIComponent(query)}`, { key }),
      ])
        expect(codes([banned])).toEqual([cost === 0 ? [200, undefined] : [429, 'key_banned']])
    },
  )
})

describe('a free request is small as a whole, otherwise it costs 1 and is refused to a banned key', () => {
  const query = '{ quota { plan } }'
  const rest = (most: number, form: (filler: string) => string) => form('x'.repeat(most - form('').length))
  const forms: [string, (bytes: number) => { method: string; path: string; body?: string }][] = [
    [
      'variables',
      (bytes) => ({
        method: 'POST',
        path: '/graphql',
        body: rest(bytes, (x) => JSON.stringify({ query, variables: { x } })),
      }),
    ],
    [
      'extensions',
      (bytes) => ({
        method: 'POST',
        path: '/graphql',
        body: rest(bytes, (x) => JSON.stringify({ query, extensions: { x } })),
      }),
    ],
    ['white space', (bytes) => ({ method: 'POST', path: '/graphql', body: JSON.stringify({ query }).padEnd(bytes) })],
    [
      'a query string',
      (bytes) => ({
        method: 'GET',
        path: `/graphql?${rest(bytes, (x) => `${new URLSearchParams({ query, variables: JSON.stringify({ x }) })}`)}`,
      }),
    ],
  ]
  test.each(forms)('%s', async (_, form) => {
    const { key } = await gateway.createKey({ bannedUntil: new Date(Date.now() + 60_000) })
    for (const [bytes, cost] of [
      [8_192, '0'],
      [8_193, '1'],
    ] as const) {
      const { method, path, body } = form(bytes)
      const answer = await gateway.call(method, path, { body })
      expect([answer.status, answer.headers.get('x-ratelimit-cost')]).toEqual([200, cost])
      expect((await gateway.call(method, path, { body, key })).status).toBe(cost === '0' ? 200 : 429)
    }
  })
})

describe('a key that has nothing left', () => {
  const query = '{ pets { id } }'
  const numbers = times(60_000, () => '1').join()
  const post =
    (body: unknown, headers = {}) =>
    (to: Gateway, key: string) =>
      to.call('POST', '/graphql', { key, body, headers })
  const get = (search: string) => (to: Gateway, key: string) => to.get(`/graphql?${search}`, { key })
  const document = (source: string) => post({ query: source })
  const cases: [string, (to: Gateway, key: string) => Promise<Answer>][] = [
    ['an operation', document(query)],
    ['one that is known', document(query)],
    ['one that costs more than a whole window', document('{ pets(limit: 100) { orders(limit: 99) { pet { id } } } }')],
    ['one that could return too many objects', document('{ pets(limit: 100) { orders(limit: 100) { pet { id } } } }')],
    ['a syntax error', document('{ pets {')],
    ['a document that is too long', document(`{ ${' '.repeat(70_000)} pets { id } }`)],
    ['a document with too many tokens', document(`{ pets(id: [${numbers.slice(0, 20_000)}]) { id } }`)],
    ['a document with too many fields', document(`{ ${'a '.repeat(600)} }`)],
    ['a mutation', document('mutation { createCategory(input: { name: "Dogs" }) { id } }')],
    ['many numbers', post({ query, variables: { x: numbers } })],
    ['a body that is no JSON', post('x'.repeat(100_000))],
    ['a short body that is no JSON', post('x')],
    ['no body', post('')],
    ['an unknown parameter', post({ nonsense: 1 })],
    ['a free operation beside too much', post({ query: '{ quota { plan } }', variables: { x: 'x'.repeat(10_000) } })],
    ['GET', get(`query=${query}`)],
    ['GET with a long document', get(`query=${encodeURIComponent(query)}${'%20'.repeat(3_000)}`)],
    ['GET with variables that are no JSON', get(`query=${query}&variables=${'['.repeat(10_000)}`)],
    ['GET with nothing', get('')],
    ['REST', (to, key) => to.get('/pets?nonsense', { key })],
    ['REST with a body that is no JSON', (to, key) => to.post('/pets', 'x'.repeat(100_000), { key })],
    [
      'REST with a body of another type',
      (to, key) => to.post('/pets', 'x', { key, headers: { 'content-type': 'text/plain' } }),
    ],
  ]
  test.each([
    ['banned', 'key_banned', /^The key is banned until [^.]+\. Wait \d+ seconds \(Retry-After\)\.$/],
    [
      'limited',
      'rate_limited',
      /^The limit of 1 request per 3,600 seconds is used up\. Wait [\d,]+ seconds \(Retry-After\)\.$/,
    ],
  ])('is refused whatever it sends, which is not even parsed: %s', async (state, code, message) => {
    const bannedUntil = state === 'banned' ? new Date(Date.now() + 600_000) : null
    // However slow the machine is, the window does not end, and what is refused is no reason for a ban.
    const other = await useGateway({ env: { BAN_AFTER: '1000' }, seconds: { minute: 3_600, day: 86_400, address: 60 } })
    const { key } = await other.createKey({ plan: 'Enterprise', minuteLimit: 1, dayLimit: 500, bannedUntil })
    await other.get('/pets', { key })
    for (const [name, send] of cases) {
      const answer = await send(other, key)
      expect([name, answer.status, answer.code]).toEqual([name, 429, code])
      expect([answer.message, answer.headers.get('x-ratelimit-cost')]).toEqual([expect.stringMatching(message), '0'])
    }
    expect(codes([await document('{ quota { plan } }')(other, key)])).toEqual([[200, undefined]])
  })

  test.each([
    ['another method', 405, (to: Gateway, key: string) => to.call('PUT', '/graphql', { key })],
    ['a body that is too large', 413, post('x'.repeat(200_000))],
    ['another type', 415, post('x', { 'content-type': 'text/plain' })],
    ['another type of a large body', 415, post('x'.repeat(20_000), { 'content-type': 'text/plain' })],
  ])('learns first what the head of a GraphQL request says: %s', async (_, status, send) => {
    const { key } = await gateway.createKey({ bannedUntil: new Date(Date.now() + 60_000) })
    expect((await send(gateway, key)).status).toBe(status)
  })

  test('can send a free document in every form', async () => {
    const { key } = await gateway.createKey({ bannedUntil: new Date(Date.now() + 60_000) })
    const longest = `{ quota { plan } ${'\n'.repeat(2_029)} }`
    const escaped = JSON.stringify({ query: longest, operationName: null, variables: {} })
    for (const answer of [
      await get(`query=${encodeURIComponent(longest)}`)(gateway, key),
      await post(escaped)(gateway, key),
    ])
      expect(answer.status).toBe(200)
  })

  test('collects strikes for what is not parsed', async () => {
    const other = await useGateway({ env: { BAN_AFTER: '2' } })
    const { key } = await other.createLimitedKey(1, 100)
    const ask = () => other.call('POST', '/graphql', { key, body: 'x'.repeat(100_000) })
    await Promise.all([ask(), ask()])
    await sleep(1100)
    expect(codes([await ask(), await ask(), await ask()])).toEqual([
      [429, 'rate_limited'],
      [429, 'rate_limited'],
      [429, 'key_banned'],
    ])
  })

  test('collects one strike for each, also for one that is refused for its size', async () => {
    const other = await useGateway({ env: { BAN_AFTER: '2' } })
    const { key } = await other.createLimitedKey(1, 100)
    const large = async () => (await other.call('POST', '/graphql', { key, body: 'x'.repeat(200_000) })).status
    await other.get('/pets', { key })
    expect(await large()).toBe(413)
    await sleep(1100)
    expect(await large()).toBe(413)
    expect(codes([await other.get('/pets', { key }), await other.get('/pets', { key })])).toEqual([
      [429, 'rate_limited'],
      [429, 'key_banned'],
    ])
  })

  describe('is served again', () => {
    /** More than is parsed for a key that has nothing left. */
    const pets = (count: number) =>
      `{ ${times(count, (i) => `a${i}: pet(petId: ${i + 1}) { id }`).join(' ')} } #${' '.repeat(10_000)}`

    test('if something is left: what cost more was refused', async () => {
      const { key } = await gateway.createLimitedKey(100, 10)
      const answers = [5, 6, 5].map((count) => () => gateway.graphql(pets(count), {}, { key }))
      const statuses = []
      for (const ask of answers) statuses.push((await ask()).status)
      expect(statuses).toEqual([200, 429, 200])
    })

    test.each<[string, Partial<ApiKey>, Partial<ApiKey>]>([
      ['after its plan has changed', { plan: 'Enterprise', minuteLimit: 100, dayLimit: 2 }, { dayLimit: 50 }],
      ['after its ban was lifted', { bannedUntil: new Date(Date.now() + 600_000) }, { bannedUntil: null }],
    ])('%s', async (_, before, after) => {
      const other = await useGateway({ keyTtlMs: 0 })
      const { key, row } = await other.createKey(before)
      const next = async () => (await other.graphql(pets(2), {}, { key })).status
      await next()
      expect(await next()).toBe(429)
      await database.prisma.apiKey.update({ where: { id: row.id }, data: after })
      await expect.poll(next).toBe(200)
    })

    test.each([
      ['a part of it', 2, [200, 2, 1]],
      ['all of it', 3, [200, 3, 0]],
      ['more than it has', 4, [400, 1, 2]],
    ])('if a window begins while its body arrives, for its cost alone: %s', async (_, count, expected) => {
      const body = JSON.stringify({ query: pets(count) })
      const other = await useGateway({ seconds: { minute: 2, day: 60, address: 60 } })
      const { key } = await other.createLimitedKey(3, 10)
      const { headers } = await other.graphql(pets(3), {}, { key })
      const socket = await dial(other)
      const head = ['POST /graphql HTTP/1.1', 'Host: a', `X-API-Key: ${key}`, 'Content-Type: application/json']
      socket.write([...head, `Content-Length: ${body.length}`, 'Connection: close', '', ''].join('\r\n'))
      socket.write(body.slice(0, 5))
      await sleep(Number(headers.get('x-ratelimit-reset')) * 1000 - Date.now() + 10)
      socket.write(body.slice(5))
      const answer = await received(socket)
      const status = / (\d+) /.exec(answer)?.[1]
      const header = (name: string) => new RegExp(`^x-ratelimit-${name}: (\\d+)`, 'im').exec(answer)?.[1]
      expect([status, header('cost'), header('remaining')].map(Number)).toEqual(expected)
    })
  })
})

describe('bans', () => {
  test('in the row apply, also if an admin wrote them, and end when the field is cleared', async () => {
    const other = await useGateway({ keyTtlMs: 50 })
    const { key, row } = await other.createKey()
    const set = (until: Date | null) =>
      database.prisma.apiKey.update({ where: { id: row.id }, data: { bannedUntil: until } }).then(() => sleep(100))
    const status = async () => (await other.get('/inventory', { key })).status
    expect(await status()).toBe(200)
    await set(new Date(Date.now() + 60_000))
    expect(await status()).toBe(429)
    await set(null)
    expect(await status()).toBe(200)
    await set(new Date(Date.now() - 1))
    expect(await status()).toBe(200)
    expect(left(await other.get('/quota', { key }))).toEqual([57, 997])
  })

  test('that a gateway made end when the row is cleared and the other gateways have read it', async () => {
    const other = await useGateway({ keyTtlMs: 50, env: { BAN_AFTER: '1' } })
    const { key, row } = await other.createLimitedKey(2, 100)
    const ask = async () => (await other.get('/inventory', { key })).body.code
    await Promise.all(times(3, ask))
    await sleep(1100)
    expect([await ask(), await ask()]).toEqual(['rate_limited', 'key_banned'])
    await vi.waitUntil(() => bannedUntil(row.id), 60_000)
    await database.prisma.apiKey.update({ where: { id: row.id }, data: { bannedUntil: null } })
    await sleep(5200)
    // Still limited, because its minute has not ended, but no longer banned.
    expect(await ask()).toBe('rate_limited')
  })
})

describe('without a valid key', () => {
  test('an address gets 401 for 60 requests a minute, then 429', async () => {
    const other = await useGateway()
    const answers: Answer[] = []
    for (let i = 0; i < 62; i++)
      answers.push(await other.get(i % 2 ? '/pets' : '/graphql', { key: i % 3 ? null : 'petstore_wrong' }))
    expect(answers.map(({ status }) => status)).toEqual([...times(60, () => 401), 429, 429])
    expect(answers.map(({ headers }) => headers.get('x-ratelimit-remaining'))).toEqual([
      ...times(60, (i) => String(59 - i)),
      '0',
      '0',
    ])
    expect(codes(answers.slice(59))).toEqual([
      [401, 'unauthorized'],
      [429, 'rate_limited'],
      [429, 'rate_limited'],
    ])
    expect(answers.filter(({ headers }) => headers.has('retry-after'))).toHaveLength(2)
    expect(answers.every(({ status, headers }) => headers.has('www-authenticate') === (status === 401))).toBe(true)
    // A client with a key at the same address is not affected.
    expect((await other.get('/pets')).status).toBe(200)
  })

  test('pages, documents and preflights are free', async () => {
    const other = await useGateway()
    for (const path of ['/', ...openPaths]) {
      const answer = await other.get(path, { key: null })
      expect([answer.status < 400, answer.headers.get('ratelimit')]).toEqual([true, '"address";r=60;t=60'])
    }
    for (const answer of [
      await other.get('/graphql', { key: null, headers: { accept: 'text/html' } }),
      await other.call('OPTIONS', '/pets', { key: null, headers: preflight }),
    ])
      expect(answer.headers.get('x-ratelimit-remaining')).toBe('60')
    expect((await other.get('/pets', { key: null })).headers.get('x-ratelimit-remaining')).toBe('59')
  })
})

test('after its sunset date the deprecated operation returns 410, but its GraphQL field still works', async () => {
  const other = await useGateway({ env: { PET_BY_ID_SUNSET: '2026-01-01' } })
  const { status, body, headers } = await other.get('/pets/1')
  expect([status, body.code]).toEqual([410, 'gone'])
  expect([headers.get('deprecation'), headers.get('sunset')]).toEqual(['@1764892800', 'Thu, 01 Jan 2026 00:00:00 GMT'])
  expect((await other.get('/pets?id=1')).status).toBe(200)
  expect((await other.graphql('{ pet(petId: 1) { id } }')).body.data).toEqual({ pet: { id: 1 } })
})
