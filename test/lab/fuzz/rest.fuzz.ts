import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll } from 'vitest'
import { parse } from 'yaml'
import { createSecret } from '../../../src/gateway/keys/index.js'
import { json, resetStore } from '../../support/calls.js'
import { type Gateway, openGateway } from '../../support/gateway.js'
import { assertHealthy, curl, type FuzzRequest, fuzz, messagesOf } from './fuzz.js'
import { accepted, type JsonSchema, type Resolve, refused } from './values.js'

// Requests by openapi.yaml: every operation, with parts that the document accepts and parts that break it. Gateway.call
// holds each response to the document.

interface Parameter {
  name: string
  description?: string
  in: 'path' | 'query'
  required: boolean
  schema: JsonSchema
}

interface Operation {
  method: string
  path: string
  parameters: Parameter[]
  requestBody?: { content: Record<string, { schema: JsonSchema }> }
}

const document = parse(readFileSync('openapi.yaml', 'utf8'))
const operations: Operation[] = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item as Record<string, Operation>).map(([method, operation]) => ({
    ...operation,
    parameters: operation.parameters ?? [],
    method: method.toUpperCase(),
    path,
  })),
)
const resolve: Resolve = ({ $ref, allOf, ...schema }) => {
  if ($ref) return resolve(document.components.schemas[$ref.split('/').at(-1) as string])
  return allOf ? { ...resolve(allOf[0] as JsonSchema), ...schema } : schema
}

/** A part of a request, and whether it keeps the contract; undefined: it does not matter, or the contract leaves it open. */
interface Part<Value> {
  value: Value
  valid?: boolean
}

const good = <Value>(values: fc.Arbitrary<Value>) => values.map((value): Part<Value> => ({ value, valid: true }))
const bad = <Value>(values: fc.Arbitrary<Value>) => values.map((value): Part<Value> => ({ value, valid: false }))
const odd = <Value>(values: fc.Arbitrary<Value>) => values.map((value): Part<Value> => ({ value }))
/** Mostly valid, so that a request does not have errors everywhere. */
const mostly = <Value>(first: fc.Arbitrary<Part<Value>>, ...rest: fc.Arbitrary<Part<Value>>[]) =>
  fc.oneof({ weight: 8 * rest.length, arbitrary: first }, ...rest.map((arbitrary) => ({ weight: 1, arbitrary })))

