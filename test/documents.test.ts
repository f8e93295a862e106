import { getIntrospectionQuery, parse } from 'graphql'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { schema } from '../schema/index.js'
import { KnownDocument } from '../src/graphql/documents.js'
import { type Gateway, openGateway } from './support/gateway.js'

let gateway: Gateway
beforeAll(async () => {
  gateway = await openGateway()
  await gateway.graphql('{ quota { plan } }')
})
afterAll(() => gateway.close())

const repeat = (count: number, part: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => part(i)).join(' ')
const nest = (levels: number, inner: string, ...names: string[]) => {
  let body = inner
  for (let i = levels; i-- > 0; ) body = `${names[i % names.length]} { ${body} }`
  return body
}

describe('the cost of a document', () => {
  const cost = (query: string, variables = {}, operationName?: string) =>
    new KnownDocument(schema, parse(query)).operation(operationName)?.cost(variables).cost

  test.each([
    ['one field', '{ pets { id } }', 1],
    ['two fields', '{ pets { id } orders { id } }', 2],
    ['aliases', '{ a: pets { id } b: pets { id } c: pets { id } }', 3],
    ['equal response keys, which are merged', '{ pets { id } pets { name } ... { pets { status } } }', 1],
    ['an inline fragment', '{ ... on Query { a: pets { id } b: pets { id } } }', 2],
    ['a fragment spread twice', '{ ...F ...F } fragment F on Query { a: pets { id } b: pets { id } }', 2],
    [
      'fragments in fragments',
      '{ ...F } fragment F on Query { pets { id } ...G } fragment G on Query { orders { id } }',
      2,
    ],
    ['nested lists', '{ pets { orders { pet { category { pets { id } } } } } }', 1],
    ['quota', '{ quota { plan } again: quota { plan } }', 0],
    ['__typename', '{ __typename t: __typename }', 0],
    ['introspection', '{ __schema { types { name } } __type(name: "Pet") { name } }', 0],
    ['quota beside a list', '{ quota { plan } pets { id } __typename }', 1],
    ['mutations', 'mutation { a: deletePet(petId: 1) { id } b: deletePet(petId: 2) { id } }', 2],
    ['an unknown field', '{ dogs { id } }', 1],
    ['a fragment that spreads only itself', '{ ...F } fragment F on Query { ...F }', 1],
    ['an unknown directive on a free field', '{ __typename @free }', 1],
    ['an unsupported operation type', 'subscription { a: pets { id } b: pets { id } }', 1],
    ['a skip without a value', 'query ($no: Boolean!) { a: pets @skip(if: $no) { id } b: pets { id } }', 1],
  ])('%s: %s costs %i', (_, query, expected) => {
    expect(cost(query)).toBe(expected)
  })

  test.each([
    [{ yes: true }, 2],
    [{ yes: false }, 1],
  ])('respects @skip and @include: %j', (variables, expected) => {
    const query =
      'query ($yes: Boolean!) { a: pets @skip(if: $yes) { id } ... @include(if: $yes) { b: pets { id } c: pets { id } } }'
    expect(cost(query, variables)).toBe(expected)
  })

  test('counts only the operation that runs', () => {
    const query = 'query A { pets { id } } query B { a: pets { id } b: pets { id } }'
    expect([cost(query, {}, 'A'), cost(query, {}, 'B'), cost(query)]).toEqual([1, 2, undefined])
  })

  test('an operation without a known cost does not run', async () => {
    const query = 'query A { a: pets { id } b: pets { id } }'
    for (const operationName of ['', 'B']) {
      const { body } = await gateway.post('/graphql', { query, operationName })
      expect(body.data).toBeUndefined()
      expect(body.errors[0].extensions.code).toBe('invalid_request')
    }
  })

  test('is consumed in both windows of the key', async () => {
    const { key } = await gateway.createKey()
    const { headers } = await gateway.graphql(`{ ${repeat(50, (i) => `a${i}: pets { id }`)} }`, {}, { key })
    expect(headers.get('ratelimit')).toMatch(/"minute";r=10;.*"day";r=950;/)
    expect((await gateway.graphql('{ pets {', {}, { key })).headers.get('x-ratelimit-remaining')).toBe('9')
  })

  test('above a whole window returns 400 with both figures and consumes nothing', async () => {
    const { key } = await gateway.createKey()
    const { status, body, headers } = await gateway.graphql(
      `{ ${repeat(61, (i) => `a${i}: pets { id }`)} }`,
      {},
      { key },
    )
    expect([status, body.errors[0].extensions]).toEqual([400, { code: 'invalid_request', status: 400 }])
    expect(body.errors[0].message).toMatch(/\b61\b.*\b60\b/)
    expect([headers.get('x-ratelimit-remaining'), headers.get('retry-after')]).toEqual(['60', null])
  })

  test('a banned key can read its quota and nothing else', async () => {
    const { key } = await gateway.createKey({ bannedUntil: new Date(Date.now() + 60_000) })
    const status = async (query: string) => (await gateway.graphql(query, {}, { key })).status
    expect(await status('{ quota { plan } }')).toBe(200)
    expect(await status('{ q: quota { plan } __typename }')).toBe(200)
    for (const query of [
      '{ __typename }',
      '{ quota { plan } pets { id } }',
      '{ __schema { types { name } } }',
      '{ quota {',
    ])
      expect(await status(query), query).toBe(429)
  })
})

