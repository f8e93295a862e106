import { readFile } from 'node:fs/promises'
import { buildSchema } from 'graphql'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Change, graphqlChanges, openApiChanges } from './lab/tools/changes.js'

// Each case edits our own document, and expects the change and whether it is breaking.

const text = await readFile('openapi.yaml', 'utf8')
const sdl = await readFile('schema.graphql', 'utf8')
const committed = parse(text)

type Edit = (document: typeof committed) => void

/** Sets what a path of keys leads to; undefined removes it. An item of a list has its name as key. */
const set =
  (path: string, value?: unknown): Edit =>
  (document) => {
    const keys = path.split(' ')
    const last = keys.pop() as string
    const parent = keys.reduce(
      (at, key) => (Array.isArray(at) ? at.find(({ name }) => name === key) : at[key]),
      document,
    )
    if (value === undefined) delete parent[last]
    else parent[last] = value
  }
/** Changes the list that a path of keys leads to. */
const list =
  (path: string, change: (items: unknown[]) => unknown[]): Edit =>
  (document) =>
    set(path, change(path.split(' ').reduce((at, key) => at[key], document)))(document)
const add = (path: string, item: unknown) => list(path, (items) => [...items, item])
const shorten = (path: string) => list(path, (items) => items.slice(0, -1))
const all =
  (...edits: Edit[]): Edit =>
  (document) => {
    for (const edit of edits) edit(document)
  }

// Where most edits are.
const pets = (path: string, value?: unknown) => set(`paths /pets get ${path}`, value)
const schema = (path: string, value?: unknown) => set(`components schemas ${path}`, value)
const parameters = 'paths /pets get parameters'
const shop = { name: 'shop', in: 'query', schema: {} }

/** A change in short: JSON is the media type of all bodies. */
const format = ({ place, what }: Change) =>
  [...place, what]
    .join(' › ')
    .replace(/request body › application\/json › /, 'body › ')
    .replace(/response (\d+) › application\/json › /, '$1 › ')

/** The changes that an edit makes to the prepared document. */
function changes(edit: Edit, prepare: Edit = () => {}) {
  const before = structuredClone(committed)
  prepare(before)
  const after = structuredClone(before)
  edit(after)
  return openApiChanges(before, after)
}

type Case = [line: string, edit: Edit, prepare?: Edit]
const named = (cases: Record<string, Case>) =>
  Object.entries(cases).map(([name, of]): [string, ...Case] => [name, ...of])

