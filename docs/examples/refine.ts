// The Pet Store Service for refine. Needs rows.ts beside it.
import type { CrudFilter, DataProvider } from '@refinedev/core'
import { createRows, type Row, ServiceError } from './rows'

export { canSort, retry } from './rows'

/** Filters that are not `eq`, and the parameters of the API that they become. */
const parameters: Record<string, string> = {
  'name contains': 'search',
  'name startswith': 'search',
  'quantity gte': 'minQuantity',
  'quantity lte': 'maxQuantity',
  'shipDate gte': 'shipDateFrom',
  'shipDate lt': 'shipDateBefore',
}

function parameterOf(resource: string, filter: CrudFilter): [name: string, value: unknown] {
  const name = 'field' in filter ? `${filter.field} ${filter.operator}` : filter.operator
  if (name === 'id in' || name === 'id eq') return [resource === 'inventory' ? 'petId' : 'id', filter.value]
  const parameter = name.endsWith(' eq') ? name.slice(0, -' eq'.length) : parameters[name]
  if (!parameter)
    throw new Error(`The service has no filter "${name}", only eq, ${Object.keys(parameters).join(', ')}.`)
  return [parameter, filter.value]
}

/** The resources are `categories`, `pets`, `orders` and `inventory`. A filter with `eq` is a parameter of the API. */
export function createDataProvider(...service: Parameters<typeof createRows>): DataProvider {
  const rows = createRows(...service)
  /** Of what forms show, by resource and id. */
  const etags = new Map<string, string>()
  /** Those that the service has refused. refine reads such a row again, but its form still shows what it did. */
  const outdated = new Set<string>()

  /** Keeps the etag of a row, and returns the row without it. */
  function seen(resource: string, { etag, ...data }: Row): Row {
    const name = `${resource}/${data.id}`
    if (!outdated.has(name)) etags.set(name, etag)
    return data
  }

  /** Changes a row if it is still as it was seen. */
  async function change<T>(name: string, request: (etag?: string) => Promise<T>): Promise<T> {
    try {
      return await request(etags.get(name))
    } catch (error) {
      if (error instanceof ServiceError && error.status === 412) outdated.add(name)
      throw error
    }
  }

  return {
    getApiUrl: () => service[0],
    async getList({ resource, pagination = {}, sorters: [sorter] = [], filters = [] }) {
      const { currentPage = 1, pageSize = 10, mode } = pagination
      // Without pages: the first hundred, in which a select searches.
      const [offset, limit] = mode === 'off' ? [0, 100] : [(currentPage - 1) * pageSize, pageSize]
      const page = await rows.list(resource, {
        filters: Object.fromEntries(filters.map((filter) => parameterOf(resource, filter))),
        sort: sorter?.field,
        descending: sorter?.order === 'desc',
        offset,
        limit,
      })
      // refine needs a total: without one there seems to be one more page, until the last one is reached.
      const total = page.total ?? offset + page.rows.length + (page.hasNext ? 1 : 0)
      return { data: page.rows, total }
    },
    getMany: async ({ resource, ids }) => ({ data: await rows.many(resource, ids) }),
    getOne: async ({ resource, id }) => ({ data: seen(resource, await rows.one(resource, id)) }),
    create: async ({ resource, variables }) => ({ data: await rows.create(resource, variables as object) }),
    async update({ resource, id, variables }) {
      const send = (etag?: string) => rows.update(resource, id, variables as object, etag)
      const row = await change(`${resource}/${id}`, send)
      return { data: seen(resource, row) }
    },
    // A table does not show what a form has read, so what it changes is not compared.
    async updateMany({ resource, ids, variables }) {
      const data = await rows.updateMany(resource, ids, variables as object)
      for (const id of ids) etags.delete(`${resource}/${id}`)
      return { data }
    },
    async deleteOne({ resource, id }) {
      await change(`${resource}/${id}`, (etag) => rows.remove(resource, id, etag))
      const data: Row = { id }
      return { data }
    },
    async deleteMany({ resource, ids }) {
      await rows.removeMany(resource, ids)
      const data: Row[] = ids.map((id) => ({ id }))
      return { data }
    },
  }
}
