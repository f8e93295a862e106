import { isEnumType } from 'graphql'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { canSort, createRows, type Question, retry, ServiceError } from '../docs/examples/rows.js'
import { schema } from '../schema/index.js'
import { MAX_TOTAL } from '../schema/kit/context.js'
import { emptyStore, times } from './support/calls.js'
import { inject, sharedGateway } from './support/gateway.js'

// docs/examples/rows.ts, which the panels of test/system/panels.test.ts use: what they cannot show in a browser.

const gateway = await sharedGateway({ seconds: { minute: 2, day: 600, address: 60 } })
const { prisma } = gateway

const PETS = 337
const nameOf = (number: number) => `Pet ${String(number).padStart(5, '0')}`
let ids: number[]
async function fill(count: number) {
  await emptyStore(prisma)
  const { id: categoryId } = await prisma.category.create({ data: { name: 'Mice' } })
  const pets = times(count, (i) => ({ name: nameOf(i + 1), categoryId }))
  ids = []
  // A statement has little time.
  for (let from = 0; from < count; from += 1_000) {
    const created = await prisma.pet.createManyAndReturn({ data: pets.slice(from, from + 1_000) })
    ids.push(...created.map(({ id }) => Number(id)))
  }
}
beforeEach(() => fill(PETS))

/** Rows that are read with a key, and what they send. */
function open(key = gateway.key, proxy = async (response: Response) => response) {
  const sent: string[] = []
  const send: typeof fetch = async (input, init) => {
    const request = new Request(input, init)
    request.headers.set('Authorization', `Bearer ${key}`)
    sent.push(`${request.method} ${decodeURIComponent(request.url.slice(gateway.config.BASE_URL.length))}`)
    return proxy(await inject(gateway.app, request))
  }
  const rows = createRows(gateway.config.BASE_URL, send)
  const pets = async (offset: number, question: Partial<Question> = {}) => {
    const { rows: found, ...page } = await rows.list('pets', { filters: {}, offset, limit: 10, ...question })
    return { ...page, first: found[0]?.name, count: found.length }
  }
  return { ...rows, pets, sent }
}

