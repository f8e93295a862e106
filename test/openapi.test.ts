import { buildSchema, type GraphQLInputField, getNamedType, isInputObjectType } from 'graphql'
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { lists, operations, restSchema } from '../schema/index.js'
import { catalogue } from '../schema/kit/errors.js'
import { fieldsOf, fill, operationsOf } from '../schema/kit/operations.js'
import type { ResponseObject, Schema } from '../src/gateway/openapi/document.js'
import { exampleParams } from '../src/gateway/openapi/examples.js'
import { createGuide, createOpenApi, type OperationObject } from '../src/gateway/openapi/index.js'
import { bounds, cases } from './resources/index.js'

const options = { baseUrl: 'https://api.test/v1', sunset: new Date('2031-02-03T00:00:00Z') }
const document = createOpenApi(options)
const { schemas, headers } = document.components

const described = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
)
/** By the name of the field. */
const byName = (name: string) => {
  const id = operations.find((operation) => operation.name === name)?.operationId
  return described.find(({ operation }) => operation.operationId === id)?.operation as OperationObject
}

/** Every object in the document, with the JSON pointer that leads to it. */
function* objects(value: unknown, pointer = '#'): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return
  yield [pointer, value as Record<string, unknown>]
  for (const [key, child] of Object.entries(value)) yield* objects(child, `${pointer}/${key.replaceAll('/', '~1')}`)
}

const resolve = (ref: string) =>
  ref
    .slice(2)
    .split('/')
    .reduce<unknown>((value, key) => (value as Record<string, unknown>)?.[key], document)

const response = (operation: OperationObject, status: string | number) => {
  const found = operation.responses[status]
  return (found && '$ref' in found ? resolve(found.$ref) : found) as ResponseObject
}