/** The characters of a text percent-encoded, or only those that must be. */
const encoded = (text: string, all: boolean) =>
  all
    ? [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
    : encodeURIComponent(text)
const encodable = (text: string) => text !== '' && text.isWellFormed() && text.length < 2_000

const wrongTexts = fc.constantFrom(
  ...['', '0', '-1', '+1', '1.5', '1e3', '0x1', '1,2', ' 1', '1 ', '1\n', 'x', 'null', 'NaN', '١', 'TRUE', '\0', '1/2'],
  ...['9223372036854775808', '9'.repeat(400), '🐈', '"', '../1', '{}', '[1]', "1' OR '1'='1"],
)
const undecodable = fc.constantFrom('%zz', '%', '%ff', '1%C0', '%ED%A0%80')

/** The text of a parameter as the URL has it; one text for each value of a list. */
function texts({ schema, in: place }: Parameter): fc.Arbitrary<Part<string[]>> {
  const type = resolve(schema)
  const values = accepted(schema, resolve).map((value) => [value].flat().map(String))
  const encodings = fc.tuple(
    values.filter((all) => all.every(encodable)),
    fc.boolean(),
  )
  const wrong = wrongTexts.filter((text) => place === 'query' || text !== '').map((text) => [encodeURIComponent(text)])
  // A text to search for can be any of them.
  const isText = type.type === 'string' && !type.enum && !type.format
  const broken = fc.oneof(isText ? odd(wrong) : bad(wrong), bad(undecodable.map((text) => [text])))
  const twice = bad(values.map((all) => [...all, ...all].map((text) => encodeURIComponent(text))))
  const valid = good(encodings.map(([all, every]) => all.map((text) => encoded(text, every))))
  return type.items || place === 'path' ? mostly(valid, broken) : mostly(valid, broken, twice)
}

/** Among them what other APIs take. */
const unknownParameters = fc
  .constantFrom(
    ...['x', 'Limit', '__proto__', 'constructor', 'input', 'a%00b', '%F0%9F%90%88', '%zz', 'limit[]', 'id[]', 'id[0]'],
    ...[
      'page',
      'offset',
      'page[size]',
      'page[number]',
      'filter[status]',
      'filter[',
      'filter[]',
      '[]',
      'orderBy',
      '_page',
    ],
  )
  .map((name) => [`${name}=1`])
/** Of two of them, one is wrong everywhere. */
const wrongSorts = fc
  .constantFrom('-name', '+name', 'name:desc', 'name%20asc', 'name,-id', ':desc', '-', '-'.repeat(50), 'name.desc.asc')
  .map((order) => [`sort=${order}`, 'sort=name'])

/** Whether a value that is valid alone may be refused beside others: a filter, an order, a cursor (test/lists.test.ts). */
const dependsOnOthers = ({ name, description = '' }: Operation['parameters'][number]) =>
  name === 'sort' || /`sort`/.test(description)

function targets({ path, parameters }: Operation): fc.Arbitrary<Part<string>> {
  const inPath = parameters.filter((parameter) => parameter.in === 'path')
  const inQuery = parameters.filter((parameter) => parameter.in === 'query')
  const query = fc.tuple(
    ...inQuery.map((parameter) =>
      fc.option(texts(parameter), { nil: undefined }).map(
        (part): Part<string[]> => ({
          value: part?.value.map((text) => `${parameter.name}=${text}`) ?? [],
          valid: part ? (part.valid === true && dependsOnOthers(parameter) ? undefined : part.valid) : true,
        }),
      ),
    ),
    mostly(good(fc.constant<string[]>([])), bad(fc.oneof(unknownParameters, wrongSorts))),
  )
  return fc.tuple(fc.tuple(...inPath.map(texts)), query).map(([values, pairs]) => {
    const search = pairs.flatMap(({ value }) => value).join('&')
    const at = inPath.reduce((text, { name }, i) => text.replace(`{${name}}`, String(values[i]?.value[0])), path)
    const parts = [...values, ...pairs]
    const isOpen = parts.every(({ valid }) => valid !== false) && parts.some(({ valid }) => valid === undefined)
    return { value: search ? `${at}?${search}` : at, valid: isOpen ? undefined : parts.every(({ valid }) => valid) }
  })
}

type Body = { type?: string; content?: string | Uint8Array }

function bodies({ requestBody }: Operation): fc.Arbitrary<Part<Body>> {
  if (!requestBody) return mostly(good(fc.constant<Body>({})), odd(fc.constant<Body>({ content: '{}' })))
  const [[type, { schema }]] = Object.entries(requestBody.content) as [[string, { schema: JsonSchema }]]
  const types = Object.keys(requestBody.content)
  const valid = accepted(schema, resolve).map(json)
  const mediaTypes = fc.constantFrom(...types, `${type}; charset=utf-8`, `${type.toUpperCase()};charset="UTF-8"`)
  const wrongTypes = fc.constantFrom(
    '',
    'text/plain',
    'application/xml',
    'application/jsonp',
    `${type}; charset=latin1`,
    'multipart/form-data; boundary=x',
  )
  const broken = fc.oneof<fc.Arbitrary<string | Uint8Array>[]>(
    refused(schema, resolve).map(json),
    refused(schema, resolve).map(json),
    valid.chain((text) => fc.nat(text.length - 1).map((end) => text.slice(0, end))),
    fc.uint8Array({ maxLength: 100 }).map((bytes) => Uint8Array.of(0xff, ...bytes)),
    fc.constantFrom(
      '',
      'null',
      '[]',
      '[{}]',
      '{',
      '"x"',
      '1',
      `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
      ' '.repeat(2_000_000),
    ),
  )
  return mostly(
    good(fc.record({ type: mediaTypes, content: valid })),
    bad(fc.record({ type: mediaTypes, content: broken })),
    bad(fc.record({ type: mediaTypes, content: broken })),
    bad(fc.record({ type: wrongTypes, content: valid })),
  )
}

/** Headers that must not change whether a request is accepted, whatever they hold. */
const visible = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCharCode(code)),
  maxLength: 300,
})
const headers = fc.record(
  {
    accept: fc.oneof(
      visible,
      fc.constantFrom('application/json', 'text/html', '*/*;q=0', 'application/graphql-response+json'),
    ),
    'accept-encoding': visible,
    'x-request-id': visible,
    origin: fc.oneof(visible, fc.constant('https://shop.test')),
    traceparent: fc.oneof(visible, fc.constant(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`)),
    'x-forwarded-for': fc.oneof(fc.ipV4(), fc.ipV6(), visible),
    forwarded: visible,
    cookie: visible,
    range: fc.constant('bytes=0-1'),
    'x-http-method-override': fc.constant('DELETE'),
  },
  { requiredKeys: [] },
)

/** How the key of the gateway is sent, or what is sent instead. */
type Key = 'valid' | 'none' | 'text' | 'forged' | { header: string; form: string }
const wrongKeys = fc.record({
  header: fc.constantFrom('authorization', 'x-api-key', 'apikey', 'api-key', 'x-auth-token'),
  form: fc.constantFrom(
    ...['', 'Bearer', 'Bearer ', 'Token KEY', 'ApiKey KEY', 'Basic KEY', 'Bearer "KEY"', '"KEY"', 'Bearer Bearer KEY'],
    ...[
      'Bearer KEYx',
      'undefined',
      'Bearer null',
      '$KEY',
      '<KEY>',
      '{{KEY}}',
      'KEY KEY',
      'petstore_',
      'Bearer\tKEY',
      ': KEY',
    ],
  ),
})
const keys = fc.oneof(
  { weight: 30, arbitrary: good(fc.constant<Key>('valid')) },
  { weight: 1, arbitrary: bad(fc.oneof(fc.constantFrom<Key>('none', 'text', 'forged'), wrongKeys)) },
)

