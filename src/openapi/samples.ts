import {
  type GraphQLArgument,
  type GraphQLObjectType,
  type GraphQLType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql'
import { DEFAULT_LIMIT } from '../../schema/rules.js'
import { plans } from '../auth/api-keys.js'

// Examples follow from types; only what a type cannot know stands in these tables. They agree with the sample data, so
// that a request made of them works as it is.

/** The moment that every example shows: one request after the windows of a Free key began. */
export const NOW = Date.UTC(2026, 10, 21, 12)

export const windows = (['minute', 'day'] as const).map((name) => {
  const limit = plans.Free[name]
  const seconds = name === 'minute' ? 60 : 86_400
  return { name, limit, seconds, remaining: limit - 1, resetAt: NOW + seconds * 1000 }
})

const [minute, day] = windows.map(({ limit, remaining, resetAt }) => ({ limit, remaining, reset: resetAt / 1000 }))

const scalars: Record<string, unknown> = {
  Int64: 1,
  Int: 1,
  String: 'text',
  Boolean: false,
  DateTime: '2026-12-24T18:00:00.000Z',
}

const fields: Record<string, Record<string, unknown>> = {
  Category: { id: 5, name: 'Reptiles', description: 'Geckos and tortoises, expected in spring.' },
  Pet: { name: 'Rex' },
  Order: { id: 3, petId: 2, shipDate: '2026-12-01T10:00:00.000Z' },
  InventoryItem: { quantity: 3 },
  QuotaWindow: minute ?? {},
  Quota: { minute, day },
}

// Those that may be deleted, as a category with pets and a complete order may not.
const things: Record<string, unknown> = { categoryId: fields.Category?.id, orderId: fields.Order?.id }

// References tend to send all of them at once: even then each list finds something.
const filters: Record<string, unknown> = { limit: DEFAULT_LIMIT, id: [4, 5], categoryId: 2, petId: 10 }

/** @param like the type whose field values serve, where `type` is an input that makes or changes one */
export function sample(type: GraphQLType, like?: GraphQLObjectType): unknown {
  const bare = getNullableType(type)
  if (isListType(bare)) return [sample(bare.ofType)]
  if (isEnumType(bare)) return bare.getValues()[0]?.name
  if (!isObjectType(bare) && !isInputObjectType(bare)) return scalars[bare.name]
  const known = fields[like?.name ?? bare.name]
  return Object.fromEntries(
    Object.values(bare.getFields()).map((field) => [field.name, known?.[field.name] ?? sample(field.type)]),
  )
}

export const sampleArgument = ({ name, type }: GraphQLArgument) =>
  (isNonNullType(type) ? things : filters)[name] ?? sample(type)
