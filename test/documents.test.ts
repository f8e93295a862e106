import { getIntrospectionQuery } from 'graphql'
import { beforeAll, describe, expect, test } from 'vitest'
import { schema } from '../schema/index.js'
import { createDocuments } from '../src/gateway/graphql/document-caches.js'
import { KnownDocument } from '../src/gateway/graphql/documents.js'
import { times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'
import { nest, repeat } from './support/hostile-documents.js'

const gateway = await sharedGateway()
await gateway.graphql('{ quota { plan } }')

const cost = async (query: string, variables?: object, operationName?: string) => {
  const { headers } = await gateway.post('/graphql', { query, variables, operationName })
  return Number(headers.get('x-ratelimit-cost'))
}

describe('what a document takes in the cache', () => {
  const fields = `{ pet(petId: 1) { ${repeat(49, (i) => `a${i}: category { id }`)} } }`
  const weigh = (query: string) => new KnownDocument(schema, query).weight
  const one = weigh(`query A ${fields}`)
  /** Without its plan, which has about a hundred fields. */
  const tokens = one - 1_000 * 100

  test('counts the plan of each operation, also of a fragment that they share', () => {
    const operations = repeat(20, (i) => `query Q${i} { ...F }`)
    expect(weigh(`${operations} fragment F on Query ${fields}`)).toBeGreaterThan(20 * (one - tokens))
  })

  test('counts the four plans of an operation with @skip or @include', () => {
    for (const directive of ['skip', 'include'])
      expect(
        weigh(`query A($a: Boolean!) ${fields.replace('{ id }', `{ id @${directive}(if: $a) }`)}`),
      ).toBeGreaterThan(tokens + 4 * (one - tokens))
  })
})

test('documents are kept until there is no room; then who has filled most of it drops what was not used for longest', () => {
  const documents = createDocuments()
  const keep = (source: string, holder: string) => documents.keep(source, new KnownDocument(schema, source), holder)
  const [own, used, ...many] = times(6_000, (i) => `{ a${i}: quota { plan } }`) as [string, string, ...string[]]
  keep('{ pets { id } }', '1')
  keep(own, '2')
  keep(used, '2')
  for (const source of many) {
    keep(source, '2')
    documents.get(used)
  }
  const kept = ['{ pets { id } }', own, used, many.at(-1) as string].map(
    (source) => documents.get(source) !== undefined,
  )
  expect(kept).toEqual([true, false, true, true])
})

describe('the cost of a document', () => {
  test.each([
    ['one field', '{ pets { id } }', 1],
    ['two fields', '{ pets { id } orders { id } }', 2],
    ['aliases', '{ a: pets { id } b: pets { id } c: pets { id } }', 3],
    ['fifty aliased pets', `{ ${repeat(50, (i) => `a${i}: pet(petId: 1) { id }`)} }`, 50],
    ['equal response keys, which are merged', '{ pets { id } pets { name } ... { pets { status } } }', 1],
    ['an inline fragment', '{ ... on Query { a: pets { id } b: pets { id } } }', 2],
    ['a fragment spread twice', '{ ...F ...F } fragment F on Query { a: pets { id } b: pets { id } }', 2],
    [
      'fragments in fragments',
      '{ ...F } fragment F on Query { pets { id } ...G } fragment G on Query { orders { id } }',
      2,
    ],
    ['introspection', '{ __schema { types { name } } __type(name: "Pet") { name } }', 2],
    ['six aliased types', `{ ${repeat(6, (i) => `a${i}: __type(name: "Pet") { name }`)} }`, 6],
    ['mutations', 'mutation { a: deletePet(petId: 1) { id } b: deletePet(petId: 2) { id } }', 2],

    ['quota', '{ quota { plan } again: quota { plan } }', 0],
    ['__typename', '{ __typename t: __typename }', 0],
    ['quota beside a list', '{ quota { plan minute { limit } } pets(limit: 100) { id } __typename }', 1],
    ['a selection of nothing', '{ quota @skip(if: true) { plan } }', 1],

    ['100 objects', '{ pets(limit: 50) { inventory { quantity } } }', 1],
    ['101 objects', '{ pets(limit: 50) { inventory { quantity } } pet(petId: 1) { id } }', 2],
    ['100 pets with category and stock', '{ pets(limit: 100) { category { name } inventory { quantity } } }', 3],
    ['the default limit of a list', '{ pets { orders { id } } }', 5],
    ['a list of ids', '{ pets(id: [1, 2, 3]) { orders(limit: 100) { id } } }', 4],
    ['a list of ids, whatever its limit', '{ pets(id: [1, 2, 3], limit: 2) { orders(limit: 100) { id } } }', 4],
    ['a list of ids without a limit', '{ pets(id: 1) { orders(limit: 99) { id } } }', 1],
    ['a limit out of bounds, which counts as 100', '{ pets(limit: 0) { category { id } } }', 2],
    ['a limit of another type', '{ pets(limit: "1") { category { id } } }', 2],
    [
      '99 aliased lists of one under 100 parents',
      `{ pets(limit: 100) { ${repeat(99, (i) => `a${i}: orders(limit: 1) { id }`)} } }`,
      100,
    ],
    [
      'nested objects, merged like their fields',
      '{ pets(limit: 50) { category { id } } pets(limit: 50) { category { name } } }',
      1,
    ],

    ['10 scalar fields', `{ pets(limit: 100) { ${repeat(10, (i) => `a${i}: id`)} } }`, 1],
    ['11 scalar fields', `{ pets(limit: 100) { ${repeat(11, (i) => `a${i}: id`)} } }`, 2],
    [
      '21 scalar fields in fragments',
      `{ pets(limit: 100) { ...F } } fragment F on Pet { ${repeat(21, (i) => `a${i}: id`)} }`,
      3,
    ],

    ['keys of 262,144 letters', `{ pets(limit: 10) { ${'x'.repeat(26_214)}: id } }`, 1],
    ['keys of 262,145 letters', `{ pets1: pets(limit: 10) { ${'x'.repeat(26_214)}: id } }`, 2],
    [
      'keys of what is free otherwise',
      `{ quota { ${repeat(10, (i) => `a${i}: minute { ...F }`)} } } fragment F on QuotaWindow { ${'x'.repeat(60_000)}: limit }`,
      3,
    ],
    ['99 aliased lists of one', `{ pet(petId: 1) { ${repeat(99, (i) => `a${i}: orders(limit: 1) { id }`)} } }`, 1],
    [
      '100 aliased lists of one and their parent',
      `{ pet(petId: 1) { ${repeat(100, (i) => `a${i}: orders(limit: 1) { id }`)} } }`,
      2,
    ],

    ['an unknown field', '{ dogs { id } }', 1],
    ['unknown fields', '{ dogs { id } cats { id } }', 2],
    ['a field that is free, but not valid', '{ __typename @free }', 1],
    ['an unknown field of quota', '{ quota { nothing } }', 1],
    ['a list with an unknown field', '{ pets(limit: 100) { category { nothing } } }', 2],
    ['an unsupported operation type', 'subscription { a: pets { id } b: pets { id } }', 1],
    ['a syntax error', '{ a: pets { id } b: pets { ', 1],
    ['no operation', 'fragment F on Query { a: pets { id } b: pets { id } }', 1],
    ['a fragment that is missing', '{ ...Missing }', 1],
    ['a document beyond a limit', `{ a: pets { id } ${nest(11, 'id', 'pets', 'category')} }`, 1],
  ])('%s: %s costs %i', async (_, query, expected) => {
    expect(await cost(query)).toBe(expected)
  })

  // At run time an object has one type, of which nothing is known before: the type that costs the most counts.
  const nodes = (selection: string) => `{ nodes(nodeIds: [${repeat(10, (i) => `"${i}"`)}]) { ${selection} } }`
  test.each([
    [
      'lists of one key',
      nodes('... on Pet { x: orders(limit: 1) { id } } ... on Category { x: pets(limit: 100) { id } }'),
    ],
    [
      'in the other order',
      nodes('... on Category { x: pets(limit: 100) { id } } ... on Pet { x: orders(limit: 1) { id } }'),
    ],
    [
      'connections of one key',
      nodes(`... on Pet { x: ordersConnection(first: 1) { nodes { id } } }
        ... on Category { x: petsConnection(first: 100) { nodes { id } } }`),
    ],
    [
      'named fragments',
      `${nodes('...P ...C')} fragment P on Pet { x: orders(limit: 1) { id } } fragment C on Category { x: pets(limit: 100) { id } }`,
    ],
    [
      'fragments on an interface',
      nodes('... on Node { ... on Pet { x: orders(limit: 1) { id } } ...C }') +
        ' fragment C on Node { ... on Category { x: pets(limit: 100) { id } } }',
    ],
    [
      'lists of several keys',
      nodes('... on Pet { orders(limit: 60) { id } } ... on Category { pets(limit: 100) { id } }'),
    ],
    [
      'fields of every type',
      `{ nodes(nodeIds: [${repeat(100, () => '"x"')}]) { ...N ...P ... on Category { pets(limit: 10) { id } } } }
        fragment N on Node { nodeId } fragment P on Pet { ${repeat(10, (i) => `a${i}: id`)} }`,
    ],
    [
      'what no object can have beside what it has',
      `{ pets(limit: 11) { ... on Node { ... on Category { pets(limit: 100) { id } } ... on Pet { orders(limit: 99) { id } } } } }`,
    ],
  ])('below an interface is that of the type that costs the most: %s', async (_, query) => {
    expect(await cost(query)).toBe(11)
  })

  test('below an interface is refused with more than 10,000 objects of one type', async () => {
    const query = (limit: number) => `{ nodes(nodeIds: [${repeat(100, (i) => `"${i}"`)}]) {
      ... on Pet { x: orders(limit: 1) { id } } ... on Category { x: pets(limit: ${limit}) { id } } } }`
    expect(await cost(query(99))).toBe(100)
    expect((await gateway.graphql(query(100))).body.errors[0].message).toContain('could return 10100 objects')
  })

  test.each([
    ['list', 'query ($limit: Int) { pets(limit: $limit) { category { id } } }', { limit: 60 }, 2],
    ['default', 'query ($limit: Int = 60) { pets(limit: $limit) { category { id } } }', {}, 2],
    [
      'default that is not used',
      'query ($limit: Int = 60) { pets(limit: $limit) { category { id } } }',
      { limit: 5 },
      1,
    ],
    ['missing variable', 'query ($limit: Int) { pets(limit: $limit) { orders { id } } }', {}, 5],
    ['null', 'query ($limit: Int) { pets(limit: $limit) { orders { id } } }', { limit: null }, 5],
    ['wrong type', 'query ($limit: Int) { pets(limit: $limit) { category { id } } }', { limit: '5' }, 2],
    ['list of ids', 'query ($id: [Int64!]) { pets(id: $id) { orders(limit: 100) { id } } }', { id: [1, 2, 3] }, 4],
    ['single id', 'query ($id: [Int64!]) { pets(id: $id) { orders(limit: 99) { id } } }', { id: 1 }, 1],
    ['undefined variable', '{ pets(limit: $limit) { category { id } } }', { limit: 60 }, 2],
    ['skip', 'query ($no: Boolean!) { a: pets @skip(if: $no) { id } b: pets { id } }', { no: true }, 1],
    ['no skip', 'query ($no: Boolean!) { a: pets @skip(if: $no) { id } b: pets { id } }', { no: false }, 2],
    ['skip without a value', 'query ($no: Boolean!) { a: pets @skip(if: $no) { id } b: pets { id } }', {}, 2],
    [
      'include',
      'query ($yes: Boolean!) { a: pets { id } ... @include(if: $yes) { b: pets { id } } }',
      { yes: false },
      1,
    ],
    [
      'include that holds',
      'query ($yes: Boolean!) { a: pets @include(if: $yes) { id } b: pets { id } }',
      { yes: true },
      2,
    ],
  ])('is computed from variables: a %s', async (_, query, variables, expected) => {
    expect(await cost(query, variables)).toBe(expected)
    // The same, now that the document is known.
    expect(await cost(query, variables)).toBe(expected)
  })

  test('follows the variables of each request, whatever the last one had', async () => {
    const query = `query ($n: Int = 60, $ids: [Int64!], $all: Boolean = true) {
      pets(limit: $n) { category { id } } categories(id: $ids) @include(if: $all) { pets(limit: 100) { id } } }`
    const asked: [object, number][] = [
      [{}, 22],
      [{ n: 100 }, 23],
      [{ n: 100, ids: [1, 2, 3] }, 6],
      [{ n: 100, ids: [1] }, 4],
      [{ n: 100, ids: [], all: false }, 2],
      [{ all: false }, 2],
      [{ n: 1, all: false }, 1],
      [{ n: null, all: false }, 1],
    ]
    for (const [variables, expected] of [...asked, ...asked.toReversed()])
      expect([variables, await cost(query, variables)]).toEqual([variables, expected])
  })

  test('counts only the operation that runs', async () => {
    const query = 'query A { pets { id } } query B { a: pets { id } b: pets { id } }'
    expect([await cost(query, {}, 'A'), await cost(query, {}, 'B'), await cost(query)]).toEqual([1, 2, 1])
  })

  test('an operation that cannot be determined does not run', async () => {
    const query = 'query A { a: pets { id } b: pets { id } }'
    for (const operationName of ['a', 'B']) {
      const { body } = await gateway.post('/graphql', { query, operationName })
      expect(body.data).toBeUndefined()
      expect(body.errors[0].extensions.code).toBe('invalid_request')
    }
  })

  test.each([
    [
      '61 root fields',
      `{ ${repeat(61, (i) => `a${i}: pet(petId: 1) { id }`)} }`,
      61,
      'select fewer fields, or send several operations',
    ],
    ['lists that are too long', '{ pets(limit: 100) { orders(limit: 61) { id } } }', 62, 'limit of 90 in every list'],
  ])('above a whole window returns 400, costs 1, and names what would fit: %s', async (_, query, price, advice) => {
    const { key } = await gateway.createKey()
    const { status, body, headers } = await gateway.graphql(query, {}, { key })
    expect([status, body.errors[0].extensions]).toEqual([400, { code: 'invalid_request', status: 400 }])
    expect(body.errors[0].message).toMatch(new RegExp(`\\b${price}\\b.*\\b60\\b.*${advice}`))
    expect([headers.get('x-ratelimit-remaining'), headers.get('x-ratelimit-cost')]).toEqual(['59', '1'])
    expect(headers.get('retry-after')).toBeNull()
  })

  test('above a whole window names a limit of 1, if only that would fit', async () => {
    const { key } = await gateway.createLimitedKey(1)
    const query = (limit: number) =>
      `{ pets(limit: ${limit}) { ${repeat(99, (i) => `a${i}: orders(limit: 1) { id }`)} } }`
    expect((await gateway.graphql(query(2), {}, { key })).body.errors[0].message).toContain(
      'a limit of 1 in every list',
    )
    const { key: other } = await gateway.createLimitedKey(1)
    expect((await gateway.graphql(query(1), {}, { key: other })).body.errors).toBeUndefined()
  })

  test('that an error message advises does fit', async () => {
    const { key } = await gateway.createLimitedKey(10)
    const query = (limit: number) =>
      `{ categories(limit: ${limit}) { pets(limit: ${limit}) { orders(limit: ${limit}) { id } } } }`
    const refused = await gateway.graphql(query(20), {}, { key })
    const advised = Number(/limit of (\d+)/.exec(refused.body.errors[0].message)?.[1])
    const { status, headers } = await gateway.graphql(
      query(advised),
      {},
      { key: (await gateway.createLimitedKey(10)).key },
    )
    expect(status).toBe(200)
    expect(Number(headers.get('x-ratelimit-cost'))).toBeLessThanOrEqual(10)
  })
})

describe('the limits of a document', () => {
  const introspection = (levels: number) => `{ __type(name: "Pet") { ${nest(levels - 2, 'name', 'ofType')} } }`
  const around = (levels: number) => `pet(petId: 1) { ${nest(levels - 2, '__typename', 'inventory', 'pet')} }`
  const typeAliases = (count: number) => `{ __type(name: "Pet") { ${repeat(count, (i) => `a${i}: name`)} } }`
  const aliases = (count: number) => repeat(count, (i) => `a${i}: __typename`)
  const padded = (bytes: number) => '{ quota { plan } } #'.padEnd(bytes, 'x')
  const fields = (count: number) =>
    `{ ${repeat(45, (i) => `a${i}: pet(petId: 1) { ${repeat(10, () => 'id')} }`)} ${repeat(count - 495, (i) => `b${i}: __typename`)} }`
  const repeated = (count: number) =>
    `{ pets(limit: 1) { ...F ${repeat(count - 1, () => 'id')} } } fragment F on Pet { id }`
  /** Ten in each selection, as long as there are any. */
  const merged = (count: number) =>
    repeat(Math.ceil(count / 10), (i) => `pet(petId: 1) { ${repeat(Math.min(10, count - 10 * i), () => 'id')} }`)

  // 50 fields, and below each of them a spread and 98 fields.
  const expanded = (more: string) =>
    `{ ${more} ${repeat(50, (i) => `a${i}: pet(petId: 1) { ...F }`)} } fragment F on Pet {
      ${repeat(10, () => 'id name categoryId status __typename')} ${repeat(48, (i) => `b${i}: id`)} }`

  const runs = async (query: string) => {
    const { status, body } = await gateway.graphql(query)
    const codes = new Set(body.errors?.map(({ extensions }: { extensions: { code: string } }) => extensions.code))
    expect([...codes].filter((code) => code !== 'not_found')).toEqual([])
    expect([status, Object.keys(body.data).length > 0]).toEqual([200, true])
  }
  /** Before anything runs, at the cost of one unit. */
  const isRefused = async (query: string, message: string) => {
    const { status, body, headers } = await gateway.graphql(query)
    expect(headers.get('x-ratelimit-cost')).toBe('1')
    expect(body).toEqual({
      errors: [{ message: expect.stringContaining(message), extensions: { code: 'invalid_request', status: 400 } }],
    })
    expect(status).toBe(400)
  }

  test.each<[most: number, what: string, make: (count: number) => string, message: string]>([
    [65_536, 'bytes', padded, 'has 65537 bytes; at most 65536'],
    [10_000, 'lines', (lines) => `{ quota { plan }${'\r\n'.repeat(lines - 1)}}`, 'has 10001 lines; at most 10000'],
    [500, 'fields', fields, 'has 501 fields; at most 500'],
    [10, 'levels', (levels) => `{ ${around(levels)} }`, 'has 11 levels of fields; at most 10'],
    [20, 'levels of introspection', introspection, 'has 21 levels of fields in introspection; at most 20'],
    [5, 'aliases in introspection', typeAliases, 'has 6 aliases in introspection; at most 5'],
    [100, 'aliases', (count) => `{ ${aliases(count)} }`, 'has 101 aliases; at most 100'],
    [10, 'repetitions', repeated, 'has a field 11 times; at most 10 are allowed. It is id.'],
    [
      30,
      'merged fields',
      (count) => `{ ${merged(count)} }`,
      'a field 31 times at one place of the response; at most 30',
    ],
  ])(
    '%i %s are accepted; one more returns 400 before anything runs, and costs one unit',
    async (...[most, , make, message]) => {
      await runs(make(most))
      await isRefused(make(most + 1), message)
    },
  )

  const everyOption = {
    ...{ descriptions: true, specifiedByUrl: true, directiveIsRepeatable: true, schemaDescription: true },
    ...{ inputValueDeprecation: true, oneOf: true },
  }
  test.each([
    ['5,000 selections with fragments expanded', expanded('')],
    ['the standard introspection query with all options', getIntrospectionQuery(everyOption)],
    ['10,000 objects', '{ pets(limit: 100) { orders(limit: 99) { id } } }'],
    ['two levels of default pages', '{ pets { orders { pet { orders { id } } } } }'],
  ])('%s are accepted', async (_, query) => {
    await runs(query)
  })

  test.each([
    ['5,001 selections with fragments expanded', expanded('__typename'), 'expand to more than 5000 selections'],
    [
      '11 levels through fragments',
      `{ ...F } fragment F on Query { ...G ...G } fragment G on Query { ${around(11)} }`,
      'has 11 levels of fields; at most 10',
    ],
    [
      '6 aliases in a fragment in introspection',
      `{ __type(name: "Pet") { ...F } } fragment F on __Type { ${repeat(6, (i) => `a${i}: name`)} }`,
      'has 6 aliases in introspection',
    ],
    ['101 aliases in a fragment', `{ ...F } fragment F on Query { ${aliases(101)} }`, 'has 101 aliases; at most 100'],
    ['11 repetitions at the root', `{ ${repeat(11, () => '__typename')} }`, 'has a field 11 times; at most 10'],
    [
      '31 merged fields in fragments on several types',
      `{ node(nodeId: "x") { ${repeat(4, (i) => `...F${i}`)} } }
      ${repeat(4, (i) => `fragment F${i} on ${['Pet { a: category { ... on Category', 'Order { a: pet { ... on Pet'][i % 2]} { ${repeat(i < 3 ? 10 : 1, () => 'id')} } } }`)}`,
      'a field 31 times at one place of the response; at most 30 are allowed, because equal fields are merged. It is id.',
    ],
    [
      '31 merged fields in a fragment that nothing uses',
      `{ quota { plan } } fragment F on Query { ${merged(31)} }`,
      'a field 31 times',
    ],
    [
      '31 merged fields in a fragment that another one of its name hides',
      `{ ...F } fragment F on Query { ${merged(31)} } fragment F on Query { quota { plan } }`,
      'a field 31 times',
    ],
    [
      'a fragment in itself',
      '{ ...A } fragment A on Query { pets { id } ...B } fragment B on Query { ...A }',
      'contains itself',
    ],
    [
      'a fragment that contains itself, even if nothing uses it',
      '{ pets { id } } fragment F on Pet { ...F }',
      'contains itself',
    ],
    [
      '10,001 objects',
      '{ pets(limit: 100) { orders(limit: 99) { id } } order(orderId: 1) { id } }',
      'return 10001 objects; at most 10000 are allowed. It would fit with a limit of 90 in every list',
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
  ])('%s return 400 before anything runs, and cost one unit', async (_, query, message) => {
    await isRefused(query, message)
  })

  test('2,000 tokens are accepted, and 2,001 are not', async () => {
    // 12 tokens and the ids, which are too many for the field, but that shows only when it runs.
    const tokens = (count: number) => `{ pets(id: [${repeat(count - 12, () => '1')}]) { id } }`
    expect((await gateway.graphql(tokens(2_000))).body.errors[0].message).toBe(
      'id is a list of 1988 items; it must name at most 100 ids.',
    )
    const { status, body } = await gateway.graphql(tokens(2_001))
    expect([status, body.errors[0].message]).toEqual([400, expect.stringContaining('more than 2000 tokens')])
  })

  test('a limit in a variable counts with its value', async () => {
    const query = 'query ($limit: Int) { pets(limit: $limit) { orders(limit: $limit) { id } } }'
    expect((await gateway.graphql(query, { limit: 99 })).status).toBe(200)
    expect((await gateway.graphql(query, { limit: 100 })).body.errors[0].message).toContain('10100 objects')
    expect((await gateway.graphql(query)).status).toBe(200)
  })
})

