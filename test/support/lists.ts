import fc from 'fast-check'
import type { PetStatus, Prisma, PrismaClient } from '../../prisma/generated/client/client.js'
import { emptyStore } from './calls.js'

// A model of lists, written from the contract: which rows a question has, in which order.

export type Row = Record<string, unknown> & { id?: number; petId?: number }
export type Args = Record<string, unknown>

/** Without accents, in Unicode's simple lower case. */
const plain = (text: string) =>
  Array.from(text.normalize('NFD').replace(/[\u0300-\u036f]/g, ''), (character) => {
    const lower = character.toLowerCase()
    return [...lower].length === 1 ? lower : character
  }).join('')

const byCodePoints = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
const byNumber = (a: number, b: number) => a - b
const byName = (a: string, b: string) => byCodePoints(plain(a), plain(b)) || byCodePoints(a, b)
/** Without a ship date: after all others. */
const byDate = (a?: string, b?: string) => byCodePoints(a ?? 'later', b ?? 'later')

const time = (text: unknown) => new Date(text as string).getTime()

type Filter = (row: Row, value: never, store: Store) => boolean
const equal =
  (column: string): Filter =>
  (row, value) =>
    row[column] === value

export interface ListModel {
  path: string
  /** The field of GraphQL; `edges { node }` and the REST representation have the same fields. */
  field: string
  fields: string
  key: 'id' | 'petId'
  sorts: Record<string, (a: never, b: never) => number>
  filters: Record<string, { matches: Filter; value: fc.Arbitrary<unknown>; type: string; sort?: string }>
  sortType: string
}

const status = fc.constantFrom<PetStatus>('available', 'pending', 'sold')
const search = fc.constantFrom(
  'r',
  'RE',
  'rex',
  'e',
  'é',
  'E\u0301a',
  'Ä',
  '\u0301',
  'йо',
  '\uAC00',
  'я',
  '\u{1F436}',
  'ß',
  'zz',
  ' Re ',
)
const startsWith: Filter = ({ name }, value) => plain(name as string).startsWith(plain((value as string).trim()))
const moment = fc
  .integer({ min: 0, max: 12 })
  .map((hours) => new Date(1_800_000_000_000 + hours * 3_600_000).toISOString())
const quantity = fc.integer({ min: 0, max: 6 })
const categoryId = fc.integer({ min: 1, max: 4 })

/** Ids begin with 1. */
const petOf = ({ pets }: Store, id: number | undefined) => pets[Number(id) - 1] as Store['pets'][number]

const models: ListModel[] = [
  {
    path: '/pets',
    field: 'pets',
    fields: 'id name categoryId status',
    key: 'id',
    sorts: { id: byNumber, name: byName },
    sortType: 'PetSort',
    filters: {
      status: { matches: equal('status'), value: status, type: 'PetStatus' },
      categoryId: { matches: equal('categoryId'), value: categoryId, type: 'Int64' },
      inStock: {
        matches: ({ id }, inStock, store) => petOf(store, id).quantity > 0 === inStock,
        value: fc.boolean(),
        type: 'Boolean',
      },
      search: { matches: startsWith, value: search, type: 'String', sort: 'name' },
    },
  },
  {
    path: '/categories',
    field: 'categories',
    fields: 'id name description',
    key: 'id',
    sorts: { id: byNumber, name: byName },
    sortType: 'CategorySort',
    filters: { search: { matches: startsWith, value: search, type: 'String', sort: 'name' } },
  },
  {
    path: '/store/orders',
    field: 'orders',
    fields: 'id petId quantity shipDate complete',
    key: 'id',
    sorts: { id: byNumber, shipDate: byDate },
    sortType: 'OrderSort',
    filters: {
      petId: { matches: equal('petId'), value: fc.integer({ min: 1, max: 5 }), type: 'Int64' },
      complete: { matches: equal('complete'), value: fc.boolean(), type: 'Boolean' },
      shipDateFrom: {
        matches: ({ shipDate }, from) => shipDate !== undefined && time(shipDate) >= time(from),
        value: moment,
        type: 'DateTime',
        sort: 'shipDate',
      },
      shipDateBefore: {
        matches: ({ shipDate }, before) => shipDate !== undefined && time(shipDate) < time(before),
        value: moment,
        type: 'DateTime',
        sort: 'shipDate',
      },
    },
  },
  {
    path: '/inventory',
    field: 'inventory',
    fields: 'petId quantity status',
    key: 'petId',
    sorts: { petId: byNumber, quantity: byNumber },
    sortType: 'InventoryItemSort',
    filters: {
      status: { matches: equal('status'), value: status, type: 'PetStatus' },
      categoryId: {
        matches: ({ petId }, id, store) => Number(petOf(store, petId).categoryId) === id,
        value: categoryId,
        type: 'Int64',
      },
      minQuantity: {
        matches: ({ quantity }, least) => (quantity as number) >= least,
        value: quantity,
        type: 'Int',
        sort: 'quantity',
      },
      maxQuantity: {
        matches: ({ quantity }, most) => (quantity as number) <= most,
        value: quantity,
        type: 'Int',
        sort: 'quantity',
      },
    },
  },
]

