import { hash } from 'node:crypto'
import * as z from 'zod'
import { attempt } from '../attempt.js'
import { invalidRequest } from '../errors.js'
import { int, storable } from '../input/rules.js'
import { MAX_ID } from '../input/scalars.js'
import { columnOf } from '../model.js'
import type { ListQuery, Queryable } from './plan.js'

// A cursor names a place in an order: the values of its last item that the list is ordered by. It grants nothing, so that
// it is not signed. Its checksum finds what was cut or changed on the way.

/** Part of the checksum, so that a later version can have other cursors: where texts are compared by other keys, for example. */
const versionOf = ({ textKeys }: Queryable, sort: string) => textKeys?.[sort] ?? 1

const checksumOf = (payload: string, version: string | number) =>
  hash('sha256', `${version} ${payload}`, 'base64url').slice(0, 8)

/** How the columns in a cursor are read, by type. They are written as JSON, ids as strings. */
const columns: Record<string, z.ZodType> = {
  BigInt: z
    .string()
    .regex(/^\d{1,16}$/)
    .transform(BigInt)
    .refine((id) => id <= MAX_ID),
  Int: int,
  String: storable,
  DateTime: z.iso
    .datetime()
    .transform((text) => new Date(text))
    .nullable(),
}

const content = z.tuple([z.string(), z.string(), z.string()], z.unknown())

export function cursorOf(
  list: Queryable,
  { order, sort, direction }: Pick<ListQuery, 'order' | 'sort' | 'direction'>,
  row: Record<string, unknown>,
): string {
  const values = order.map((name) => (typeof row[name] === 'bigint' ? String(row[name]) : row[name]))
  const payload = Buffer.from(JSON.stringify([list.model, sort, direction, ...values])).toString('base64url')
  return `${payload}.${checksumOf(payload, versionOf(list, sort))}`
}

const invalid = (name: string, what: string) =>
  invalidRequest(`${name} ${what} Send a cursor as you got it, or leave it out to begin with the first page.`)

/**
 * The values in a cursor.
 *
 * @param name of the argument
 * @throws ApiError invalid_request (it is altered, or of another type, order or direction)
 */
export function readCursor(
  name: string,
  text: string,
  list: Queryable,
  { order, sort, direction }: ListQuery,
): unknown[] {
  const altered = () => invalid(name, 'is no cursor of this service, or was altered.')
  const [payload = '', checksum] = text.split('.')
  const parsed = content.safeParse(attempt(() => JSON.parse(Buffer.from(payload, 'base64url').toString())))
  if (!parsed.success) throw altered()
  const [ofModel, ofSort, ofDirection, ...values] = parsed.data
  if (ofModel !== list.model) throw invalid(name, 'is the cursor of another list.')
  if (checksum !== checksumOf(payload, versionOf(list, ofSort)) || text !== `${payload}.${checksum}`) throw altered()
  if (ofSort !== sort || ofDirection !== direction)
    throw invalid(
      name,
      `is of a list with sort=${shownSort(ofSort)} and direction=${ofDirection === 'desc' ? 'desc' : 'asc'}; this one has sort=${sort} and direction=${direction}.`,
    )
  const read = order.map((name, i) => columns[columnOf(list.model, name).type]?.safeParse(values[i]))
  if (values.length !== order.length || !read.every((value) => value?.success)) throw altered()
  return read.map((value) => value?.data)
}

/** Of a cursor that somebody made. */
const shownSort = (sort: string) => (/^\w{1,50}$/.test(sort) ? sort : 'another column')