describe('a page', () => {
  test.each([
    ['the first one', 0, 1],
    ['the last one', 330, 2],
    ['one near the beginning', 90, 1],
    ['one in the middle', 150, 3],
    ['one near the end', 310, 2],
  ])('that is opened first is that of its number: %s', async (_, offset, requests) => {
    const { pets, sent } = open()
    const expected = { first: nameOf(offset + 1), count: Math.min(10, PETS - offset), total: PETS }
    expect(await pets(offset)).toEqual({ ...expected, hasNext: offset < 330 })
    expect(sent).toHaveLength(requests)
  })

  test.each([
    ['id', false],
    ['id', true],
    ['name', false],
    ['name', true],
  ])('takes one request when those beside it are known, by %s (descending: %s)', async (sort, descending) => {
    const { pets, sent } = open()
    for (const offset of [0, 10, 20, 10, 330, 320, 310, 320]) {
      const number = descending ? PETS - offset : offset + 1
      expect(await pets(offset, { sort, descending })).toMatchObject({ first: nameOf(number), total: PETS })
    }
    expect(sent).toHaveLength(8)
  })

  test('may be any size, as that of an export', async () => {
    for (const limit of [1_000, Number.POSITIVE_INFINITY]) {
      const { pets, sent } = open()
      expect(await pets(0, { limit })).toEqual({ first: nameOf(1), count: PETS, total: PETS, hasNext: false })
      expect(sent).toHaveLength(4)
    }
  })

  test('is the right one although others add and delete rows meanwhile', async () => {
    const { pets } = open()
    for (const offset of [0, 10, 20, 30]) await pets(offset)
    await prisma.pet.delete({ where: { id: BigInt(ids[4] ?? 0) } })
    expect(await pets(0)).toMatchObject({ total: PETS - 1 })
    expect(await pets(10)).toMatchObject({ first: nameOf(12) })
    expect(await pets(20)).toMatchObject({ first: nameOf(22) })
    // From the end, before this panel knows of it.
    await prisma.pet.deleteMany({ where: { id: { in: ids.slice(5, 9).map(BigInt) } } })
    expect(await pets(330)).toMatchObject({ first: nameOf(336), count: 2, total: PETS - 5, hasNext: false })
    expect(await pets(400)).toMatchObject({ first: undefined, count: 0, hasNext: false })
    // What is known from the end ends elsewhere.
    for (const offset of [322, 312, 302]) await pets(offset)
    const { categoryId } = await prisma.pet.findFirstOrThrow()
    await prisma.pet.createMany({ data: times(7, (i) => ({ name: nameOf(PETS + i + 1), categoryId })) })
    expect(await pets(0)).toMatchObject({ total: PETS + 2 })
    expect(await pets(312)).toMatchObject({ first: nameOf(318) })
    expect(await pets(332)).toMatchObject({ first: nameOf(338), count: 7, hasNext: false })
  })

  test('has a new total after half a minute', async () => {
    const { pets, sent } = open()
    for (const offset of [0, 10, 20]) await pets(offset)
    await prisma.pet.deleteMany({ where: { id: { in: ids.slice(100, 200).map(BigInt) } } })
    expect(await pets(20)).toMatchObject({ total: PETS })
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 30_001 })
    onTestFinished(() => void vi.useRealTimers())
    expect(await pets(20)).toMatchObject({ total: PETS - 100, first: nameOf(21) })
    expect(sent).toHaveLength(5)
  })

  test(`has no total above ${MAX_TOTAL}, and no jump to the end`, async () => {
    await fill(MAX_TOTAL + 1)
    const { pets } = open()
    expect(await pets(0)).toEqual({ first: nameOf(1), count: 10, total: null, hasNext: true })
    expect(await pets(110)).toMatchObject({ first: nameOf(111), total: null, hasNext: true })
    await prisma.pet.delete({ where: { id: BigInt(ids[0] ?? 0) } })
    expect(await pets(0)).toMatchObject({ first: nameOf(2), total: MAX_TOTAL })
    expect(await pets(MAX_TOTAL - 10)).toMatchObject({ first: nameOf(MAX_TOTAL - 8), count: 10, hasNext: false })
  })
})

describe('a list', () => {
  test('has the order that its filters need, in the direction that is asked for if it is of that order', async () => {
    const { list, sent } = open()
    const question = { offset: 0, limit: 1 }
    const filters = { search: 'Pet', status: 'available', categoryId: '', inStock: null }
    await list('pets', { ...question, filters, sort: 'id', descending: true })
    await list('pets', { ...question, filters, sort: 'name', descending: true })
    await list('inventory', { ...question, filters: { maxQuantity: 3 }, sort: 'id' })
    await list('orders', { ...question, filters: { shipDateFrom: new Date(0) } })
    expect(sent.map((request) => request.replace(/&limit.*/, ''))).toEqual([
      'GET /pets?search=Pet&status=available&sort=name&direction=asc',
      'GET /pets?search=Pet&status=available&sort=name&direction=desc',
      'GET /inventory?maxQuantity=3&sort=quantity&direction=asc',
      'GET /store/orders?shipDateFrom=1970-01-01T00:00:00.000Z&sort=shipDate&direction=asc',
    ])
  })

  test('has rows with an id, in the inventory too, and with their related objects', async () => {
    const { list, many } = open()
    const { rows } = await list('inventory', { filters: {}, sort: 'id', descending: true, offset: 0, limit: 1 })
    const id = ids.at(-1)
    expect(rows).toEqual([
      expect.objectContaining({ id, petId: id, pet: expect.objectContaining({ name: nameOf(PETS) }) }),
    ])
    expect(await many('inventory', [id])).toEqual([expect.objectContaining({ id, petId: id })])
  })
})

