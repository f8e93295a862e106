// Rows of the Pet Store Service for an admin panel, by the number of their page. Needs nothing.

/** A row has an `id`: in the inventory, that of its pet. Both panels let you say of which type the rest is. */
// biome-ignore lint/suspicious/noExplicitAny: each caller has types of its own
export type Row = any

export interface Question {
  /** Parameters of the API, such as `status`. One that is undefined, null or empty is not sent. */
  filters: Record<string, unknown>
  sort?: string | undefined
  descending?: boolean | undefined
  offset: number
  limit: number
}

export interface Page {
  rows: Row[]
  /** How many rows match. It is null if they are more than 10,000: the service counts no further. */
  total: number | null
  hasNext: boolean
}

interface Resource {
  path: string
  /** The parameter that takes ids. */
  key: string
  sorts: string[]
  /** Filters that need an order, and that order. */
  sortOf: Record<string, string>
  /** Related objects that rows of a list bring. */
  expand: string[]
  hasBatch: boolean
  /** The mutation that deletes one, and its argument. */
  remove?: [mutation: string, argument: string]
}

const resources: Record<string, Resource> = {
  categories: {
    path: 'categories',
    key: 'id',
    sorts: ['id', 'name'],
    sortOf: { search: 'name' },
    expand: [],
    hasBatch: false,
    remove: ['deleteCategory', 'categoryId'],
  },
  pets: {
    path: 'pets',
    key: 'id',
    sorts: ['id', 'name'],
    sortOf: { search: 'name' },
    expand: ['category', 'inventory'],
    hasBatch: true,
    remove: ['deletePet', 'petId'],
  },
  orders: {
    path: 'store/orders',
    key: 'id',
    sorts: ['id', 'shipDate'],
    sortOf: { shipDateFrom: 'shipDate', shipDateBefore: 'shipDate' },
    expand: ['pet'],
    hasBatch: true,
    remove: ['deleteOrder', 'orderId'],
  },
  inventory: {
    path: 'inventory',
    key: 'petId',
    sorts: ['petId', 'quantity'],
    sortOf: { minQuantity: 'quantity', maxQuantity: 'quantity' },
    expand: ['pet'],
    hasBatch: true,
  },
}

function resourceOf(name: string): Resource {
  const resource = resources[name]
  if (!resource) throw new Error(`There is no resource "${name}", only ${Object.keys(resources).join(', ')}.`)
  return resource
}

/** Whether a list has the order of a column, so that its header can be clicked. */
export function canSort(name: string, column: string): boolean {
  const { sorts, key } = resourceOf(name)
  return sorts.includes(column === 'id' ? key : column)
}

/** An error that the service returned. Its message is for staff. */
export class ServiceError extends Error {
  readonly status: number
  /** What refine calls the status. */
  readonly statusCode: number
  constructor(message: string, status: number) {
    super(message)
    this.status = status
    this.statusCode = status
  }
}

/** Whether TanStack Query should ask again: not if the service has refused a request, since it would refuse it again. */
export const retry = (failures: number, error: unknown): boolean =>
  failures < 3 && !(error instanceof ServiceError && error.status < 500)

const CHANGED =
  'Somebody else has changed this since you opened it. Nothing was saved: reload the page, and make your change again.'
/** The most rows of a page, items of a batch, and deletions of one operation. */
const MOST = 100
/** In seconds. So a request waits for the limit of a minute, and not for that of a day. */
const LONGEST_WAIT = 60
/** How often to try what a limit refuses, and to read a page from the end whose total changes meanwhile. */
const ATTEMPTS = 5

type Parameters = [name: string, value: string][]
type Direction = 'asc' | 'desc'
/** By the number of a row: the parameters of the page that begins with it. */
type Places = Map<number, Parameters>

/** What was learned about a list while it was read. */
class List {
  /** Infinity if the service does not count that far, undefined if it was not asked yet. */
  total: number | undefined
  places: Record<Direction, Places> = { asc: new Map(), desc: new Map() }
}