describe('the document as a whole', () => {
  test('describes every operation of the service and nothing else', () => {
    const lines = described.map(({ path, method, operation }) => `${operation.operationId}: ${method} ${path}`)
    expect(lines.sort()).toEqual(
      operations.map(({ operationId, rest }) => `${operationId}: ${rest.method} ${rest.path}`).sort(),
    )
    expect(schemas).not.toHaveProperty('Query')
    expect(schemas).not.toHaveProperty('Mutation')
  })

  test('gives each operation an operationId that starts with a verb', () => {
    const verbs: Record<string, RegExp> = {
      GET: /^(get|list)[A-Z]/,
      POST: /^(create|adjust)[A-Z]/,
      PATCH: /^update[A-Z]/,
      DELETE: /^delete[A-Z]/,
    }
    for (const { method, operation } of described) expect(operation.operationId).toMatch(verbs[method] ?? /^$/)
    expect(document.paths['/pets']?.get?.operationId).toBe('listPets')
    expect(document.paths['/pets/{petId}']?.get?.operationId).toBe('getPet')
  })

  test('declares version 1.0.0 and OpenAPI 3.0.3, and the base URL as its server', () => {
    expect(document).toMatchObject({
      openapi: '3.0.3',
      info: { version: '1.0.0', title: 'Pet Store' },
      servers: [{ url: options.baseUrl, 'x-internal': false }],
    })
  })

  test('has the tags of its operations, with their descriptions', () => {
    const tags = new Set(operations.map(({ rest }) => rest.tag))
    expect(document.tags).toEqual([...tags].map(({ name, description }) => ({ name, description })))
    expect(document.tags).toEqual(
      expect.arrayContaining(['Pets', 'Store'].map((name) => expect.objectContaining({ name }))),
    )
  })

  // Generators copy it into each of their files.
  test('describes itself in at most 1,500 characters, and links to every guide', () => {
    const { description } = document.info
    expect(description.length).toBeLessThan(1_500)
    const links = [...description.matchAll(/\]\((\S+)\)/g)].map(([, link]) => link)
    const text = createGuide(options)
    expect(links).toHaveLength(1 + [...text.matchAll(/^## /gm)].length)
    expect(text.length).toBeGreaterThan(20_000)
  })

  test('says whom to ask for a key, if there is a page for that', () => {
    const contactUrl = 'https://shop.test/keys_(api)?a=1&b=$&'
    const { contact, description } = createOpenApi({ ...options, contactUrl }).info
    expect(contact.url).toBe(contactUrl)
    expect(description).toContain(`from [the operator of this service](<${contactUrl}>).\n`)
    expect(document.info.contact.url).toBe('https://api.test/v1/docs')
    expect(document.info.description).toContain('from the operator of this service.')
  })

  test('is the same each time, and small enough to load', () => {
    const text = JSON.stringify(document, null, 2)
    expect(JSON.stringify(createOpenApi(options), null, 2)).toBe(text)
    expect(text.length).toBeLessThan(12_500 * operations.length)
  })

  test('has two alternative security schemes', () => {
    expect(document.security).toEqual([{ bearer: [] }, { apiKey: [] }])
    expect(document.components.securitySchemes).toMatchObject({
      bearer: { type: 'http', scheme: 'bearer' },
      apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
    })
  })
})

describe('the schemas', () => {
  const int64 = { type: 'integer', format: 'int64' }
  const status = { allOf: [{ $ref: '#/components/schemas/PetStatus' }] }
  const text = { type: 'string' }
  const newPet = { name: text, categoryId: int64, status }
  const newCategory = { name: text, description: text }
  test.each<[string, string[], Record<string, object>]>([
    ['NewPet', ['name', 'categoryId'], newPet],
    ['Pet', ['id', 'name', 'categoryId'], { id: int64, ...newPet }],
    ['NewCategory', ['name'], newCategory],
    ['Category', ['id', 'name'], { id: int64, ...newCategory }],
    [
      'Order',
      [],
      {
        id: int64,
        petId: int64,
        quantity: { type: 'integer' },
        shipDate: { type: 'string', format: 'date-time' },
        complete: { type: 'boolean' },
      },
    ],
    ['InventoryItem', ['petId', 'quantity', 'status'], { petId: int64, quantity: { type: 'integer' }, status }],
    ['InventoryUpdate', ['quantity'], { quantity: { type: 'integer' } }],
    ['Error', ['code', 'message', 'status'], { code: text, message: text, status: { type: 'integer' } }],
  ])(
    '%s has the specified fields, formats and required fields (docs/specification.md, Resources)',
    (name, required, properties) => {
      expect([...(schemas[name]?.required ?? [])].sort()).toEqual([...required].sort())
      expect(Object.keys(schemas[name]?.properties ?? {}).sort()).toEqual(Object.keys(properties).sort())
      expect(schemas[name]?.properties).toMatchObject(properties)
    },
  )

  test('Pets is an array of Pet, and PetStatus has the three values', () => {
    expect(schemas.Pets).toMatchObject({ type: 'array', items: { $ref: '#/components/schemas/Pet' } })
    expect(schemas.PetStatus?.enum).toEqual(['available', 'pending', 'sold'])
  })

  test('an id is exact in JSON', () => {
    const ids = [...objects(document)].filter(([, { format, type }]) => format === 'int64' && type === 'integer')
    for (const [pointer, { minimum, maximum }] of ids.filter(([pointer]) => !pointer.includes('/headers/')))
      expect({ pointer, minimum, maximum }).toEqual({ pointer, minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
  })

  test('an input has no additional properties, and is nullable only where null clears a field', () => {
    const inputs = Object.values(restSchema.getTypeMap()).filter(isInputObjectType)
    for (const input of inputs) {
      expect(schemas[input.name]?.additionalProperties).toBe(false)
      for (const field of Object.values(input.getFields()))
        expect(schemas[input.name]?.properties?.[field.name]?.nullable).toBe(field.extensions.nullable)
    }
    const nullable = [...objects(schemas)].flatMap(([pointer, schema]) => (schema.nullable ? [pointer] : []))
    expect(nullable).toEqual(
      expect.arrayContaining(['#/CategoryUpdate/properties/description', '#/OrderUpdate/properties/shipDate']),
    )
    for (const pointer of nullable) expect(pointer).toMatch(/^#\/\w+(Update|Change)\/properties\/\w+$/)
  })

  test('every text and every number has bounds', () => {
    const unbounded = [...objects(document)].flatMap(([pointer, { type, format, enum: values, ...schema }]) => {
      if (type === 'string' && !values && (schema.maxLength === undefined || !(schema.pattern ?? format)))
        return pointer
      return type === 'integer' && (schema.minimum === undefined || schema.maximum === undefined) ? pointer : []
    })
    expect(unbounded).toEqual([])
  })

  test('no pattern ends a string literal into which a generator of clients writes it, such as r"…" and r\'…\' of Python', () => {
    const patterns = [...objects(document)].flatMap(([, { pattern }]) => (typeof pattern === 'string' ? [pattern] : []))
    expect(patterns.length).toBeGreaterThan(50)
    expect(patterns.filter((pattern) => /["'`\n\r]|(?<!\\)(\\\\)*\\$/.test(pattern))).toEqual([])
  })

  test('every schema has a description and an example', () => {
    for (const [name, schema] of Object.entries(schemas)) {
      expect(schema.description, name).toBeTruthy()
      const parts = [schema, ...(schema.allOf ?? [])]
      for (const [field, property] of parts.flatMap(({ properties = {} }) => Object.entries(properties))) {
        expect(property.description, `${name}.${field}`).toBeTruthy()
        expect(property.example, `${name}.${field}`).toBeDefined()
      }
    }
  })

  test('Error lists every code, and allows more', () => {
    const code = schemas.Error?.properties?.code
    for (const known of Object.keys(catalogue)) expect(known).toMatch(new RegExp(code?.pattern as string))
    expect(code?.['x-extensible-enum']).toEqual(Object.keys(catalogue))
    expect(code?.enum).toBeUndefined()
  })
})

describe('the bounds', () => {
  type Ruled = Pick<GraphQLInputField, 'name' | 'extensions'>
  const ruled = operations.flatMap(({ name, field }) =>
    field.args.flatMap((arg): [string, Ruled, Schema | undefined][] => {
      // A header in REST, whose rule is a syntax: test/etag.test.ts.
      if (arg.name === 'ifMatch') return []
      const input = getNamedType(arg.type)
      if (!isInputObjectType(input)) {
        const parameter = byName(name).parameters?.find((candidate) => candidate.name === arg.name)
        return [[`${name} ${arg.name}`, arg, parameter?.schema]]
      }
      return Object.values(input.getFields()).map((inputField) => [
        `${input.name}.${inputField.name}`,
        inputField,
        schemas[input.name]?.properties?.[inputField.name],
      ])
    }),
  )
  const withRules = ruled.flatMap(([name, { extensions }, schema]) => {
    const { schemas: rules } = (extensions['@pothos/plugin-validation'] ?? {}) as { schemas?: z.ZodType[] }
    return rules ? [[name, rules, schema] as const] : []
  })

  test.each(withRules)('of %s are the ones that the service enforces', (place, rules, schema) => {
    const accepts = (value: unknown) => rules.every((rule) => rule.safeParse(value).success)
    // Not any text may be valid: then test/resources has one at each bound, and one past it.
    const own = bounds[place] ?? bounds[place.replace(/^\w+[.]/, '')]
    const texts = [own?.accepted, own?.rejected.map(([value]) => value)].flatMap((all) => (all ?? []) as string[])
    const sized = (size: number) =>
      schema?.type === 'array'
        ? Array(size).fill(1n)
        : (texts.find(({ length }) => length === size) ?? 'x'.repeat(size))
    const { minimum, maximum, minLength, maxLength, maxItems } = schema ?? {}
    const make = schema?.type === 'integer' ? (value: number) => value : sized
    // A query string has no list of less than one item.
    const least = minimum ?? minLength
    const most = maximum ?? maxLength ?? maxItems
    expect(most).toBeDefined()
    expect(accepts(make(most as number))).toBe(true)
    expect(accepts(make((most as number) + 1))).toBe(false)
    if (least === undefined) return
    expect(accepts(make(least))).toBe(true)
    expect(accepts(make(least - 1))).toBe(false)
  })

  test('exist for every validation rule', () => {
    expect(withRules.length).toBeGreaterThan(8)
  })
})

describe.each(operations)('$name', (described) => {
  const { name, rest, field, body: argument } = described
  const isQuota = rest.path.startsWith('/quota')
  const isBatch = argument?.extensions.batch !== undefined
  const operation = byName(name)
  const statuses = Object.keys(operation.responses)

  test('has a name, a description and one tag', () => {
    expect(operation).toMatchObject({ summary: rest.summary, tags: [rest.tag.name] })
    expect(operation.description).toContain(field.description)
  })

  test('has each argument exactly once, with an example', () => {
    const inPath = [...rest.path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter)
    const parameters = operation.parameters ?? []
    const places = parameters.map((parameter) => [parameter.name, parameter.in, parameter.required])
    const wanted = field.args.filter((arg) => !isInputObjectType(getNamedType(arg.type)))
    expect(places).toEqual([
      ...wanted.map(({ name }) => [
        name === 'ifMatch' ? 'If-Match' : name,
        name === 'ifMatch' ? 'header' : inPath.includes(name) ? 'path' : 'query',
        inPath.includes(name),
      ]),
      ...(described.expansions.length > 0 ? [['expand', 'query', false]] : []),
      ...(rest.method === 'GET' && !isQuota ? [['If-None-Match', 'header', false]] : []),
      ...(rest.method === 'POST' ? [['Idempotency-Key', 'header', false]] : []),
    ])
    for (const { description, example } of parameters) {
      expect(description).toBeTruthy()
      expect(example).toBeDefined()
    }
  })

  test('has a body only if it writes one, and as a merge patch only if it changes one thing or many', () => {
    const arg = field.args.find(({ type }) => isInputObjectType(getNamedType(type)))
    const content = operation.requestBody?.content ?? {}
    const merge = rest.method === 'PATCH' ? ['application/merge-patch+json'] : []
    expect(Object.keys(content)).toEqual(arg ? ['application/json', ...merge] : [])
    const item = { $ref: `#/components/schemas/${getNamedType(arg?.type)}` }
    for (const { schema } of Object.values(content))
      expect(schema).toEqual(isBatch ? { type: 'array', minItems: 1, maxItems: 100, items: item } : item)
  })

  // test/openapi-truth.test.ts provokes each, and every response of every test must be listed, with its headers.
  test('lists the statuses that each operation of its kind can return', () => {
    const { method } = rest
    const expected: Record<string, boolean> = {
      [rest.status ?? 200]: true,
      304: method === 'GET' && !isQuota,
      403: method !== 'GET',
      // Cases are performed in test/parity.test.ts.
      409: method === 'POST' || cases[name]?.some(([code]) => code === 'conflict') === true,
      410: rest.deprecation !== undefined,
      412: ['PATCH', 'DELETE'].includes(method) && !isBatch,
      ...Object.fromEntries([400, 401, 429, 500, 503].map((status) => [status, true])),
      ...Object.fromEntries([413, 415].map((status) => [status, operation.requestBody !== undefined])),
    }
    for (const [status, isListed] of Object.entries(expected)) expect(statuses.includes(status), status).toBe(isListed)
  })

  test('has code samples in three languages', () => {
    const samples = operation['x-codeSamples']
    expect(samples.map(({ lang, label }) => [lang, label])).toEqual([
      ['Shell', 'curl'],
      ['JavaScript', 'JavaScript'],
      ['Python', 'Python'],
    ])
    for (const { source } of samples) {
      expect(source).toContain(options.baseUrl + fill(rest.path, exampleParams(described)))
      expect(source).toContain('PETSTORE_KEY')
    }
  })

  test('has the extensions that its metadata declares', () => {
    const sunset = rest.deprecation && '2031-02-03'
    expect([operation.deprecated, operation['x-deprecated-sunset'], operation['x-sunset']]).toEqual(
      rest.deprecation ? [true, sunset, sunset] : [undefined, undefined, undefined],
    )
    expect(operation['x-stability']).toBe(rest.stability)
    expect(operation['x-scalar-stability']).toBe(rest.stability && 'experimental')
    expect([operation['x-hideTryItPanel'], operation['x-explorer-enabled'], operation['x-no-try-it-reason']]).toEqual(
      rest.noTryIt ? [true, false, rest.noTryIt] : [undefined, undefined, undefined],
    )
    if (rest.noTryIt) expect(operation.description).toContain(rest.noTryIt)
    if (rest.deprecation) expect(operation.description).toContain(rest.deprecation.successor)
  })
})

test('two operations with one method and path are refused by their names', () => {
  const schema = buildSchema(
    'type Query { pet(petId: ID): Int visit(visitId: ID): Int } type Mutation { erase(petId: ID): Int }',
  )
  const declare = (type: string, field: string, method: string, path: string) =>
    Object.assign(fieldsOf(schema, type)[field]?.extensions ?? {}, { rest: { method, path } })
  declare('Query', 'pet', 'GET', '/pets/{petId}')
  declare('Mutation', 'erase', 'DELETE', '/pets/{petId}')
  declare('Query', 'visit', 'GET', '/visits/{visitId}')
  expect(operationsOf(schema, schema).map(({ name }) => name)).toEqual(['pet', 'visit', 'erase'])
  declare('Query', 'visit', 'GET', '/pets/{visitId}')
  expect(() => operationsOf(schema, schema)).toThrow(
    'pet and visit are both GET /pets/{visitId}: each needs a path of its own',
  )
})

describe('the operations that are specified by name (docs/specification.md, Operations)', () => {
  test('only GET /pets/{petId} is deprecated and has a sunset date', () => {
    expect(document.paths['/pets/{petId}']?.get).toMatchObject({
      deprecated: true,
      'x-deprecated-sunset': '2031-02-03',
    })
    expect(described.filter(({ operation }) => operation.deprecated)).toHaveLength(1)
    const { headers } = response(byName('pet'), 404)
    expect(headers).toMatchObject({
      Deprecation: { example: '@1764892800' },
      Sunset: { example: 'Mon, 03 Feb 2031 00:00:00 GMT' },
      Link: { example: expect.stringContaining('<https://api.test/v1/pets?id=1>; rel="successor-version"') },
    })
  })

  test('only GET /store/orders cannot be tried in the reference', () => {
    expect(document.paths['/store/orders']?.get).toMatchObject({
      'x-hideTryItPanel': true,
      'x-explorer-enabled': false,
    })
    expect(described.filter(({ operation }) => operation['x-explorer-enabled'] === false)).toHaveLength(1)
  })

  test('a change of an order is marked as beta, a change of stock as experimental', () => {
    expect(byName('updateOrder')['x-stability']).toBe('beta')
    expect(byName('updateInventory')['x-stability']).toBe('experimental')
    expect(byName('updatePet')['x-stability']).toBeUndefined()
  })

  test('every operation except GET /quota can return 429 for a valid key', () => {
    const codes = (operation: OperationObject) =>
      Object.keys(response(operation, 429).content?.['application/json']?.examples ?? {})
    for (const { operation } of described)
      expect(codes(operation)).toEqual(
        operation.operationId === 'getQuota' ? ['rate_limited'] : ['rate_limited', 'key_banned'],
      )
  })

  test('the rate limit headers are integers', () => {
    for (const name of Object.keys(headers).filter((name) => /^X-RateLimit-|^Retry-After$/.test(name)))
      expect(headers[name]).toMatchObject({ schema: { type: 'integer' }, example: expect.any(Number) })
  })

  test('every parameter with several values says that it is repeated', () => {
    const several = described
      .flatMap(({ operation }) => operation.parameters ?? [])
      .filter(({ schema }) => schema && 'type' in schema && schema.type === 'array')
    const keys = lists.map(({ key }) => key)
    const expandable = operations.filter(({ expansions }) => expansions.length > 0)
    expect(several.map(({ name }) => name).sort()).toEqual([...keys, ...expandable.map(() => 'expand')].sort())
    for (const parameter of several) {
      const { items } = parameter.schema as Schema
      const names = items?.$ref && (resolve(items.$ref) as Schema).enum
      const maxItems = names ? names.length : 100
      expect(parameter).toMatchObject({ in: 'query', style: 'form', explode: true, schema: { maxItems } })
    }
  })
})
