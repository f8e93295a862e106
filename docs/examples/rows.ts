// Rows of the Pet Store Service for an admin panel, by the number of their page. Needs no other file.

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

/** An error for staff: what the service has answered, or that it has not. */
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

/** Whether TanStack Query should ask again: if the service has a problem, not if it has refused a request. */
export const retry = (failures: number, error: unknown): boolean =>
  failures < 3 && error instanceof ServiceError && error.status >= 500

type Parameters = [name: string, value: string][]

const CHANGED =
  'Somebody else has changed or deleted this since you opened it. Nothing was saved: open it again, and repeat your change.'
const UNREACHABLE = 'The service cannot be reached. Check the network, and try again.'
const NO_JSON = 'The service has not answered with JSON. Is the address that of the service, and the proxy set up?'
/** The most rows of a page, items of a batch, and deletions of an operation. */
const PER_REQUEST = 100
/** In seconds. A request waits for the limit of a minute, not for that of a day. */
const LONGEST_WAIT = 90
/** How long a total is shown without asking again, in milliseconds. */
const FRESH_MS = 30_000
/** How often to try what a limit refuses, and a page during which the total changes. */
const ATTEMPTS = 5

function resourceOf(name: string): Resource {
  const resource = Object.hasOwn(resources, name) ? resources[name] : undefined
  if (resource) return resource
  throw new Error(`There is no resource "${name}", only ${Object.keys(resources).join(', ')}.`)
}

const parametersOf = (name: string, filters: Record<string, unknown>): Parameters =>
  Object.entries(filters).flatMap(([filter, values]) =>
    [values]
      .flat()
      .map((value) => (value instanceof Date ? value.toISOString() : String(value ?? '').trim()))
      .filter((value) => value !== '')
      .map((value): [string, string] => [filter === 'id' ? resourceOf(name).key : filter, value]),
  )

/** The order that filters need. */
const neededBy = (name: string, parameters: Parameters) =>
  parameters.map(([filter]) => resourceOf(name).sortOf[filter]).find(Boolean)

/** Whether a list with such filters has the order of a column, so that its header can be clicked. */
export function canSort(name: string, column: string, filters: Record<string, unknown> = {}): boolean {
  const { sorts, key } = resourceOf(name)
  const needed = neededBy(name, parametersOf(name, filters))
  return needed ? column === needed : sorts.includes(column === 'id' ? key : column)
}

const rowOf = (name: string, item: Row): Row => ({ id: item[resourceOf(name).key], ...item })

/** What of a row can be written. */
function writable(name: string, values: Row): Row {
  const { key, expand } = resourceOf(name)
  const fixed = ['id', 'etag', key, ...expand]
  return Object.fromEntries(Object.entries(values).filter(([field]) => !fixed.includes(field)))
}

const chunksOf = (ids: unknown[]) => {
  const unique = [...new Set(ids.map(Number))]
  const chunk = (_: unknown, i: number) => unique.slice(i * PER_REQUEST, (i + 1) * PER_REQUEST)
  return Array.from({ length: Math.ceil(unique.length / PER_REQUEST) }, chunk)
}