/** The rows that a question has. */
export function answer({ key, sorts, filters }: ListModel, rows: Row[], args: Args, store: Store): Row[] {
  const { sort = key, direction = 'asc', [key]: ids } = args as { sort?: string; direction?: string } & Args
  const sign = direction === 'asc' ? 1 : -1
  const compare = sorts[sort] as (a: unknown, b: unknown) => number
  return rows
    .filter((row) => ids === undefined || (ids as number[]).includes(row[key] as number))
    .filter((row) =>
      Object.entries(filters).every(
        ([name, { matches }]) => args[name] === undefined || matches(row, args[name] as never, store),
      ),
    )
    .sort((a, b) => sign * (compare(a[sort], b[sort]) || byNumber(a[key] as number, b[key] as number)))
}

/** Whether a question is answered: any with ids; others if what bounds a column is in order of that column. */
export const isAnswered = ({ key, filters }: ListModel, args: Args) =>
  args[key] !== undefined ||
  Object.entries(filters).every(([name, { sort }]) => args[name] === undefined || !sort || sort === (args.sort ?? key))

/** A lower bound above an upper one. */
export const excludesItself = ({ minQuantity, maxQuantity, shipDateFrom, shipDateBefore }: Args) =>
  (minQuantity as number) > (maxQuantity as number) || time(shipDateFrom) > time(shipDateBefore)

export const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })

export const modelOf = (path: string) => models.find((model) => model.path === path) as ListModel

/** A random question. */
export const question = fc.constantFrom(...models).chain((model) =>
  fc.record({
    path: fc.constant(model.path),
    args: fc
      .record({
        ...Object.fromEntries(Object.entries(model.filters).map(([name, { value }]) => [name, optional(value)])),
        sort: optional(fc.constantFrom(...Object.keys(model.sorts))),
        direction: optional(fc.constantFrom('asc', 'desc')),
        [model.key]: fc.option(fc.array(fc.integer({ min: 1, max: 14 }), { minLength: 1, maxLength: 9 }), {
          nil: undefined,
          freq: 5,
        }),
      })
      .map((args): Args => Object.fromEntries(Object.entries(args).filter(([, value]) => value !== undefined))),
    size: fc.integer({ min: 1, max: 6 }),
  }),
)

const names = [
  ...['Rex', 'rex', 'REX', 'Rexa', 'É', 'éa', 'E\u0301', 'ärger', 'Ärger', 'Яна', 'яна', '\u{1F436} Rex', '\uFFFDz'],
  ...['ẞ', 'ß', 'Zz', '10', '9', 'Ω', 'ꙀB', 'Йод', 'иол', '\u0301', '각', '가나', 'Ångström', 'angle'],
]
const name = fc.oneof(
  fc.constantFrom(...names),
  fc
    .string({ unit: 'binary', minLength: 1, maxLength: 20 })
    .map((text) => text.replaceAll('\0', '').trim())
    .filter((text) => text !== '' && text.isWellFormed()),
)
export const orNull = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null })

export const store = fc.record({
  categories: fc.array(fc.record({ name }), { minLength: 4, maxLength: 7 }),
  pets: fc.array(fc.record({ name, categoryId: fc.bigInt(1n, 4n), status, quantity }), { minLength: 5, maxLength: 14 }),
  orders: fc.array(
    fc.record({
      petId: fc.bigInt(1n, 5n),
      quantity: fc.integer({ min: 1, max: 9 }),
      shipDate: orNull(moment),
      complete: fc.boolean(),
    }),
    { maxLength: 14 },
  ),
})

interface Store {
  categories: Prisma.CategoryCreateManyInput[]
  pets: (Prisma.PetCreateManyInput & { quantity: number })[]
  orders: Prisma.OrderCreateManyInput[]
}

export async function fillStore(prisma: PrismaClient, { categories, pets, orders }: Store) {
  await emptyStore(prisma)
  await prisma.category.createMany({ data: categories })
  await prisma.pet.createMany({ data: pets.map(({ quantity: _, ...pet }) => pet) })
  for (const [i, { quantity }] of pets.entries())
    await prisma.inventoryItem.update({ where: { petId: BigInt(i + 1) }, data: { quantity } })
  await prisma.order.createMany({ data: orders })
}
