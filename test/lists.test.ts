import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'
import {
  type Args,
  answer,
  excludesItself,
  fillStore,
  isAnswered,
  type ListModel,
  modelOf,
  question,
  type Row,
  store,
} from './support/lists.js'

const gateway = await sharedGateway()

const queryOf = (args: Args) => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(args)) for (const item of [value].flat()) query.append(name, String(item))
  return `?${query}`
}

/** All pages of a list of REST, and the totals that they show. */
async function walkRest({ path }: ListModel, args: Args, limit: number) {
  const rows: Row[] = []
  const totals = new Set<string | null>()
  for (let next: string | undefined = path + queryOf({ ...args, limit, count: true }); next; ) {
    const { status, headers, body } = await gateway.get(next)
    expect([status, body.length <= limit]).toEqual([200, true])
    rows.push(...body)
    if (next.includes('count=true')) totals.add(headers.get('x-total-count'))
    next = nextOf({ headers })
    expect(next ?? '').not.toContain('count=')
  }
  return { rows, totals }
}

const nextOf = ({ headers }: { headers: Headers }) =>
  headers.get('link')?.match(/^<http:\/\/localhost:3000(.+)>; rel="next"$/)?.[1]

const SIZES = [1, 2, 3]

/** The first two pages of several sizes, asked for at the same time, so that they share statements. */
async function pagesTogether({ path }: ListModel, args: Args) {
  const first = await Promise.all(SIZES.map((limit) => gateway.get(path + queryOf({ ...args, limit }))))
  const next = await Promise.all(first.map((page) => nextOf(page)).map((path) => path && gateway.get(path)))
  return first.map(({ body }, i) => [body, (next[i] || { body: [] }).body])
}

const withoutNulls = (row: Row) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))

const typesOf = ({ key, filters, sortType }: ListModel): Record<string, string> => ({
  [key]: '[Int64!]',
  sort: sortType,
  direction: 'SortDirection',
  ...Object.fromEntries(Object.entries(filters).map(([name, { type }]) => [name, type])),
})

/** Arguments as variables: how they are declared, and how they are passed. */
function variablesOf(model: ListModel, args: Args) {
  const types = typesOf(model)
  const given = Object.keys(args)
  return [
    given.map((name) => `, $${name}: ${types[name]}`).join(''),
    given.map((name) => `, ${name}: $${name}`).join(''),
  ]
}

/** The total of a connection of which no rows are asked for. */
async function totalAlone(model: ListModel, args: Args) {
  const [declared, passed] = variablesOf(model, args)
  const query = `query ($size: Int${declared}) { connection: ${model.field}Connection(first: $size${passed}) { totalCount } }`
  return (await gateway.graphql(query, args)).body.data.connection.totalCount
}

/** All pages of a connection, and its totals. */
async function walkConnection(model: ListModel, args: Args, size: number, isBackward: boolean) {
  const { field, fields } = model
  const [declared, passed] = variablesOf(model, args)
  const [limit, place] = isBackward ? ['last', 'before'] : ['first', 'after']
  const query = `query ($size: Int, $place: String${declared}) { connection: ${field}Connection(${limit}: $size, ${place}: $place${passed}) {
    edges { cursor node { ${fields} } } nodes { ${fields} } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } totalCount } }`
  const pages: Row[][] = []
  const totals = new Set<number>()
  for (let place: string | null | undefined; place !== null; ) {
    const { body } = await gateway.graphql(query, { size, place, ...args })
    expect(body.errors).toBeUndefined()
    const { edges, nodes, pageInfo, totalCount } = body.data.connection
    expect(edges.map(({ node }: { node: Row }) => node)).toEqual(nodes)
    expect([pageInfo.startCursor, pageInfo.endCursor]).toEqual([edges[0]?.cursor ?? null, edges.at(-1)?.cursor ?? null])
    pages.push(nodes.map(withoutNulls))
    totals.add(totalCount)
    const [hasMore, hasSeen, end] = isBackward
      ? [pageInfo.hasPreviousPage, pageInfo.hasNextPage, pageInfo.startCursor]
      : [pageInfo.hasNextPage, pageInfo.hasPreviousPage, pageInfo.endCursor]
    expect(hasSeen).toBe(place !== undefined)
    place = hasMore ? end : null
  }
  return { rows: (isBackward ? pages.reverse() : pages).flat(), totals }
}