test.each(['categories', 'pets', 'orders', 'inventory'])('the orders of %s are those of the service', (name) => {
  const sort = schema
    .getQueryType()
    ?.getFields()
    [name]?.args.find((arg) => arg.name === 'sort')?.type
  const sorts = isEnumType(sort) ? sort.getValues().map((value) => value.name) : []
  expect([...sorts, 'status', 'complete', 'description'].filter((column) => canSort(name, column))).toEqual(sorts)
  expect(sorts.length).toBeGreaterThan(1)
  const [filter = '', order] = { orders: ['shipDateFrom', 'shipDate'], inventory: ['maxQuantity', 'quantity'] }[
    name
  ] ?? ['search', 'name']
  expect(sorts.filter((column) => canSort(name, column, { [filter]: '1' }))).toEqual([order])
  expect(canSort(name, 'id')).toBe(true)
})

test('a list for no ids is empty, and an id is that of the pet in the inventory', async () => {
  const { list, sent } = open()
  const question = { offset: 0, limit: 10 }
  expect(await list('pets', { ...question, filters: { id: [] } })).toEqual({ rows: [], total: 0, hasNext: false })
  const { rows } = await list('inventory', { ...question, filters: { id: ids.slice(0, 2) } })
  expect(rows.map(({ id }) => id)).toEqual(ids.slice(0, 2))
  expect(sent).toHaveLength(1)
})

describe('many', () => {
  test('are read, changed and deleted by the hundred', async () => {
    const { many, updateMany, removeMany, sent } = open()
    expect(await many('pets', [...ids, ...ids, 9_999_999])).toHaveLength(PETS)
    expect(await updateMany('pets', ids, { status: 'sold' })).toHaveLength(PETS)
    expect(await prisma.pet.count({ where: { status: 'sold' } })).toBe(PETS)
    expect(await updateMany('inventory', ids.slice(0, 2).map(String), { quantity: 3 })).toMatchObject([
      { id: ids[0], quantity: 3 },
      { id: ids[1], quantity: 3 },
    ])
    await removeMany('pets', ids.slice(1))
    expect(await prisma.pet.count()).toBe(1)
    expect(sent.map((request) => request.split(/[ ?]/).slice(0, 2).join(' '))).toEqual([
      ...times(4, () => 'GET /pets'),
      ...times(4, () => 'PATCH /pets/batch'),
      'PATCH /inventory/batch',
      ...times(4, () => 'POST /graphql'),
    ])
  })

  test('categories are changed one by one; entries of the inventory are not deleted', async () => {
    const { updateMany, removeMany } = open()
    const [mice, rats] = [
      await prisma.category.findFirstOrThrow(),
      await prisma.category.create({ data: { name: 'Rats' } }),
    ]
    await updateMany('categories', [mice.id, rats.id], { description: 'Small.' })
    expect(await prisma.category.count({ where: { description: 'Small.' } })).toBe(2)
    await expect(removeMany('inventory', ids)).rejects.toThrow(/cannot be deleted/)
    expect(await prisma.inventoryItem.count()).toBe(PETS)
  })
})

