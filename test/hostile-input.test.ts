import { gzipSync } from 'node:zlib'
import {
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLInputType,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isRequiredInputField,
} from 'graphql'
import { beforeEach, describe, expect, test } from 'vitest'
import { operations } from '../schema/index.js'
import type { Operation } from '../schema/kit/operations.js'
import { bounds as ofResources, values } from './resources/index.js'
import { type Args, type Bounds, numbers } from './resources/resource.js'
import {
  callGraphql,
  callRest,
  contents,
  expectCommonHeaders,
  graphqlRequest,
  json,
  queryArgs,
  resetStore,
} from './support/calls.js'
import { type Answer, type Gateway, sharedGateway } from './support/gateway.js'

const MAX_INT = 2_147_483_647
const MAX_BODY = 131_072
const cats = (count: number) => '🐈'.repeat(count)

// Invalid values of a type, for any field.
const wrongValues: Record<string, unknown[]> = {
  Int64: ['1', '', 1.5, 0, -1, 2n ** 63n, -(2n ** 63n), 10n ** 400n, true, [], [1], {}],
  '[Int64!]': ['1', 0, [0], ['1'], [1, null], [1, 1.5], Array(101).fill(1), true, {}],
  Int: ['1', '', 1.5, MAX_INT + 1, -MAX_INT - 2, 2n ** 63n, 10n ** 400n, 1e21, true, [], [1], {}],
  String: [5, 2n ** 63n, true, [], ['x'], {}, '\0', 'a\0b', '\ud800', 'x\udc00y', '\udc00\ud800'],
  Boolean: ['true', '', 0, 1, [], [true], {}],
  PetStatus: ['', 'Sold', 'sold ', 'lost', '\ud800', 0, true, [], ['sold'], {}, 2n ** 63n],
  DateTime: [
    ...[0, 1_766_599_200_000, true, [], {}, '', 'tomorrow', '\ud800', `2026-12-24T18:00:00.${'0'.repeat(44)}Z`],
    ...'2026-12-24 2026-12-24T18:00:00 2026-12-24T18:00Z 2026-12-24T18:00:00+0530 2026-12-24T18:00:00+24:00'.split(' '),
    ...'2026-02-30T00:00:00Z 2027-02-29T00:00:00Z 2026-13-01T00:00:00Z 2026-12-24T24:00:00Z'.split(' '),
    ...'1969-12-31T23:59:59Z 1970-01-01T00:00:00+01:00 9999-12-31T23:59:59-01:00 10000-01-01T00:00:00Z'.split(' '),
    ...['+010000-01-01T00:00:00Z', '-000001-01-01T00:00:00Z', '2026-12-24 18:00:00Z', ' 2026-12-24T18:00:00Z'],
  ],
}

// Invalid texts in a path or a query string, as written in the URL.
const wrongTexts: Record<string, string[]> = {
  Int64: [
    ...'0 -1 %2B1 1.5 1.0 1e3 0x1 1,2 1;2 %201 1%20 1%0A 1%2F2 1_0 x %00 NaN null %22 %zz % %ff 1%C0'.split(' '),
    ...['9223372036854775808', '9'.repeat(400), '%EF%BC%91'],
  ],
  Int: [...'1.5 1e1 0x1 %2B1 %201 1,2 x 2147483648 -2147483649 %zz % %ff'.split(' '), '9'.repeat(400)],
  Boolean: ['t', 'truee', '1', '0', 'yes', 'null', '%00', '%zz', '%', '%ff'],
  String: ['%20', '%0A', '%00', 'x'.repeat(101)],
  DateTime: ['x', '2026-12-24', '2026-12-24T18:00:00', '2026-02-30T00:00:00Z', '10000-01-01T00:00:00Z', '%zz'],
  PetStatus: ['Sold', 'sold%20', 'sold,pending', 'null', '%00', '%zz', '%', '%ff', '%ED%A0%80'],
}