const readAll = async ({ path }: ListModel): Promise<Row[]> => (await gateway.get(`${path}?limit=100`)).body

describe('every question', () => {
  test('has the rows of the contract in its order, page by page, with their number, on both surfaces, or is refused', async () => {
    await fc.assert(
      fc.asyncProperty(
        store,
        fc.array(question, { minLength: 8, maxLength: 8 }),
        fc.boolean(),
        async (store, questions, isBackward) => {
          await fillStore(gateway.prisma, store)
          for (const { path: list, args, size } of questions) {
            const model = modelOf(list)
            const path = model.path + queryOf(args)
            const expected = answer(model, await readAll(model), args, store)
            if (!isAnswered(model, args) || excludesItself(args)) {
              expect((await gateway.get(path)).status, path).toBe(400)
              if (!excludesItself(args)) expect(await totalAlone(model, args), path).toBe(expected.length)
              continue
            }
            const rest = await walkRest(model, args, size)
            expect(rest, path).toEqual({ rows: expected, totals: new Set([String(expected.length)]) })
            const connection = await walkConnection(model, args, size, isBackward)
            expect(connection, path).toEqual({ rows: expected, totals: new Set([expected.length]) })
            expect(await pagesTogether(model, args), path).toEqual(
              SIZES.map((size) => [expected.slice(0, size), expected.slice(size, 2 * size)]),
            )
          }
        },
      ),
      { numRuns: 40 },
    )
  })
})

const three = { categories: ['Dogs', 'Cats', 'Birds', 'Fish'].map((name) => ({ name })), orders: [] }

/** A store whose pets have these names. */
const pets = (...names: string[]) =>
  fillStore(gateway.prisma, {
    ...three,
    pets: names.map((name) => ({ name, categoryId: 2n, status: 'available', quantity: 1 })),
  })

const idsOf = (rows: Row[]) => rows.map(({ id }) => id as number)

describe('names', () => {
  test('are searched from their beginning, whatever the case and the accents, in text that no pattern is in', async () => {
    await pets('100% Rex', '100 Rex', 'a_b', 'aXb', 'Ärger', 'ÄRGER', 'A\u0308rger', '\\x', "O'Malley")
    const found = async (search: string) =>
      idsOf((await gateway.get(`/pets?sort=name&search=${encodeURIComponent(search)}`)).body)
    expect(await found('100%')).toEqual([1])
    expect(await found('A_')).toEqual([3])
    expect(await found('ä')).toEqual([3, 7, 6, 5, 4])
    expect(await found('arg')).toEqual([7, 6, 5])
    expect(await found('\\')).toEqual([8])
    expect(await found("o'")).toEqual([9])
    expect(await found('rex')).toEqual([])
  })

  test('are in order of their letters without accents, then by their code points', async () => {
    await pets('Rocky', 'Émile', 'Emma', 'Ella', 'emile', 'E\u0301mile', 'Åsa', 'Zoë', 'Łukasz', 'Йод', 'Иван')
    const { body } = await gateway.get('/pets?sort=name')
    expect(body.map(({ name }: Row) => name)).toEqual([
      'Åsa',
      'Ella',
      'E\u0301mile',
      'emile',
      'Émile',
      'Emma',
      'Rocky',
      'Zoë',
      'Łukasz',
      'Иван',
      'Йод',
    ])
  })

  test.each([
    // The longest keys: three characters for each, of four bytes.
    ['notes', '\u{1D160}'],
    ['syllables', '각'],
    ['accents, of which nothing is left', '\u0301'],
    ['letters with three accents', 'ᾂ'],
  ])('of as many %s as a name can have are stored, found and sorted', async (_, character) => {
    const name = character.repeat(100)
    await pets('a', name)
    for (const search of [name, character])
      expect(idsOf((await gateway.get(`/pets?sort=name&search=${encodeURIComponent(search)}`)).body)).toContain(2)
    expect(await gateway.post('/categories', { name })).toMatchObject({ status: 201 })
    expect(await gateway.post('/categories', { name: name + character })).toMatchObject({ status: 400 })
    expect((await gateway.get('/categories?sort=name')).body).toHaveLength(5)
  })
})

