import { category } from './category.js'
import { inventory } from './inventory.js'
import { order } from './order.js'
import { pet } from './pet.js'
import { quota } from './quota.js'
import type { Bounds, Case, Resource } from './resource.js'

/** Every resource, after those that its rows refer to. */
export const resources: Record<string, Resource> = { category, pet, inventory, order, quota }

/** What resources have of a kind, by name. @throws Error if two of them have one name */
function merged<T>(of: (resource: Resource) => Record<string, T> | undefined): Record<string, T> {
  const owners: Record<string, string> = {}
  const all: Record<string, T> = {}
  for (const [resource, one] of Object.entries(resources))
    for (const [name, value] of Object.entries(of(one) ?? {})) {
      const other = owners[name]
      if (other)
        throw new Error(
          `${other} and ${resource} both have ${name}: write its list or input before it, as in pets.status`,
        )
      owners[name] = resource
      all[name] = value
    }
  return all
}

/** The cases of every root field. */
export const cases = merged<Case[]>(({ cases }) => cases)

/** Valid values of inputs. */
export const values = merged<unknown>(({ values }) => values)

/** What numbers and texts of their own are bounded by. */
export const bounds = merged<Bounds>(({ bounds }) => bounds)

const filters = merged<unknown[]>(({ filters }) => filters)

/** Values of every filter that a list may have. */
export function filtersOf(list: string): Record<string, unknown[]> {
  const own = Object.entries(filters).filter(([name]) => name.startsWith(`${list}.`))
  return { ...filters, ...Object.fromEntries(own.map(([name, given]) => [name.slice(list.length + 1), given])) }
}

/** The tables of resources, after those that they refer to. */
export const tables = Object.values(resources).flatMap(({ table }) => table ?? [])

/** Statements of plpgsql that delete all rows. New ones begin with the id 1 again. */
export const deleteAll = [
  ...tables.toReversed().map((table) => `DELETE FROM "${table}";`),
  ...tables.map((table) => `PERFORM setval('"${table}_id_seq"', 1, false);`),
].join(' ')
