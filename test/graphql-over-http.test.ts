import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { parse } from 'graphql'
import { serverAudits } from 'graphql-http'
import { describe, expect, test } from 'vitest'
import { seed } from '../prisma/seed.js'
import { sharedGateway } from './support/gateway.js'

const gateway = await sharedGateway()
const url = `${(await gateway.listen()).url}/graphql`

const authorized = (input: string | URL, init: RequestInit = {}) => {
  const headers = new Headers(init.headers)
  headers.set('authorization', `Bearer ${gateway.key}`)
  return fetch(input, { ...init, headers })
}
const ask = (search: Record<string, string>, init?: RequestInit) =>
  authorized(`${url}?${new URLSearchParams(search)}`, init)
const post = (body: unknown, headers: Record<string, string> = {}) =>
  authorized(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

describe('the audits of GraphQL over HTTP', () => {
  for (const audit of serverAudits({ url: () => url, fetchFn: authorized }))
    test(audit.name, async () => {
      const result = await audit.fn()
      expect(result.status, 'reason' in result ? result.reason : '').toBe('ok')
    })
})

test('an unknown query parameter returns 400 and is named', async () => {
  const answer = await ask({ query: '{ __typename }', qurey: 'x' })
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('qurey')])
})

describe('the media type of a response', () => {
  const type = 'application/graphql-response+json'

  test.each([
    ['application/json', 'application/json'],
    [type, type],
    [`application/json, ${type}`, type],
    [`${type}, application/json;q=0.9`, type],
    [`${type}; charset=utf-8, application/json; charset=utf-8`, type],
    [`${type};q=0`, 'application/json'],
    [`${type};q=0, */*`, 'application/json'],
    [`${type};q=0.0, application/json`, 'application/json'],
    [`${type}.old`, 'application/json'],
    ['application/*', 'application/json'],
    ['text/plain', 'application/json'],
    ['text/event-stream', 'application/json'],
    ['multipart/mixed', 'application/json'],
    ['application/json; charset=iso-8859-1', 'application/json'],
    [`application/json;q=0.9, ${type};q=0.1`, 'application/json'],
    [`application/json;q=0.1, ${type};q=0.9`, type],
    ['Application/GraphQL-Response+JSON', type],
    ['nonsense', 'application/json'],
  ])('for Accept: %s is %s', async (accept, expected) => {
    const answer = await post({ query: '{ __typename }' }, { accept })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, `${expected}; charset=utf-8`])
    expect(await answer.json()).toEqual({ data: { __typename: 'Query' } })

    const refused = await post({ query: '{ dog }' }, { accept })
    expect(refused.status).toBe(expected === type ? 400 : 200)
    expect(refused.headers.get('content-type')).toBe(`${expected}; charset=utf-8`)
    const { errors } = (await refused.json()) as { errors: { extensions: object }[] }
    expect(errors[0]?.extensions).toEqual({ code: 'invalid_request', status: 400 })
    for (const { headers } of [answer, refused]) expect(headers.get('vary')).toBe('Accept')
  })
})

