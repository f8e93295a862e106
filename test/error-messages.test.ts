import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { operations } from '../schema/index.js'
import { createSecret } from '../src/gateway/keys/index.js'
import { resetStore, times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'

const ID = 'must be an integer from 1 to 9007199254740991'
const DATE =
  'must be an RFC 3339 date-time with an offset, such as 2026-12-24T18:00:00Z, in the years 1970 to 9999 and at most 64 characters'
const STATUS = 'must be available, pending or sold'
const TAGS = 'must be * or entity tags in double quotes, separated by commas, as ETag has them'

const gateway = await sharedGateway()
await resetStore(gateway.prisma)

async function refusal(method: string, path: string, body?: unknown, headers?: Record<string, string>) {
  const { status, code, message } = await gateway.call(method, path, { body, headers })
  expect([status, code]).toEqual([400, 'invalid_request'])
  return message as string
}

const messages = async (query: string, variables?: object) => {
  const { body } = await gateway.graphql(query, variables)
  for (const { extensions } of body.errors) expect(extensions).toEqual({ code: 'invalid_request', status: 400 })
  return body.errors.map(({ message }: Error) => message) as string[]
}

describe('one REST refusal names every wrong value, each with its place, what it is and what it must be', () => {
  test('in the query string', async () => {
    expect(await refusal('GET', '/pets?limit=0&after=x&id=-1&status=lost&categoryId=1.5&size=2')).toBe(
      [
        'The query parameter limit is 0; it must be at least 1.',
        `The query parameter after is "x"; it ${ID}.`,
        `The query parameter id is -1; it ${ID}.`,
        `The query parameter status is "lost"; it ${STATUS}.`,
        `The query parameter categoryId is "1.5"; it ${ID}.`,
        'The query parameter size is unknown; did you mean limit?',
      ].join(' '),
    )
  })

  test('in a body, by type and by bound', async () => {
    const order = { petId: '1', quantity: 0, shipDate: 'tomorrow', complete: null, note: 'soon' }
    expect(await refusal('POST', '/store/orders', order)).toBe(
      [
        `petId is "1"; it ${ID}.`,
        `shipDate is "tomorrow"; it ${DATE}.`,
        'note is unknown; known are petId, quantity, shipDate, complete.',
        'quantity is 0; it must be at least 1.',
        'complete must not be null.',
      ].join(' '),
    )
  })

  test('in path, query, headers and body together', async () => {
    const headers = { 'if-match': 'x', 'if-none-match': '*' }
    expect(await refusal('PATCH', '/pets/0?force=1', { name: ' ', categoryId: true }, headers)).toBe(
      [
        `The path parameter petId is 0; it ${ID}.`,
        'The query parameter force is unknown; this operation takes none.',
        `The header If-Match is "x"; it ${TAGS}.`,
        'The header If-None-Match is supported by GET only; leave it out.',
        `categoryId is true; it ${ID}.`,
        'name is " "; it must have 1 to 100 characters, white space at the ends aside.',
      ].join(' '),
    )
  })

  test('as the guide shows it', async () => {
    const guide = readFileSync('docs/guides/6-errors.md', 'utf8')
    const [, request = '', body = ''] = /`PATCH (\/store\S+)` with\n`(.*)` returns:/.exec(guide) ?? []
    const shown = JSON.parse(/^```json\n(\{\n[\s\S]*?)^```/m.exec(guide)?.[1] ?? '')
    expect(await refusal('PATCH', request, body)).toBe(shown.message)
  })

  test('beside a body that is not JSON, and an Idempotency-Key that is too long', async () => {
    const message = await refusal('POST', '/pets?dry=1', '{', { 'idempotency-key': 'k'.repeat(256) })
    expect(message).toMatch(/dry is unknown.*Idempotency-Key must be 1 to 255.*The body is not valid JSON: /)
  })

  test('up to ten; an eleventh is announced', async () => {
    const fields = (count: number) => Object.fromEntries(times(count, (i) => [`f${i}`, 1]))
    const nine = await refusal('PATCH', '/pets/1?x=1', fields(9))
    expect(nine).toContain('f8 is unknown.')
    expect(nine).not.toContain('more')
    const ten = await refusal('PATCH', '/pets/1?x=1', fields(10))
    expect(ten).toMatch(/f8 is unknown\. There are more problems\.$/)
    expect(ten).not.toContain('f9')
  })
})

describe('a problem that a request repeats is described once', () => {
  const list = (count: number) => Array(count).fill('x')
  const query = 'query ($ids: [Int64!]) { pets(id: $ids) { id } }'

  const ids = (count: number) =>
    `/pets?${list(count)
      .map((id) => `id=${id}`)
      .join('&')}`

  test('in a list of the most items', async () => {
    expect(await refusal('GET', ids(100))).toBe(`The query parameter id is "x"; it ${ID}.`)
    const eighth = [8, 9].map((i) => `$ids[${i}] is "x"; it ${ID}.`)
    expect((await messages(query, { ids: list(100) })).slice(8)).toEqual([...eighth, 'There are more problems.'])
  })

  test('but of a list with more items, nothing is read', async () => {
    const rule = 'is a list of 101 items; it must name at most 100 ids.'
    expect(await refusal('GET', ids(101))).toBe(`The query parameter id ${rule}`)
    expect(await messages(query, { ids: list(101) })).toEqual([`$ids ${rule}`])
  })

  test('and of a hundred names that look alike, the last is announced', async () => {
    const alike = (count: number) => times(count, (i) => [`${'x'.repeat(40)}${100 + i}`, 1])
    const shown = `"${'x'.repeat(40)}…" (43 characters)`
    const first = `${shown} is unknown; known are name, categoryId, status.`
    const patch = (count: number) => refusal('PATCH', '/pets/1', Object.fromEntries(alike(count)))
    expect(await patch(100)).toBe(`${first} ${shown} is unknown.`)
    expect(await patch(101)).toBe(`${first} ${shown} is unknown. There are more problems.`)
    const change = 'mutation ($pet: PetUpdate!) { updatePet(petId: 1, input: $pet) { id } }'
    expect((await messages(change, { pet: Object.fromEntries(alike(101)) })).at(-1)).toBe('There are more problems.')
    const { body } = await gateway.call('GET', `/graphql?query={x}&${new URLSearchParams(alike(101) as never)}`)
    expect(body.errors[0].message).toMatch(/ is unknown; known are .* is unknown\. There are more problems\.$/)
  })
})

describe('GraphQL names every wrong input of an operation', () => {
  test('in variables, with their paths, by type and by bound', async () => {
    const query = 'mutation ($order: NewOrder!) { createOrder(input: $order) { id } }'
    const order = { petId: '1', quantity: 0, complete: 'yes', note: 1 }
    expect(await messages(query, { order })).toEqual([
      `$order.petId is "1"; it ${ID}.`,
      '$order.complete is "yes"; it must be true or false.',
      '$order.note is unknown; known are petId, quantity, shipDate, complete.',
      '$order.quantity is 0; it must be at least 1.',
    ])
  })

  test('in variables of arguments and of fields in them', async () => {
    const query = `query ($limit: Int, $ids: [Int64!]) { pets(limit: $limit, id: $ids) { id } }`
    expect(await messages(query, { limit: 101, ids: [1, 'x', 0] })).toEqual([
      '$limit is 101; it must be at most 100.',
      `$ids[1] is "x"; it ${ID}.`,
      `$ids[2] is 0; it ${ID}.`,
    ])
    const mutation = `mutation ($name: String!, $id: Int64!, $no: Int64!) {
      createPet(input: { name: $name, categoryId: $id }) { id }
      deletePet(petId: $no) { id }
    }`
    expect(await messages(mutation, { name: '', id: 1.5 })).toEqual([
      '$name is ""; it must have 1 to 100 characters, white space at the ends aside.',
      `$id is 1.5; it ${ID}.`,
      '$no is required; send it in variables.',
    ])
  })

  test('up to fifty in variables; a further one is announced', async () => {
    const ask = (count: number) => {
      const names = times(count, (i) => `v${i}`)
      const document = `query (${names.map((name) => `$${name}: Int64!`)}) {
        ${names.map((name, i) => `p${i}: pet(petId: $${name}) { id }`).join(' ')}
      }`
      return messages(document, Object.fromEntries(names.map((name) => [name, 0])))
    }
    expect(await ask(50)).toHaveLength(50)
    expect((await ask(51)).slice(49)).toEqual([`$v49 is 0; it ${ID}.`, 'There are more problems.'])
  })

  test('but not a variable that is null where no rule forbids it', async () => {
    const query = `mutation ($id: Int64!, $date: DateTime) {
      updateOrder(orderId: $id, input: { shipDate: $date }) { id }
    }`
    expect(await messages(query, { id: 0, date: null })).toEqual([`$id is 0; it ${ID}.`])
  })

  test('in literals, with the path of their field', async () => {
    const { body } = await gateway.graphql(`mutation {
      a: createOrder(input: { petId: 1, quantity: 0 }) { id }
      b: updatePet(petId: 1, input: { name: null, status: null }) { id }
    }`)
    expect(body.errors.map(({ message, path }: { message: string; path: string[] }) => [message, path])).toEqual([
      ['input.quantity is 0; it must be at least 1.', ['a']],
      ['input.name must not be null. input.status must not be null.', ['b']],
    ])
  })

  test('in its parameters', async () => {
    const { status, body } = await gateway.call('POST', '/graphql', { body: { qury: '', query: 5, variables: [] } })
    expect([status, body.errors[0].message]).toEqual([
      400,
      'query is 5; it must be a string. variables is an empty list; it must be a JSON object. The parameter qury is unknown; did you mean query?',
    ])
  })

  test('and names the operations to choose from', async () => {
    const document = 'query One { quota { plan } } query Two { quota { plan } }'
    expect(await messages(document)).toEqual(['The document has 2 operations; set operationName to One or Two.'])
    const { body } = await gateway.call('POST', '/graphql', { body: { query: document, operationName: 'Tow' } })
    expect(body.errors[0].message).toBe('The document has no operation named Tow; did you mean Two?')
    const same = await gateway.graphql('query One { __typename } query One { __typename }')
    expect(same.message).toBe('The document has 2 operations; set operationName to One.')
  })
})

describe('a misspelt name gets the one that was meant', () => {
  const misspelt = (name: string) => [name.toUpperCase(), name.slice(0, -1), `${name}s`]
  const meant = (known: string) => new RegExp(` is unknown; did you mean (\\w+ or )?${known}( or \\w+)?\\?`)

  test.each(operations.filter(({ queryArguments }) => queryArguments.length > 0))(
    'of a query parameter of $operationId',
    async ({ rest, queryArguments }) => {
      const names = queryArguments.map(({ name }) => name)
      for (const name of names)
        for (const wrong of misspelt(name))
          if (!names.includes(wrong)) expect(await refusal(rest.method, `${rest.path}?${wrong}=1`)).toMatch(meant(name))
    },
  )

  test.each(['name', 'categoryId', 'status'])('of the field %s of a body, also through GraphQL', async (name) => {
    const query = 'mutation ($input: PetUpdate!) { updatePet(petId: 1, input: $input) { id } }'
    for (const wrong of misspelt(name)) {
      expect(await refusal('PATCH', '/pets/1', { [wrong]: 1 })).toMatch(meant(name))
      expect((await messages(query, { input: { [wrong]: 1 } })).join()).toMatch(meant(name))
    }
  })

  test('of a value of an enumeration', async () => {
    const message = `is "Sold"; it ${STATUS}. Did you mean sold?`
    expect(await refusal('GET', '/pets?status=Sold')).toBe(`The query parameter status ${message}`)
    expect(await refusal('PATCH', '/pets/1', { status: 'Sold' })).toBe(`status ${message}`)
    const upper = 'The query parameter direction is "DESC"; it must be asc or desc. Did you mean desc?'
    expect(await refusal('GET', '/pets?direction=DESC')).toBe(upper)
    const query = 'query ($status: PetStatus) { pets(status: $status) { id } }'
    expect(await messages(query, { status: 'Sold' })).toEqual([`$status ${message}`])
  })

  test('of a field, an argument and a value in a GraphQL document', async () => {
    expect(await messages('{ pets(limt: 1, status: Sold) { nme } }')).toEqual([
      'Unknown argument "limt" on field "Query.pets". Did you mean "limit"?',
      'Value "Sold" does not exist in "PetStatus" enum. Did you mean the enum value "sold"?',
      'Cannot query field "nme" on type "Pet". Did you mean "name"?',
    ])
  })

  test.each([
    ['/pet', '/pets'],
    ['/pets/', '/pets'],
    ['/pet/7', '/pets/{petId}'],
    ['/store/order', '/store/orders'],
    ['/orders', '/store/orders'],
    ['/orders/3', '/store/orders/{orderId}'],
    ['/pets/1/inventory', '/inventory/1'],
    ['/pets/1/orders', '/store/orders?petId=1'],
    ['/categories/1/pets', '/pets?categoryId=1'],
  ])('of the path %s', async (path, likely) => {
    const { body } = await gateway.get(path)
    expect(body.message).toBe(`No operation has this path; did you mean ${likely}?`)
  })

  test.each([
    ['/pets?order=desc', 'order is unknown; did you mean direction?'],
    ['/pets?orderBy=name', 'orderBy is unknown; did you mean sort or direction?'],
    ['/pets?where=x', 'where is unknown; did you mean id, status, categoryId, inStock or search?'],
    ['/inventory?filter=x', 'filter is unknown; did you mean petId, status, categoryId, minQuantity or maxQuantity?'],
    ['/pets?first=5', 'first is unknown; did you mean limit?'],
    ['/pets?name=Luna', 'name is unknown; did you mean search?'],
    ['/pets?per_page=5', 'per_page is unknown; did you mean limit?'],
    ['/categories?starting_after=5', 'starting_after is unknown; did you mean after?'],
    ['/store/orders?sort=shipDate&shipDateFrom=2027-01-01T00:00:00+02:00', 'In a URL, write + as %2B.'],
  ])('of what other APIs call something: %s', async (path, message) => {
    expect((await gateway.get(path)).body.message).toContain(message)
  })

  test.each([
    ['pets(orderBy: { name: asc }) { id }', '"orderBy" on field "Query.pets". Did you mean "sort" or "direction"?'],
    [
      'pets(where: { status: { eq: available } }) { id }',
      'Did you mean "id", "status", "categoryId", "inStock", or "search"?',
    ],
    ['pets(first: 5) { id }', '"first" on field "Query.pets". Did you mean "limit"?'],
    ['petsConnection(limit: 5) { nodes { id } }', '"limit" on field "Query.petsConnection". Did you mean "first"?'],
    [
      'categories { petsConnection(filter: {}) { totalCount } }',
      'Category.petsConnection". Did you mean "id", "status", or "inStock"?',
    ],
    ['categories { pets(order_by: name) { id } }', '"order_by" on field "Category.pets". Did you mean "direction"?'],
    ['pet(where: { id: 1 }) { id }', 'Unknown argument "where" on field "Query.pet".'],
  ])('of what other APIs call an argument of GraphQL: %s', async (field, message) => {
    expect((await messages(`{ ${field} }`)).join(' ')).toContain(message)
  })

  test('but not a name that looks like an error of graphql-js', async () => {
    expect(await refusal('PATCH', '/inventory/1', { quantity: 1, 'a" of required type': 1 })).toBe(
      '"a\\" of required type" is unknown; known are quantity.',
    )
  })

  test('and nothing is guessed where no name is alike', async () => {
    expect(await refusal('PATCH', '/inventory/1', { quantity: 1, xyz: 1 })).toBe('xyz is unknown; known are quantity.')
    expect((await gateway.get('/elsewhere')).body.message).toBe(
      'No operation has this path; the reference at http://localhost:3000/docs lists all.',
    )
  })
})

describe('a message shows a value', () => {
  test('shortened to 40 characters', async () => {
    const shown = (value: string) => refusal('PATCH', '/store/orders/1', { shipDate: value })
    expect(await shown('x'.repeat(40))).toContain(`shipDate is "${'x'.repeat(40)}"; it`)
    expect(await shown('x'.repeat(41))).toContain(`shipDate is "${'x'.repeat(40)}…" (41 characters); it`)
    expect(await shown('🐈'.repeat(41))).toContain(`shipDate is "${'🐈'.repeat(40)}…" (41 characters); it`)
    const [literal] = await messages(`{ pet(petId: "${'x'.repeat(5_000)}") { id } }`)
    expect(literal).toMatch(new RegExp(`^.{0,100}…"; it ${ID}$`))
  })

  test('without characters that hide or reorder text', async () => {
    expect(await refusal('GET', '/pets?limit=%E2%80%AE5%0A%00')).toContain('"\\u{202e}5\\n\\u0000"')
  })

  test('of lists and objects only as such', async () => {
    expect(await refusal('PATCH', '/pets/1', { name: ['secret', 'secret'], categoryId: { secret: 1 } })).toBe(
      `name is a list of 2 items; it must be a string. categoryId is an object; it ${ID}.`,
    )
  })

  test('but never a key, wherever it was put by mistake', async () => {
    const { key } = gateway
    const texts = [
      ...[`/pets?status=${key}`, `/pets?${key}=1`, `/pets?limit=1${key}`, `/pets/${key}`].map((path) =>
        gateway.get(path),
      ),
      gateway.patch('/pets/1', { status: key, [key]: key, shipDate: key }),
      gateway.patch('/pets/1', `{"name": ${key}}`),
      gateway.patch('/pets/1', {}, { headers: { 'if-match': key } }),
      gateway.post('/pets', {}, { headers: { 'idempotency-key': key + 'x'.repeat(255) } }),
      gateway.patch('/pets/1', '{}', { headers: { 'content-type': key } }),
      gateway.graphql(`{ pets(status: "${key}") { id } }`),
      gateway.graphql(`{ ${key} }`),
      gateway.graphql('query ($id: Int64!) { pet(petId: $id) { id } }', { id: key }),
      gateway.call('POST', '/graphql', { body: { query: '{ quota { plan } }', operationName: key } }),
      gateway.call('POST', '/graphql', { body: { [key]: 1 } }),
    ].map(async (answer) => (await answer).text)
    for (const text of await Promise.all(texts)) {
      expect(text).toMatch(/"(message|errors)"/)
      expect(text).not.toContain(key.slice(0, 30))
    }
  })
})

describe('a refusal for its media type or its key says what was sent', () => {
  test.each([
    ['text/xml', 'The Content-Type is "text/xml"; it must be application/json, in UTF-8.'],
    ['', 'The Content-Type is missing; it must be application/json, in UTF-8.'],
  ])('Content-Type: %s', async (type, message) => {
    const { status, body } = await gateway.post('/pets', '{}', { headers: { 'content-type': type } })
    expect([status, body.message]).toEqual([415, message])
  })

  test.each([
    ['incomplete', createSecret().key.slice(0, -1), /a key is "petstore_" and 48 hexadecimal digits/],
    ['of another form', 'PETSTORE_1', /a key is "petstore_" and 48 hexadecimal digits/],
    ['made up', `petstore_${'0123456789abcdef'.repeat(3)}`, /check digits of the API key do not match: it was altered/],
    [
      'altered',
      createSecret().key.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')),
      /check digits .* do not match/,
    ],
    ['unknown', createSecret().key, /unknown, revoked or expired/],
  ])('a key that is %s', async (_, key, message) => {
    const { status, body } = await gateway.get('/pets', { key })
    expect([status, body.message]).toEqual([401, expect.stringMatching(message)])
  })
})

describe('a 429 names the window, its limit and the seconds of Retry-After', () => {
  const seconds = (answer: { headers: Headers }) => Number(answer.headers.get('retry-after')).toLocaleString('en-US')

  test.each([
    [{ minuteLimit: 2, dayLimit: 1000 }, 'The limit of 2 requests per minute is used up.'],
    [{ minuteLimit: 60, dayLimit: 1 }, 'The limit of 1 request per day is used up.'],
  ])('of a key with %j', async (limits, message) => {
    const { key } = await gateway.createKey({ plan: 'Enterprise', ...limits })
    let answer = await gateway.get('/pets', { key })
    while (answer.status === 200) answer = await gateway.get('/pets', { key })
    expect(answer.body.message).toBe(`${message} Wait ${seconds(answer)} seconds (Retry-After).`)
    const graphql = await gateway.graphql('{ pets { id } }', undefined, { key })
    expect(graphql.body.errors[0].message).toBe(`${message} Wait ${seconds(graphql)} seconds (Retry-After).`)
  })

  test('also where some requests are left, but fewer than the operation costs', async () => {
    const { key } = await gateway.createLimitedKey(5)
    await gateway.get('/pets', { key })
    await gateway.get('/pets', { key })
    const query = '{ a: pet(petId: 1) { id } b: pet(petId: 1) { id } c: pet(petId: 1) { id } d: pet(petId: 1) { id } }'
    const answer = await gateway.graphql(query, undefined, { key })
    expect(answer.body.errors[0].message).toBe(
      `The operation costs 4 requests, but of 5 requests per minute only 3 are left. Wait ${seconds(answer)} seconds (Retry-After).`,
    )
  })

  test('a banned key learns until when', async () => {
    const until = new Date(Date.now() + 600_000)
    const { key } = await gateway.createKey({ bannedUntil: until })
    const answer = await gateway.get('/pets', { key })
    const end = `${until.toISOString().slice(0, 19)}Z`
    expect(answer.body.message).toBe(`The key is banned until ${end}. Wait ${seconds(answer)} seconds (Retry-After).`)
  })

  test('requests without a valid key learn that their address is limited', async () => {
    const flooded = await gateway.openBeside()
    let answer = await flooded.get('/pets', { key: null })
    while (answer.status === 401) answer = await flooded.get('/pets', { key: null })
    expect(answer.body.message).toBe(
      `The limit of 60 requests per minute without a valid key is used up for your address. Wait ${seconds(answer)} seconds (Retry-After).`,
    )
  })
})

describe('a 401 says what arrived instead of a key', () => {
  const { key } = createSecret()
  const HOW = 'Send "Authorization: Bearer <key>" or "X-API-Key: <key>".'
  const NO_VALUE = 'is a variable without a value?'
  test.each<[Record<string, string>, string]>([
    [{ authorization: 'Bearer ' }, `Bearer came without a key: ${NO_VALUE} ${HOW}`],
    [{ authorization: 'bearer' }, `Bearer came without a key: ${NO_VALUE} ${HOW}`],
    [{ authorization: '' }, `Authorization is empty: ${NO_VALUE} ${HOW}`],
    [{ 'x-api-key': ' ' }, `X-API-Key is empty: ${NO_VALUE} ${HOW}`],
    [{ authorization: key }, `Authorization has a key without Bearer before it. ${HOW}`],
    [{ authorization: 'secret' }, `Authorization has no Bearer before its value. ${HOW}`],
    [{ authorization: `Token ${key}` }, `Authorization has the scheme Token, not Bearer. ${HOW}`],
    [{ authorization: `ApiKey ${key}` }, `Authorization has the scheme ApiKey, not Bearer. ${HOW}`],
    [{ authorization: `Basic ${btoa(`${key}:`)}` }, `Authorization has the scheme Basic, not Bearer. ${HOW}`],
    [{ apikey: key }, `The header apikey is not read. ${HOW}`],
    [{ 'api-key': key }, `The header api-key is not read. ${HOW}`],
    [{ 'x-auth-token': key }, `The header x-auth-token is not read. ${HOW}`],
    [{ authorization: 'Bearer undefined' }, `The API key is "undefined": ${NO_VALUE}`],
    [{ 'x-api-key': 'null' }, `The API key is "null": ${NO_VALUE}`],
    [{ authorization: 'Bearer $PETSTORE_KEY' }, 'The API key is a placeholder: put your own key in its place.'],
    [{ authorization: 'Bearer <key>' }, 'The API key is a placeholder: put your own key in its place.'],
    [{ 'x-api-key': '{{apiKey}}' }, 'The API key is a placeholder: put your own key in its place.'],
    [{ authorization: `Bearer "${key}"` }, 'The API key is in quotes: send it without them.'],
    [{ authorization: `Bearer Bearer ${key}` }, `There is one Bearer too many before the API key. ${HOW}`],
    [{ 'x-api-key': `Bearer ${key}` }, `There is one Bearer too many before the API key. ${HOW}`],
    [{}, 'A valid API key is needed: send it as "Authorization: Bearer <key>" or "X-API-Key: <key>".'],
  ])('%j', async (headers, message) => {
    const answer = await gateway.get('/pets', { key: null, headers })
    expect([answer.status, answer.code, answer.message]).toEqual([401, 'unauthorized', message])
  })

  test('in the query string, with a warning', async () => {
    for (const name of ['api_key', 'apikey', 'access_token']) {
      const { message } = await gateway.get(`/pets?${name}=${key}`, { key: null })
      expect(message).toBe(
        `The query parameter ${name} is not read. Addresses are logged: have a key that was in one rotated. ${HOW}`,
      )
    }
  })
})

describe('what other APIs take is answered with what this one takes', () => {
  const AFTER = 'did you mean after or cursor?'
  test.each([
    ['page=2', `The query parameter page is unknown; ${AFTER}`],
    ['offset=20', `The query parameter offset is unknown; ${AFTER}`],
    ['skip=20', `The query parameter skip is unknown; ${AFTER}`],
    ['page[number]=2', `The query parameter "page[number]" is unknown; ${AFTER}`],
    ['page[size]=2', 'The query parameter "page[size]" is unknown; did you mean limit?'],
    ['filter[status]=sold', 'The query parameter "filter[status]" is unknown; did you mean status?'],
    ['status[]=sold', 'The query parameter "status[]" is unknown; did you mean status?'],
    [
      'id[]=1',
      'The query parameter "id[]" is unknown; did you mean id? For several values, repeat the parameter: id=1&id=2.',
    ],
    [
      'id[0]=1&id[1]=2',
      'The query parameter "id[0]" is unknown; did you mean id? For several values, repeat the parameter: id=1&id=2. The query parameter "id[1]" is unknown; did you mean id?',
    ],
    [
      'sort=-name',
      'The query parameter sort is "-name"; it must be id or name. Did you mean name, and desc as the direction?',
    ],
    [
      'sort=name:desc',
      'The query parameter sort is "name:desc"; it must be id or name. Did you mean name, and desc as the direction?',
    ],
    [
      'sort=name%20DESC',
      'The query parameter sort is "name DESC"; it must be id or name. Did you mean name, and desc as the direction?',
    ],
    [
      'sort=name.asc',
      'The query parameter sort is "name.asc"; it must be id or name. Did you mean name, and asc as the direction?',
    ],
    ['sort=%2Bname', 'The query parameter sort is "+name"; it must be id or name. Did you mean name?'],
    ['sort=nam', 'The query parameter sort is "nam"; it must be id or name. Did you mean name?'],
  ])('%s', async (search, message) => {
    expect(await refusal('GET', `/pets?${search}`)).toBe(message)
  })

  test('in GraphQL', async () => {
    expect(await messages('{ pets(offset: 20) { id } }')).toEqual([
      'Unknown argument "offset" on field "Query.pets". Did you mean "after"?',
    ])
    expect(
      await messages('query ($sort: PetSort) { petsConnection(sort: $sort) { nodes { id } } }', { sort: '-name' }),
    ).toEqual([expect.stringContaining('Did you mean name, and desc as the direction?')])
    expect(
      await messages('{ createPet(input: { name: "Tom", categoryId: 1 }) { id } deletePet(petId: 1) { id } }'),
    ).toEqual([
      'Cannot query field "createPet" on type "Query". Did you mean "mutation { createPet ... }"?',
      'Cannot query field "deletePet" on type "Query". Did you mean "mutation { deletePet ... }"?',
    ])
    expect(await messages('mutation { pets { id } }')).toEqual([
      'Cannot query field "pets" on type "Mutation". Did you mean "query { pets ... }"?',
    ])
    for (const nothing of ['{ __typename }', '{ pets { id } }', '{ ... @skip(if: true) { pets { id } } }'])
      expect(await messages(`subscription ${nothing}`)).toEqual([
        'There is no subscription: send a query or a mutation.',
      ])
  })

  test('a leap second', async () => {
    const order = (shipDate: string) => refusal('POST', '/store/orders', { petId: 1, shipDate })
    expect(await order('2016-12-31T23:59:60Z')).toBe(
      'shipDate is "2016-12-31T23:59:60Z"; it must have seconds from 00 to 59: leap seconds are not taken.',
    )
    for (const wrong of ['2016-12-31T23:60:00Z', '2016-12-31T23:59:61Z', '2016-12-31T24:59:60Z'])
      expect(await order(wrong)).toContain('must be an RFC 3339 date-time')
  })
})
