import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLObjectType,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isObjectType,
} from 'graphql'
import * as z from 'zod'
import { operations, restSchema } from '../../../schema/index.js'
import { catalogue, MAX_MESSAGE } from '../../../schema/kit/errors.js'
import { rulesOf } from '../../../schema/kit/input/values.js'
import type { Operation } from '../../../schema/kit/operations.js'
import { type Schema, schemaRef } from './document.js'
import { exampleOf, inputOf, resultOf } from './examples.js'

const KEYWORDS = new Set(['minimum', 'maximum', 'minLength', 'maxLength', 'pattern', 'minItems', 'maxItems'])

/** The bounds that the service enforces on an argument or an input field. */
export function bounds(input: GraphQLArgument | GraphQLInputField): Schema {
  const rules = rulesOf(input).map((schema) => z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }))
  const found = rules.flatMap((rule) => Object.entries(rule).filter(([keyword]) => KEYWORDS.has(keyword)))
  // No text may hold U+0000, which PostgreSQL cannot store.
  const pattern = rules.some(({ type }) => type === 'string') ? { pattern: '^[^\\u0000]*$' } : {}
  return { ...pattern, ...Object.fromEntries(found) }
}

/** `Pets`, `Orders`: the array that a list returns, and a batch of the same things. */
export function listName(operation: Operation): string | undefined {
  if (!isListType(getNullableType(operation.field.type))) return
  const list = operations.find(({ type, field }) => type === 'Query' && isSameList(field, operation.field))
  return list && list.name.charAt(0).toUpperCase() + list.name.slice(1)
}

const isSameList = (one: Operation['field'], other: Operation['field']) =>
  isListType(getNullableType(one.type)) && getNamedType(one.type) === getNamedType(other.type)

/** The bounds of a field of a result: its own, or those of the first input that sets it. */
function resultBounds(type: string, { name, extensions }: GraphQLField<unknown, unknown>): Schema | undefined {
  const input = operations
    .filter((operation) => resultOf(operation).name === type)
    .map((operation) => inputOf(operation)?.getFields()[name])
    .find(Boolean)
  return extensions.bounds ?? (input && bounds(input))
}

function completeObject(type: GraphQLObjectType | GraphQLInputObjectType, generated: Schema): Schema {
  const isInput = isInputObjectType(type)
  // What an input creates or changes: the two share examples.
  const created = operations.find((operation) => inputOf(operation) === type)
  const example = exampleOf(type, created && resultOf(created)) as Record<string, unknown>
  const isOptional = (name: string) => isObjectType(type) && type.getFields()[name]?.extensions.optional
  const required = generated.required?.filter((name) => !isOptional(name)) ?? []
  const property = (field: GraphQLField<unknown, unknown> | GraphQLInputField): Schema => {
    const { name } = field
    // Generators make a field with `default` required.
    const preset = 'args' in field || field.defaultValue === undefined ? '' : ` Default: ${field.defaultValue}.`
    const description = field.description ? field.description + preset : undefined
    const bare = getNullableType(field.type)
    return {
      ...(isEnumType(bare) || isObjectType(bare) ? { allOf: [schemaRef(bare.name)] } : generated.properties?.[name]),
      ...('args' in field ? resultBounds(type.name, field) : bounds(field)),
      description,
      ...('args' in field ? {} : { nullable: field.extensions.nullable }),
      example: example[name],
    }
  }
  return {
    type: 'object',
    description: generated.description,
    required: required.length > 0 ? required : undefined,
    properties: Object.fromEntries(Object.values(type.getFields()).map((field) => [field.name, property(field)])),
    // An unknown field is an error in a request. In a response it may come with a later version.
    additionalProperties: isInput ? false : undefined,
  }
}

const describeCodes = () =>
  Object.entries(catalogue).map(([code, entry]) => `- \`${code}\` (${entry.status}): ${entry.description}`)

const createErrorSchema = (): Schema => ({
  type: 'object',
  description: 'Every error of the REST API has this body.',
  required: ['code', 'message', 'status'],
  properties: {
    // No enum: a new code must not break a client. x-extensible-enum lists those known today.
    code: {
      type: 'string',
      description: `Machine-readable error code. New codes may be added: if you do not know a code, use \`status\`.\n\n${describeCodes().join('\n')}`,
      pattern: '^[a-z]+(_[a-z]+)*$',
      maxLength: 64,
      'x-extensible-enum': Object.keys(catalogue),
      example: 'invalid_request',
    },
    message: {
      type: 'string',
      description: 'Human-readable description of the error. It may change; do not parse it.',
      pattern: '\\S',
      maxLength: MAX_MESSAGE,
      example: catalogue.invalid_request.message,
    },
    status: {
      type: 'integer',
      format: 'int32',
      minimum: 400,
      maximum: 599,
      description: 'The HTTP status code.',
      example: catalogue.invalid_request.status,
    },
  },
})

/** SOFA's schemas, without the root types, completed by what GraphQL and the rules know. */
export function createSchemas(generated: Record<string, Schema>): Record<string, Schema> {
  const schemas: Record<string, Schema> = {}
  for (const [name, schema] of Object.entries(generated)) {
    const type = restSchema.getType(name)
    if (type === restSchema.getQueryType() || type === restSchema.getMutationType()) continue
    if (isObjectType(type) || isInputObjectType(type)) schemas[name] = completeObject(type, schema)
    if (isEnumType(type)) {
      const values = type.getValues().map((value) => `- \`${value.name}\`: ${value.description}`)
      schemas[name] = {
        ...schema,
        description: [`${type.description}\n`, ...values].join('\n'),
        example: exampleOf(type),
      }
    }
  }
  for (const operation of operations) {
    const name = listName(operation)
    if (!name || operation.type !== 'Query') continue
    const limit = operation.field.args.find(({ name }) => name === 'limit' || name === 'days')
    schemas[name] = {
      type: 'array',
      description: operation.field.description ?? undefined,
      maxItems: limit && bounds(limit).maximum,
      items: schemaRef(resultOf(operation).name),
    }
  }
  return { ...schemas, Error: createErrorSchema() }
}