const breaking: Record<string, Case> = {
  'a path goes': ['GET /quota › removed', set('paths /quota')],
  'an operation goes': ['PATCH /pets/{petId} › removed', set('paths /pets/{petId} patch')],
  'an operationId is another': ['GET /pets › operationId: "listPets" → "pets"', pets('operationId', 'pets')],
  'a success has another status': [
    'POST /pets › response 201 › removed',
    ({ paths }) => {
      const { 201: created, ...others } = paths['/pets'].post.responses
      paths['/pets'].post.responses = { 200: created, ...others }
    },
  ],
  'a parameter comes that is required': [
    'GET /pets › query parameter shop › added',
    add(parameters, { ...shop, required: true }),
  ],
  'a parameter becomes required': [
    'GET /pets › query parameter limit › required: false → true',
    pets('parameters limit required', true),
  ],
  'a parameter goes, optional as it was': [
    'GET /pets › query parameter status › removed',
    list(parameters, (items) => items.filter((item) => (item as typeof shop).name !== 'status')),
  ],
  'a parameter is sent elsewhere': [
    'GET /pets › query parameter status › removed',
    pets('parameters status in', 'header'),
  ],
  'a list in a query is written in another way': [
    'GET /pets › query parameter id › explode: true → false',
    pets('parameters id explode', false),
  ],
  'the highest value of a parameter is lower': [
    'GET /pets › query parameter limit › maximum: 100 → 50',
    pets('parameters limit schema maximum', 50),
  ],
  'a list in a request may hold fewer': [
    'GET /pets › query parameter id › maxItems: 100 → 10',
    pets('parameters id schema maxItems', 10),
  ],
  'a parameter takes fewer values': [
    'GET /pets › query parameter status › enum: without "sold"',
    shorten('components schemas PetStatus enum'),
  ],
  'a default is another': [
    'GET /categories › query parameter limit › default: 20 → 10',
    set('paths /categories get parameters limit description', 'Default: 10.'),
  ],
  'a field of a body comes that is required': [
    'POST /pets › body › required: with "age"',
    all(schema('NewPet properties age', { type: 'integer' }), add('components schemas NewPet required', 'age')),
  ],
  'a field of a body goes': ['POST /pets › body › status › removed', schema('NewPet properties status')],
  'a text of a request has to be longer': [
    'POST /pets › body › name › minLength: 1 → 3',
    schema('NewPet properties name minLength', 3),
  ],
  'a text of a request has to look otherwise': [
    'POST /pets › body › name › pattern: "\\\\S" → "^[a-z]+$"',
    schema('NewPet properties name pattern', '^[a-z]+$'),
  ],
  'a field of a request may not be null any more': [
    'PATCH /store/orders/{orderId} › body › shipDate › nullable removed: true',
    schema('OrderUpdate properties shipDate nullable'),
  ],
  'a body refuses fields that it does not know': [
    'POST /pets › body › additionalProperties added: false',
    schema('NewPet additionalProperties', false),
    schema('NewPet additionalProperties'),
  ],
  'a body becomes required': [
    'POST /pets › request body › required: false → true',
    set('paths /pets post requestBody required', true),
    set('paths /pets post requestBody required', false),
  ],
  'a media type of a body goes': [
    'PATCH /pets/{petId} › request body › application/merge-patch+json › removed',
    set('paths /pets/{petId} patch requestBody content application/merge-patch+json'),
  ],
  'a field of a response goes, optional as it was': [
    'GET /pets › 200 › [] › status › removed',
    schema('Pet properties status'),
  ],
  'a field of a response may be absent': [
    'GET /pets › 200 › [] › required: without "categoryId"',
    shorten('components schemas Pet required'),
  ],
  'a field of a response may be null': [
    'GET /categories › 200 › [] › description › nullable added: true',
    schema('Category properties description nullable', true),
  ],
  'a field of a response has another type': [
    'GET /pets › 200 › [] › id › type: "integer" → "string"',
    schema('Pet properties id type', 'string'),
  ],
  'a field of a response has another format': [
    'GET /store/orders › 200 › [] › shipDate › format: "date-time" → "date"',
    schema('Order properties shipDate format', 'date'),
  ],
  'a closed list of values in a response has one more': [
    'GET /quota › 200 › plan › enum: with "Gold"',
    add('components schemas Plan enum', 'Gold'),
  ],
  'a bound in a response is wider': [
    'GET /inventory › 200 › [] › quantity › minimum: 0 → -5',
    schema('InventoryItem properties quantity minimum', -5),
  ],
  'a bound in a response goes': [
    'GET /pets › 200 › [] › name › maxLength removed: 100',
    schema('Pet properties name maxLength'),
  ],
  'a header goes': [
    'GET /categories › response 429 › header Retry-After › removed',
    set('components responses RateLimited headers Retry-After'),
  ],
  'a header may be absent': [
    'GET /categories › response 200 › header X-RateLimit-Limit › required: true → false',
    set('components headers X-RateLimit-Limit required', false),
  ],
  'a media type of a response goes': [
    'GET /pets › 200 › removed',
    (document) => {
      const response = document.paths['/pets'].get.responses[200]
      response.content = { 'text/csv': response.content['application/json'] }
    },
  ],
  'one way to authenticate is left of two': [
    'GET /pets › security: without bearer',
    pets('security', [{ apiKey: [] }]),
  ],
  'two credentials are needed together': [
    'GET /quota › security: without bearer, without apiKey, with bearer and apiKey',
    set('security', [{ bearer: [], apiKey: [] }]),
  ],
  'a key is sent in another header': [
    'security scheme apiKey › name: "X-API-Key" → "X-Key"',
    set('components securitySchemes apiKey name', 'X-Key'),
  ],
  'the service moves': [
    'server https://petstore.example/v1 › removed',
    set('servers', [{ url: 'https://petstore.example/v2' }]),
  ],
  'a schema has another name': [
    'schema Quota › removed',
    ({ components: { schemas }, paths }) => {
      schemas.Allowance = schemas.Quota
      delete schemas.Quota
      paths['/quota'].get.responses[200].content['application/json'].schema.$ref = '#/components/schemas/Allowance'
    },
  ],
  'something changes that no rule knows': ['POST /pets › body › oneOf added: [{}]', schema('NewPet oneOf', [{}])],
}

