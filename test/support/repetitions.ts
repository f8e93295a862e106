import { assertHealthy, type FuzzRequest, messagesOf } from '../lab/fuzz/fuzz.js'
import { type Collection, slowness, watch } from '../lab/fuzz/work.js'
import { type Gateway, openGateway } from './gateway.js'

// The largest input of every kind that the gateway accepts, filled with repetitions of what readers stumble over.

const MAX_DOCUMENT = 65_000
const MAX_BODY = 130_000
const MAX_HEAD = 15_000

export const fragments = [
  ...['"', '\\', '\\"', '"""', '\\"""', '\n', '\r\n', '# \n', ' ', '\0', '\\u0041', '\ud800', '🐈', '\u0301', '\u202e'],
  ...['a', '1', '$', '&', '{', '}', '{a', '[', ']', '(', '{"a":', ',', ';', ':', '=', '.', '/', '../', '%', '%41'],
  ...['%zz', 'id=1&', 'id=x&', '...A ', '$v: Int ', 'constructor ', '__proto__', 'W/"', '"a", ', 'Bearer '],
  ...['petstore_00000000', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-', '1.1.1.1, ', '[::1]:1, ', ']:1'],
  ...[';charset="', 'application/graphql-response+jso, ', '2026-12-24T18:00:00', `${'a'.repeat(59)} `],
  'namenamenamenamenamenamenamenamenamename',
  ...['1234567890123456789,', '"",', '{},', '{"a":1234567890123456789},'],
]

/** A kind of input. */
export interface Kind {
  name: string
  /** The request with the text as often as it fits. The number makes it new, so that nothing known of another helps. */
  fill(text: Text, number: number): FuzzRequest
}

export interface Text {
  /** What is repeated. */
  fragment: string
  /** What follows. */
  end?: string
}

type Encode = (text: string) => string
const inJson: Encode = (text) => JSON.stringify(text).slice(1, -1)
const inUrl: Encode = (text) => encodeURIComponent(text.toWellFormed())
const asTarget: Encode = (text) => text.replace(/[^\x21-\x7e]/gu, inUrl)
const asHeader: Encode = (text) => text.replace(/[^\t\x20-\x7e\x80-\xff]/g, '?')

const bytes = (text: string) => Math.max(1, Buffer.byteLength(text))
const repeated = ({ fragment, end = '' }: Text, max: number, encode: Encode = (text) => text) =>
  encode(fragment).repeat(max / bytes(encode(fragment))) + encode(end)
/** Different texts that begin alike. */
const numbered = ({ fragment }: Text, max: number, encode: Encode, around = 4) =>
  Array.from({ length: max / (bytes(encode(fragment)) + around + 4) }, (_, i) => encode(fragment + i))

const post = (target: string, body: string): FuzzRequest => ({ method: 'POST', target, headers: {}, body })
const get = (target: string): FuzzRequest => ({ method: 'GET', target, headers: {} })

const documents = (templates: Record<string, string>): Kind[] =>
  Object.entries(templates).map(([name, template]) => ({
    name: `a document: ${name}`,
    fill(text, number) {
      const max = Math.min(MAX_DOCUMENT, (MAX_BODY * bytes(text.fragment)) / bytes(inJson(text.fragment)))
      const query = `${template.replace('…', () => repeated(text, max))}\n#${number}`
      return post(
        '/graphql',
        JSON.stringify({ query, operationName: name === 'two operations' ? text.fragment : undefined }),
      )
    },
  }))

/** @param template JSON, with `…` for a text in it, `[…]` for a list of texts, `[…, …]` for one of equal texts, and `{…}` for an object of names */
const bodies = (target: string, templates: Record<string, string>): Kind[] =>
  Object.entries(templates).map(([name, template]) => ({
    name: `${target}: ${name}`,
    fill(text) {
      const items = (around: string) =>
        numbered(text, MAX_BODY, inJson, around.length)
          .map((item) => `"${item}${around}`)
          .join('')
      const body = template
        .replace('[…]', () => `[${items('",')}"x"]`)
        .replace('[…, …]', () => `[${repeated({ fragment: `"${inJson(text.fragment)}",` }, MAX_BODY)}1]`)
        .replace('{…}', () => `{${items('":1,')}"x":1}`)
        .replace('…', () => repeated(text, MAX_BODY, template.includes('"…') ? inJson : undefined))
      return post(target, body)
    },
  }))

