// The Pet Store Service for refine. Needs rows.ts beside it.
import type { CrudFilter, DataProvider } from '@refinedev/core'
import { canSort as canSortRows, createRows, type Row } from './rows'

export { retry } from './rows'

/** Filters that are not `eq`, and the parameters of the API that they become. */
const parameters: Record<string, string> = {
  'id in': 'id',
  'name contains': 'search',
  'name startswith': 'search',
  'quantity gte': 'minQuantity',
  'quantity lte': 'maxQuantity',
  'shipDate gte': 'shipDateFrom',
  'shipDate lt': 'shipDateBefore',
}

function filtersOf(filters: CrudFilter[]) {
  const wanted: Record<string, unknown> = {}
  for (const filter of filters) {
    if (filter.value === undefined || filter.value === null || filter.value === '') continue
    const name = 'field' in filter ? `${filter.field} ${filter.operator}` : filter.operator
    const parameter = name.endsWith(' eq') ? name.slice(0, -' eq'.length) : parameters[name]
    if (!parameter)
      throw new Error(`The service has no filter "${name}", only eq, ${Object.keys(parameters).join(', ')}.`)
    if (Object.hasOwn(wanted, parameter))
      throw new Error(`The service takes ${parameter} once, so "${name}" is one filter too many.`)
    wanted[parameter] = filter.value
  }
  return wanted
}

/** Whether a list with such filters has the order of a column, so that its header can be clicked. */
export const canSort = (resource: string, column: string, filters: CrudFilter[] = []) =>
  canSortRows(resource, column, filtersOf(filters))

/** The resources are `categories`, `pets`, `orders` and `inventory`. A filter with `eq` is a parameter of the API. */
export function createDataProvider(...service: Parameters<typeof createRows>): DataProvider {
  const rows = createRows(...service)
  return {
    getApiUrl: () => service[0],
    async getList({ resource, pagination = {}, sorters: [sorter] = [], filters = [] }) {
      const { currentPage = 1, pageSize = 10, mode = 'server' } = pagination
      // "client" takes all rows, and "off" the first hundred, in which a select searches.
      const pages = { server: [(currentPage - 1) * pageSize, pageSize], client: [0, Infinity], off: [0, 100] } as const
      const [offset, limit] = pages[mode]
      const page = await rows.list(resource, {
        filters: filtersOf(filters),
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
    getOne: async ({ resource, id }) => ({ data: await rows.one(resource, id) }),
    create: async ({ resource, variables }) => ({ data: await rows.create(resource, variables) }),
    update: async ({ resource, id, variables }) => ({ data: await rows.update(resource, id, variables) }),
    updateMany: async ({ resource, ids, variables }) => ({ data: await rows.updateMany(resource, ids, variables) }),
    async deleteOne({ resource, id, variables }) {
      const { etag }: Row = variables ?? {}
      await rows.remove(resource, id, etag)
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