// The bounds of the contract, beside those of test/resources. The tests fail for a number or text that has none.
const bounds: Record<string, Bounds> = {
  ...ofResources,
  limit: numbers(1, 100),
  days: numbers(1, 90),
  hours: numbers(1, 72),
  name: {
    accepted: ['x', cats(100), ` \n${cats(100)}\t`],
    rejected: [
      ['', '1 to 100'],
      [' \n', '1 to 100'],
      [cats(101), '1 to 100'],
    ],
  },
  description: { accepted: ['', cats(1000)], rejected: [[cats(1001), '1000']] },
  search: {
    accepted: ['x', cats(100), ` \n${cats(100)}\t`],
    rejected: [
      [' \n', '1 to 100'],
      [cats(101), '1 to 100'],
    ],
  },
}

/** Values that exclude no others. */
const widest: Record<string, unknown> = { minQuantity: 0, maxQuantity: MAX_INT, shipDateBefore: '9999-12-31T00:00:00Z' }

const unknownNames = ['x', '__proto__', 'constructor', 'toString', 'a\nb', 'a"b', 'ü']

/** A valid value for the rows that `resetStore` creates. */
function valid(type: GraphQLInputType): unknown {
  const bare = getNullableType(type)
  if (isListType(bare)) return [valid(bare.ofType)]
  if (isEnumType(bare)) return bare.getValues()[0]?.name
  if (isInputObjectType(bare))
    return Object.fromEntries(
      Object.values(bare.getFields()).map(({ name, type }) => [
        name,
        values[`${bare.name}.${name}`] ?? values[name] ?? valid(type),
      ]),
    )
  return { Int64: 1, Int: 1, String: 'text', Boolean: false, DateTime: '2026-12-24T18:00:00Z' }[bare.name]
}

/** All but ifMatch, which is a header in REST (test/etag.test.ts), and what REST has alone (test/lists.test.ts). */
const argsOf = ({ field }: Operation) =>
  field.args.filter(({ name, extensions }) => name !== 'ifMatch' && !extensions.subGraphs)

const validArgs = (operation: Operation): Args =>
  Object.fromEntries(argsOf(operation).map(({ name, type }) => [name, widest[name] ?? valid(type)]))

/** An argument of an operation, or a field of its body. */
interface Place {
  name: string
  in: 'path' | 'query' | 'body'
  type: string
  bounds?: Bounds
  required: boolean
  clears: boolean
  /** The valid arguments with another value in this place; undefined leaves it out. */
  put(value: unknown): Args
}

function places(operation: Operation): Place[] {
  const args = validArgs(operation)
  const place = (of: GraphQLArgument | GraphQLInputField, owner: string) => {
    const type = String(getNullableType(of.type))
    const known = bounds[`${owner}.${of.name}`] ?? bounds[of.name]
    if (!known && ['Int', 'String'].includes(type)) throw new Error(`${owner}.${of.name} has no bounds`)
    return {
      name: of.name,
      type,
      bounds: known,
      required: isRequiredInputField(of as GraphQLInputField),
      clears: of.extensions.nullable === true,
    }
  }
  return argsOf(operation).flatMap((arg): Place[] => {
    const input = getNamedType(arg.type)
    if (isInputObjectType(input))
      return Object.values(input.getFields()).map((field) => ({
        ...place(field, input.name),
        in: 'body',
        put: (value) => {
          const item = { ...(Array.isArray(args.input) ? args.input[0] : args.input), [field.name]: value }
          return { ...args, input: Array.isArray(args.input) ? [item] : item }
        },
      }))
    const inQuery = queryArgs(operation).includes(arg)
    const put: Place['put'] = (value) => ({ ...args, [arg.name]: value })
    return [{ ...place(arg, operation.name), in: inQuery ? 'query' : 'path', put }]
  })
}

/** The request target of an operation, with unchanged text in path and query string. */
const target = ({ rest }: Operation, { path = '1', query = '' } = {}) =>
  rest.path.replace(/\{\w+\}/, path) + (query && `?${query}`)