describe('an answer that is an error', () => {
  test('has the message and the status of the service, from REST and from GraphQL, and is not worth another attempt', async () => {
    const { create, one, remove, removeMany, update } = open()
    const [id] = ids
    await prisma.order.create({ data: { petId: BigInt(id ?? 0) } })
    const refused = (request: Promise<unknown>) =>
      request.then(
        () => undefined,
        (error) => [error.status, error.statusCode, retry(0, error), error.message],
      )
    expect(await refused(create('pets', { name: '' }))).toEqual([400, 400, false, expect.stringMatching(/name is ""/)])
    expect(await refused(removeMany('pets', ids))).toEqual([409, 409, false, expect.stringMatching(`Pet ${id} `)])
    expect(await prisma.pet.count()).toBe(PETS)
    expect(await refused(one('pets', 9_999_999))).toEqual([404, 404, false, 'This was deleted.'])
    const seen = await one('pets', id)
    const { etag } = await update('pets', id, { ...seen, name: 'Zoe' })
    const outdated = [412, 412, false, expect.stringMatching(/^Somebody else/)]
    expect(await refused(update('pets', id, { ...seen, name: 'Zita' }))).toEqual(outdated)
    expect(await refused(remove('pets', id, seen.etag))).toEqual(outdated)
    expect(await update('pets', id, { name: 'Zita', etag })).toMatchObject({ name: 'Zita' })
    await expect(one('dogs', 1)).rejects.toThrow(
      'There is no resource "dogs", only categories, pets, orders, inventory.',
    )
  })

  test('is none because a proxy has compressed what was read', async () => {
    const { one, update } = open(gateway.key, async (response) => {
      const headers = new Headers(response.headers)
      headers.set('etag', `W/${headers.get('etag')}`)
      return new Response(await response.text(), { status: response.status, headers })
    })
    const seen = await one('pets', ids[0])
    const next = await update('pets', ids[0], { ...seen, name: 'Zoe' })
    expect(await update('pets', ids[0], { ...next, name: 'Zita' })).toMatchObject({ name: 'Zita' })
  })

  test('by the limit of a day is an error', async () => {
    const { pets, sent } = open((await gateway.createLimitedKey(1_000, 2)).key)
    await pets(0)
    const error = await pets(0).catch((reason) => reason)
    expect([error.status, retry(0, error), error.message]).toEqual([429, false, expect.stringMatching(/^The .*Wait/)])
    expect(sent).toHaveLength(2)
  })

  test.each([
    [1, 2],
    [90, 2],
    [91, 1],
  ])(
    'for %s seconds is waited for if that is the limit of a minute, and is an error otherwise',
    async (seconds, requests) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'Date'] })
      onTestFinished(() => void vi.useRealTimers())
      const headers = { 'retry-after': String(seconds) }
      const answers = [Response.json({ message: 'Wait' }, { status: 429, headers }), Response.json([{ id: 1 }])]
      let sent = 0
      const { many } = createRows('', async () => answers[sent++] as Response)
      const result = many('pets', [1]).catch(({ message }) => message)
      await vi.advanceTimersByTimeAsync((seconds + 1) * 1_000)
      expect([await result, sent]).toEqual([requests === 2 ? [{ id: 1 }] : 'Wait', requests])
    },
  )

  test('by a limit makes all requests wait: while it lasts, none is sent', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'Date'] })
    onTestFinished(() => void vi.useRealTimers())
    let sent = 0
    let isLimited = true
    const { many } = createRows('', async () => {
      sent++
      return isLimited ? Response.json({}, { status: 429, headers: { 'retry-after': '40' } }) : Response.json([])
    })
    const first = many('pets', [1])
    await vi.advanceTimersByTimeAsync(1_000)
    isLimited = false
    const more = times(20, (i) => many('pets', [i]))
    await vi.advanceTimersByTimeAsync(38_000)
    expect(sent).toBe(1)
    await vi.advanceTimersByTimeAsync(5_000)
    await Promise.all([first, ...more])
    expect(sent).toBe(22)
  })

  test.each([
    ['that is a page of a proxy', () => new Response('<html>'), 502, true, /^The service has not answered with JSON/],
    ['that is empty', () => new Response('', { status: 502 }), 502, true, /^The service has not answered with JSON/],
    [
      'of a proxy in JSON',
      () => Response.json({ error: 'no' }, { status: 403 }),
      403,
      false,
      /^The service has not answered/,
    ],
    [
      'that does not come',
      () => Promise.reject(new TypeError('fetch failed')),
      503,
      true,
      /^The service cannot be reached/,
    ],
  ])('%s has a message for staff', async (_, answer, status, isWorthIt, message) => {
    const { many } = createRows('', async () => answer())
    const error = await many('pets', [1]).catch((reason) => reason)
    expect([error.status, retry(0, error), error.message]).toEqual([status, isWorthIt, expect.stringMatching(message)])
  })

  test('is worth three more attempts at most, and a mistake of the panel none', () => {
    const failures = [0, 1, 2, 3]
    expect(failures.map((count) => retry(count, new ServiceError('', 503)))).toEqual([true, true, true, false])
    expect(failures.map((count) => retry(count, new TypeError()))).toEqual([false, false, false, false])
  })
})
