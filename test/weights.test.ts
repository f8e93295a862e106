import { getNamedType, getNullableType, isLeafType, isListType, isObjectType } from 'graphql'
import { expect, test } from 'vitest'
import { schema } from '../schema/index.js'

// A document pays for what it makes the gateway compute. docs/prices.md has what fields take.

test('every field that is computed rather than read from its object declares its weight', () => {
  const roots = [schema.getQueryType(), schema.getMutationType()]
  const fields = Object.values(schema.getTypeMap()).flatMap((type) =>
    isObjectType(type) && !type.name.startsWith('__') && !roots.includes(type)
      ? Object.values(type.getFields()).map((field) => ({ name: `${type.name}.${field.name}`, field }))
      : [],
  )
  const computed = fields.filter(({ field: { resolve, type } }) => resolve && isLeafType(getNamedType(type)))
  const weighs = ({ field }: (typeof fields)[number]) => Number((field.extensions as { weight?: number }).weight) > 0
  expect(computed.map(({ name }) => name)).toContain('Pet.etag')
  expect(computed.filter((each) => !weighs(each)).map(({ name }) => name)).toEqual([])
})

test('every list of objects says what limits it, except those of a connection, which is limited itself', () => {
  const lists = Object.values(schema.getTypeMap()).flatMap((type) =>
    isObjectType(type) && !type.name.startsWith('__') && !type.name.endsWith('Connection')
      ? Object.values(type.getFields())
          .filter((field) => isListType(getNullableType(field.type)) && !isLeafType(getNamedType(field.type)))
          .map(({ name, extensions }) => ({ name: `${type.name}.${name}`, list: extensions.list }))
      : [],
  )
  expect(lists.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['Query.usage', 'Query.nodes', 'Mutation.createPets']),
  )
  expect(lists.filter(({ list }) => list === undefined)).toEqual([])
})
