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
import { anyOf } from '../../../schema/kit/input/problems.js'
import { rulesOf } from '../../../schema/kit/input/values.js'
import { EXPAND, type Operation, type Tree, treeOf } from '../../../schema/kit/operations.js'
import { type Schema, schemaRef } from './document.js'
import { exampleObjects, exampleOf, expandedFields, inputOf, resultOf } from './examples.js'

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

/** The name of a schema whose objects have those that `expand` adds. */
const expandedName = (name: string) => `Expanded${name}`

/** What a GET returns, by name. */
export function resultName(operation: Operation): string {
  const name = listName(operation) ?? resultOf(operation).name
  return operation.expansions.length > 0 ? expandedName(name) : name
}

/** The name of the schema of what `expand` can name. */
export const expansionName = (operation: Operation) => `${resultOf(operation).name}Expansion`

/** The schemas of what an operation returns with the objects that `expand` adds. These are optional in generated types. */
function expandedSchemas(operation: Operation): Record<string, Schema> {
  const { expansions } = operation
  const schemas: Record<string, Schema> = {}

  /** @param path how `expand` names objects of the type; empty for those that the operation returns */
  function add(name: string, type: GraphQLObjectType, tree: Tree, path: string[] = []) {
    const examples = exampleObjects(type, tree)
    const properties: Record<string, Schema> = {}
    for (const { field, below, type: target } of expandedFields(type, tree)) {
      const here = [...path, field.name]
      const ways = expansions.filter((way) => `${way}.`.startsWith(`${here.join('.')}.`))
      const own = name + field.name.charAt(0).toUpperCase() + field.name.slice(1)
      const isNested = Object.keys(below).length > 0
      properties[field.name] = {
        allOf: [schemaRef(isNested ? own : target.name)],
        description: `${field.description} Only with ${anyOf(ways.map((way) => `\`${EXPAND}=${way}\``))}.`,
        example: examples[field.name],
      }
      if (isNested) add(own, target, below, here)
    }
    const description = `${type.description?.replace(/\.$/, '')}, with the objects that \`${EXPAND}\` names.`
    schemas[name] = { description, allOf: [schemaRef(type.name), { type: 'object', properties }] }
  }

  const type = resultOf(operation)
  add(expandedName(type.name), type, treeOf(expansions))
  schemas[expansionName(operation)] = {
    type: 'string',
    description: `What \`${EXPAND}\` can name: related objects of ${type.name}.`,
    enum: expansions,
    example: expansions[0],
  }
  return schemas
}

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
    const list = listName(operation)
    if (operation.type !== 'Query') continue
    const { field, expansions } = operation
    const type = resultOf(operation)
    const limitedBy = field.extensions.list?.limit?.argument ?? 'limit'
    const limit = field.args.find(({ name }) => name === limitedBy)
    const arrayOf = (name: string): Schema => ({
      type: 'array',
      description: field.description ?? undefined,
      maxItems: limit && bounds(limit).maximum,
      items: schemaRef(name),
    })
    if (list) schemas[list] = arrayOf(type.name)
    if (expansions.length === 0) continue
    Object.assign(schemas, expandedSchemas(operation))
    if (list) schemas[expandedName(list)] = arrayOf(expandedName(type.name))
  }
  return { ...schemas, Error: createErrorSchema() }
}
