import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { countedAddress } from '../src/gateway/http/request.js'
import { listen } from '../src/gateway/http/server.js'
import { createOpenApi } from '../src/gateway/openapi/index.js'
import { openPaths, times } from './support/calls.js'
import { databaseAt } from './support/database.js'
import { type Gateway, openGateway, sharedGateway, useGateway as useOther } from './support/gateway.js'
import { dial, exchange, type RawAnswer, statuses } from './support/sockets.js'

const gateway = await sharedGateway()
const { port } = await gateway.listen()
const { body: category } = await gateway.post('/categories', { name: 'Cats' })
const petId = (await gateway.post('/pets', { name: 'Tom', categoryId: category.id })).body.id as number

const useGateway = (env: Record<string, string>) => gateway.openBeside({ env })
const send = (bytes: string) => exchange(gateway, bytes)
const closing = (lines: string) =>
  `${lines}\r\nHost: localhost\r\nConnection: close\r\nX-API-Key: ${gateway.key}\r\n\r\n`

describe('invalid HTTP', () => {
  const host = 'Host: localhost\r\n'
  const close = 'Connection: close\r\n\r\n'
  const oneHost = 'it must have exactly one Host header, with a valid host'
  const noTarget = 'its target is neither a path nor an http URL'
  const any = expect.stringMatching(/\w/)

  test.each([
    ['a line of garbage', 'nonsense\r\n\r\n', any],
    ['no version', 'GET /pets\r\n\r\n', any],
    ['another protocol', `GET /pets HTTQ/1.1\r\n${host}\r\n`, any],
    ['TLS', '\x16\x03\x01\x00\xa5\x01\x00', 'it is TLS, but this port speaks plain HTTP; use http://'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'it is HTTP/2, but this port speaks HTTP/1.1'],
    ['a bad header', `GET /pets HTTP/1.1\r\n${host}b@d header\r\n\r\n`, any],
    ['a control character in a header', `GET /pets HTTP/1.1\r\n${host}X-A: \x01\r\n\r\n`, any],
    ['no Host', `GET /pets HTTP/1.1\r\n${close}`, oneHost],
    ['an empty Host', `GET /pets HTTP/1.1\r\nHost:\r\n${close}`, oneHost],
    ['two Hosts', `GET /pets HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n${close}`, oneHost],
    ['a bad Host', `GET /pets HTTP/1.1\r\nHost: a b\r\n${close}`, oneHost],
    ['a Host with a path', `GET /pets HTTP/1.1\r\nHost: a.example/pets\r\n${close}`, oneHost],
    ['a Host with a user', `GET /pets HTTP/1.1\r\nHost: me@a.example\r\n${close}`, oneHost],
    ['a Host with an encoded slash', `GET /pets HTTP/1.1\r\nHost: a%2.example\r\n${close}`, oneHost],
    ['a Host that is no address', `GET /pets HTTP/1.1\r\nHost: [::g]\r\n${close}`, oneHost],
    ['a bad port', `GET /pets HTTP/1.1\r\nHost: localhost:99999\r\n${close}`, oneHost],
    ['a target that is no path', `GET pets HTTP/1.1\r\n${host}${close}`, any],
    ['a target of another scheme', `GET ftp://a/pets HTTP/1.1\r\n${host}${close}`, noTarget],
    ['CONNECT', `CONNECT localhost:80 HTTP/1.1\r\n${host}\r\n`, 'CONNECT is not supported'],
    ['two lengths', `POST /pets HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`, any],
    ['a bad length', `POST /pets HTTP/1.1\r\n${host}Content-Length: x\r\n\r\n`, 'Invalid character in Content-Length'],
    [
      'a length beside chunks',
      `POST /pets HTTP/1.1\r\n${host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
      any,
    ],
    ['chunks in chunks', `POST /pets HTTP/1.1\r\n${host}Transfer-Encoding: chunked, chunked\r\n\r\n`, any],
    ['no chunks at the end', `POST /pets HTTP/1.1\r\n${host}Transfer-Encoding: chunked, gzip\r\n\r\n`, any],
    ['a bad chunk', `POST /pets HTTP/1.1\r\n${host}X-API-Key: KEY\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n`, any],
  ])('%s returns the Error object with its reason and all headers, and is free', async (_, bytes, reason) => {
    const { status, code, message } = await refusal(bytes)
    expect([status, code]).toEqual([400, 'invalid_request'])
    const [, given] = /^The request is not valid HTTP: (.*)\.$/.exec(message) ?? []
    expect(given ?? message).toEqual(reason)
  })

  /** The Error object in the only response. */
  async function refusal(bytes: string) {
    const before = (await fetch(`http://127.0.0.1:${port}/docs`)).headers.get('x-ratelimit-remaining')
    const answers = await send(bytes.replace('KEY', gateway.key))
    expect(answers).toHaveLength(1)
    const { status, headers, body } = answers[0] as RawAnswer
    const error = JSON.parse(body)
    expect(Object.keys(error)).toEqual(['code', 'message', 'status'])
    expect(error.status).toBe(status)
    expect(Object.fromEntries(headers)).toMatchObject({
      connection: 'close',
      'content-type': 'application/json',
      'ratelimit-policy': '"address";q=60;w=60',
      ratelimit: expect.stringMatching(/^"address";r=\d+;t=\d+$/),
      'x-ratelimit-limit': '60',
      'x-ratelimit-remaining': before,
      'x-ratelimit-reset': expect.stringMatching(/^\d{10}$/),
      'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
      'access-control-allow-origin': '*',
      'access-control-expose-headers': expect.stringContaining('X-RateLimit-Limit'),
    })
    expect(headers.has('retry-after')).toBe(false)
    return error as { status: number; code: string; message: string }
  }

  const unknown = (method: string) => `HTTP has no method ${method}.`
  const get = (method: string) => `${method} /pets HTTP/1.1\r\n${host}\r\n`
  test.each([
    ['FOO', get('FOO'), unknown('FOO')],
    ['patch', get('patch'), `${unknown('patch')} PATCH is written in capitals.`],
    ['Get', get('Get'), `${unknown('Get')} GET is written in capitals.`],
    ['GETS', get('GETS'), unknown('GETS')],
    ['G', get('G'), unknown('G')],
    ['a-b~c', get('a-b~c'), unknown('"a-b~c"')],
    ['a very long one', get('A'.repeat(300)), unknown(`"${'A'.repeat(40)}…" (300 characters)`)],
  ])('the method %s returns 501', async (_, bytes, message) => {
    expect(await refusal(bytes)).toEqual({ status: 501, code: 'not_implemented', message })
  })

  test('an unknown method is found behind another request, too', async () => {
    const [first, second] = await send(`GET /pets HTTP/1.1\r\n${host}X-API-Key: ${gateway.key}\r\n\r\n${get('FOO')}`)
    expect([first?.status, second?.status]).toEqual([200, 501])
    expect(JSON.parse(second?.body ?? '').message).toBe(unknown('FOO'))
  })

  test.each(['gzip, chunked', 'identity, chunked', 'chunked;q=1, chunked', 'deflate,chunked'])(
    'the Transfer-Encoding %s returns 501, and nothing is read as if it were chunked',
    async (coding) => {
      const before = await gateway.prisma.category.count()
      const head = `POST /categories HTTP/1.1\r\n${host}X-API-Key: KEY\r\nContent-Type: application/json`
      const chunk = 'f\r\n{"name":"Dogs"}\r\n0\r\n\r\n'
      const message = `Transfer-Encoding is "${coding}"; it must be chunked alone.`
      expect(await refusal(`${head}\r\nTransfer-Encoding: ${coding}\r\n\r\n${chunk}`)).toEqual({
        status: 501,
        code: 'not_implemented',
        message,
      })
      expect(await gateway.prisma.category.count()).toBe(before)
    },
  )

  test.each(['CHUNKED', ' chunked '])('the Transfer-Encoding "%s" is that of chunks', async (coding) => {
    const head = closing(`POST /categories HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: ${coding}`)
    const [answer] = await send(`${head}f\r\n{"name":"Dogs"}\r\n0\r\n\r\n`)
    expect(answer?.status).toBe(201)
  })

  describe('a head of more than 16,384 characters', () => {
    const rest = 'hostlocalhostconnectioncloseabx-api-key'
    const fields = (length: number) => `${host}Connection: close\r\nX-API-Key: KEY\r\nab: ${'a'.repeat(length)}\r\n\r\n`
    const target = (length: number) => `/pets?sort=name&search=${'a'.repeat(length - 23)}`
    test.each([
      ['path and query string', 'uri_too_long', 414, (n: number) => `GET ${target(n)} HTTP/1.1\r\n${fields(1)}`, 1],
      ['headers', 'headers_too_large', 431, (n: number) => `GET ${target(23)} HTTP/1.1\r\n${fields(n)}`, 23],
    ] as const)('is refused because of its %s: %s', async (part, code, status, bytes, other) => {
      const most = 16_384 - rest.length - gateway.key.length - other
      const [served] = await send(bytes(most).replace('KEY', gateway.key))
      // The search has more characters than it may have, which is found after the key.
      expect(served?.status).toBe(400)
      expect(JSON.parse(served?.body ?? '').message).toMatch(/search/)
      const message = expect.stringMatching(`^The ${part} are too (long|large): together .* 16384 characters[.]$`)
      expect(await refusal(bytes(most + 1))).toEqual({ status, code, message })
      for (const far of [17_000, 25_000, 60_000, 300_000])
        expect(await refusal(bytes(far))).toMatchObject({ status, code })
    })

    test('of many fields is refused because of its headers', async () => {
      const many = Array.from({ length: 1_000 }, (_, i) => `X-${i}: ${'a'.repeat(12)}\r\n`).join('')
      expect(await refusal(`GET /pets HTTP/1.1\r\n${host}${many}\r\n`)).toMatchObject({ status: 431 })
    })
  })

  test('a header counts, however many stand before it', async () => {
    const head = `GET /pets HTTP/1.1\r\n${host}${'a:\r\n'.repeat(3_000)}`
    const [unknown] = await send(`${head}${close}`)
    const [known] = await send(`${head}X-API-Key: ${gateway.key}\r\n${close}`)
    expect([unknown?.status, known?.status]).toEqual([401, 200])
  })

  test('HTTP/1.0 needs no Host', async () => {
    const [answer] = await send(`GET /quota HTTP/1.0\r\nX-API-Key: ${gateway.key}\r\n\r\n`)
    expect(answer?.status).toBe(200)
  })

  test('earlier requests on the connection keep their responses, and nothing follows the error', async () => {
    const get = `GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n`
    const socket = connect(port, '127.0.0.1')
    socket.write(get)
    const seen: string[] = []
    socket.on('data', (data) => {
      if (seen.push(data.toString()) === 1) socket.write(`nonsense\r\n\r\n${get}`)
    })
    await new Promise((closed) => socket.on('close', closed))
    expect(seen.join('').match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400'])
  })

  test.each([
    ['garbage', 'GET /pets HTTP/1.1', 'nonsense\r\n\r\n', [200, 400]],
    ['a broken body', 'GET /pets HTTP/1.1', 'POST /pets HTTP/1.1\r\nHost: localhost\r\nKEY\r\nBAD BODY', [200, 400]],
    [
      'one that is refused already',
      'GET /pets HTTP/1.1',
      'POST /pets HTTP/1.1\r\nHost: localhost\r\nBAD BODY',
      [200, expect.toBeOneOf([400, 401])],
    ],
    ['a request after the last one', 'GET /pets HTTP/1.0', 'GET /pets HTTP/1.1\r\nHost: localhost\r\n\r\n', [200]],
  ])('a request that arrives together with %s keeps its response', async (_, line, next, statuses) => {
    const key = `X-API-Key: ${gateway.key}`
    const second = next.replace('KEY', key).replace('BAD BODY', 'Transfer-Encoding: chunked\r\n\r\nxyz\r\n')
    const responses = await send(`${line}\r\nHost: localhost\r\n${key}\r\n\r\n${second}`)
    expect(responses.map(({ status }) => status)).toEqual(statuses)
  })
})

describe('the request target', () => {
  test.each([
    ['/', 302],
    ['http://other.example', 302],
    ['http://other.example?limit=1', 302],
    ['/pets', 200],
    ['http://other.example/pets', 200],
    ['http://other.example/pets?limit=1', 200],
    ['/../pets', 404],
    ['/./pets', 404],
    ['/store/../pets', 404],
    ['/store/%2e%2e/pets', 404],
    ['/store\\..\\..\\pets', 404],
    ['http://other.example/store/../pets', 404],
    ['/%70ets', 200],
    ['/pets/', 404],
    ['//pets', 404],
    ['//other.example/pets', 404],
    ['/PETS', 404],
    ['/pets%2F', 404],
    ['/pets/%', 400],
    ['/pets/%ff', 400],
    ['/nowhere/%', 400],
    ['/%00', 404],
    ['/graphql/', 404],
    ['/healthz/', 404],
    ['/webhook', 404],
    ['/webhook/1', 404],
    ['*', 400],
    ['http://*/pets', 200],
    ['http://[bad/pets', 400],
    ['http://user@other.example/pets', 400],
    ['http:/pets', 400],
    ['http:pets', 400],
    ['ftp://other.example/pets', 400],
    ['/pets#fragment', 400],
    ['?limit=1', 400],
    ['/pets?sort=name&search=caf%C3%A9', 200],
    ['/pets?sort=name&search=100%25', 200],
  ])('%s returns %i', async (target, status) => {
    const [answer] = await send(closing(`GET ${target} HTTP/1.1`))
    expect(answer?.status).toBe(status)
    if (status >= 400) expect(JSON.parse(answer?.body ?? '')).toMatchObject({ status })
  })

  test('an id can be percent-encoded', async () => {
    const encoded = [...String(petId)].map((digit) => `%3${digit}`).join('')
    const [answer] = await send(closing(`GET /pets/${encoded} HTTP/1.1`))
    expect(JSON.parse(answer?.body ?? '')).toMatchObject({ id: petId })
  })

  const badParameter = (name: string) =>
    `The query parameter ${name} must be percent-encoded UTF-8: %C3%A9 for é, %25 for a percent sign.`

  test.each([
    ['/pets/%ff', 'The path must be percent-encoded UTF-8: %25 for a %.'],
    ['/pets?sort=name&search=caf%E9', badParameter('search')],
    ['/pets?sort=name&search=%ED%A0%80', badParameter('search')],
    ['/pets?sort=name&search=100%', badParameter('search')],
    ['/pets?sort=name&s%65arch=%zz', badParameter('search')],
    ['/pets?caf%E9', badParameter(String.raw`\"caf%E9\"`)],
    ['/graphql?query={__typename}%23caf%E9', badParameter('query')],
  ])('%s is refused alone for what is not UTF-8', async (target, message) => {
    const [answer] = await send(closing(`GET ${target} HTTP/1.1`))
    expect(answer?.status).toBe(400)
    expect(answer?.body).toContain(`"message":"${message}"`)
  })

  test.each(['/graphql?query={__typename}', 'http://other.example/graphql?query={__typename}'])(
    '%s is GraphQL',
    async (target) => {
      const [answer] = await send(closing(`GET ${target} HTTP/1.1`))
      expect(answer?.body).toBe('{"data":{"__typename":"Query"}}')
    },
  )
})

describe('methods', () => {
  test.each([
    ['/pets', 'GET, HEAD, POST'],
    ['/pets/1', 'GET, HEAD, PATCH, DELETE'],
    ['/pets/batch', 'POST, PATCH'],
    ['/inventory/batch', 'PATCH'],
    ['/store/orders/batch', 'POST, PATCH'],
    ['/categories/batch', 'POST'],
    ['/categories/1', 'GET, HEAD, PATCH, DELETE'],
    ['/store/orders', 'GET, HEAD, POST'],
    ['/inventory', 'GET, HEAD'],
    ['/inventory/1', 'GET, HEAD, PATCH'],
    ['/quota', 'GET, HEAD'],
    ['/openapi.json', 'GET, HEAD'],
    ['/docs', 'GET, HEAD'],
    ['/usage', 'GET, HEAD'],
    ['/', 'GET, HEAD'],
  ])('a 405 of %s lists the allowed methods: %s', async (path, allow) => {
    const others = ['GET', 'PUT', 'OPTIONS', 'PROPFIND', 'POST', 'DELETE'].filter((method) => !allow.includes(method))
    for (const method of others) {
      const { status, headers, body } = await gateway.call(method, path)
      expect([status, headers.get('allow'), body.code]).toEqual([405, allow, 'method_not_allowed'])
    }
  })

  test('OPTIONS * returns what the service supports, without a key, and is free', async () => {
    const before = (await fetch(`http://127.0.0.1:${port}/docs`)).headers.get('x-ratelimit-remaining')
    const [answer] = await send('OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    expect([answer?.status, answer?.body]).toEqual([204, ''])
    expect(answer?.headers.get('allow')).toBe('GET, HEAD, POST, PATCH, DELETE, OPTIONS')
    expect(answer?.headers.get('x-ratelimit-remaining')).toBe(before)
  })

  test.each(['POST', 'DELETE'])(
    '%s of a SOFA webhook returns 404, so no client can make the service send requests',
    async (method) => {
      for (const path of ['/webhook', '/webhook/1'])
        expect(
          (await gateway.call(method, path, { body: { subscription: 'x', url: 'http://127.0.0.1/' } })).status,
        ).toBe(404)
    },
  )

  test.each([
    ...['/', ...openPaths, '/pets', '/pets/PET', '/pets/0', '/nowhere', '/quota', '/healthz', '/readyz', '/metrics'],
  ])('HEAD %s returns the headers of GET without a body', async (path) => {
    const ask = async (method: string) => {
      const [answer] = await send(closing(`${method} ${path.replace('PET', String(petId))} HTTP/1.1`))
      return answer as RawAnswer
    }
    const [get, head] = [await ask('GET'), await ask('HEAD')]
    expect([head.status, head.body]).toEqual([get.status, ''])
    for (const name of ['content-type', 'location', 'link', 'etag', 'deprecation', 'x-ratelimit-limit'])
      expect(head.headers.get(name), name).toBe(get.headers.get(name))
  })

  test('a browser gets a JSON error where there is no page', async () => {
    const { status, body } = await gateway.get('/nowhere', { headers: { accept: 'text/html' } })
    expect([status, body.code]).toEqual([404, 'not_found'])
  })
})

describe('connections', () => {
  test('as many as allowed are served; one more closes, and makes idle ones close, so that the next is served', async () => {
    const server = await listen(gateway.app, { port: 0, host: '127.0.0.1', maxConnections: 3 })
    onTestFinished(() => server.close())
    const open = async () => {
      const socket = connect(server.port, '127.0.0.1').on('error', () => {})
      socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
      const answered = once(socket, 'data').then(([data]) => String(data).split('\r\n')[0])
      const closed = once(socket, 'close').then(() => 'closed')
      return { closed, first: await Promise.race([answered, closed]) }
    }
    const served = [await open(), await open(), await open()]
    expect(served.map(({ first }) => first)).toEqual(Array(3).fill('HTTP/1.1 200 OK'))
    expect((await open()).first).toBe('closed')
    await Promise.all(served.map(({ closed }) => closed))
    expect((await open()).first).toBe('HTTP/1.1 200 OK')
  })

  const body = '{"name":"Dogs"}'
  const post = (headers: string) =>
    `POST /categories HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${gateway.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n${headers}\r\n`

  test('Expect: 100-continue gets a response before the body is sent', async () => {
    const sent = request({
      port,
      host: '127.0.0.1',
      method: 'POST',
      path: '/categories',
      headers: { expect: '100-continue', 'x-api-key': gateway.key, 'content-type': 'application/json' },
    })
    sent.flushHeaders()
    await new Promise((resolve) => sent.on('continue', resolve))
    sent.end(body)
    expect(
      await new Promise((resolve) => sent.on('response', (response) => resolve(response.resume().statusCode))),
    ).toBe(201)
  })

  test.each([
    ['an unknown key', 401, '/categories', 'X-API-Key: petstore_unknown\r\n'],
    ['an unknown path', 404, '/nowhere', ''],
    ['a method that the path does not have', 405, '/quota', ''],
    ['a body that is too large', 413, '/categories', 'Content-Length: 999999\r\n'],
  ])('Expect: 100-continue with %s gets its %i, and no 100', async (_, status, path, headers) => {
    const socket = await dial(gateway)
    const own = [
      ...(headers.includes('X-API-Key') ? [] : [`X-API-Key: ${gateway.key}`]),
      ...(headers.includes('Length') ? [] : ['Content-Length: 15']),
    ]
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${own.map((line) => `${line}\r\n`).join('')}${headers}Expect: 100-continue\r\n\r\n`,
    )
    const [answer = ''] = String((await once(socket, 'data'))[0]).split('\r\n\r\n')
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*^connection: close$`, 'im'))
    // What follows is a body that is not needed, or another request: it cannot be told.
    socket.write(`GET /quota HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${gateway.key}\r\n\r\n`)
    expect(await statuses(socket)).toEqual([])
  })

  test('Expect: 100-continue keeps the connection, if the body is asked for', async () => {
    const [first, second] = await send(
      `${post('Expect: 100-continue\r\n')}${body}${post('Connection: close\r\nExpect: 100-continue\r\n')}${body}`,
    )
    expect([first?.status, second?.status]).toEqual([201, 201])
  })

  test.each([
    'gateway.1:3000',
    'web.2',
    '10',
    '1.2.3.4.5',
    'a_b.example',
    '[::1]:3000',
    '127.0.0.1:',
    'caf%C3%A9',
    'a~b!c',
  ])('Host may be %s', async (host) => {
    const [answer] = await send(
      `GET /quota HTTP/1.1\r\nHost: ${host}\r\nX-API-Key: ${gateway.key}\r\nConnection: close\r\n\r\n`,
    )
    expect(answer?.status).toBe(200)
  })

  test.each([
    ['a GET', () => `GET /quota HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${gateway.key}\r\n\r\n`, 200],
    ['a POST', () => `${post('')}${body}`, 201],
    ['a POST without all of its body', () => `${post('')}{`, 400],
    ['a GET without all of its head', () => 'GET /quota HTTP/1.1\r\nHost: loc', 400],
  ])('%s of a client that then sends FIN gets its answer', async (_, bytes, status) => {
    const socket = await dial(gateway)
    socket.end(bytes())
    expect(await statuses(socket)).toEqual([status])
  })

  test('several requests of a client that then sends FIN get their answers, in order', async () => {
    const socket = await dial(gateway)
    socket.end(`${post('')}${body}${post('')}{}${' '.repeat(body.length - 2)}${post('')}${body}`)
    expect(await statuses(socket)).toEqual([201, 400, 201])
  })

  test('a client that sends nothing gets nothing, and one that sends a part gets 408', {
    timeout: 120_000,
  }, async () => {
    const sent = [
      '',
      'GET /quota HTTP/1.1\r\nHost: loc',
      `${post('')}{`,
      `${post('').replace(/Content-Length.*?\r\n/, 'Transfer-Encoding: chunked\r\n')}1\r\n{`,
    ]
    const answers = await Promise.all(sent.map((bytes) => exchange(gateway, bytes)))
    expect(answers.map((all) => all.map(({ status }) => status))).toEqual([[], [408], [408], [408]])
    for (const { body } of answers.flat())
      expect(JSON.parse(body)).toEqual({
        status: 408,
        code: 'request_timeout',
        message: expect.stringMatching(/10 seconds.* 30/),
      })
  })

  test('any other expectation is ignored', async () => {
    const [answer] = await send(`${post('Expect: miracles\r\nConnection: close\r\n')}${body}`)
    expect(answer?.status).toBe(201)
  })
})

describe('a 415', () => {
  test.each([
    ['POST', '/pets', 'accept-post', 'application/json'],
    ['POST', '/pets/batch', 'accept-post', 'application/json'],
    ['POST', '/graphql', 'accept-post', 'application/json'],
    ['PATCH', '/pets/1', 'accept-patch', 'application/json, application/merge-patch+json'],
    ['PATCH', '/inventory/batch', 'accept-patch', 'application/json, application/merge-patch+json'],
  ])('of %s %s says what is taken, in %s', async (method, path, name, types) => {
    const ask = (headers: Record<string, string>) => gateway.call(method, path, { headers, body: '{}' })
    const type = await ask({ 'content-type': 'text/xml' })
    expect([type.status, type.headers.get(name)]).toEqual([415, types])
    expect(type.headers.has('accept-encoding')).toBe(false)
    const coding = await ask({ 'content-encoding': 'gzip' })
    expect([coding.status, coding.headers.get('accept-encoding'), coding.headers.has(name)]).toEqual([
      415,
      'identity',
      false,
    ])
  })
})

describe('X-Request-Id', () => {
  const ask = async (id: string) =>
    (await gateway.get('/quota', { headers: { 'x-request-id': id } })).headers.get('x-request-id')

  test.each(['a', '~!"#', 'x'.repeat(128)])('keeps a valid id of the client: %s', async (id) => {
    expect(await ask(id)).toBe(id)
  })

  test.each(['x'.repeat(129), 'é', ''])('replaces an invalid id: %s', async (id) => {
    expect(await ask(id)).toMatch(/^[\da-f]{8}-[\da-f-]{27}$/)
  })

  test('is different for each response', async () => {
    const ids = await Promise.all(times(20, () => gateway.get('/quota')))
    expect(new Set(ids.map(({ headers }) => headers.get('x-request-id'))).size).toBe(20)
  })
})

describe('CORS', () => {
  const origin = 'https://app.example.com'
  const plain = { origin, 'access-control-request-method': 'PATCH' }
  const preflight = { ...plain, 'access-control-request-headers': 'x-api-key, if-match' }

  test('a preflight needs no key, is free, and is cached for a day', async () => {
    const before = (await gateway.get('/docs', { key: null })).headers.get('x-ratelimit-remaining')
    for (const path of ['/pets', '/graphql', '/pets/1', '/nowhere']) {
      const { status, headers, text } = await gateway.call('OPTIONS', path, { key: null, headers: preflight })
      expect([status, text]).toEqual([204, ''])
      expect(headers.get('access-control-allow-origin')).toBe('*')
      expect(headers.get('access-control-allow-methods')?.split(', ')).toEqual(
        expect.arrayContaining(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE']),
      )
      expect(headers.get('access-control-allow-headers')).toBe('x-api-key, if-match')
      expect(headers.get('access-control-max-age')).toBe('86400')
      expect(headers.get('x-ratelimit-remaining')).toBe(before)
      expect(headers.has('access-control-allow-credentials')).toBe(false)
    }
  })

  test('a preflight that names no headers gets those that the service reads', async () => {
    const { headers } = await gateway.call('OPTIONS', '/pets', { key: null, headers: plain })
    const read =
      'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-API-Key, X-Request-Id, traceparent'
    expect(headers.get('access-control-allow-headers')?.split(', ').sort()).toEqual(read.split(', '))
  })

  test('scripts may read every header that a response can have', async () => {
    // CORS leaves these readable (Fetch standard), or handles them itself.
    const safe = /^(Access-Control-.*|Cache-Control|Content-.*|Vary|X-Content-Type-Options)$/i
    const document = createOpenApi({ baseUrl: gateway.config.BASE_URL, sunset: gateway.config.PET_BY_ID_SUNSET })
    const responses = [
      ...Object.values(document.components.responses),
      ...Object.values(document.paths).flatMap((item) =>
        Object.values(item).flatMap(({ responses }) => Object.values(responses)),
      ),
    ]
    const documented = responses.flatMap((response) => ('headers' in response ? Object.keys(response.headers) : []))
    const { headers } = await gateway.get('/pets', { headers: { origin } })
    expect(headers.get('access-control-expose-headers')?.split(', ').sort()).toEqual(
      [...new Set([...documented.filter((name) => !safe.test(name)), 'Allow'])].sort(),
    )
  })

  test('CORS_ORIGINS restricts the allowed origins', async () => {
    const narrowed = await useGateway({ CORS_ORIGINS: `${origin}, https://b.example` })
    const ask = (from: string | undefined, method = 'GET') =>
      narrowed.call(method, '/quota', { headers: { ...preflight, origin: from ?? '' } })
    for (const [from, allowed] of [
      [origin, origin],
      ['https://b.example', 'https://b.example'],
      ['https://c.example', null],
      [`${origin}.evil.example`, null],
      ['null', null],
      [undefined, null],
    ] as const)
      for (const method of ['GET', 'OPTIONS']) {
        const { headers } = await ask(from, method)
        expect(headers.get('access-control-allow-origin'), `${method} ${from}`).toBe(allowed)
        expect(headers.get('vary')).toContain('Origin')
      }
  })
})

describe('a base path', () => {
  let based: Gateway
  let url: string
  beforeAll(async () => {
    const database = { ...gateway.database, close: async () => {} }
    based = await openGateway({ database, env: { BASE_URL: 'https://api.example.com/v1' } })
    url = (await based.listen()).url
    return () => based.close()
  })
  const at = async (method: string, path: string, headers: Record<string, string> = {}, body?: object) => {
    const response = await fetch(url + path, {
      method,
      redirect: 'manual',
      headers: { 'x-api-key': based.key, 'content-type': 'application/json', ...headers },
      body: body && JSON.stringify(body),
    })
    return { status: response.status, headers: response.headers, body: await response.text() }
  }

  test('is the prefix of every API surface', async () => {
    for (const path of ['/pets', '/graphql?query={__typename}', ...openPaths])
      expect((await at('GET', `/v1${path}`)).status, path).toBe(200)
    expect(JSON.parse((await at('GET', '/v1/openapi.json')).body).servers[0].url).toBe('https://api.example.com/v1')
  })

  test('is in Location, Link and the redirect to the docs', async () => {
    const category = await at('POST', '/v1/categories', {}, { name: 'Birds' })
    expect(category.headers.get('location')).toBe(
      `https://api.example.com/v1/categories/${JSON.parse(category.body).id}`,
    )
    const link = (await at('GET', '/v1/categories?limit=1')).headers.get('link')
    expect(link).toMatch(/^<https:\/\/api\.example\.com\/v1\/categories\?limit=1&after=\d+>; rel="next"$/)
    const pet = (await at('GET', `/v1/pets/${petId}`)).headers.get('link')
    expect(pet).toContain(`<https://api.example.com/v1/pets?id=${petId}>; rel="successor-version"`)
    for (const path of ['/v1', '/v1/']) {
      const { status, headers } = await at('GET', path)
      expect([status, headers.get('location')]).toEqual([302, 'https://api.example.com/v1/docs'])
    }
  })

  test('has what other services have elsewhere: browsers are led there, other clients are told', async () => {
    const origin = 'https://api.example.com'
    const pages = {
      '/graphql': '/graphql/ /api/graphql /graphiql /playground /v1/graphql/ /v1/graphiql',
      '/docs': '/docs /docs/ /v1/docs/ /swagger /swagger-ui /swagger-ui/index.html /api-docs /redoc /v1/swagger',
      '/openapi.json': '/openapi.json /swagger.json /v3/api-docs /api/openapi.json /swagger/v1/swagger.json /openapi',
      '/openapi.yaml': '/openapi.yaml /swagger.yml',
      '/usage': '/usage/ /v1/usage/',
    }
    for (const [page, paths] of Object.entries(pages))
      for (const path of paths.split(' ')) {
        const browser = await at('GET', `${path}?a=1`, { accept: 'text/html,*/*;q=0.8', 'x-api-key': '' })
        expect([path, browser.status, browser.headers.get('location')]).toEqual([path, 302, `${origin}/v1${page}?a=1`])
        for (const method of ['GET', 'POST']) {
          const { status, body } = await at(method, path, { 'x-api-key': '' })
          const message = `There is nothing at this address; did you mean ${origin}/v1${page}?`
          expect([path, status, JSON.parse(body).message]).toEqual([path, 404, message])
        }
      }
    const probes = {
      '/healthz': '/health /healthz/ /livez /v1/healthz',
      '/readyz': '/ready /v1/readyz',
      '/metrics': '/prometheus',
    }
    for (const [probe, paths] of Object.entries(probes))
      for (const path of paths.split(' ')) {
        const { status, body } = await at('GET', path, { 'x-api-key': '' })
        const message = `There is nothing at this address; did you mean ${origin}${probe}?`
        expect([path, status, JSON.parse(body).message]).toEqual([path, 404, message])
      }
    for (const icon of ['/favicon.ico', '/v1/favicon.ico', '/apple-touch-icon-precomposed.png']) {
      const { status, headers } = await at('GET', icon, { accept: 'image/*', 'x-api-key': '' })
      expect([icon, status, headers.get('location')]).toEqual([icon, 302, `${origin}/v1/docs/favicon.svg`])
    }
  })

  test('paths outside of it return 404', async () => {
    const outside = '/ /pets /graphql /docs /openapi.json /v1pets /v1graphql /v2/pets /v1/v1/pets /V1/pets /v1/../pets'
    for (const path of outside.split(' ')) expect((await at('GET', path)).status, path).toBe(404)
    const { status, headers } = await at('GET', '/pets', { 'x-api-key': '' })
    expect([status, headers.get('x-ratelimit-limit')]).toEqual([401, '60'])
  })

  test('does not apply to the operational endpoints', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      expect((await at('GET', path)).status).toBe(200)
      expect((await at('GET', `/v1${path}`)).status).toBe(404)
    }
  })
})

describe('operational endpoints', () => {
  test('are not counted and have no rate limit headers', async () => {
    const before = (await gateway.get('/docs', { key: null })).headers.get('x-ratelimit-remaining')
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      const { status, headers } = await gateway.get(path, { key: null })
      expect(status).toBe(200)
      const marks = [...headers.keys()].filter((name) => /ratelimit|access-control/.test(name))
      expect(marks).toEqual([])
    }
    expect((await gateway.get('/docs', { key: null })).headers.get('x-ratelimit-remaining')).toBe(before)
  })

  const preflight = { origin: 'https://shop.example', 'access-control-request-method': 'GET' }

  test.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])(
    'take GET and HEAD alone: %s is 405, and not counted either',
    async (method) => {
      for (const path of ['/healthz', '/readyz', '/metrics']) {
        const { status, headers, body } = await gateway.call(method, path, { key: null, headers: preflight })
        expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD'])
        expect(body).toEqual({
          code: 'method_not_allowed',
          message: `This path does not take ${method}; it takes GET, HEAD.`,
          status: 405,
        })
        expect([...headers.keys()].filter((name) => /ratelimit|access-control/.test(name))).toEqual([])
      }
    },
  )

  test('report the state of the service', async () => {
    expect((await gateway.get('/healthz')).body).toEqual({ status: 'ok' })
    expect((await gateway.get('/readyz')).body).toEqual({ status: 'ok', database: 'ok', limits: gateway.limits.state })
    expect((await gateway.get('/metrics')).text).toMatch(/^petstore_requests_total\{.*operation="listPets".*\} \d+$/m)
  })

  test('/readyz returns 503 while the gateway drains or the database is unreachable', async () => {
    const { prisma: nowhere } = databaseAt('postgresql://127.0.0.1:1/nowhere')
    const ping = () => nowhere.$queryRaw`SELECT 1`.then(() => 'ok' as const)
    const away = await useOther({ database: { ...gateway.database, ping, close: async () => {} } })
    const lost = await away.get('/readyz', { key: null })
    expect([lost.status, lost.body.database]).toEqual([503, 'unreachable'])
    expect((await away.get('/healthz', { key: null })).status).toBe(200)
    const draining = await useGateway({})
    draining.app.drain()
    const { status, body } = await draining.get('/readyz', { key: null })
    expect([status, body.status]).toEqual([503, 'draining'])
  })

  test('/readyz returns 200 with the status degraded while Redis is unreachable', async () => {
    const degraded = await gateway.openBeside({ redisUrl: 'redis://127.0.0.1:1' })
    const { status, body } = await degraded.get('/readyz', { key: null })
    expect([status, body]).toEqual([200, { status: 'degraded', database: 'ok', limits: 'degraded' }])
  })
})