const withBody = operations.filter(({ field }) => field.args.some(({ name }) => name === 'input'))
const send = (gateway: Gateway, operation: Operation, where: Parameters<typeof target>[1]) => {
  const input = validArgs(operation).input
  return gateway.call(operation.rest.method, target(operation, where), input ? { body: json(input) } : {})
}

const gateway = await sharedGateway()
let stored: unknown
beforeEach(async () => {
  await resetStore(gateway.prisma)
  stored = await contents(gateway.prisma)
})

const expectNothingStored = async () => expect(await contents(gateway.prisma)).toEqual(stored)

/** A message shows names and values escaped. */
const word = (text: string) => new RegExp(`(^|\\W)${text.replace(/[^\w\s]/g, '\\$&')}(\\W|$)`)

/** Expects the complete error of the surface, with a message that contains all `mentions`. */
function expectRefusal(answer: Answer, label: string, mentions: string[], status = 400, code = 'invalid_request') {
  expectCommonHeaders(answer, label)
  const { errors, data, ...error } = answer.body ?? {}
  if (errors) {
    expect(errors[0].extensions, label).toEqual({ code, status })
    expect([null, undefined], label).toContain(data && Object.values(data)[0])
    expect(answer.status, label).toBeLessThan(500)
  } else {
    expect(error, label).toEqual({ code, message: expect.any(String), status })
    expect([answer.status, answer.headers.get('content-type')], label).toEqual([status, 'application/json'])
  }
  const { message } = errors?.[0] ?? error
  for (const mention of mentions) expect(message, label).toMatch(word(JSON.stringify(mention).slice(1, -1)))
}

function expectSuccess(answer: Answer, label: string) {
  expectCommonHeaders(answer, label)
  expect([answer.status < 300, answer.body?.errors], `${label}: ${answer.text}`).toEqual([true, undefined])
}

const shown = (value: unknown) => (json(value) ?? 'nothing').slice(0, 60)

/** The operations that have such a place. */
const having = (filter: (place: Place) => unknown) => operations.filter((operation) => places(operation).some(filter))

describe.each([
  { surface: 'REST', call: callRest },
  { surface: 'GraphQL', call: callGraphql },
])('through $surface', ({ surface, call }) => {
  const rest = surface === 'REST'
  // Path and query of REST contain texts, which are tested below.
  const judged = (place: Place) => !rest || place.in === 'body'

  test.each(having(judged))('$name rejects every invalid value and names its field', async (operation) => {
    for (const { name, type, clears, required, put } of places(operation).filter(judged)) {
      const wrong = (wrongValues[type] ?? wrongValues.PetStatus) as unknown[]
      for (const value of [...wrong, ...(clears ? [] : [null]), ...(required ? [undefined] : [])])
        expectRefusal(await call(gateway, operation, put(value)), `${name}: ${shown(value)}`, [name])
    }
    await expectNothingStored()
  })

  const bounded = (place: Place) => place.bounds

  test.each(having(bounded))('$name accepts values on a bound and rejects values beyond it', async (operation) => {
    for (const { name, put, bounds } of places(operation).filter(bounded))
      for (const [value, mentions] of bounds?.rejected ?? []) {
        const answer = await call(gateway, operation, put(value))
        expectRefusal(answer, `${name}: ${shown(value)}`, rest ? [name, mentions] : [name])
      }
    await expectNothingStored()
    for (const { name, put, bounds } of places(operation).filter(bounded))
      for (const value of bounds?.conflicting ?? [])
        expectRefusal(await call(gateway, operation, put(value)), `${name}: ${shown(value)}`, [], 409, 'conflict')
    for (const { name, put, bounds } of places(operation).filter(bounded))
      for (const value of bounds?.accepted ?? []) {
        // The other values may have to be unique.
        await resetStore(gateway.prisma)
        expectSuccess(await call(gateway, operation, put(value)), `${name}: ${shown(value)}`)
      }
  })

  const named = ({ type }: Place) => type.includes('Int64')

  test.each(having(named))(
    '$name treats an id above all assigned ids as one that does not exist',
    async (operation) => {
      for (const { name, type, put, ...place } of places(operation).filter(named))
        for (const id of [2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n]) {
          const answer = await call(gateway, operation, put(type === 'Int64' ? id : [id]))
          const label = `${name}: ${id}`
          if (place.in === 'path') expectRefusal(answer, label, [String(id)], 404, 'not_found')
          const isKey = operation.body?.extensions.batch?.key === name
          if (isKey) expectRefusal(answer, label, [String(id)], 404, 'not_found')
          else if (place.in === 'body') expectRefusal(answer, label, [name, String(id)], 422, 'unknown_reference')
          if (place.in === 'query') expect(answer.body.data?.[operation.name] ?? answer.body, label).toEqual([])
        }
      await expectNothingStored()
    },
  )

  test.each(withBody)('$name rejects an unknown body field and names it', async (operation) => {
    const args = validArgs(operation)
    const key = operation.body?.extensions.batch?.key
    for (const name of [...unknownNames, 'id', 'Name', ''].filter((name) => name !== key))
      for (const value of [1, null, 2n ** 60n]) {
        const item = { ...([args.input].flat()[0] as object), [name]: value }
        const input = Array.isArray(args.input) ? [item] : item
        expectRefusal(await call(gateway, operation, { ...args, input }), `${shown(name)}: ${value}`, [name])
      }
    await expectNothingStored()
  })
})