describe('a walk while rows change', () => {
  const orders: [sort: string, change: (id: number) => Promise<unknown>][] = [
    ['name', (id) => gateway.prisma.pet.updateMany({ where: { id }, data: { name: `moved ${id}` } })],
    ['id', (id) => gateway.prisma.pet.deleteMany({ where: { id } })],
    ['name', (id) => gateway.prisma.pet.deleteMany({ where: { id } })],
  ]
  /** Reads a page, and says where the next one begins. */
  const surfaces = {
    async REST(sort: string, direction: string, place?: string) {
      const page = await gateway.get(place ?? `/pets?limit=4&sort=${sort}&direction=${direction}`)
      return { ids: idsOf(page.body), next: nextOf(page) }
    },
    async GraphQL(sort: string, direction: string, place?: string) {
      const { body } = await gateway.graphql(
        `query ($place: String) { petsConnection(first: 4, after: $place, sort: ${sort}, direction: ${direction}) {
          nodes { id } pageInfo { hasNextPage endCursor } } }`,
        { place },
      )
      const { nodes, pageInfo } = body.data.petsConnection
      return { ids: idsOf(nodes), next: pageInfo.hasNextPage ? (pageInfo.endCursor as string) : undefined }
    },
  }
  const walks = Object.entries(surfaces).flatMap(([surface, read]) =>
    orders.flatMap(([sort, change]) =>
      ['asc', 'desc'].map((direction) => ({ surface, read, sort, direction, change })),
    ),
  )
  test.each(walks)(
    'over $surface by $sort $direction has each row that stays once, also after the row of its cursor has changed',
    async ({ read, sort, direction, change }) => {
      await pets(...times(30, (i) => `n${(i * 7) % 10}`))
      const seen: number[] = []
      const changed = new Set<number>()
      for (let place: string | undefined, isLast = false; !isLast; ) {
        const { ids, next } = await read(sort, direction, place)
        seen.push(...ids)
        const last = ids.at(-1) as number
        changed.add(last)
        await change(last)
        await gateway.prisma.pet.create({ data: { name: `n${seen.length % 10}`, categoryId: 2n } })
        place = next
        isLast = next === undefined
      }
      const stayed = seen.filter((id) => id <= 30 && !changed.has(id)).sort((a, b) => a - b)
      expect(stayed).toEqual(times(30, (i) => i + 1).filter((id) => !changed.has(id)))
    },
  )
})

