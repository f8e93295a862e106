import { Kind } from 'graphql'
import * as z from 'zod'
import { builder } from '../builder.js'
import { InvalidValue } from '../errors.js'

/** The greatest id that can exist (a check constraint), so that JavaScript clients hold each exactly. */
export const MAX_ID = Number.MAX_SAFE_INTEGER
/** A greater one, up to this, names nothing. Ids of 64 bits from elsewhere are no mistake in the request. */
const MAX_ACCEPTED = 2n ** 63n - 1n

const notAnId = () => new InvalidValue(`must be an integer from 1 to ${MAX_ID}`)

/** A number that JSON.parse may already have rounded is accepted only where rounding cannot have happened. */
function toId(value: unknown): bigint {
  const id = typeof value === 'bigint' ? value : Number.isSafeInteger(value) ? BigInt(value as number) : 0n
  if (id < 1n || id > MAX_ACCEPTED) throw notAnId()
  return id
}

builder.scalarType('Int64', {
  description: `An id: an integer from 1 to ${MAX_ID} (2^53 - 1), so that each is an exact JSON integer. A greater one of 64 bits names nothing.`,
  specifiedByURL: 'https://spec.openapis.org/registry/format/int64',
  parseValue: toId,
  parseLiteral: (node) => {
    if (node.kind !== Kind.INT) throw notAnId()
    return toId(BigInt(node.value))
  },
  serialize: (value) => Number(value),
})

/** Characters of a date and time. RFC 3339 bounds no fraction of a second. */
export const MAX_DATE_TIME = 64

// RFC 3339 section 5.6: seconds and an offset are required; zod refuses days that do not exist.
const rfc3339 = z
  .string()
  .max(MAX_DATE_TIME)
  .transform((text) => text.toUpperCase())
  .pipe(z.iso.datetime({ offset: true }))
  .refine((text) => /T\d\d:\d\d:\d\d/.test(text))
  .transform((text) => new Date(text))
  .refine((date) => date.getUTCFullYear() >= 1970 && date.getUTCFullYear() <= 9999)

function toDate(value: unknown): Date {
  const { data } = rfc3339.safeParse(value)
  if (data) return data
  if (typeof value === 'string' && rfc3339.safeParse(value.replace(LEAP_SECOND, ':59')).success)
    throw new InvalidValue('must have seconds from 00 to 59: leap seconds are not taken')
  throw new InvalidValue(
    `must be an RFC 3339 date-time with an offset, such as 2026-12-24T18:00:00Z, in the years 1970 to 9999 and at most ${MAX_DATE_TIME} characters`,
  )
}
const LEAP_SECOND = /(?<=T\d\d:\d\d):60/i

builder.scalarType('DateTime', {
  description:
    'A date and time according to RFC 3339, with an offset, in the years 1970 to 9999 and with at most 64 characters. Responses are in UTC with milliseconds.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc3339#section-5.6',
  parseValue: toDate,
  serialize: (value) => (value as Date).toISOString(),
})
