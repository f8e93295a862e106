import { category } from './category.js'
import { inventory } from './inventory.js'
import { order } from './order.js'
import { pet } from './pet.js'
import { quota } from './quota.js'
import type { Bounds, Case, Resource } from './resource.js'

/** Every resource, after those that its rows refer to. */
export const resources: Record<string, Resource> = { category, pet, inventory, order, quota }

/** The cases of every root field. */
export const cases: Record<string, Case[]> = Object.assign({}, ...Object.values(resources).map(({ cases }) => cases))

/** Values of every filter. */
export const filters: Record<string, unknown[]> = Object.assign(
  {},
  ...Object.values(resources).map(({ filters }) => filters),
)

/** Valid values of inputs. */
export const values: Record<string, unknown> = Object.assign(
  {},
  ...Object.values(resources).map(({ values }) => values),
)

/** What numbers and texts of their own are bounded by. */
export const bounds: Record<string, Bounds> = Object.assign({}, ...Object.values(resources).map(({ bounds }) => bounds))

/** The tables of resources, after those that they refer to. */
export const tables = Object.values(resources).flatMap(({ table }) => table ?? [])

/** Statements of plpgsql that delete all rows. New ones begin with the id 1 again. */
export const deleteAll = [
  ...tables.toReversed().map((table) => `DELETE FROM "${table}";`),
  ...tables.map((table) => `PERFORM setval('"${table}_id_seq"', 1, false);`),
].join(' ')