describe('the client’s address', () => {
  /** The requests left for the subject of this request. */
  const left = async (other: Gateway, forwarded?: string) => {
    const headers: Record<string, string> = forwarded ? { 'x-forwarded-for': forwarded } : {}
    const response = await fetch(`${(await other.listen()).url}/pets`, { headers })
    return Number(response.headers.get('x-ratelimit-remaining'))
  }

  test.each<[what: string, proxies: string, left: Record<string, number>]>([
    ['of the connection if no proxy is trusted', '0', { '': 59, '192.0.2.1': 58, '192.0.2.2': 57 }],
    ['that the trusted proxy added', '1', { '192.0.2.1': 59, '192.0.2.2': 59, '192.0.2.7, 192.0.2.1': 58, '': 59 }],
    [
      'that the outer of two trusted proxies added',
      '2',
      { '192.0.2.1, 10.0.0.1': 59, '203.0.113.5, 192.0.2.1, 10.0.0.2': 58, '192.0.2.1': 57 },
    ],
    ['without a port', '1', { '203.0.113.7:1234': 59, '203.0.113.7': 58, '203.0.113.8:1234': 59 }],
    ['without a port in IPv6', '1', { '[2001:db8::1]:443': 59, '2001:db8::1': 58, '[2001:db8::1]': 57 }],
    ['without the prefix of IPv4', '1', { '::ffff:203.0.113.7': 59, '203.0.113.7': 58 }],
    ['by its /64 in IPv6', '1', { '2001:db8::1': 59, '2001:db8::ffff:1': 58, '2001:db8:0:1::1': 59 }],
  ])('is the one %s', async (_, proxies, expected) => {
    const other = await useGateway({ TRUST_PROXY: proxies })
    const found: typeof expected = {}
    for (const forwarded of Object.keys(expected)) found[forwarded] = await left(other, forwarded)
    expect(found).toEqual(expected)
  })

  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
    ['2001:db8:1:3::1', '2001:db8:1:3::/64'],
    ['nonsense', 'unknown'],
    [undefined, 'unknown'],
  ])('%s counts as %s', (address, counted) => {
    expect(countedAddress(address)).toBe(counted)
  })
})
