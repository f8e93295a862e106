import { readFile } from 'node:fs/promises'
import { buildSchema } from 'graphql'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Change, graphqlChanges, openApiChanges } from './tools/changes.js'

// Each case edits our own document, and expects the change and whether it is breaking.

const text = await readFile('openapi.yaml', 'utf8')
const sdl = await readFile('schema.graphql', 'utf8')
const committed = parse(text)

type Edit = (document: typeof committed) => void
const pets: (document: typeof committed) => typeof committed = (document) => document.paths['/pets'].get
const parameter = (document: typeof committed, name: string) =>
  pets(document).parameters.find((one: { name: string }) => one.name === name)

const format = ({ place, what }: Change) => [...place, what].join(' › ')

/** The changes that an edit makes to the prepared document. */
function changes(edit: Edit, prepare: Edit = () => {}) {
  const before = structuredClone(committed)
  prepare(before)
  const after = structuredClone(before)
  edit(after)
  return openApiChanges(before, after)
}

describe('a breaking change of the REST document is reported as breaking', () => {
  test.each<[name: string, line: string, edit: Edit, prepare?: Edit]>([
    ['a path goes', 'GET /quota › removed', ({ paths }) => delete paths['/quota']],
    ['an operation goes', 'PATCH /pets/{petId} › removed', ({ paths }) => delete paths['/pets/{petId}'].patch],
    [
      'an operationId is another',
      'GET /pets › operationId: "listPets" → "pets"',
      (document) => {
        pets(document).operationId = 'pets'
      },
    ],
    [
      'a success has another status',
      'POST /pets › response 201 › removed',
      ({ paths }) => {
        const { 201: created, ...others } = paths['/pets'].post.responses
        paths['/pets'].post.responses = { 200: created, ...others }
      },
    ],
    [
      'a parameter comes that is required',
      'GET /pets › query parameter shop › added',
      (document) => pets(document).parameters.push({ name: 'shop', in: 'query', required: true, schema: {} }),
    ],
    [
      'a parameter becomes required',
      'GET /pets › query parameter limit › required: false → true',
      (document) => {
        parameter(document, 'limit').required = true
      },
    ],
    [
      'a parameter goes, optional as it was',
      'GET /pets › query parameter status › removed',
      (document) =>
        pets(document).parameters.splice(pets(document).parameters.indexOf(parameter(document, 'status')), 1),
    ],
    [
      'a parameter is sent elsewhere',
      'GET /pets › query parameter status › removed',
      (document) => {
        parameter(document, 'status').in = 'header'
      },
    ],
    [
      'a list in a query is written in another way',
      'GET /pets › query parameter id › explode: true → false',
      (document) => {
        parameter(document, 'id').explode = false
      },
    ],
    [
      'the highest value of a parameter is lower',
      'GET /pets › query parameter limit › maximum: 100 → 50',
      (document) => {
        parameter(document, 'limit').schema.maximum = 50
      },
    ],
    [
      'a list in a request may hold fewer',
      'GET /pets › query parameter id › maxItems: 100 → 10',
      (document) => {
        parameter(document, 'id').schema.maxItems = 10
      },
    ],
    [
      'a parameter takes fewer values',
      'GET /pets › query parameter status › enum: without "sold"',
      ({ components }) => components.schemas.PetStatus.enum.pop(),
    ],
    [
      'a default is another',
      'GET /categories › query parameter limit › default: 20 → 10',
      ({ paths }) => {
        paths['/categories'].get.parameters[0].description = 'Default: 10.'
      },
    ],
    [
      'a field of a body comes that is required',
      'POST /pets › request body › application/json › required: with "age"',
      ({ components: { schemas } }) => {
        schemas.NewPet.properties.age = { type: 'integer' }
        schemas.NewPet.required.push('age')
      },
    ],
    [
      'a field of a body goes',
      'POST /pets › request body › application/json › status › removed',
      ({ components }) => delete components.schemas.NewPet.properties.status,
    ],
    [
      'a text of a request has to be longer',
      'POST /pets › request body › application/json › name › minLength: 1 → 3',
      ({ components }) => {
        components.schemas.NewPet.properties.name.minLength = 3
      },
    ],
    [
      'a text of a request has to look otherwise',
      'POST /pets › request body › application/json › name › pattern: "\\\\S" → "^[a-z]+$"',
      ({ components }) => {
        components.schemas.NewPet.properties.name.pattern = '^[a-z]+$'
      },
    ],
    [
      'a field of a request may not be null any more',
      'PATCH /store/orders/{orderId} › request body › application/json › shipDate › nullable removed: true',
      ({ components }) => delete components.schemas.OrderUpdate.properties.shipDate.nullable,
    ],
    [
      'a body refuses fields that it does not know',
      'POST /pets › request body › application/json › additionalProperties added: false',
      ({ components }) => {
        components.schemas.NewPet.additionalProperties = false
      },
      ({ components }) => delete components.schemas.NewPet.additionalProperties,
    ],
    [
      'a body becomes required',
      'POST /pets › request body › required: false → true',
      ({ paths }) => {
        paths['/pets'].post.requestBody.required = true
      },
      ({ paths }) => {
        paths['/pets'].post.requestBody.required = false
      },
    ],
    [
      'a media type of a body goes',
      'PATCH /pets/{petId} › request body › application/merge-patch+json › removed',
      ({ paths }) => delete paths['/pets/{petId}'].patch.requestBody.content['application/merge-patch+json'],
    ],
    [
      'a field of a response goes, optional as it was',
      'GET /pets › response 200 › application/json › [] › status › removed',
      ({ components }) => delete components.schemas.Pet.properties.status,
    ],
    [
      'a field of a response may be absent',
      'GET /pets › response 200 › application/json › [] › required: without "categoryId"',
      ({ components }) => components.schemas.Pet.required.pop(),
    ],
    [
      'a field of a response may be null',
      'GET /categories › response 200 › application/json › [] › description › nullable added: true',
      ({ components }) => {
        components.schemas.Category.properties.description.nullable = true
      },
    ],
    [
      'a field of a response has another type',
      'GET /pets › response 200 › application/json › [] › id › type: "integer" → "string"',
      ({ components }) => {
        components.schemas.Pet.properties.id.type = 'string'
      },
    ],
    [
      'a field of a response has another format',
      'GET /store/orders › response 200 › application/json › [] › shipDate › format: "date-time" → "date"',
      ({ components }) => {
        components.schemas.Order.properties.shipDate.format = 'date'
      },
    ],
    [
      'a closed list of values in a response has one more',
      'GET /quota › response 200 › application/json › plan › enum: with "Gold"',
      ({ components }) => components.schemas.Plan.enum.push('Gold'),
    ],
    [
      'a bound in a response is wider',
      'GET /inventory › response 200 › application/json › [] › quantity › minimum: 0 → -5',
      ({ components }) => {
        components.schemas.InventoryItem.properties.quantity.minimum = -5
      },
    ],
    [
      'a bound in a response goes',
      'GET /pets › response 200 › application/json › [] › name › maxLength removed: 100',
      ({ components }) => delete components.schemas.Pet.properties.name.maxLength,
    ],
    [
      'a header goes',
      'GET /categories › response 429 › header Retry-After › removed',
      ({ components }) => delete components.responses.RateLimited.headers['Retry-After'],
    ],
    [
      'a header may be absent',
      'GET /categories › response 200 › header X-RateLimit-Limit › required: true → false',
      ({ components }) => {
        components.headers['X-RateLimit-Limit'].required = false
      },
    ],
    [
      'a media type of a response goes',
      'GET /pets › response 200 › application/json › removed',
      (document) => {
        const { content } = pets(document).responses[200]
        pets(document).responses[200].content = { 'text/csv': content['application/json'] }
      },
    ],
    [
      'one way to authenticate is left of two',
      'GET /pets › security: without bearer',
      (document) => {
        pets(document).security = [{ apiKey: [] }]
      },
    ],
    [
      'two credentials are needed together',
      'GET /quota › security: without bearer, without apiKey, with bearer and apiKey',
      (document) => {
        document.security = [{ bearer: [], apiKey: [] }]
      },
    ],
    [
      'a key is sent in another header',
      'security scheme apiKey › name: "X-API-Key" → "X-Key"',
      ({ components }) => {
        components.securitySchemes.apiKey.name = 'X-Key'
      },
    ],
    [
      'the service moves',
      'server https://petstore.example/v1 › removed',
      ({ servers }) => {
        servers[0].url = 'https://petstore.example/v2'
      },
    ],
    [
      'a schema has another name',
      'schema Quota › removed',
      ({ components: { schemas }, paths }) => {
        schemas.Allowance = schemas.Quota
        delete schemas.Quota
        paths['/quota'].get.responses[200].content['application/json'].schema.$ref = '#/components/schemas/Allowance'
      },
    ],
    [
      'something changes that no rule knows',
      'POST /pets › request body › application/json › oneOf added: [{}]',
      ({ components }) => {
        components.schemas.NewPet.oneOf = [{}]
      },
    ],
  ])('%s', (_name, line, edit, prepare) => {
    const breaking = changes(edit, prepare).filter(({ breaks }) => breaks)
    expect(breaking.map(format)).toContain(line)
  })
})

