import * as z from 'zod'
import { MALFORMED, parseEntityTags } from '../etag.js'

// Bounds of values, enforced on both surfaces and written into the OpenAPI document from here.

/** Text that PostgreSQL can hold. JavaScript strings can carry U+0000 and lone surrogates; UTF-8 columns cannot. */
export const storable = z
  .string()
  .refine((text) => text.isWellFormed() && !text.includes('\0'), 'must not contain U+0000 or a lone surrogate')

/** How many there are in a text. An array of them would take many times as long. */
export function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** 1 to 100 characters (Unicode code points) after trimming; stored trimmed. */
export const name = storable
  .transform((text) => text.trim())
  .refine(
    (text) => text !== '' && codePoints(text) <= 100,
    'must have 1 to 100 characters, white space at the ends aside',
  )
  .meta({ minLength: 1, maxLength: 100, pattern: '\\S' })

/** The longest text, in characters (Unicode code points). */
export const MAX_TEXT = 1000
export const description = storable
  .refine((text) => codePoints(text) <= MAX_TEXT, `must have at most ${MAX_TEXT} characters`)
  .meta({ maxLength: MAX_TEXT })

const whole = (min: number, max: number) =>
  z
    .int(`must be a whole number from ${min} to ${max}`)
    .min(min, `must be at least ${min}`)
    .max(max, `must be at most ${max}`)

export const MAX_INT = 2_147_483_647
export const int = whole(-MAX_INT - 1, MAX_INT)
export const orderQuantity = whole(1, MAX_INT)
export const stock = whole(0, MAX_INT)

export const MAX_LIMIT = 100
export const DEFAULT_LIMIT = 20
export const limit = whole(1, MAX_LIMIT)
const MAX_CURSOR = 1_024
export const cursor = z
  .string()
  .min(1, 'must not be empty')
  .max(MAX_CURSOR, `must have at most ${MAX_CURSOR} characters`)
export const ids = z
  .array(z.any())
  // A query string has no empty list, but GraphQL has.
  .meta({ minItems: 1 })
  .max(MAX_LIMIT, `must name at most ${MAX_LIMIT} ids`)

export const MAX_USAGE_DAYS = 90
export const DEFAULT_USAGE_DAYS = 30
export const usageDays = whole(1, MAX_USAGE_DAYS)
/** So many hours are kept apart. */
export const MAX_USAGE_HOURS = 72
export const DEFAULT_USAGE_HOURS = 24
export const usageHours = whole(1, MAX_USAGE_HOURS)

export const MAX_BATCH = 100
/** Of a batch: what a unit of the quota buys. */
export const ITEMS_PER_UNIT = 10
/** The weight of the objects that a unit buys. */
export const OBJECTS_PER_UNIT = 100

/** The items of a batch. Those that change something name it by `key`, each another one. */
export const batch = (key?: string) =>
  z
    .array(z.any())
    .min(1, 'must have at least 1 item')
    .max(MAX_BATCH, `must have at most ${MAX_BATCH} items`)
    .superRefine((items, { addIssue }) => {
      if (key === undefined || items.length > MAX_BATCH) return
      const places = new Map<unknown, number>()
      for (const [i, item] of items.entries()) {
        const id = item?.[key]
        const first = places.get(id)
        // What is no id is refused by its type.
        if (first === undefined) places.set(id, i)
        else if (id !== undefined)
          addIssue({ code: 'custom', path: [i, key], message: `must not be the same as in [${first}]` })
      }
    })

/** The value of If-Match. */
export const entityTags = z
  .string()
  .transform(parseEntityTags)
  .refine((tags) => tags !== undefined, MALFORMED)