describe('in the URL', () => {
  const inUrl = (place: Place) => place.in !== 'body'
  const inQuery = (place: Place) => place.in === 'query'

  test.each(having(inUrl))('$name rejects every invalid text and names the parameter', async (operation) => {
    for (const { name, type, ...place } of places(operation).filter(inUrl))
      for (const text of wrongTexts[type.replace(/\W/g, '')] ?? (wrongTexts.PetStatus as string[])) {
        const where = place.in === 'path' ? { path: text } : { query: `${name}=${text}` }
        // A text that cannot be decoded is rejected before it is a parameter.
        const broken = place.in === 'path' && ['%zz', '%', '%ff', '1%C0'].includes(text)
        expectRefusal(await send(gateway, operation, where), `${name}=${text}`, [broken ? 'path' : name])
      }
    await expectNothingStored()
  })

  test.each(having(inQuery))('$name rejects an empty or repeated parameter and names it', async (operation) => {
    for (const { name, type } of places(operation).filter(inQuery)) {
      const one = `${name}=${[valid(operation.field.args.find((arg) => arg.name === name)?.type as never)]}`
      const repeated = type.startsWith('[') ? [] : [`${one}&${one}`]
      for (const query of [name, `${name}=`, `${one}&${name}=`, ...repeated])
        expectRefusal(await send(gateway, operation, { query }), query, [name])
    }
  })

  test.each(operations)('$name rejects an unknown parameter, even one of another operation', async (operation) => {
    const elsewhere = places(operation).filter((place) => !inQuery(place))
    for (const name of [...unknownNames, 'input', 'ifMatch', 'Limit', ...elsewhere.map((place) => place.name)]) {
      const query = `${encodeURIComponent(name)}=1`
      expectRefusal(await send(gateway, operation, { query }), query, [name])
    }
    expectRefusal(await send(gateway, operation, { query: '%zz=1' }), '%zz', ['%zz'])
    await expectNothingStored()
  })
})

// Every operation with a body, and GraphQL.
const bodyTargets = [
  ...withBody.map((operation) => ({
    title: `${operation.rest.method} ${operation.rest.path}`,
    method: operation.rest.method as string,
    path: target(operation),
    good: json(validArgs(operation).input),
  })),
  {
    title: 'POST /graphql',
    method: 'POST',
    path: '/graphql',
    good: graphqlRequest(withBody[0] as Operation, validArgs(withBody[0] as Operation)),
  },
]
const deep = (inner: string) => `${'['.repeat(60_000)}${inner}${']'.repeat(60_000)}`
const padded = (text: string, bytes: number) => text.padEnd(bytes)

