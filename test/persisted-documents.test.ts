import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { resetStore, times } from './support/calls.js'
import { type Call, sharedGateway } from './support/gateway.js'

// Apollo's automatic persisted queries, and what its batch link gets.

const gateway = await sharedGateway()
await resetStore(gateway.prisma)

const hashOf = (query: string) => createHash('sha256').update(query).digest('hex')
const persisted = (sha256Hash: unknown, version: unknown = 1) => ({
  extensions: { persistedQuery: { version, sha256Hash } },
})
const post = (body: object, call: Call = {}) => gateway.post('/graphql', body, call)
const unknown = { errors: [{ message: 'PersistedQueryNotFound', extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } }] }

describe('a document that is sent by its hash', () => {
  test('is unknown until it was sent with its hash; then any key may send the hash alone, by POST and GET', async () => {
    const query = 'query ($id: Int64!) { pet(petId: $id) { name } }'
    const hash = hashOf(query)
    const first = await post({ ...persisted(hash), variables: { id: 1 } })
    expect([first.status, first.body]).toEqual([200, unknown])
    const data = { pet: { name: 'Tom' } }
    expect((await post({ query, ...persisted(hash), variables: { id: 1 } })).body).toEqual({ data })
    const { key } = await gateway.createKey()
    expect((await post({ ...persisted(hash), variables: { id: 1 } }, { key })).body).toEqual({ data })
    const search = new URLSearchParams({
      variables: '{"id":1}',
      extensions: JSON.stringify(persisted(hash).extensions),
    })
    expect((await gateway.get(`/graphql?${search}`, { headers: { accept: 'application/json' } })).body).toEqual({
      data,
    })
  })

  test('costs, and is refused, as if its text were sent', async () => {
    const query = '{ pets(limit: 100) { id orders(limit: 9) { id } } }'
    const { key } = await gateway.createKey()
    const cost = async (body: object) => (await post(body, { key })).headers.get('x-ratelimit-cost')
    expect(await cost(persisted(hashOf(query)))).toBe('1')
    expect(await cost({ query, ...persisted(hashOf(query)) })).toBe('10')
    expect(await cost(persisted(hashOf(query)))).toBe('10')
    const dear = '{ pets(limit: 100) { orders(limit: 100) { pet { id } } } }'
    expect((await post({ query: dear, ...persisted(hashOf(dear)) }, { key })).status).toBe(400)
  })

  test('is the same request with an Idempotency-Key, whether its text was sent or not', async () => {
    const query = 'mutation ($id: Int64!) { createOrder(input: { petId: $id }) { id } }'
    const call = { headers: { 'idempotency-key': 'once' } }
    const hash = persisted(hashOf(query))
    expect((await post({ ...hash, variables: { id: 1 } }, call)).body).toEqual(unknown)
    const first = await post({ query, ...hash, variables: { id: 1 } }, call)
    const again = await post({ ...hash, variables: { id: 1 } }, call)
    expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([first.body, 'true'])
    expect((await post({ ...hash, variables: { id: 2 } }, call)).body.errors[0].extensions.code).toBe(
      'idempotency_mismatch',
    )
  })

  test.each(['', null, undefined])('may come with query: %j', async (query) => {
    const known = '{ pet(petId: 1) { id } }'
    await post({ query: known, ...persisted(hashOf(known)) })
    expect((await post({ query, ...persisted(hashOf(known)) })).body).toEqual({ data: { pet: { id: 1 } } })
    const extensions = JSON.stringify(persisted(hashOf(known)).extensions)
    const search = new URLSearchParams({ query: '', operationName: '', variables: '', extensions })
    expect((await gateway.get(`/graphql?${search}`)).body).toEqual({ data: { pet: { id: 1 } } })
  })

  test('with an Idempotency-Key takes variables however deep they are, or returns 400', async () => {
    const query = 'mutation ($id: Int64!) { createOrder(input: { petId: $id }) { id } }'
    await post({ query, ...persisted(hashOf(query)), variables: { id: 1 } })
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
      ['[9007199254740993,', ']'],
    ] as const)
      for (const depth of [100, 1_000, 3_000, 5_000, 7_000, 20_000, 60_000]) {
        const deep = `${open.repeat(depth)}1${close.repeat(depth)}`
        const body = JSON.stringify({ ...persisted(hashOf(query)), variables: { id: 1, more: '?' } }).replace(
          '"?"',
          deep,
        )
        const call = { headers: { 'idempotency-key': `${open} ${depth}` } }
        const { status, text } = await gateway.post('/graphql', body, call)
        if (depth === 100) expect([status, text]).toEqual([200, expect.stringContaining('"data":{"createOrder"')])
        else expect([depth, status]).toEqual([depth, expect.toBeOneOf([200, 400, 413])])
      }
  })

  test('is kept only if it is valid', async () => {
    const query = '{ dogs { id } }'
    expect((await post({ query, ...persisted(hashOf(query)) })).body.errors[0].message).toMatch(/dogs/)
    expect((await post(persisted(hashOf(query)))).body).toEqual(unknown)
  })

  test.each([
    [
      'another hash',
      { query: '{ quota { plan } }', ...persisted(hashOf('x')) },
      /sha256Hash is ".*; it must be the SHA-256 of query/,
    ],
    ['no hash', persisted(undefined), /sha256Hash is .*; it must be a SHA-256/],
    ['a hash in upper case', persisted('A'.repeat(64)), /it must be a SHA-256/],
    ['another version', persisted(hashOf('x'), 2), /version is 2; it must be 1/],
    ['no object', { extensions: { persistedQuery: true } }, /persistedQuery is true; it must be a JSON object/],
  ])('is refused with %s', async (_, body, message) => {
    const { status, body: answer } = await post(body)
    expect([status, answer.errors[0].message]).toEqual([400, expect.stringMatching(message)])
  })

  test('with a key that is used up is refused, known or not; the quota stays free', async () => {
    const free = '{ quota { plan } }'
    await post({ query: free, ...persisted(hashOf(free)) })
    const { key } = await gateway.createLimitedKey(1, 1)
    await gateway.get('/pets', { key })
    expect((await post(persisted(hashOf('unknown')), { key })).status).toBe(429)
    expect((await post(persisted(hashOf(free)), { key })).body).toEqual({ data: { quota: { plan: 'Enterprise' } } })
  })

  test('is forgotten once its key has sent many more than there is room for; what other keys have sent stays', async () => {
    const long = (i: number) => `{ pet(petId: 1) { id } } #${String(i).padEnd(60_000, ' ')}`
    const send = (query: string, call?: Call) => post({ query, ...persisted(hashOf(query)) }, call)
    const sendHash = async (i: number) => (await post(persisted(hashOf(long(i))))).body
    const data = { pet: { id: 1 } }
    await send(long(-1))
    const { key } = await gateway.createLimitedKey(1_000, 1_000)
    // Two bytes for each character, in 16 MiB.
    const room = Math.floor(16_777_216 / 120_000)
    for (let i = 0; i <= room; i++) expect((await send(long(i), { key })).status).toBe(200)
    expect([await sendHash(0), await sendHash(room), await sendHash(-1)]).toEqual([unknown, { data }, { data }])
    expect((await send(long(0))).body).toEqual({ data })
  })
})

test('a batch of operations gets as many errors, which say what to do', async () => {
  const operations = times(3, () => ({ query: '{ quota { plan } }' }))
  const { status, body } = await post(operations)
  expect(status).toBe(200)
  expect(body).toHaveLength(3)
  for (const { errors } of body)
    expect(errors[0]).toMatchObject({
      message: expect.stringContaining('Send the operations of a batch one by one.'),
      extensions: { code: 'invalid_request', status: 400 },
    })
  expect((await post(Array(101).fill(operations[0]))).status).toBe(400)
  expect((await post([])).status).toBe(400)
})