const targets = (templates: Record<string, string>): Kind[] =>
  Object.entries(templates).map(([name, template]) => ({
    name,
    fill: (text) =>
      get(
        template
          .replace('{…}', () => numbered(text, MAX_HEAD, inUrl, 3).join('=1&'))
          .replace('[…]', () => numbered(text, MAX_HEAD, inUrl, 4).join('&id='))
          .replace('<…>', () => repeated(text, MAX_HEAD, asTarget))
          .replace('…', () => repeated(text, MAX_HEAD, inUrl)),
      ),
  }))

const headers = (names: Record<string, [name: string, template?: string, request?: FuzzRequest]>): Kind[] =>
  Object.entries(names).map(([title, [name, template = '…', request = get('/pets')]]) => ({
    name: `the header ${title}`,
    fill: (text) => ({
      ...request,
      headers: { ...request.headers, [name]: template.replace('…', () => repeated(text, MAX_HEAD, asHeader)) },
    }),
  }))

const variable = (type: string, field: string, value: string) =>
  `{"query":"query ($x: ${type}) { ${field} { id } }","variables":{"x":${value}}}`
const change = (type: string, field: string, value: string) =>
  variable(type, field, value).replace('"query ', '"mutation ')
const changed = { method: 'PATCH', target: '/pets/1', headers: {}, body: '{}' }
const anonymous = { method: 'GET', target: '/pets', headers: { 'x-api-key': '' } }

export const kinds: Kind[] = [
  ...documents({
    all: '…',
    selection: '{ … }',
    'open arguments': '{ pets(limit: …',
    arguments: '{ pets(…) { id } }',
    variables: 'query (…) { pets { id } }',
    'a list': '{ pets(id: […]) { id } }',
    'an id': '{ pet(petId: …) { id } }',
    'an object': 'mutation { createPet(input: {…}) { id } }',
    'a string': '{ pets(status: "…") { id } }',
    'a block string': '{ pets(status: """…""") { id } }',
    'a block string in the wrong place': '{"""…\\\n"""',
    'a string without an end': '{"…\\\n',
    'a name': 'mutation { createCategory(input: { name: """…""" }) { id } }',
    'a date': 'mutation { createOrder(input: { petId: 1, shipDate: "…" }) { id } }',
    'entity tags': 'mutation { deletePet(petId: 1, ifMatch: """…""") { id } }',
    'a comment': '{ pets(limit: 1) { id } } # …',
    'two operations': 'query A { pets { id } } query B { pets { id } } # …',
  }),
  ...bodies('/graphql', {
    'all of it': '…',
    'names of parameters': '{…}',
    'a name of a parameter': '{"…":1}',
    variables: '{"query":"{ pets { id } }","variables":"…"}',
    'names of variables': '{"query":"{ pets(limit: 1) { id } }","variables":{…}}',
    'variables beside a long number': '{"query":"{ quota { plan } }","variables":{"a":1234567890123456789,"b":{…}}}',
    'an id': variable('Int64!', 'pet(petId: $x)', '"…"'),
    'a number': variable('Int', 'pets(limit: $x)', '"…"'),
    'a value of an enumeration': variable('PetStatus', 'pets(status: $x)', '"…"'),
    ids: variable('[Int64!]', 'pets(id: $x)', '[…]'),
    'equal ids': variable('[Int64!]', 'pets(id: $x)', '[…, …]'),
    'ids in ids': variable('[Int64!]', 'pets(id: $x)', '[[…]]'),
    'an object for an id': variable('Int64!', 'pet(petId: $x)', '{…}'),
    'a list for an object': change('NewPet!', 'createPet(input: $x)', '[…]'),
    'fields of an object': change('NewPet!', 'createPet(input: $x)', '{…}'),
    'a field of an object': change('NewPet!', 'createPet(input: $x)', '{"…":1}'),
    'a name': change('String!', 'createCategory(input: { name: $x })', '"…"'),
    'a date': change('DateTime', 'createOrder(input: { petId: 1, shipDate: $x })', '"…"'),
    'entity tags': change('String', 'deletePet(petId: 1, ifMatch: $x)', '"…"'),
    'the name of an operation': '{"query":"query A { pets { id } } query B { pets { id } }","operationName":"…"}',
  }),
  ...bodies('/pets', {
    'all of it': '…',
    'a text without an end': '{"name":"…',
    'a text without an end beside a long number': '{"a":1234567890123456789,"name":"…',
    'a value beside a long number': '{"a":1234567890123456789,"name":…',
    'fields beside a long number': '{"a":1234567890123456789,"b":{…}}',
    'fields beside a long number, without an end': '{"a":1234567890123456789,"b":{…}',
    'values beside a long number': '[1234567890123456789,…1]',
    fields: '{…}',
    'a field': '{"…":1}',
    'a list': '[…]',
    'a name': '{"name":"…"}',
    'an id': '{"categoryId":"…"}',
    'a value of an enumeration': '{"status":"…"}',
  }),
  ...bodies('/categories', { 'a description': '{"name":"x","description":"…"}' }),
  ...bodies('/store/orders', { 'a date': '{"shipDate":"…"}', 'a number': '{"quantity":"…"}' }),
  ...targets({
    'a path': '/<…>',
    'a path that begins well': '/pets<…>',
    'a path below the reference': '/docs/<…>',
    'an id in a path': '/pets/…',
    'a query string': '/pets?<…>',
    'a name of a query parameter': '/pets?…=1',
    'names of query parameters': '/pets?{…}',
    'names of parameters where there are none': '/pets/1?{…}',
    'an id': '/pets?id=…',
    ids: '/pets?id=[…]',
    'a number': '/pets?limit=…',
    'a value of an enumeration': '/pets?status=…',
    'a document in the URL': '/graphql?query=…',
    'names of parameters of GraphQL in the URL': '/graphql?{…}',
    'variables in the URL': '/graphql?query={quota{plan}}&variables=…',
  }),
  ...headers({
    'If-Match': ['if-match', '…', changed],
    'If-Match without an end': ['if-match', '"…x', changed],
    'If-None-Match': ['if-none-match', '"a", …"b"'],
    Authorization: ['authorization', '…', anonymous],
    'Authorization with Bearer': ['authorization', 'Bearer …x', anonymous],
    'X-API-Key': ['x-api-key'],
    traceparent: ['traceparent', '01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01…'],
    'X-Forwarded-For': ['x-forwarded-for'],
    'X-Forwarded-For without a key': ['x-forwarded-for', '…', anonymous],
    'X-Forwarded-For with a bracket': ['x-forwarded-for', '[… x'],
    'X-Forwarded-For with a port': ['x-forwarded-for', '…1x'],
    Cookie: ['cookie'],
    Accept: ['accept', '…', get('/graphql?query={quota{plan}}')],
    'Accept-Encoding': ['accept-encoding', '…', get('/openapi.json')],
    'Content-Type': ['content-type', '…', changed],
    'Content-Type with parameters': ['content-type', 'application/json…', changed],
    'Content-Encoding': ['content-encoding', '…', changed],
    'X-Request-Id': ['x-request-id'],
    'Idempotency-Key': ['idempotency-key', '…', post('/pets', '{}')],
    Host: ['host'],
    Origin: ['origin'],
  }),
]