describe('the answer', () => {
  const MAX = 8_388_608
  const fragment = (aliases: number) =>
    `fragment F on Pet { category { ${repeat(aliases, (i) => `a${i}: description`)} } }`
  let data: { category: number; pet: number }

  beforeAll(async () => {
    const { id } = await gateway.prisma.category.create({ data: { name: 'Cats', description: 'c'.repeat(1000) } })
    await gateway.prisma.pet.createMany({ data: times(100, () => ({ name: 'Tom', categoryId: id })) })
    const first = await gateway.prisma.pet.findFirst({ where: { categoryId: id }, orderBy: { id: 'asc' } })
    data = { category: Number(id), pet: Number(first?.id) }
  })

  test('may be 8 MiB long, and not longer', async () => {
    const after = data.pet - 1
    const query = (more: number, padding: number) =>
      `{ pets(limit: 100${after > 0 ? `, after: ${after}` : ''}) { ...F } more: pets(limit: ${more}${after > 0 ? `, after: ${after}` : ''}) { ...F } ${'p'.repeat(padding)}: __typename } ${fragment(55)}`
    // A pet has 55 times 1,000 characters. The alias of another field fills what is left.
    let more = 51
    let padding = -1
    while (padding < 0) {
      const { status, text } = await gateway.graphql(query(--more, 1))
      if (status === 200) padding = 1 + MAX - Buffer.byteLength(text)
      else expect(text).toContain('longer than the allowed')
    }
    const longest = await gateway.graphql(query(more, padding))
    expect([longest.status, Buffer.byteLength(longest.text)]).toEqual([200, MAX])
    const { status, body } = await gateway.graphql(query(more, padding + 1))
    expect([status, body.errors[0].extensions.code]).toEqual([400, 'invalid_request'])
    expect(body.errors[0].message).toContain(`longer than the allowed ${MAX} bytes (it has ${MAX + 1})`)
    // It ends before it is complete.
    const much = await gateway.graphql(query(100, 1))
    expect([much.status, much.body.errors[0].message]).toEqual([400, expect.stringContaining(`allowed ${MAX} bytes.`)])
  })

  const rename = (name: string, below: string) =>
    `${name}: updateCategory(categoryId: ${data.category}, input: { name: "${name}" }) { name ${below} }`
  const category = () => gateway.prisma.category.findUniqueOrThrow({ where: { id: data.category } })
  const message = `The response would be longer than the allowed ${MAX} bytes. Select fewer fields or smaller pages.`
  const tooLong = expect.objectContaining({
    message,
    extensions: { code: 'invalid_request', status: 400 },
  })

  test('of a mutation ends before a field that would make it longer: that and those after it are null, and have changed nothing', async () => {
    // 4 MB of pets.
    const pets = 'pets(limit: 100) { ...F }'
    const mutation = `mutation { ${rename('a', pets)} ${rename('b', pets)} ${rename('c', pets)} ${rename('d', '')} } ${fragment(40)}`
    const { status, body, text } = await gateway.graphql(mutation)
    expect([status, text.length < MAX + 1_000]).toEqual([200, true])
    const { a, b, c, d } = body.data
    expect([a.name, b.name, b.pets.length, c, d, (await category()).name]).toEqual(['a', 'b', 100, null, null, 'b'])
    expect(body.errors).toEqual([tooLong, tooLong])
    expect(body.errors.map(({ path }: { path: string[] }) => path)).toEqual([['c'], ['d']])
  })

  test('of a mutation without lists ends so, too', async () => {
    const { id } = await gateway.prisma.category.create({ data: { name: 'Cats', description: '\u0001'.repeat(1000) } })
    // Each field has 50 descriptions of 6,000 characters of JSON.
    const fields = repeat(50, (i) => `f${i}: updateCategory(categoryId: ${id}, input: { name: "f${i}" }) { ...D name }`)
    const { status, body } = await gateway.graphql(
      `mutation { ${fields} } fragment D on Category { description ${repeat(49, (i) => `a${i}: description`)} }`,
    )
    const done = Object.values(body.data).filter((category) => category !== null)
    expect([status, done.length, body.errors.length]).toEqual([200, Math.floor(MAX / 300_000), 50 - done.length])
    expect(body.errors).toEqual(Array(50 - done.length).fill(tooLong))
    expect((await gateway.prisma.category.findUniqueOrThrow({ where: { id } })).name).toBe(`f${done.length - 1}`)
  })

  test('of a batch, an operation with an Idempotency-Key or @atomic that would be longer is refused, and nothing has changed', async () => {
    const { name } = await category()
    const pets = 'pets(limit: 100) { ...F }'
    const mutation = (directive: string) =>
      `mutation ${directive} { ${rename('x', `${pets} more: ${pets} again: ${pets}`)} } ${fragment(30)}`
    for (const [directive, headers] of [
      ['', { 'idempotency-key': 'long' }],
      ['@atomic', {}],
    ] as const) {
      const { status, body } = await gateway.graphql(mutation(directive), undefined, { headers })
      expect([directive, status, body.errors[0].message]).toEqual([directive, 400, message])
      expect((await category()).name).toBe(name)
    }

    const items = times(100, () => ({ name: 'n', categoryId: data.category }))
    const batch = `mutation ($input: [NewPet!]!) { createPets(input: $input) { ...F } } ${fragment(95)}`
    const before = await gateway.prisma.pet.count()
    const { status, body } = await gateway.graphql(batch, { input: items })
    expect([status, body.data, body.errors]).toEqual([200, { createPets: null }, [tooLong]])
    expect(await gateway.prisma.pet.count()).toBe(before)
  })
})