describe('the limits of a document', () => {
  const introspection = (levels: number) => `{ __type(name: "Pet") { ${nest(levels - 2, 'name', 'ofType')} } }`
  const around = (levels: number) => `pet(petId: 1) { ${nest(levels - 2, '__typename', 'inventory', 'pet')} }`
  const schemas = (count: number) => repeat(count, (i) => `a${i}: __schema { queryType { name } }`)
  const aliases = (count: number) => repeat(count, (i) => `a${i}: __typename`)
  // 20 tokens per item, then 1 per __typename.
  const tokens = (
    count: number,
  ) => `{ ${repeat(99, (i) => `a${i}: pets(limit: 1) { id name categoryId status category { id name description } }`)}
    ${repeat(count - 1982, () => '__typename')} }`

  test.each([
    ['10 levels', `{ ${around(10)} }`],
    ['20 levels of introspection', introspection(20)],
    ['the standard introspection query', getIntrospectionQuery({ inputValueDeprecation: true })],
    ['5 aliases in introspection', `{ ${schemas(5)} }`],
    ['100 aliases', `{ ${aliases(100)} }`],
    ['2,000 tokens', tokens(2000)],
    ['10,000 objects', '{ pets(limit: 100) { orders(limit: 99) { id } } }'],
    ['two levels of default pages', '{ pets { orders { pet { orders { id } } } } }'],
  ])('%s are accepted', async (_, query) => {
    const { status, body } = await gateway.graphql(query)
    expect(
      body.errors?.filter(({ extensions }: { extensions: { code: string } }) => extensions.code !== 'not_found') ?? [],
    ).toEqual([])
    expect([status, Object.keys(body.data).length > 0]).toEqual([200, true])
  })

  test.each([
    ['11 levels', `{ ${around(11)} }`, 'nested deeper than 10'],
    [
      '11 levels through fragments',
      `{ ...F } fragment F on Query { ...G ...G } fragment G on Query { ${around(11)} }`,
      'nested deeper than 10',
    ],
    ['21 levels of introspection', introspection(21), 'nested deeper than 20'],
    ['6 aliases in introspection', `{ ${schemas(6)} }`, 'has 6 aliases in introspection; at most 5'],
    [
      '6 aliases in a fragment in introspection',
      `{ __type(name: "Pet") { ...F } } fragment F on __Type { ${repeat(6, (i) => `a${i}: name`)} }`,
      'has 6 aliases in introspection',
    ],
    ['101 aliases', `{ ${aliases(101)} }`, 'has 101 aliases; at most 100'],
    ['101 aliases in a fragment', `{ ...F } fragment F on Query { ${aliases(101)} }`, 'has 101 aliases; at most 100'],
    ['2,001 tokens', tokens(2001), 'more than 2000 tokens'],
    [
      '10,001 objects',
      '{ pets(limit: 100) { orders(limit: 99) { id } } order(orderId: 1) { id } }',
      'return 10001 objects',
    ],
    ['pages of pages', '{ pets(limit: 100) { orders(limit: 100) { id } } }', 'return 10100 objects'],
    [
      'pages sized by their ids',
      `{ pets(id: [${repeat(100, (i) => `${i + 1}`)}]) { orders(limit: 100) { id } } }`,
      'return 10100 objects',
    ],
    [
      'three levels of default pages',
      '{ pets { orders { pet { orders { pet { orders { id } } } } } } }',
      'return 176820 objects',
    ],
  ])('%s return 400 before anything runs', async (_, query, message) => {
    const { status, body } = await gateway.graphql(query)
    expect(body).toEqual({
      errors: [{ message: expect.stringContaining(message), extensions: { code: 'invalid_request', status: 400 } }],
    })
    expect(status).toBe(400)
  })

  test('a limit in a variable counts with its value', async () => {
    const query = 'query ($limit: Int) { pets(limit: $limit) { orders(limit: $limit) { id } } }'
    expect((await gateway.graphql(query, { limit: 99 })).status).toBe(200)
    expect((await gateway.graphql(query, { limit: 100 })).body.errors[0].message).toContain('10100 objects')
    expect((await gateway.graphql(query)).status).toBe(200)
  })
})