describe.each(bodyTargets)('the body of $title', ({ method, path, good }) => {
  const call = (body: string | Uint8Array | undefined, type = 'application/json', headers = {}) =>
    gateway.call(method, path, { body, headers: { 'content-type': type, ...headers } })

  test.each<[string, string | Uint8Array | undefined]>([
    ['none', undefined],
    ['empty', ''],
    ['white space', ' \n'],
    ['null', 'null'],
    ['true', 'true'],
    ['a number', '5'],
    ['a long number', '9'.repeat(1000)],
    ['a string', '"text"'],
    ['an array', '[]'],
    ['an array of bodies', `[${good}]`],
    ['cut short', good.slice(0, -1)],
    ['two bodies', good + good],
    ['followed by a comma', `${good},`],
    ['no JSON', "{name: 'Tom'}"],
    ['nested deeply', deep('')],
    ['nested deeply around a long number', deep('1234567890123456')],
    ['nested without an end', '['.repeat(100_000)],
    ['not UTF-8', Buffer.from(good.replace('text', 't\xe9xt'), 'latin1').fill(0xff, 2, 3)],
    ['UTF-16', Buffer.from(good, 'utf16le')],
  ])('returns 400: %s', async (label, body) => {
    // Apollo's link sends several operations, and expects as many answers.
    if (path === '/graphql' && /^(an array of bodies|nested deeply.*)$/.test(label)) {
      const { body: answers } = await call(body)
      expect(answers).toEqual([{ errors: [expect.objectContaining({ message: expect.stringContaining('body') })] }])
      return
    }
    // What is wrong in a batch is an item.
    const isInItem = good.startsWith('[') && /^(an array of bodies|nested deeply.*)$/.test(label)
    expectRefusal(await call(body), label, isInItem ? ['[0]'] : ['body'])
    await expectNothingStored()
  })

  test.each<[string, string, object]>([
    ['no type', '', {}],
    ['text', 'text/plain', {}],
    ['XML', 'application/xml', {}],
    ['a form', 'application/x-www-form-urlencoded', {}],
    ['a multipart form', 'multipart/form-data; boundary=x', {}],
    ['nearly JSON', 'application/jsonp', {}],
    ['two types', 'application/json, text/plain', {}],
    ['another charset', 'application/json; charset=latin1', {}],
    ['the charset that was usual', 'application/json; charset=iso-8859-1', {}],
    ['another charset among parameters', 'application/json; version=1; charset="utf-16"', {}],
    ['a content coding', 'application/json', { 'content-encoding': 'gzip' }],
    ['two content codings', 'application/json', { 'content-encoding': 'identity, br' }],
  ])('returns 415: %s', async (label, type, headers) => {
    for (const body of [good, gzipSync(good), padded('', 2)])
      expectRefusal(await call(body, type, headers), label, [], 415, 'unsupported_media_type')
    await expectNothingStored()
  })

  test('can have the media type of a merge patch only in a PATCH', async () => {
    const answer = await call(good, 'application/merge-patch+json')
    if (method === 'PATCH') expectSuccess(answer, method)
    else expectRefusal(answer, method, ['application/json'], 415, 'unsupported_media_type')
  })

  test.each([
    ['a charset', good, 'application/json; charset=utf-8'],
    ['a charset without its hyphen', good, 'application/json; charset=utf8'],
    ['a quoted charset in capitals', good, 'Application/JSON ; Charset="UTF-8"'],
    ['a byte order mark', `\ufeff${good}`, 'application/json'],
    ['white space around it', ` \r\n\t${good} \n`, 'application/json'],
    ['exactly the most bytes', padded(good, MAX_BODY), 'application/json'],
  ])('is accepted with %s', async (label, body, type) => {
    for (const headers of [
      {},
      { 'content-length': String(Buffer.byteLength(body)) },
      { 'content-encoding': 'Identity' },
    ]) {
      await resetStore(gateway.prisma)
      expectSuccess(await call(body, type, headers), label)
    }
  })

  test('returns 413 if it is one byte too large, with or without a declared length, whatever its type', async () => {
    const body = padded(good, MAX_BODY + 1)
    for (const type of ['application/json', 'text/plain'])
      for (const headers of [{}, { 'content-length': String(MAX_BODY + 1) }])
        expectRefusal(await call(body, type, headers), type, ['131072'], 413, 'payload_too_large')
    await expectNothingStored()
  })

  test.each([MAX_BODY, MAX_BODY + 1])(
    'is counted while it arrives if it declares no length: %i bytes',
    async (bytes) => {
      const { url } = await gateway.listen()
      const response = await fetch(url + path, {
        method,
        headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
        body: new Blob([padded(good, bytes)]).stream(),
        duplex: 'half',
      } as RequestInit)
      const text = await response.text()
      const answer = { status: response.status, headers: response.headers, text, body: JSON.parse(text) }
      if (bytes === MAX_BODY) expectSuccess(answer, method)
      else expectRefusal(answer, method, ['131072'], 413, 'payload_too_large')
    },
  )
})