describe('requests', () => {
  test('GET and POST have the same result', async () => {
    const params = {
      query: 'query A($id: Int64!) { pet(petId: $id) { id } } query B { __typename }',
      operationName: 'A',
    }
    const got = await ask({ ...params, variables: '{"id":999}', extensions: '{}' })
    const posted = await post({ ...params, variables: { id: 999 }, extensions: {} })
    expect([got.status, posted.status]).toEqual([200, 200])
    const answer = await got.json()
    expect(answer).toMatchObject({ data: { pet: null }, errors: [{ extensions: { code: 'not_found', status: 404 } }] })
    expect(await posted.json()).toEqual(answer)
  })

  test('a mutation by GET returns 405 and changes nothing', async () => {
    const before = await gateway.prisma.category.count()
    for (const accept of ['application/json', 'application/graphql-response+json']) {
      const answer = await ask(
        { query: 'mutation { createCategory(input: { name: "Cats" }) { id } }' },
        { headers: { accept } },
      )
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
      expect(await answer.json()).toMatchObject({
        errors: [{ extensions: { code: 'method_not_allowed', status: 405 } }],
      })
    }
    expect(await gateway.prisma.category.count()).toBe(before)
  })

  test('a query in a document that also has a mutation works by GET', async () => {
    const query = 'query A { __typename } mutation B { deletePet(petId: 1) { id } }'
    expect((await ask({ query, operationName: 'A' })).status).toBe(200)
    expect((await ask({ query, operationName: 'B' })).status).toBe(405)
  })

  test('HEAD returns the headers of GET without a body', async () => {
    const answer = await ask({ query: '{ __typename }' }, { method: 'HEAD' })
    expect([answer.status, await answer.text()]).toEqual([200, ''])
    expect((await ask({ query: 'mutation { deletePet(petId: 1) { id } }' }, { method: 'HEAD' })).status).toBe(405)
  })

  test.each(['PUT', 'PATCH', 'DELETE', 'OPTIONS'])('%s returns 405 with Allow', async (method) => {
    const answer = await authorized(url, { method })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST'])
    expect(await answer.json()).toMatchObject({ errors: [{ extensions: { code: 'method_not_allowed', status: 405 } }] })
  })

  const query = '{ __typename }'

  test('one that is given twice returns 400 and is named', async () => {
    const { status, message } = await gateway.get('/graphql?query=%7Ba:__typename%7D&query=%7Bb:__typename%7D')
    expect([status, message]).toEqual([400, 'The parameter query is given more than once.'])
  })

  test.each([
    ['no query', { operationName: 'A' }],
    ['a query that is no string', { query: 5 }],
    ['variables that are no object', { query, variables: [] }],
    ['extensions that are no object', { query, extensions: 'x' }],
    ['an unknown parameter', { query, doc: query }],
  ])('%s returns 400', async (_, body) => {
    const answer = await post(body)
    expect(answer.status).toBe(400)
    expect(await answer.json()).toEqual({
      errors: [{ message: expect.any(String), extensions: { code: 'invalid_request', status: 400 } }],
    })
  })

  test.each(['', null])('operationName: %j means the only operation', async (operationName) => {
    expect((await post({ query, operationName })).status).toBe(200)
    const several = await post({ query: 'query A { __typename } query B { __typename }', operationName })
    expect([several.status, await several.text()]).toEqual([
      400,
      expect.stringContaining('set operationName to A or B'),
    ])
  })

  test('variables that are not JSON return 400 by GET', async () => {
    expect((await ask({ query, variables: '{' })).status).toBe(400)
  })

  test.each([
    ...['text/plain', 'application/graphql', 'application/x-www-form-urlencoded'],
    'application/json; charset=iso-8859-1',
  ])('a body of type %s returns 415', async (type) => {
    const [code, status] = ['unsupported_media_type', 415]
    for (const accept of ['*/*', 'application/graphql-response+json']) {
      const answer = await post({ query }, { 'content-type': type, accept })
      expect(answer.status).toBe(status)
      expect(await answer.json()).toMatchObject({ errors: [{ extensions: { code, status } }] })
    }
  })

  test('a body over the limit returns 413, with or without a declared length', async () => {
    const body = JSON.stringify({ query: `{ __typename } # ${'x'.repeat(131_072)}` })
    const refused = { errors: [{ extensions: { code: 'payload_too_large', status: 413 } }] }
    const declared = await post(body)
    expect([declared.status, await declared.json()]).toMatchObject([413, refused])
    const counted = await gateway.call('POST', '/graphql', { body: new TextEncoder().encode(body) })
    expect([counted.status, counted.body]).toMatchObject([413, refused])
  })

  test('a request without a key returns 401', async () => {
    const answer = await fetch(url, { method: 'POST', body: JSON.stringify({ query }) })
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect(await answer.json()).toMatchObject({ errors: [{ extensions: { code: 'unauthorized', status: 401 } }] })
  })
})

describe('GraphiQL', () => {
  // Not fetch, because it decompresses.
  const page = (headers: Record<string, string>, method = 'GET') =>
    new Promise<{ status?: number; headers: NodeJS.Dict<string | string[]>; body: Buffer }>((resolve, reject) => {
      request(url, { method, headers: { accept: 'text/html', ...headers } }, async (response) => {
        const body = Buffer.concat(await response.toArray())
        resolve({ status: response.statusCode, headers: response.headers, body })
      })
        .on('error', reject)
        .end()
    })

  test('needs no key, and is compressed only as a browser accepts it', async () => {
    const plain = await page({})
    expect([plain.status, plain.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    const refused = ['br;q=0', 'br;q=0, gzip;q=0', 'brotli', 'gzip;q=0, *', 'identity;q=0, br;q=0'].map((coding) =>
      page({ 'accept-encoding': coding }).then(({ headers }) => headers['content-encoding']),
    )
    expect(await Promise.all(refused)).toEqual([undefined, undefined, undefined, 'br', undefined])

    const head = await page({}, 'HEAD')
    expect([head.status, head.body.length]).toEqual([200, 0])
    expect(head.headers['content-length']).toBe(String(plain.body.length))
  })

  test.each([
    ['text/html', 200],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 200],
    ['application/json;q=0.1, TEXT/HTML;q=0.2', 200],
    ['application/json, text/html;q=0.1', 401],
    ['text/html;q=0, */*', 401],
    ['text/htmlx', 401],
    ['*/*', 401],
  ])('for Accept: %s returns %i without a key', async (accept, status) => {
    expect((await page({ accept })).status).toBe(status)
  })

  test('loads the schema, without a key', async () => {
    expect((await page({})).body.toString()).toContain('href="/schema.graphql"')
    expect((await fetch(new URL('/schema.graphql', url))).status).toBe(200)
  })

  test('has examples that work on the sample data', async () => {
    await seed(gateway.prisma)
    const query = readFileSync('src/gateway/docs/graphiql/examples.graphql', 'utf8')
    const names = parse(query).definitions.map((definition) => 'name' in definition && definition.name?.value)
    expect(names.length).toBeGreaterThan(4)
    for (const operationName of names) {
      const answer = await post({ query, operationName, variables: { after: 3, limit: 3 } })
      const { data, errors } = await answer.json()
      expect([operationName, answer.status, errors]).toEqual([operationName, 200, undefined])
      for (const found of Object.values(data)) expect([[], null]).not.toContainEqual(found)
    }
  })

  test('is served only to browsers: other clients need a key', async () => {
    expect((await fetch(url, { headers: { accept: 'application/json' } })).status).toBe(401)
  })
})