describe('a compatible change of the REST document is reported as compatible', () => {
  test.each<[name: string, line: string, edit: Edit, prepare?: Edit]>([
    [
      'a path comes',
      'GET /shops › added',
      ({ paths }) => {
        paths['/shops'] = { get: { ...paths['/quota'].get, operationId: 'shops' } }
      },
    ],
    [
      'an operation comes',
      'PUT /pets/{petId} › added',
      ({ paths }) => {
        paths['/pets/{petId}'].put = { ...paths['/pets/{petId}'].patch, operationId: 'replacePet' }
      },
    ],
    [
      'a parameter comes that is optional',
      'GET /pets › query parameter shop › added',
      (document) => pets(document).parameters.push({ name: 'shop', in: 'query', schema: {} }),
    ],
    [
      'a field of a body comes that is optional',
      'POST /pets › request body › application/json › age › added',
      ({ components }) => {
        components.schemas.NewPet.properties.age = { type: 'integer' }
      },
    ],
    [
      'a field of a response comes',
      'GET /pets › response 200 › application/json › [] › age › added',
      ({ components: { schemas } }) => {
        schemas.Pet.properties.age = { type: 'integer' }
        schemas.Pet.required.push('age')
      },
    ],
    [
      'a bound of a request is wider',
      'POST /pets › request body › application/json › name › maxLength: 100 → 200',
      ({ components }) => {
        components.schemas.NewPet.properties.name.maxLength = 200
      },
    ],
    [
      'a bound of a response is tighter',
      'GET /pets › response 200 › application/json › [] › name › maxLength: 100 → 50',
      ({ components }) => {
        components.schemas.Pet.properties.name.maxLength = 50
      },
    ],
    [
      'a value comes in a list that says it will grow',
      'GET /pets › response 400 › application/json › code › x-extensible-enum: with "teapot"',
      ({ components }) => components.schemas.Error.properties.code['x-extensible-enum'].push('teapot'),
    ],
    [
      'a header comes',
      'GET /pets › response 200 › header Age › added',
      (document) => {
        pets(document).responses[200].headers.Age = { schema: { type: 'integer' } }
      },
    ],
    [
      'a refusal comes, another goes',
      'GET /pets/{petId} › response 404 › removed',
      ({ paths }) => delete paths['/pets/{petId}'].get.responses[404],
    ],
    [
      'one more way to authenticate',
      'GET /pets › security: with other',
      ({ security }) => security.push({ other: [] }),
    ],
    [
      'an operation is deprecated',
      'GET /pets › deprecated added: true',
      (document) => {
        pets(document).deprecated = true
      },
    ],
    [
      'a description is another',
      'GET /pets › description changed',
      (document) => {
        pets(document).description = 'All pets.'
      },
    ],
    [
      'a default is written down',
      'GET /pets › query parameter after › default added: 20',
      (document) => {
        parameter(document, 'after').schema.default = 20
      },
    ],
    [
      'a default moves into the description',
      'GET /pets › query parameter limit › description changed',
      (document) => {
        Object.assign(parameter(document, 'limit'), { description: 'Default: 20, or more.' })
      },
      (document) => {
        Object.assign(parameter(document, 'limit'), { description: 'How many.' }).schema.default = 20
      },
    ],
    [
      'a default of a body moves into the description, and a quote in a pattern becomes its code',
      'PATCH /inventory/{petId} › request body › application/json › quantity › description changed',
      (document) => {
        const { quantity } = document.components.schemas.InventoryUpdate.properties
        delete quantity.default
        Object.assign(quantity, { description: 'How many. Default: 7.', pattern: '^\\x22' })
      },
      (document) => {
        const { quantity } = document.components.schemas.InventoryUpdate.properties
        Object.assign(quantity, { description: 'How many.', default: 7, pattern: '^"' })
      },
    ],
  ])('%s', (_name, line, edit, prepare) => {
    const found = changes(edit, prepare)
    expect(found.map(format)).toContain(line)
    expect(found.filter(({ breaks }) => breaks).map(format)).toEqual([])
  })

  test.each<[name: string, edit: Edit]>([
    ['an order of parameters', (document) => pets(document).parameters.reverse()],
    [
      'a schema written out instead of referred to',
      ({ paths, components }) => {
        paths['/quota'].get.responses[200].content['application/json'].schema = components.schemas.Quota
      },
    ],
    [
      'the document security said at each operation',
      (document) => {
        pets(document).security = document.security
      },
    ],
  ])('%s is not a change', (_name, edit) => {
    expect(changes(edit)).toEqual([])
  })
})

describe('a change of the GraphQL schema', () => {
  const judge = (edit: (sdl: string) => string) => graphqlChanges(buildSchema(sdl), buildSchema(edit(sdl)))

  test('that removes a field is breaking', () => {
    expect(
      judge((before) =>
        before.replace(/^type Pet implements Node \{[^}]*\}/m, 'type Pet implements Node { nodeId: ID! }'),
      ).map(format),
    ).toContain('GraphQL › Pet.name was removed.')
  })

  test('that adds an enum value is reported as compatible', () => {
    expect(judge((before) => before.replace('enum Plan {', 'enum Plan { Gold'))).toEqual([
      { breaks: false, place: ['GraphQL'], what: expect.stringContaining('Gold') },
    ])
  })

  test('that only adds is compatible', () => {
    expect(judge((before) => `${before}\ntype Shop { name: String }`)).toEqual([])
  })
})
