import fc from 'fast-check'

// Values by a schema of OpenAPI: those that it accepts, and those that break it in one place.

export interface JsonSchema {
  $ref?: string
  allOf?: JsonSchema[]
  type?: string
  format?: string
  enum?: string[]
  nullable?: boolean
  minimum?: number
  maximum?: number
  description?: string
  minLength?: number
  maxLength?: number
  pattern?: string
  items?: JsonSchema
  minItems?: number
  maxItems?: number
  required?: string[]
  properties?: Record<string, JsonSchema>
}

export type Resolve = (schema: JsonSchema) => JsonSchema

/** Ids are accepted up to the greatest of 64 bits; the document names the greatest that can exist. */
const MAX_ID = 2n ** 63n - 1n
/** The document says it in words. */
const excludesZero = ({ description = '' }: JsonSchema) => description.includes('Not 0.')
const isId = ({ format }: JsonSchema) => format === 'int64'

/** Any text that PostgreSQL can hold: no U+0000, no lone surrogate. */
const text = (maxLength: number) => fc.string({ unit: 'binary', maxLength }).map((value) => value.replaceAll('\0', ''))

const scalarsOf: Record<string, (schema: JsonSchema) => fc.Arbitrary<unknown>> = {
  integer: (schema) => {
    const { minimum = 0, maximum = 2 ** 31 - 1 } = schema
    if (!isId(schema))
      return fc
        .oneof(fc.constantFrom(minimum, maximum), fc.integer({ min: minimum, max: maximum }))
        .filter((value) => value !== 0 || !excludesZero(schema))
    return fc.oneof(
      // Ids that the sample data has, and the next ones.
      { weight: 4, arbitrary: fc.bigInt(1n, 4n) },
      { weight: 1, arbitrary: fc.bigInt(1n, MAX_ID) },
      { weight: 1, arbitrary: fc.constantFrom(2n ** 31n, 2n ** 53n - 1n, 2n ** 53n, MAX_ID) },
    )
  },
  boolean: () => fc.boolean(),
  string: ({ enum: members, format, minLength = 0, maxLength = 100, pattern }) => {
    if (members) return fc.constantFrom(...members)
    if (format === 'date-time')
      return fc
        .tuple(
          fc.date({ min: new Date('1970-01-02'), max: new Date('9999-12-30'), noInvalidDate: true }),
          fc.constantFrom('Z', '+00:00', '-12:00', '+14:00', '+05:30'),
        )
        .map(([date, offset]) => date.toISOString().replace('Z', offset))
    const expression = pattern ? new RegExp(pattern, 'u') : undefined
    return fc
      .oneof(text(maxLength), fc.constantFrom('x'.repeat(minLength), 'x'.repeat(maxLength), '🐈'.repeat(maxLength)))
      .filter((value) => [...value].length >= minLength && (expression?.test(value) ?? true))
  },
}

/** Values that the schema accepts. Integers of 64 bits are bigints. */
export function accepted(schema: JsonSchema, resolve: Resolve): fc.Arbitrary<unknown> {
  const { nullable, ...plain } = resolve(schema)
  if (nullable) return fc.option(accepted(plain, resolve), { freq: 4 })
  if (plain.properties)
    return fc.record(
      Object.fromEntries(
        Object.entries(plain.properties).map(([name, property]) => [name, accepted(property, resolve)]),
      ),
      { requiredKeys: plain.required ?? [] },
    )
  if (plain.items) {
    const { minItems = 0, maxItems = 100 } = plain
    // No two items of a batch change the same thing.
    const selector = (item: unknown) => {
      const { id, petId } = Object(item) as { id?: bigint; petId?: bigint }
      return id ?? petId ?? Symbol()
    }
    const item = accepted(plain.items, resolve)
    return fc.uniqueArray(item, { minLength: minItems, maxLength: maxItems, size: 'small', selector })
  }
  return (scalarsOf[plain.type ?? ''] as (typeof scalarsOf)[string])(plain)
}

const HUGE = 10n ** 400n
const numbers = [0.5, -0.5, 1e21, -1, 2n ** 63n, -(2n ** 63n), HUGE]
const unstorable = ['\0', 'a\0b', '\ud800', 'x\udc00y']
const texts = [
  '',
  ' ',
  '1',
  'true',
  'null',
  'Sold',
  '2026-02-30T00:00:00Z',
  '2016-12-31T23:59:60Z',
  '2026-12-24',
  ...unstorable,
]
const others: Record<string, unknown[]> = {
  integer: [...numbers, ...texts, true, [], [1], {}],
  boolean: [...texts, 0, 1, [], [true], {}],
  string: [...numbers, ...unstorable, 0, true, [], ['x'], {}],
  object: [...numbers, ...texts, true, [], [{}]],
}

/** Scalars that the schema refuses. */
function refusedScalars(schema: JsonSchema): fc.Arbitrary<unknown> {
  const { type = '', minimum = 0, maximum = 2 ** 31 - 1, maxLength = 100, minLength = 0 } = schema
  const wrong = [...(others[type] ?? []), ...(schema.nullable ? [] : [null])]
  if (type === 'integer') wrong.push(minimum - 1, ...(isId(schema) ? [MAX_ID + 1n] : [maximum + 1]))
  if (type === 'string')
    wrong.push('🐈'.repeat(maxLength + 1), 'x'.repeat(100_000), ...(minLength > 0 ? ['', ' \n'] : []))
  if (schema.enum || schema.format) wrong.push(...texts)
  if (excludesZero(schema)) wrong.push(0)
  return fc.constantFrom(...wrong)
}

/** Values that break the schema, in one place where it is an object. */
export function refused(schema: JsonSchema, resolve: Resolve): fc.Arbitrary<unknown> {
  const plain = resolve(schema)
  const { properties, required = [], items, maxItems = 100, minItems = 0 } = plain
  if (items)
    return fc.oneof(
      fc.constant(minItems > 0 ? [] : 'none'),
      fc.array(accepted(items, resolve), { minLength: maxItems + 1, maxLength: maxItems + 1 }),
      refused(items, resolve).map((item) => [item]),
    )
  if (!properties) return refusedScalars(plain)
  const object = accepted({ ...plain, nullable: false }, resolve) as fc.Arbitrary<Record<string, unknown>>
  const changed = (
    names: string[],
    change: (name: string) => fc.Arbitrary<(value: Record<string, unknown>) => unknown>,
  ) => names.map((name) => fc.tuple(object, change(name)).map(([value, apply]) => apply(value)))
  return fc.oneof(
    refusedScalars({ type: 'object' }),
    ...changed(Object.keys(properties), (name) =>
      refused(properties[name] as JsonSchema, resolve).map((wrong) => (value) => ({ ...value, [name]: wrong })),
    ),
    ...changed(required, (name) => fc.constant(({ [name]: _, ...rest }) => rest)),
    ...changed(['id', 'x', 'toString', '\0', 'ü', 'Name'], (name) => fc.constant((value) => ({ ...value, [name]: 1 }))),
  )
}