describe('a total', () => {
  test('is exact up to 10,000 and absent above, on both surfaces', async () => {
    const total = async () => {
      const { headers } = await gateway.get('/categories?limit=1&count=true')
      const { body } = await gateway.graphql('{ categoriesConnection { totalCount } }')
      return [headers.get('x-total-count'), body.data.categoriesConnection.totalCount]
    }
    const add = (n: number) =>
      gateway.prisma.$executeRaw`INSERT INTO "Category" ("name") SELECT 'n' FROM generate_series(1, ${n}::int)`
    await fillStore(gateway.prisma, { categories: [], pets: [], orders: [] })
    expect(await total()).toEqual(['0', 0])
    await add(10_000)
    expect(await total()).toEqual(['10000', 10_000])
    await add(1)
    expect(await total()).toEqual([null, null])
  })

  test('costs one unit more, also where the question is refused', async () => {
    const cost = async (path: string) => {
      const { status, headers } = await gateway.get(path)
      return [status, headers.get('x-ratelimit-cost')]
    }
    expect(await cost('/pets')).toEqual([200, '1'])
    expect(await cost('/pets?count=false')).toEqual([200, '1'])
    expect(await cost('/pets?count=true')).toEqual([200, '2'])
    expect(await cost('/pets?count=True')).toEqual([200, '2'])
    expect(await cost('/pets?count=FALSE')).toEqual([200, '1'])
    expect(await cost('/pets?count=true&search=Re')).toEqual([400, '2'])
    expect(await cost('/pets?count=yes')).toEqual([400, '1'])
  })

  test('is part of the entity tag, and on a HEAD and a 304', async () => {
    await pets('a', 'b', 'c')
    const path = '/pets?limit=1&count=true'
    const first = await gateway.get(path)
    const tag = first.headers.get('etag') as string
    expect((await gateway.get('/pets?limit=1')).headers.get('etag')).not.toBe(tag)
    const unchanged = await gateway.get(path, { headers: { 'if-none-match': tag } })
    expect([unchanged.status, unchanged.headers.get('x-total-count')]).toEqual([304, '3'])
    expect((await gateway.call('HEAD', path)).headers.get('x-total-count')).toBe('3')
    await gateway.prisma.pet.create({ data: { name: 'd', categoryId: 2n } })
    const changed = await gateway.get(path, { headers: { 'if-none-match': tag } })
    expect([changed.status, changed.body, changed.headers.get('x-total-count')]).toEqual([200, first.body, '4'])
    expect(changed.headers.get('access-control-expose-headers')).toContain('X-Total-Count')
  })
})