interface RestCase {
  request: FuzzRequest
  valid?: boolean
}

const methodsOf = ({ method }: Operation) =>
  mostly(
    good(method === 'GET' ? fc.constantFrom('GET', 'HEAD') : fc.constant(method)),
    odd(fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'PROPFIND')),
  )

let gateway: Gateway
beforeAll(async () => {
  // Addresses from the header, so that the window of one address does not refuse what has no valid key.
  gateway = await openGateway({ env: { TRUST_PROXY: '1' } })
  await resetStore(gateway.prisma)
})
afterAll(() => gateway.close())

function credentials(key: Key): Record<string, string> {
  if (key === 'none') return {}
  if (key === 'text') return { 'x-api-key': 'petstore_x' }
  if (typeof key === 'object') return { [key.header]: key.form.replaceAll('KEY', gateway.key) }
  return { authorization: `Bearer ${key === 'forged' ? createSecret().key : gateway.key}` }
}

const casesOf = (operation: Operation): fc.Arbitrary<() => RestCase> =>
  fc
    .record({ method: methodsOf(operation), target: targets(operation), body: bodies(operation), headers, key: keys })
    .map(({ method, target, body, headers, key }) => () => {
      const parts: Part<unknown>[] = [method, target, body, key]
      const { type, content } = ['GET', 'HEAD'].includes(method.value) ? ({} as Body) : body.value
      return {
        request: {
          method: method.value,
          target: target.value,
          headers: { ...headers, ...credentials(key.value), ...(type === undefined ? {} : { 'content-type': type }) },
          body: content,
        },
        valid: parts.some(({ valid }) => valid === undefined) ? undefined : parts.every(({ valid }) => valid),
      }
    })

/** No response shows the key, however it was sent. */
function assertSecret(text: string) {
  if (text.includes(gateway.key.slice(-40))) throw new Error('The response shows the key')
}

/** The statuses of a request that keeps the contract: it succeeds, or the data refuses it. */
const allowedIfValid = [200, 201, 204, 404, 409, 422]

fuzz('REST keeps its document', 0.45, fc.oneof(...operations.map(casesOf)), {
  show: (create) => curl(create().request),
  async run(create) {
    const { request, valid } = create()
    const { method, target, headers, body } = request
    const answer = await gateway.call(method, target, { key: null, headers, body })
    assertHealthy(gateway, [answer.status], messagesOf(answer))
    assertSecret(answer.text)
    if (valid && !allowedIfValid.includes(answer.status))
      throw new Error(`A valid request returned ${answer.status}: ${answer.text}`)
    if (valid === false && answer.status < 400) throw new Error(`An invalid request returned ${answer.status}`)
    // Every case starts with the same rows, so that it can be repeated alone.
    if (answer.status < 300 && !['GET', 'HEAD', 'OPTIONS'].includes(method)) await resetStore(gateway.prisma)
  },
})

const segments = fc.oneof(
  fc.constantFrom(
    ...operations.flatMap(({ path }) => path.split('/')),
    'graphql',
    'docs',
    'healthz',
    ...['swagger', 'swagger-ui', 'index.html', 'api', 'api-docs', 'graphiql', 'openapi.json', 'v1', 'health', 'ready'],
    ...['favicon.ico', 'apple-touch-icon.png', 'actuator', 'metrics', 'usage', ''],
    '..',
    '.',
    '%2e%2e',
    '%2F',
  ),
  fc.webSegment(),
  fc.string({ unit: 'binary', maxLength: 20 }).filter(encodable).map(encodeURIComponent),
)
const wild = fc.record({
  method: fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'LOCK'),
  target: fc
    .tuple(fc.array(segments, { maxLength: 6 }), fc.webQueryParameters())
    .map(([path, query]) => `/${path.join('/')}${query && `?${query}`}`),
  headers: fc.tuple(headers, keys).map(([given, { value }]) => ({ given, key: value })),
})

fuzz('any path gets a documented answer', 0.1, wild, {
  show: ({ method, target, headers }) =>
    curl({ method, target, headers: { ...headers.given, ...credentials(headers.key) } }),
  async run({ method, target, headers: { given, key } }) {
    const answer = await gateway.call(method, target, { key: null, headers: { ...given, ...credentials(key) } })
    assertHealthy(
      gateway,
      [answer.status],
      /html|yaml|graphql|metrics/.test(answer.headers.get('content-type') ?? '') ? [] : messagesOf(answer),
    )
    if (answer.status < 300 && !['GET', 'HEAD', 'OPTIONS'].includes(method)) await resetStore(gateway.prisma)
  },
})