/** A gateway behind two proxies, with rows to read. */
export async function openTarget(): Promise<Gateway> {
  const gateway = await openGateway({ env: { TRUST_PROXY: '2' } })
  await gateway.prisma.category.create({ data: { name: 'Cats' } })
  await gateway.prisma.pet.createMany({ data: Array.from({ length: 20 }, () => ({ name: 'Tom', categoryId: 1n })) })
  return gateway
}

/** Milliseconds of processor time that a unit of the quota may buy, on a quiet machine. */
const MOST_MS = 20
/** As many as a busy machine needs to let one of them run undisturbed. */
const ROUNDS = 30

/** Sends a request as a client may send it, and fails if the gateway does. Returns its processor time per unit, in ms. */
async function send(gateway: Gateway, request: FuzzRequest, collection?: Collection) {
  const headers = {
    'x-api-key': gateway.key,
    ...(request.body && { 'content-type': 'application/json' }),
    ...request.headers,
  }
  const { status, headers: answered, payload, time, units } = await watch(gateway, { ...request, headers }, collection)
  const isJson = /json/.test(String(answered['content-type'])) && payload !== ''
  assertHealthy(gateway, [status], status >= 400 && isJson ? messagesOf({ body: JSON.parse(payload) }) : [])
  return time / units
}

let count = 0
/** Throws if the gateway fails. */
export const assertServed = (gateway: Gateway, { fill }: Kind, text: Text) => send(gateway, fill(text, count++))

/** Throws if a unit of the quota buys too much processor time, or if the gateway fails. */
export async function assertCheap(gateway: Gateway, { name, fill }: Kind, text: Text): Promise<void> {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    least = Math.min(least, await send(gateway, fill(text, count++), round > 0 ? 'minor' : undefined))
    if (least < MOST_MS || least < MOST_MS * slowness()) return
  }
  throw new Error(`${name} with ${JSON.stringify(text)} takes ${least.toFixed(1)} ms of processor time per unit`)
}