describe('refused', () => {
  const cursorOf = async (path: string) =>
    new URLSearchParams((await gateway.get(path)).headers.get('link')?.match(/\?(.+)>/)?.[1]).get('cursor') as string

  /** A cursor with the right checksum of a version. */
  function made(version: string, payload: unknown[]) {
    const text = Buffer.from(JSON.stringify(payload)).toString('base64url')
    return `${text}.${createHash('sha256').update(`${version} ${text}`).digest('base64url').slice(0, 8)}`
  }

  beforeAll(() => pets('a', 'b', 'c'))

  test.each([
    ['/pets?search=Re', 'search is not answered in order of id: add sort=name.'],
    ['/pets?search=Re&status=sold', 'status and search are not answered in order of id: add sort=name.'],
    [
      '/pets?search=Re&status=sold&inStock=true',
      'status, inStock and search are not answered in order of id: add sort=name.',
    ],
    ['/inventory?maxQuantity=3', 'maxQuantity is not answered in order of petId: add sort=quantity.'],
    [
      '/store/orders?shipDateFrom=2026-01-01T00:00:00Z&sort=id',
      'shipDateFrom is not answered in order of id: add sort=shipDate.',
    ],
    ['/inventory?sort=quantity&minQuantity=4&maxQuantity=3', 'minQuantity is 4; it must not be above maxQuantity.'],
    [
      '/store/orders?sort=shipDate&shipDateFrom=2026-02-01T00:00:00Z&shipDateBefore=2026-01-01T00:00:00Z',
      'shipDateFrom is 2026-02-01T00:00:00.000Z; it must not be above shipDateBefore.',
    ],
    ['/pets?sort=nmae', 'The query parameter sort is "nmae"; it must be id or name. Did you mean name?'],
    ['/pets?sort=name&after=1', 'after names a place in order of id only. In order of name, send the cursor'],
    ['/pets?cursor=x', 'cursor is no cursor of this service, or was altered.'],
    ['/pets?cursor=', 'The query parameter cursor must not be empty.'],
    [`/pets?cursor=${'x'.repeat(1025)}`, 'it must have at most 1024 characters'],
  ])('%s: %s', async (path, message) => {
    const { status, body } = await gateway.get(path)
    expect([status, body.code, body.message]).toEqual([400, 'invalid_request', expect.stringContaining(message)])
  })

  test('a cursor that is cut, altered, of another list, order or direction, or made up', async () => {
    const cursor = await cursorOf('/pets?sort=name&limit=1')
    const message = async (query: string) => {
      const { status, body } = await gateway.get(`/pets?${query}`)
      return [status, body.message]
    }
    expect((await message(`sort=name&cursor=${cursor}`))[0]).toBe(200)
    const flipped = (cursor[5] === 'A' ? 'B' : 'A') + cursor.slice(6)
    const wrong = [cursor.slice(1), cursor.slice(0, -1), `${cursor}.`, cursor.slice(0, 5) + flipped, "' OR 1=1 --"]
    const categories = await cursorOf('/categories?sort=name&limit=1')
    const orders = 'a list with sort=name and direction=asc; this one has sort=name and direction=desc.'
    for (const [query, reason] of [
      ...wrong.map((cursor) => [
        `sort=name&cursor=${encodeURIComponent(cursor)}`,
        'no cursor of this service, or was altered.',
      ]),
      [`sort=name&direction=desc&cursor=${cursor}`, orders],
      [`cursor=${cursor}`, 'this one has sort=id'],
      [`sort=name&cursor=${cursor}&after=1`, 'after and cursor exclude each other'],
      [`sort=name&cursor=${categories}`, 'of another list'],
    ] as const)
      expect([query, ...(await message(query as string))]).toEqual([
        query,
        400,
        expect.stringContaining(reason as string),
      ])
  })

  test.each([
    ['pets', 'Pet'],
    ['categories', 'Category'],
  ])('a cursor in the order of names with accents, which %s had before', async (list, model) => {
    const cursor = made('1', [model, 'name', 'asc', 'b', '2'])
    const { status, body } = await gateway.get(`/${list}?sort=name&cursor=${cursor}`)
    expect([status, body.message]).toEqual([400, expect.stringContaining('leave it out to begin with the first page')])
  })

  test('a cursor whose checksum is right but whose values are not, without reaching the database', async () => {
    const pets = (...payload: unknown[]) => ['/pets?sort=name', 'Pet', 'name', 'asc', ...payload]
    const orders = (date: unknown) => ['/store/orders?sort=shipDate', 'Order', 'shipDate', 'asc', date, '2']
    const inventory = (count: unknown) => ['/inventory?sort=quantity', 'InventoryItem', 'quantity', 'asc', count, '2']
    const right = [
      pets('b', '2'),
      ...[null, '2026-12-24T18:00:00.000Z', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59.999999999Z'].map(orders),
      ...[2_147_483_647, -2_147_483_648].map(inventory),
    ]
    const wrong = [
      ...['b\0', '\uD800', 7, null].map((name) => pets(name, '2')),
      ...[2, '-2', '9007199254740992', "2'; DROP TABLE"].map((id) => pets('b', id)),
      ...[pets('b'), pets('b', '2', '3'), ['/pets?sort=name', { length: 5 }]],
      ...['infinity', '2026-02-30T00:00:00Z', 7].map(orders),
      ...[2_147_483_648, 1.5, '1', null].map(inventory),
    ]
    for (const [expected, cursors] of [
      [200, right],
      [400, wrong],
    ] as const)
      for (const [path, ...payload] of cursors) {
        const cursor = made(payload[1] === 'name' ? 'plainName' : '1', payload)
        const { status } = await gateway.get(`${path}&cursor=${cursor}`)
        expect([status, path, payload]).toEqual([expected, path, payload])
      }
  })
})