/** A proxy that compresses makes the tag weak. The service sends strong ones only. */
const etagOf = (headers: Headers) => headers.get('etag')?.replace(/^W\//, '')

type Direction = 'asc' | 'desc'
/** By the number of a row: the parameter of the page that begins with it. */
type Places = Map<number, string>

/** What was learned about a list while it was read. */
class List {
  /** Infinity if the service does not count that far. */
  total: number | undefined
  countedAt = 0
  readonly places: Record<Direction, Places> = { asc: new Map(), desc: new Map() }

  get isOld() {
    return Date.now() - this.countedAt > FRESH_MS
  }

  count(total: number) {
    // Rows were added or deleted, so those of a number are others.
    if (total !== this.total) for (const places of Object.values(this.places)) places.clear()
    this.total = total
    this.countedAt = Date.now()
  }
}

const nearest = (places: Places, offset: number) =>
  Math.max(0, ...[...places.keys()].filter((place) => place <= offset))

/**
 * @param url where the panel reaches the service
 * @param send sends the requests; it may add a key, but only where users of the panel cannot read it
 */
export function createRows(url: string, send: typeof fetch = (...request) => fetch(...request)) {
  const lists = new Map<string, List>()
  /** When the limit of a minute is over. All requests wait for it: a key that goes on sending is banned. */
  let limitedUntil = 0

  async function wait() {
    for (let ms = limitedUntil - Date.now(); ms > 0; ms = limitedUntil - Date.now())
      await new Promise((done) => setTimeout(done, ms + Math.random() * 1000))
  }

  async function call(path: string, method = 'GET', body?: unknown, etag?: string) {
    const headers = new Headers({ 'Content-Type': 'application/json' })
    if (etag) headers.set('If-Match', etag)
    const request = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
    for (let attempt = 1; ; attempt++) {
      await wait()
      const response = await send(`${url}/${path}`, request).catch(() => {
        throw new ServiceError(UNREACHABLE, 503)
      })
      const seconds = Number(response.headers.get('retry-after'))
      if (response.status === 429 && seconds > 0 && seconds <= LONGEST_WAIT && attempt < ATTEMPTS) {
        limitedUntil = Math.max(limitedUntil, Date.now() + seconds * 1000)
        continue
      }
      // What is known of lists may no longer hold.
      if (method !== 'GET') lists.clear()
      if (response.status === 204) return { data: undefined, headers: response.headers }
      const data = await response.json().catch(() => null)
      if (data === null) throw new ServiceError(NO_JSON, response.ok ? 502 : response.status)
      const error = response.ok ? data.errors?.[0] : data
      if (!error) return { data, headers: response.headers }
      const status: number = error.extensions?.status ?? response.status
      throw new ServiceError(status === 412 ? CHANGED : (error.message ?? NO_JSON), status)
    }
  }

  /** The rows between two numbers, in one direction. Reads from the nearest known place on, by the hundred. */
  async function read(name: string, list: List, question: Parameters, direction: Direction, from: number, to: number) {
    const { path, expand } = resourceOf(name)
    const places = list.places[direction]
    const rows: Row[] = []
    let hasNext = true
    for (let at = nearest(places, from); hasNext && at < to; ) {
      const place = places.get(at)
      const limit = Math.min(PER_REQUEST, to - at)
      const isCounted = at === 0 || list.isOld
      const parameters: Parameters = [...question, ['direction', direction], ['limit', String(limit)]]
      if (at + limit > from) for (const relation of expand) parameters.push(['expand', relation])
      if (isCounted) parameters.push(['count', 'true'])
      const { data, headers } = await call(`${path}?${new URLSearchParams(parameters)}${place ? `&${place}` : ''}`)
      if (isCounted) list.count(Number(headers.get('x-total-count') ?? Infinity))
      for (const item of data.slice(Math.max(0, from - at))) rows.push(rowOf(name, item))

      at += data.length
      const [, next] = /[?&]((?:after|cursor)=[^&>]+)[^>]*>; rel="next"/.exec(headers.get('link') ?? '') ?? []
      hasNext = next !== undefined
      if (places.get(at) !== next) for (const later of places.keys()) if (later >= at) places.delete(later)
      if (next) places.set(at, next)
    }
    return { rows, hasNext }
  }

  /**
   * Changes a row. If the values have the `etag` of a row that was read, it is changed only if it is still that row.
   *
   * @returns the row with its new `etag`
   */
  async function update(name: string, id: unknown, values: Row): Promise<Row> {
    const path = `${resourceOf(name).path}/${id}`
    const { data, headers } = await call(path, 'PATCH', writable(name, values), values.etag)
    return { ...rowOf(name, data), etag: etagOf(headers) }
  }

  return {
    update,

    /** A page of a list. The last one takes one request, as the first one does. */
    async list(name: string, { filters, sort = 'id', descending = false, offset, limit }: Question): Promise<Page> {
      const { path, key } = resourceOf(name)
      const isNone = Object.values(filters).some((values) => Array.isArray(values) && values.length === 0)
      if (isNone) return { rows: [], total: 0, hasNext: false }
      const wanted = parametersOf(name, filters)
      const needed = neededBy(name, wanted)
      const isDescending = descending && (!needed || needed === sort)
      const [forward, backward]: [Direction, Direction] = isDescending ? ['desc', 'asc'] : ['asc', 'desc']
      const question: Parameters = [...wanted, ['sort', needed ?? (sort === 'id' ? key : sort)]]
      const address = `${path}?${new URLSearchParams([...question, ['direction', forward]])}`
      if (lists.size > 100) lists.clear()
      const list = lists.get(address) ?? new List()
      lists.set(address, list)

      // The total says how near the end is.
      if (offset >= (list.total ?? PER_REQUEST) && list.isOld) await read(name, list, question, forward, 0, 1)
      for (let attempt = 1; ; attempt++) {
        const { total = Infinity, places } = list
        if (offset >= total) return { rows: [], total, hasNext: false }
        const end = Math.min(offset + limit, total)
        const rowsBefore = offset - nearest(places[forward], offset)
        const rowsAfter = total - end - nearest(places[backward], total - end)
        // Without a total, there is no way from the end.
        if (!(rowsAfter < rowsBefore) || attempt === ATTEMPTS) break
        const { rows } = await read(name, list, question, backward, total - end, total - offset)
        if (list.total === total) return { rows: rows.reverse(), total, hasNext: end < total }
      }
      const { rows, hasNext } = await read(name, list, question, forward, offset, offset + limit)
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

    /** A row with its `etag`. */
    async one(name: string, id: unknown): Promise<Row> {
      const { path, key } = resourceOf(name)
      const { data, headers } = await call(`${path}?${new URLSearchParams({ [key]: String(id) })}`)
      if (data.length === 0) throw new ServiceError('This was deleted.', 404)
      return { ...rowOf(name, data[0]), etag: etagOf(headers) }
    },

    async create(name: string, values: Row): Promise<Row> {
      const { data } = await call(resourceOf(name).path, 'POST', writable(name, values))
      return rowOf(name, data)
    },

    /** Changes many, a hundred in one request: all of those, or none. Categories are changed one by one. */
    async updateMany(name: string, ids: unknown[], values: Row): Promise<Row[]> {
      const { path, key, hasBatch } = resourceOf(name)
      const rows: Row[] = []
      for (const chunk of chunksOf(ids))
        if (hasBatch) {
          const { data } = await call(
            `${path}/batch`,
            'PATCH',
            chunk.map((id) => ({ ...values, [key]: id })),
          )
          for (const item of data) rows.push(rowOf(name, item))
        } else for (const id of chunk) rows.push(await update(name, id, values))
      return rows
    },

    /** Deletes a row, with an `etag` only if it is still the row that was read. */
    async remove(name: string, id: unknown, etag?: string): Promise<void> {
      await call(`${resourceOf(name).path}/${id}`, 'DELETE', undefined, etag)
    },

    /** Deletes many, a hundred in one operation: all of those, or none. */
    async removeMany(name: string, ids: unknown[]): Promise<void> {
      const [mutation, argument] = resourceOf(name).remove ?? []
      if (!mutation) throw new Error(`Rows of "${name}" cannot be deleted.`)
      for (const chunk of chunksOf(ids)) {
        const fields = chunk.map((id) => `row${id}: ${mutation}(${argument}: ${id}) { id }`)
        await call('graphql', 'POST', { query: `mutation @atomic { ${fields.join(' ')} }` })
      }
    },
  }
}