describe('hostile documents', () => {
  const chain = (count: number, fragment: (i: number) => string, last: string) =>
    `${repeat(count, fragment)} fragment F${count} on ${last}`
  const doubling = `{ pet(petId: 1) { category { ...F0 } } } ${chain(
    55,
    (i) => `fragment F${i} on Category { pets { category { ...F${i + 1} } } pets { category { ...F${i + 1} } } }`,
    'Category { id }',
  )}`
  const spreads = `{ ...F0 } ${chain(180, (i) => `fragment F${i} on Query { ...F${i + 1} ...F${i + 1} }`, 'Query { dog }')}`
  const everyOther = `{ ...F0 } ${repeat(24, (i) => `fragment F${i} on Query { pets { dog } ${repeat(23 - i, (j) => `...F${i + j + 1}`)} }`)}`
  const most = 131_072

  test.each([
    ['fragments that double at every level', doubling],
    ['fragments that spread each other twice', spreads],
    ['fragments that spread all that follow', everyOther],
    ['a cycle of fragments', '{ ...A } fragment A on Query { pets { id } ...B } fragment B on Query { ...A }'],
    ['a cycle of fragments through fields', '{ pets { ...A } } fragment A on Pet { category { pets { ...A ...A } } }'],
    ['thousands of equal fields', `{ pets { ${repeat(1990, () => 'id')} } }`],
    ['equal fields with selections', `{ ${repeat(490, () => 'pets { id }')} }`],
    ['equal fields with different arguments', `{ ${repeat(160, (i) => `pet(petId: ${i + 1}) { id }`)} }`],
    ['unknown fields', `{ ${repeat(1990, (i) => `a${i}`)} }`],
    ['deep nesting', `{ ${nest(650, 'id', 'pets', 'category')} }`],
    ['brackets that never close', '{a'.repeat(60_000)],
    ['deep lists', `{ pets(id: ${'['.repeat(60_000)}) { id } }`],
    ['introspection that multiplies', `{ __schema { types { ${nest(8, 'name', 'fields', 'type')} } } }`],
    ['a long name', `{ ${'a'.repeat(most - 200)} }`],
    ['a long string', `{ pets(status: "${'a'.repeat(most - 200)}") { id } }`],
    ['a long comment', `# ${'a'.repeat(most - 200)}`],
    ['white space', ' '.repeat(most - 200)],
    ['variables', `query (${repeat(240, (i) => `$v${i}: [[[Int]]]`)}) { dog }`],
    ['repeated directives', `{ pets ${repeat(320, () => '@include(if: true)')} { id } }`],
  ])('%s are rejected fast', async (_, query) => {
    // A comment makes each document new, so that nothing known of an earlier one helps.
    let count = 0
    const timeOf = async (document: string) => {
      const started = performance.now()
      const { status, body } = await gateway.graphql(`${document}\n# ${count++}`)
      const took = performance.now() - started
      expect(body.errors[0].extensions.code).toBe('invalid_request')
      expect([200, 400]).toContain(status)
      return took
    }
    // The measure is a harmless body of the largest size, taken by turns, so that a busy machine slows both.
    const times: [query: number, harmless: number][] = []
    for (let round = 0; round < 3; round++)
      times.push([await timeOf(query), await timeOf(`# ${'a'.repeat(most - 200)}`)])
    const [fastest, harmless] = [0, 1].map((i) => Math.min(...times.map((pair) => pair[i] as number)))
    expect(fastest).toBeLessThan(160 * (harmless as number))
  })

  test('a body over the limit returns 413', async () => {
    const { status, body } = await gateway.graphql(`{ ${'a'.repeat(most)} }`)
    expect([status, body.errors[0].extensions.code]).toEqual([413, 'payload_too_large'])
  })
})