const parametersOf = (filters: Record<string, unknown>): Parameters =>
  Object.entries(filters).flatMap(([name, values]) =>
    [values]
      .flat()
      .filter((value) => value !== undefined && value !== null && value !== '')
      .map((value): [string, string] => [name, value instanceof Date ? value.toISOString() : String(value)]),
  )

const nearest = (places: Places, offset: number) =>
  Math.max(0, ...[...places.keys()].filter((place) => place <= offset))

const chunksOf = <T>(items: T[]) =>
  Array.from({ length: Math.ceil(items.length / MOST) }, (_, chunk) => items.slice(chunk * MOST, (chunk + 1) * MOST))

/**
 * @param url where the panel reaches the service
 * @param send sends the requests; it may add a key, but only where nobody else can read it
 */
export function createRows(url: string, send: typeof fetch = (...request) => fetch(...request)) {
  const lists = new Map<string, List>()

  async function call(path: string, method = 'GET', body?: unknown, etag?: string) {
    const headers = new Headers({ 'Content-Type': 'application/json' })
    if (etag) headers.set('If-Match', etag)
    const request = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
    for (let attempt = 1; ; attempt++) {
      const response = await send(`${url}/${path}`, request)
      const seconds = Number(response.headers.get('retry-after'))
      if (response.status === 429 && seconds <= LONGEST_WAIT && attempt < ATTEMPTS) {
        await new Promise((done) => setTimeout(done, (seconds + Math.random()) * 1000))
        continue
      }
      // What is known of lists may no longer hold.
      if (method !== 'GET') lists.clear()
      const isJson = /[/+]json\b/.test(response.headers.get('content-type') ?? '')
      const data = isJson ? await response.json() : undefined
      const [error] = data?.errors ?? []
      if (response.ok && !error) return { data, headers: response.headers }
      const status: number = error?.extensions.status ?? response.status
      const message = error?.message ?? data?.message ?? `The service returned ${status}.`
      throw new ServiceError(status === 412 ? CHANGED : message, status)
    }
  }

  const rowOf = (name: string, item: Row): Row => ({ id: item[resourceOf(name).key], ...item })

  /** The rows between two numbers, in one direction. Reads from the nearest known place on, by the hundred. */
  async function walk(name: string, list: List, question: Parameters, direction: Direction, from: number, to: number) {
    const { path, expand } = resourceOf(name)
    const places = list.places[direction]
    const rows: Row[] = []
    let hasNext = true
    for (let at = nearest(places, from); hasNext && at < to; ) {
      const limit = Math.min(MOST, to - at)
      const parameters: Parameters = [...question, ['direction', direction], ['limit', String(limit)]]
      parameters.push(...(places.get(at) ?? []))
      if (at + limit > from) for (const relation of expand) parameters.push(['expand', relation])
      const isCounted = at === 0
      if (isCounted) parameters.push(['count', 'true'])
      const { data, headers } = await call(`${path}?${new URLSearchParams(parameters)}`)
      if (isCounted) list.total = Number(headers.get('x-total-count') ?? Infinity)
      for (const item of data.slice(Math.max(0, from - at))) rows.push(rowOf(name, item))

      const [, next] = /\?([^>]+)>; rel="next"/.exec(headers.get('link') ?? '') ?? []
      const place = [...new URLSearchParams(next)].filter(([parameter]) => /^(after|cursor)$/.test(parameter))
      hasNext = place.length > 0
      at += data.length
      if (String(places.get(at) ?? '') === String(place)) continue
      // Rows before this place were added or deleted, so later places are others, too.
      for (const later of places.keys()) if (later >= at) places.delete(later)
      if (hasNext) places.set(at, place)
    }
    return { rows, hasNext }
  }

  /** The row has the etag that it has now. Without an etag, nothing is compared. */
  async function update(name: string, id: unknown, values: object, etag?: string): Promise<Row> {
    const { data, headers } = await call(`${resourceOf(name).path}/${id}`, 'PATCH', values, etag)
    return { ...rowOf(name, data), etag: headers.get('etag') }
  }

  return {
    update,

    /** A page of a list. The last one takes one request, as the first one does. */
    async list(name: string, { filters, sort = 'id', descending = false, offset, limit }: Question): Promise<Page> {
      const { path, key, sortOf } = resourceOf(name)
      const wanted = parametersOf(filters)
      const needed = wanted.map(([filter]) => sortOf[filter]).find(Boolean)
      const isDescending = descending && (!needed || needed === sort)
      const [forward, backward]: [Direction, Direction] = isDescending ? ['desc', 'asc'] : ['asc', 'desc']
      const question: Parameters = [...wanted, ['sort', needed ?? (sort === 'id' ? key : sort)]]
      const address = `${path}?${new URLSearchParams([...question, ['direction', forward]])}`
      const list = lists.get(address) ?? new List()
      lists.set(address, list)

      // Without the total, nobody knows how near the end is.
      if (list.total === undefined && offset >= MOST) await walk(name, list, question, forward, 0, 1)
      for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
        const { total = Infinity, places } = list
        const end = Math.min(offset + limit, total)
        const way = offset - nearest(places[forward], offset)
        const wayBack = total - end - nearest(places[backward], total - end)
        if (offset >= end || way <= wayBack) break
        const { rows } = await walk(name, list, question, backward, total - end, total - offset)
        if (list.total === total) return { rows: rows.reverse(), total, hasNext: end < total }
        list.places = new List().places
      }
      const { rows, hasNext } = await walk(name, list, question, forward, offset, offset + limit)
      const { total = Infinity } = list
      return { rows, total: Number.isFinite(total) ? total : null, hasNext }
    },

    /** Those of the rows with these ids that exist. */
    async many(name: string, ids: unknown[]): Promise<Row[]> {
      const { path, key } = resourceOf(name)
      const rows: Row[] = []
      for (const chunk of chunksOf(ids)) {
        const { data } = await call(`${path}?${new URLSearchParams(chunk.map((id) => [key, String(id)]))}`)
        for (const item of data) rows.push(rowOf(name, item))
      }
      return rows
    },

    /** A row, with the `etag` that `update` and `remove` take, so that they change only what was seen. */
    async one(name: string, id: unknown): Promise<Row> {
      const { path, key } = resourceOf(name)
      const { data, headers } = await call(`${path}?${new URLSearchParams({ [key]: String(id) })}`)
      if (data.length === 0) throw new ServiceError('This was deleted.', 404)
      return { ...rowOf(name, data[0]), etag: headers.get('etag') }
    },

    async create(name: string, values: object): Promise<Row> {
      const { data } = await call(resourceOf(name).path, 'POST', values)
      return rowOf(name, data)
    },

    /** Changes many, a hundred in one request: all of those, or none. Categories are changed one by one. */
    async updateMany(name: string, ids: unknown[], values: object): Promise<Row[]> {
      const { path, key, hasBatch } = resourceOf(name)
      const rows: Row[] = []
      if (!hasBatch) for (const id of ids) rows.push(await update(name, id, values))
      else
        for (const chunk of chunksOf(ids)) {
          const changes = chunk.map((id) => ({ [key]: Number(id), ...values }))
          const { data } = await call(`${path}/batch`, 'PATCH', changes)
          for (const item of data) rows.push(rowOf(name, item))
        }
      return rows
    },

    async remove(name: string, id: unknown, etag?: string): Promise<void> {
      await call(`${resourceOf(name).path}/${id}`, 'DELETE', undefined, etag)
    },

    /** Deletes many, a hundred in one operation: all of those, or none. */
    async removeMany(name: string, ids: unknown[]): Promise<void> {
      const [mutation, argument] = resourceOf(name).remove ?? []
      if (!mutation) throw new Error(`Rows of "${name}" cannot be deleted.`)
      for (const chunk of chunksOf(ids)) {
        const fields = chunk.map((id, index) => `row${index}: ${mutation}(${argument}: ${Number(id)}) { id }`)
        await call('graphql', 'POST', { query: `mutation @atomic { ${fields.join(' ')} }` })
      }
    },
  }
}
