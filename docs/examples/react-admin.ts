// The Pet Store Service for react-admin. Needs rows.ts beside it.
import type { DataProvider, GetListParams } from 'react-admin'
import { canSort as canSortRows, createRows, type Row } from './rows'

export { retry } from './rows'

type Filters = Record<string, unknown>
const filtersOf = ({ q, ...filters }: Filters = {}): Filters => ({ search: q, ...filters })

/** Whether a list with such filters has the order of a column, so that its header can be clicked. */
export const canSort = (resource: string, column: string, filters?: Filters) =>
  canSortRows(resource, column, filtersOf(filters))

/** What a form has changed. */
function changesOf(values: Record<string, unknown>, before: Record<string, unknown> = {}) {
  const isChanged = ([name, value]: [string, unknown]) => JSON.stringify(value) !== JSON.stringify(before[name])
  return Object.fromEntries(Object.entries(values).filter(isChanged))
}

/** The resources are `categories`, `pets`, `orders` and `inventory`. A filter is a parameter of the API; `q` is `search`. */
export function createDataProvider(...service: Parameters<typeof createRows>): DataProvider {
  const rows = createRows(...service)

  async function getList(
    resource: string,
    { pagination, sort, filter }: Pick<GetListParams, 'pagination' | 'sort' | 'filter'>,
  ) {
    const { page = 1, perPage = 25 } = pagination ?? {}
    const found = await rows.list(resource, {
      filters: filtersOf(filter),
      sort: sort?.field,
      descending: sort?.order === 'DESC',
      offset: (page - 1) * perPage,
      limit: perPage,
    })
    const pageInfo = { hasNextPage: found.hasNext, hasPreviousPage: page > 1 }
    return { data: found.rows, ...(found.total === null ? { pageInfo } : { total: found.total }) }
  }

  return {
    getList,
    getManyReference: (resource, { target, id, filter, ...params }) =>
      getList(resource, { ...params, filter: { ...filter, [target]: id } }),
    getMany: async (resource, { ids }) => ({ data: await rows.many(resource, ids) }),
    getOne: async (resource, { id }) => ({ data: await rows.one(resource, id) }),
    create: async (resource, { data }) => ({ data: await rows.create(resource, data) }),
    // A form has the etag of the row that filled it, whatever was read since.
    async update(resource, { id, data, previousData }) {
      return { data: await rows.update(resource, id, { ...changesOf(data, previousData), etag: data.etag }) }
    },
    async updateMany(resource, { ids, data }) {
      await rows.updateMany(resource, ids, data)
      return { data: ids }
    },
    async delete(resource, { id, previousData }) {
      const row: Row = previousData ?? { id }
      await rows.remove(resource, id, row.etag)
      return { data: row }
    },
    async deleteMany(resource, { ids }) {
      await rows.removeMany(resource, ids)
      return { data: ids }
    },
  }
}
