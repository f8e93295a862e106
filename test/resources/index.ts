import { category } from './category.js'
import { inventory } from './inventory.js'
import { order } from './order.js'
import { pet } from './pet.js'
import { quota } from './quota.js'
import type { Case, Resource } from './resource.js'

/** Every resource, after those that its rows refer to. */
export const resources: Record<string, Resource> = { category, pet, inventory, order, quota }

/** The cases of every root field. */
export const cases: Record<string, Case[]> = Object.assign({}, ...Object.values(resources).map(({ cases }) => cases))