describe('of a body', () => {
  test.each([
    ['1', 201],
    ['9007199254740993', 422],
  ])('uses the last of two equal keys, also with the id %s', async (categoryId, status) => {
    const body = `{"name":5,"name":"Jerry","categoryId":${categoryId}}`
    expect((await gateway.call('POST', '/pets', { body })).status).toBe(status)
  })

  test('ignores inherited properties', async () => {
    for (const id of ['1', '9007199254740993']) {
      const body = `{"categoryId":${id},"__proto__":{"name":"Tom"}}`
      expectRefusal(await gateway.call('POST', '/pets', { body }), id, [])
    }
    await expectNothingStored()
  })
})

describe('in a GraphQL document', () => {
  test.each([
    ...['0', '-1', '"1"', '1.0', '1e3', '01', '9223372036854775808', 'true', 'null', '[1]'].map(
      (id) => `pet(petId: ${id}) {id}`,
    ),
    ...['pet {id}', 'pets(id: [0]) {id}', 'pets(id: [null]) {id}', 'pets(limit: 0) {id}', 'pets(limit: 101) {id}'],
    ...[
      'pets(limit: "1") {id}',
      'pets(limit: 2147483648) {id}',
      'pets(status: "sold") {id}',
      'pets(status: Sold) {id}',
    ],
    ...['pets(x: 1) {id}', 'orders(complete: "true") {id}', 'orders(complete: 1) {id}'],
    ...['limit: 101', 'limit: 0', 'after: 0'].map((args) => `categories { pets(${args}) {id} }`),
  ])('a literal of %s is validated like a variable', async (field) => {
    const { errors } = (await gateway.graphql(`{ ${field} }`)).body
    expect(errors?.[0].extensions).toEqual({ code: 'invalid_request', status: 400 })
  })

  test.each(['"2026-02-30T00:00:00Z"', '"2026-12-24T18:00:00"', '0', 'null', '[]'])(
    'the date %s is rejected, as in a variable',
    async (date) => {
      const document = `mutation { createOrder(input: { petId: 1, shipDate: ${date} }) { id } }`
      expect((await gateway.graphql(document)).body.errors[0].extensions.status).toBe(400)
      await expectNothingStored()
    },
  )

  test.each(['"\\u0000"', '"a\\ud800"', '"""\0"""', '5', '[]', '" "'])('the name %j is rejected', async (name) => {
    const document = `mutation { createCategory(input: { name: ${name} }) { id } }`
    expect((await gateway.graphql(document)).body.errors[0].extensions.status).toBe(400)
    await expectNothingStored()
  })
})

test('the query string of a GraphQL request never overrides its body', async () => {
  const query = new URLSearchParams({ query: 'mutation { deletePet(petId: 1) { id } }' })
  const { body } = await gateway.call('POST', `/graphql?${query}`, { body: { query: '{ quota { plan } }' } })
  expect(body).toEqual({ data: { quota: { plan: 'Enterprise' } } })
  await expectNothingStored()
})