test.each(named(breaking))(
  'a breaking change of the REST document is reported as breaking: %s',
  (_, line, edit, prepare) => {
    const found = changes(edit, prepare).filter(({ breaks }) => breaks)
    expect(found.map(format)).toContain(line)
  },
)

const age = schema('Pet properties age', { type: 'integer' })
const quantity = 'components schemas InventoryUpdate properties quantity'

const compatible: Record<string, Case> = {
  'a path comes': ['GET /shops › added', ({ paths }) => set('paths /shops', { get: paths['/quota'].get })({ paths })],
  'an operation comes': [
    'PUT /pets/{petId} › added',
    ({ paths }) => set('paths /pets/{petId} put', paths['/pets/{petId}'].patch)({ paths }),
  ],
  'a parameter comes that is optional': ['GET /pets › query parameter shop › added', add(parameters, shop)],
  'a field of a body comes that is optional': [
    'POST /pets › body › age › added',
    schema('NewPet properties age', { type: 'integer' }),
  ],
  'a field of a response comes': [
    'GET /pets › 200 › [] › age › added',
    all(age, add('components schemas Pet required', 'age')),
  ],
  'a bound of a request is wider': [
    'POST /pets › body › name › maxLength: 100 → 200',
    schema('NewPet properties name maxLength', 200),
  ],
  'a bound of a response is tighter': [
    'GET /pets › 200 › [] › name › maxLength: 100 → 50',
    schema('Pet properties name maxLength', 50),
  ],
  'a value comes in a list that says it will grow': [
    'GET /pets › 400 › code › x-extensible-enum: with "teapot"',
    add('components schemas Error properties code x-extensible-enum', 'teapot'),
  ],
  'a header comes': [
    'GET /pets › response 200 › header Age › added',
    pets('responses 200 headers Age', { schema: { type: 'integer' } }),
  ],
  'a refusal comes, another goes': [
    'GET /pets/{petId} › response 404 › removed',
    set('paths /pets/{petId} get responses 404'),
  ],
  'one more way to authenticate': ['GET /pets › security: with other', add('security', { other: [] })],
  'an operation is deprecated': ['GET /pets › deprecated added: true', pets('deprecated', true)],
  'a description is another': ['GET /pets › description changed', pets('description', 'All pets.')],
  'a default is written down': [
    'GET /pets › query parameter after › default added: 20',
    pets('parameters after schema default', 20),
  ],
  'a default moves into the description': [
    'GET /pets › query parameter limit › description changed',
    pets('parameters limit description', 'Default: 20, or more.'),
    all(pets('parameters limit description', 'How many.'), pets('parameters limit schema default', 20)),
  ],
  'a default of a body moves into the description, and a quote in a pattern becomes its code': [
    'PATCH /inventory/{petId} › body › quantity › description changed',
    all(
      set(`${quantity} default`),
      set(`${quantity} description`, 'Default: 7.'),
      set(`${quantity} pattern`, '^\\x22'),
    ),
    all(set(`${quantity} default`, 7), set(`${quantity} description`, 'Many.'), set(`${quantity} pattern`, '^"')),
  ],
}

test.each(named(compatible))(
  'a compatible change of the REST document is reported as compatible: %s',
  (_, line, edit, prepare) => {
    const found = changes(edit, prepare)
    expect(found.map(format)).toContain(line)
    expect(found.filter(({ breaks }) => breaks).map(format)).toEqual([])
  },
)

test.each<[name: string, edit: Edit]>([
  ['an order of parameters', list(parameters, (items) => items.toReversed())],
  [
    'a schema written out instead of referred to',
    ({ paths, components }) => {
      paths['/quota'].get.responses[200].content['application/json'].schema = components.schemas.Quota
    },
  ],
  ['the document security said at each operation', (document) => pets('security', document.security)(document)],
])('%s is not a change', (_name, edit) => {
  expect(changes(edit)).toEqual([])
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
