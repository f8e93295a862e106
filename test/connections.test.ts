import { type GraphQLField, type GraphQLObjectType, isRequiredArgument } from 'graphql'
import { describe, expect, test } from 'vitest'
import { schema } from '../schema/index.js'
import { lists } from '../schema/kit/lists/define.js'
import { times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'
import { repeat } from './support/hostile-documents.js'
import { openWatchedDatabase } from './support/statements.js'

const database = await openWatchedDatabase()
const { statements } = database
const gateway = await sharedGateway({ database })
await gateway.prisma.category.createMany({ data: [{ name: 'Dogs' }, { name: 'Cats' }, { name: 'Birds' }] })
const pets = times(12, (i) => ({
  name: `Rex ${i + 1}`,
  categoryId: BigInt(1 + (i % 2)),
  status: i < 6 ? ('available' as const) : ('sold' as const),
}))
await gateway.prisma.pet.createMany({ data: pets })
await gateway.prisma.order.createMany({ data: [1, 1, 2].map((petId) => ({ petId, complete: petId === 1 })) })

const ask = async (query: string, variables?: object) => {
  const { headers, body, text } = await gateway.graphql(query, variables)
  expect(body.errors, text).toBeUndefined()
  return { data: body.data, cost: Number(headers.get('x-ratelimit-cost')) }
}

const refusal = async (args: string, variables?: object) => {
  const { body, headers } = await gateway.graphql(
    args.startsWith('{') || args.startsWith('q') ? args : `{ petsConnection(${args}) { nodes { id } } }`,
    variables,
  )
  const [error] = body.errors
  return [error.extensions.code, error.message, Number(headers.get('x-ratelimit-cost'))]
}

/** The statements that read data; the gateway reads keys, too. */
const statementsOf = async (query: string) => {
  await ask(query)
  statements.length = 0
  const { data } = await ask(query)
  return { data, count: statements.filter((statement) => !statement.includes('"ApiKey')).length }
}

describe('a connection', () => {
  test('has 20 items if neither first nor last is given, also with null for all four', async () => {
    const { data } = await ask(
      'query ($none: Int, $nothing: String) { petsConnection(first: null, last: $none, after: $nothing, before: null) { nodes { id } } }',
      { none: null, nothing: null },
    )
    expect(data.petsConnection.nodes).toHaveLength(12)
    await gateway.prisma.category.createMany({ data: times(19, () => ({ name: 'more' })) })
    expect((await ask('{ categoriesConnection { nodes { id } } }')).data.categoriesConnection.nodes).toHaveLength(20)
    await gateway.prisma.category.deleteMany({ where: { name: 'more' } })
  })

  test('takes the cursors of REST, and REST takes those of a connection', async () => {
    const { data } = await ask('{ petsConnection(sort: name, first: 2) { edges { cursor } } }')
    const { cursor } = data.petsConnection.edges[1]
    const { body, headers } = await gateway.get(`/pets?sort=name&limit=2&cursor=${cursor}`)
    const next = new URLSearchParams(headers.get('link')?.match(/\?(.+)>/)?.[1]).get('cursor')
    const following = await ask(
      'query ($after: String) { petsConnection(sort: name, first: 2, after: $after) { nodes { name } } }',
      { after: next },
    )
    const names = ['Rex 1', 'Rex 10', 'Rex 11', 'Rex 12', 'Rex 2', 'Rex 3']
    expect(body.map(({ name }: { name: string }) => name)).toEqual(names.slice(2, 4))
    expect(following.data.petsConnection.nodes).toEqual(names.slice(4).map((name) => ({ name })))
  })

  test('has no cursors on an empty page, and says whether there are items before it', async () => {
    const { data } = await ask('{ petsConnection(sort: name, last: 1) { pageInfo { endCursor } } }')
    const after = data.petsConnection.pageInfo.endCursor
    const info = 'pageInfo { hasNextPage hasPreviousPage startCursor endCursor }'
    const none = { startCursor: null, endCursor: null, hasNextPage: false }
    const end = await ask(`query ($after: String) { petsConnection(sort: name, after: $after) { ${info} } }`, { after })
    expect(end.data.petsConnection.pageInfo).toEqual({ ...none, hasPreviousPage: true })
    const empty = await ask(`{ petsConnection(categoryId: 3) { ${info} totalCount edges { cursor } } }`)
    expect(empty.data.petsConnection).toEqual({
      pageInfo: { ...none, hasPreviousPage: false },
      totalCount: 0,
      edges: [],
    })
  })

  test.each([
    ['first: 1, last: 1', 'first and last exclude each other'],
    ['first: 1, before: "x"', 'first and before exclude each other'],
    ['last: 1, after: "x"', 'after and last exclude each other'],
    ['before: "x"', 'before needs last'],
    ['first: 0', 'first is 0; it must be at least 1.'],
    ['first: 101', 'first is 101; it must be at most 100.'],
    ['last: 101', 'last is 101; it must be at most 100.'],
    ['after: ""', 'after is ""; it must not be empty.'],
    ['after: "1"', 'after is no cursor of this service, or was altered.'],
    ['last: 1, before: "1"', 'before is no cursor of this service, or was altered.'],
    ['search: "Re"', 'search is not answered in order of id: add sort=name.'],
    ['search: " ", sort: name', 'search is " "; it must have 1 to 100 characters'],
  ])('refuses %s: %s', async (args, message) => {
    statements.length = 0
    expect(await refusal(args)).toEqual(['invalid_request', expect.stringContaining(message), 1])
    expect(statements.filter((statement) => /"(Pet|Category|Order)"/.test(statement))).toEqual([])
  })
})

describe('a nested connection', () => {
  const nested = `{ categories { name petsConnection(first: 2, status: available, direction: desc) {
    totalCount nodes { name } pageInfo { hasNextPage hasPreviousPage } } } }`

  test('has the items, the page and the total of each parent, in few statements', async () => {
    const { data, count } = await statementsOf(nested)
    const page = (totalCount: number, ...names: string[]) => ({
      totalCount,
      nodes: names.map((name) => ({ name })),
      pageInfo: { hasNextPage: totalCount > 2, hasPreviousPage: false },
    })
    expect(data.categories).toEqual([
      { name: 'Dogs', petsConnection: page(3, 'Rex 5', 'Rex 3') },
      { name: 'Cats', petsConnection: page(3, 'Rex 6', 'Rex 4') },
      { name: 'Birds', petsConnection: page(0) },
    ])
    // Categories, pages, and each total.
    expect(count).toBe(5)
  })

  test('and a nested list have the filters of their list, without those of their parent and without sort', async () => {
    const { data } = await ask(
      '{ pets(id: [1, 2]) { orders(complete: true, direction: desc) { id } ordersConnection(complete: false) { totalCount } } }',
    )
    expect(data.pets).toEqual([
      { orders: [{ id: 2 }, { id: 1 }], ordersConnection: { totalCount: 0 } },
      { orders: [], ordersConnection: { totalCount: 1 } },
    ])
    for (const args of ['petId: 1', 'sort: id', 'shipDateFrom: "2026-01-01T00:00:00Z"'])
      expect((await refusal(`{ pets { orders(${args}) { id } } }`))[1]).toContain('Unknown argument')
  })
})

describe('a null argument of a query counts as absent', () => {
  /** A document with a field of a type: that of Query, or those of all objects of another. */
  const documentOf = (type: string, field: string) => {
    const found = lists.find(({ list }) => list.model === type)
    return found ? `{ ${found.list.name} { ${field} } }` : `{ ${field} }`
  }
  const optional = ({ args }: GraphQLField<unknown, unknown>) => args.filter((arg) => !isRequiredArgument(arg))
  const fields = Object.values(schema.getTypeMap()).flatMap((type) =>
    type.name === 'Mutation' || type.name.startsWith('__') || !('getInterfaces' in type)
      ? []
      : Object.values((type as GraphQLObjectType).getFields())
          .filter((field) => optional(field).length > 0)
          .map((field) => ({ parent: type.name, name: field.name, args: optional(field) })),
  )

  test.each(fields)('of $parent.$name: data and price are equal', async ({ parent, name, args }) => {
    const selection = name.endsWith('Connection') ? '{ nodes { __typename } totalCount }' : '{ __typename }'
    const query = (given: string) => documentOf(parent, `${name}${given} ${selection}`)
    const variables = args.map(({ name, type }) => `$${name}: ${type}`).join()
    const plain = await ask(query(''))
    expect(await ask(query(`(${args.map(({ name }) => `${name}: null`)})`))).toEqual(plain)
    const nulls = Object.fromEntries(args.map(({ name }) => [name, null]))
    expect(
      await ask(`query (${variables}) ${query(`(${args.map(({ name }) => `${name}: $${name}`)})`)}`, nulls),
    ).toEqual(plain)
  })

  test('also if its variable has a default', async () => {
    const names = async (sort: unknown) => {
      const { data } = await ask('query ($sort: PetSort = name) { pets(sort: $sort) { name } }', { sort })
      return data.pets.map(({ name }: { name: string }) => name)
    }
    expect((await names(undefined))[1]).toBe('Rex 10')
    expect((await names(null))[1]).toBe('Rex 2')
  })

  test('and is not named beside what is wrong', async () => {
    const query = 'query ($status: PetStatus, $limit: Int) { pets(status: $status, limit: $limit) { id } }'
    expect(await refusal(query, { status: null, limit: 'x' })).toEqual([
      'invalid_request',
      expect.stringMatching(/^\$limit is "x"; [^$]*$/),
      1,
    ])
  })

  test('but not of a mutation', async () => {
    const { body } = await gateway.graphql('mutation { deletePet(petId: 1, ifMatch: null) { id } }')
    expect(body.errors[0].message).toBe('ifMatch must not be null.')
  })
})

test('an empty list of ids is an empty page', async () => {
  const nothing = { hasNextPage: false, hasPreviousPage: false, startCursor: null, endCursor: null }
  const page = { nodes: [], edges: [], totalCount: 0, pageInfo: nothing }
  const connection =
    '{ nodes { id } edges { cursor } totalCount pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }'
  const { data } = await ask(
    `query ($none: [Int64!]) {
      pets(id: []) { id }
      orders(id: $none, shipDateFrom: "2026-01-01T00:00:00Z", sort: shipDate) { id }
      inventory(petId: [], limit: 5) { petId }
      petsConnection(id: [], status: sold) ${connection}
      categories(limit: 1) { pets(id: $none) { id } petsConnection(id: [], last: 3) ${connection} }
    }`,
    { none: [] },
  )
  expect(data).toEqual({
    pets: [],
    orders: [],
    inventory: [],
    petsConnection: page,
    categories: [{ pets: [], petsConnection: page }],
  })
})

test('a page info whose selection fails is an error, and nothing else', async () => {
  const query = 'query ($s: Boolean = false) { petsConnection(search: "a") { pageInfo { hasNextPage @skip(if: $s) } } }'
  const { status, body } = await gateway.graphql(query, { s: null })
  expect([status, body.data, body.errors[0].extensions.code]).toEqual([
    200,
    { petsConnection: null },
    'invalid_request',
  ])
})

describe('what is not selected', () => {
  test.each([
    ['a total alone reads no rows', '{ petsConnection { totalCount } }', 1],
    [
      'a page alone counts nothing',
      '{ petsConnection { nodes { id } edges { cursor } pageInfo { hasNextPage hasPreviousPage } } }',
      1,
    ],
    [
      'equal totals are one statement',
      '{ a: petsConnection { totalCount } b: petsConnection { c: totalCount d: totalCount } }',
      1,
    ],
    ['both are two statements', '{ petsConnection { nodes { id } totalCount } }', 2],
    [
      'aliases of a page info read the same rows',
      'query ($n: Int = 5) { pet(petId: 1) { ordersConnection(first: $n) { a: pageInfo { ...P } b: pageInfo { ...P } nodes { id } } } } fragment P on PageInfo { hasNextPage endCursor }',
      2,
    ],
    [
      'equal lists of one parent are one',
      '{ pets(limit: 12) { category { petsConnection(first: 3) { nodes { id } } } } }',
      3,
    ],
    ['__typename alone reads nothing', '{ petsConnection { __typename } }', 0],
  ])('%s', async (_, query, count) => {
    expect((await statementsOf(query)).count).toBe(count)
  })
})

describe('a total alone', () => {
  test.each([
    ['search: "rEX 1"', 4],
    ['search: "Rex", status: sold, categoryId: 1', 3],
    ['search: "Rex", sort: id, direction: desc', 12],
  ])('is answered whatever the order is: %s', async (args, totalCount) => {
    const { data, cost } = await ask(`{ petsConnection(${args}) { totalCount } }`)
    expect([data.petsConnection, cost]).toEqual([{ totalCount }, 1])
  })

  test('is so for each list, and with its rows the question is refused', async () => {
    const lists = {
      categories: 'search: "b"',
      inventory: 'minQuantity: 0, maxQuantity: 7',
      orders: 'shipDateFrom: "2026-01-01T00:00:00Z"',
    }
    const totals = Object.entries(lists).map(([name, args]) => `${name}: ${name}Connection(${args}) { totalCount }`)
    const { data } = await ask(`{ ${totals} }`)
    const counts = Object.values(data as Record<string, { totalCount: number }>).map(({ totalCount }) => totalCount)
    expect(counts).toEqual([1, 12, 0])
    for (const rows of ['nodes { id }', 'edges { cursor }', 'pageInfo { endCursor }', 'pageInfo { hasPreviousPage }']) {
      const [code, message] = await refusal(`{ petsConnection(search: "Re") { totalCount ${rows} } }`)
      expect([code, message]).toEqual(['invalid_request', 'search is not answered in order of id: add sort=name.'])
    }
  })
})

describe('the cost', () => {
  const scalars = 'id name categoryId status a: id b: id c: id d: id e: id f: id'
  test.each([
    ['rows are those of first', '{ petsConnection(first: 100) { nodes { category { id } } } }', 2],
    ['or of last', '{ petsConnection(last: 100) { nodes { category { id } } } }', 2],
    ['or the default', '{ petsConnection { nodes { orders(limit: 100) { id } } } }', 21],
    ['or of the ids', '{ petsConnection(first: 100, id: [1, 2]) { nodes { orders(limit: 99) { id } } } }', 2],
    ['and no ids are no rows', '{ petsConnection(id: []) { nodes { orders(limit: 100) { id } } } }', 1],
    ['null is the default', '{ petsConnection(first: null) { nodes { orders(limit: 100) { id } } } }', 21],
    ['null is the default of a list, too', '{ pets(limit: null) { orders(limit: 100) { id } } }', 21],
    ['edges and nodes are the same rows', '{ petsConnection(first: 100) { edges { node { id } } nodes { id } } }', 1],
    [
      'what is nested counts at each place',
      '{ petsConnection(first: 50) { edges { node { category { id } } } nodes { category { id } } } }',
      2,
    ],
    ['ten scalars weigh 1', `{ petsConnection(first: 100) { nodes { ${scalars} } } }`, 1],
    [
      'those of both places are added',
      `{ petsConnection(first: 100) { nodes { ${scalars} } edges { node { j: id } } } }`,
      2,
    ],
    ['a cursor is one of them', `{ petsConnection(first: 100) { edges { cursor node { ${scalars} } } } }`, 2],
    [
      'also under all aliases of edges together',
      `{ petsConnection(first: 100) { ${repeat(9, (i) => `e${i}: edges { ${repeat(10, (j) => `c${j}: cursor`)} }`)} } }`,
      9,
    ],
    ['an entity tag weighs ten', '{ petsConnection(first: 100) { nodes { etag id } } }', 2],
    [
      'and its further aliases one each',
      `{ petsConnection(first: 100) { nodes { ${repeat(11, (i) => `e${i}: etag`)} } } }`,
      2,
    ],
    [
      'also below aliases of edges and nodes',
      `{ petsConnection(first: 100) { a: nodes { etag } b: nodes { etag } edges { node { ${repeat(8, (i) => `e${i}: etag`)} } } } }`,
      2,
    ],
    [
      'ten fields of a page info weigh nothing',
      `{ pets(limit: 99) { ordersConnection(first: 1) { ${repeat(5, (i) => `p${i}: pageInfo { hasNextPage endCursor }`)} } } }`,
      2,
    ],
    [
      'eleven under all its aliases weigh 2 for each parent',
      `{ pets(limit: 99) { ordersConnection(first: 1) { ${repeat(11, (i) => `p${i}: pageInfo { hasNextPage }`)} } } }`,
      4,
    ],
    [
      'a connection below another object of which nothing else counts is an object',
      `{ pets(limit: 99) { ${repeat(10, (i) => `a${i}: ordersConnection { __typename }`)} } }`,
      11,
    ],
    ['a total is 100 objects', '{ petsConnection(first: 1) { totalCount nodes { id } } }', 2],
    ['a total alone is paid alone', '{ petsConnection(first: 100) { totalCount } }', 1],
    ['each alias of a total counts', '{ petsConnection { a: totalCount b: totalCount } }', 2],
    ['totals count times their parents', '{ categories(limit: 7) { petsConnection { totalCount } } }', 8],
    ['a variable counts', 'query ($n: Int = 100) { petsConnection(first: $n) { nodes { category { id } } } }', 2],
    ['a page info reads the rows', '{ petsConnection(first: 100) { pageInfo { hasNextPage } } }', 1],
  ])('%s', async (_, query, units) => {
    expect((await ask(query)).cost).toBe(units)
  })

  test('100 totals are allowed and 101 are not', async () => {
    const totals = (limit: number, more = '') =>
      `{ categories(limit: ${limit}) { petsConnection { totalCount } } ${more} }`
    expect((await ask(totals(100))).cost).toBe(101)
    const message = 'The operation could ask for 101 totals of connections; at most 100 are allowed.'
    expect(await refusal(totals(100, 'petsConnection { totalCount }'))).toEqual([
      'invalid_request',
      expect.stringContaining(message),
      1,
    ])
  })

  test('an operation may complete 100,000 fields, those of each item of each list counted', async () => {
    // The list, and in each of 100 pets its name and 20 times 2 scalars in 24 or more orders.
    const fields = (aliases: number) =>
      `{ pets(limit: 100) { orders(limit: 99) { ${repeat(aliases, (i) => `a${i}: id`)} } } }`
    expect((await ask(fields(10))).cost).toBe(100)
    expect((await refusal(fields(11)))[1]).toContain(
      'could complete 109001 fields, those of each item of a list counted; at most 100000 are allowed. It would fit with a limit of',
    )
  })

  test('an operation may return keys of 8 MiB, those of each item of each list counted', async () => {
    // 100 times "orders" and 98 of the long key, and that of the list.
    const keys = (letters: number) =>
      `{ ${'p'.repeat(letters - 8_379_600)}: pets(limit: 100) { orders(limit: 98) { ${'k'.repeat(855)}: id } } }`
    expect((await ask(keys(8_388_608))).cost).toBe(99)
    expect((await refusal(keys(8_388_609)))[1]).toContain(
      'could return 8388609 characters in keys, those of each item of a list counted; at most 8388608 are allowed. It would fit with a limit of',
    )
  })

  test('an operation may return 10,000 objects, also through connections', async () => {
    const objects = (first: number) =>
      `{ petsConnection(first: 100) { nodes { ordersConnection(first: ${first}) { nodes { id } } } } }`
    expect((await ask(objects(99))).cost).toBe(100)
    expect((await refusal(objects(100)))[1]).toContain('could return 10100 objects; at most 10000 are allowed')
  })
})
