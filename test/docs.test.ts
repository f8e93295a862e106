import { readFileSync } from 'node:fs'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { catalogue } from '../schema/kit/errors.js'
import { createReferencePage } from '../src/gateway/docs/reference-page.js'
import { createGuide, createOpenApi } from '../src/gateway/openapi/index.js'
import { inject, sharedGateway } from './support/gateway.js'
import { exchange } from './support/sockets.js'

const baseUrl = 'https://api.example.com/v1'

const contactUrl = 'https://example.com/keys?a=1&b=(2)'

const gateway = await sharedGateway({ env: { BASE_URL: baseUrl, CONTACT_URL: contactUrl } })
const { url } = await gateway.listen()

const options = { baseUrl, sunset: gateway.config.PET_BY_ID_SUNSET, contactUrl }

const scripts = ['examples/import.mjs', 'examples/export.mjs', 'examples/petstore.mjs']
const examples = [...scripts, 'examples/rows.ts', 'examples/react-admin.ts', 'examples/refine.ts']
const parts = [
  'reference.css',
  'reference.js',
  'favicon.svg',
  'graphiql.css',
  'graphiql.js',
  'shared.js',
  'usage.css',
  'usage.js',
  ...examples,
]
// GraphiQL is sent to browsers alone.
const html = { accept: 'text/html' }
const get = (path: string, headers = {}) => fetch(`${url}/v1${path}`, { headers: { ...html, ...headers } })
const page = async () => (await get('/docs')).text()

/** All values of an attribute. */
const values = (html: string, attribute: string) =>
  [...html.matchAll(new RegExp(` ${attribute}="([^"]*)"`, 'g'))].map(([, value]) => value ?? '')

/** The status of a request whose target is sent unchanged; fetch would normalize it. */
const statusOf = async (target: string) =>
  (await exchange(gateway, `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`))[0]?.status

const types = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8', svg: 'image/svg+xml' }
const trusted = ["require-trusted-types-for 'script'", "trusted-types 'none'"]

describe.each([
  { path: '/docs', loaded: ['favicon.svg', 'reference.css', 'reference.js'], more: trusted },
  { path: '/usage', loaded: ['favicon.svg', 'usage.css', 'usage.js'], more: trusted },
  { path: '/graphql', loaded: ['favicon.svg', 'graphiql.css', 'graphiql.js', 'shared.js'], more: [] },
])('$path', ({ path, loaded, more }) => {
  test('has a policy that allows only what the gateway serves, and requests to the API', async () => {
    const { status, headers } = await get(path)
    expect(status).toBe(200)
    const policy = headers.get('content-security-policy')
    expect(policy?.split('; ')).toEqual([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self'",
      "connect-src 'self' https://api.example.com",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      ...more,
    ])
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('cache-control')).toBe('public, no-cache')
  })

  test('loads assets below the base path, whose addresses change with their content, so that they are kept for good', async () => {
    const page = await (await get(path)).text()
    const addresses = new Set([...values(page, 'src'), ...values(page, 'href')].filter((url) => /^\/.*\?/.test(url)))
    const names = [...addresses].map((url) => url.replace('/v1/docs/', '').replace(/\?.*/, ''))
    expect(names.sort()).toEqual(loaded)
    for (const url of addresses) {
      const { status, headers } = await get(url.slice('/v1'.length))
      const type = types[/\.(\w+)\?/.exec(url)?.[1] as keyof typeof types]
      expect([url, status, headers.get('content-type')]).toEqual([url, 200, type])
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    }
  })
})

describe('the usage page', () => {
  test('is the same with a key and without, so that caches keep nothing of anybody', async () => {
    const { key } = await gateway.createKey({ name: 'Corner shop' })
    const [without, keyed] = await Promise.all([get('/usage'), get('/usage', { authorization: `Bearer ${key}` })])
    const [expected, found] = [await without.text(), await keyed.text()]
    expect(found).toBe(expected)
    expect(keyed.headers.get('etag')).toBe(without.headers.get('etag'))
    expect(found).not.toContain('Corner shop')
  })

  test('links to the reference, which links to it', async () => {
    const links = values(await (await get('/usage')).text(), 'href')
    expect(links).toEqual(expect.arrayContaining(['/v1/docs', '/v1/docs#operation-listUsage']))
    expect(values(await page(), 'href')).toContain('/v1/usage')
    const ids = ['operation-listUsage', 'operation-getQuota', 'bans']
    expect(values(await page(), 'id')).toEqual(expect.arrayContaining(ids))
  })
})

describe('the reference', () => {
  test('has every operation, parameter, schema field, header, error code and guide as text, without a script', async () => {
    const html = await page()
    const ids = values(html, 'id')
    expect(new Set(ids).size).toBe(ids.length)
    const document = createOpenApi(options)
    const { schemas, headers } = document.components
    const expected = [
      ...Object.values(document.paths).flatMap((methods) =>
        Object.values(methods).flatMap(({ operationId, parameters = [] }) => [
          `operation-${operationId}`,
          ...parameters.map(({ name }) => `${operationId}.${name}`),
        ]),
      ),
      ...Object.entries(schemas).flatMap(([name, { properties = {} }]) => [
        `schema-${name}`,
        ...Object.keys(properties).map((field) => `schema-${name}.${field}`),
      ]),
      ...Object.keys(headers).map((name) => `header-${name}`),
      ...Object.keys(catalogue).map((code) => `error-${code}`),
    ]
    expect(expected.length).toBeGreaterThan(120)
    expect(ids).toEqual(expect.arrayContaining(expected))
    for (const [, heading] of (await (await get('/docs/guides.md')).text()).matchAll(/^##+ (.+)$/gm))
      expect(html).toContain(`>${heading}</a>`)
  })

  test('begins with a request, its answer and where to get a key; operations are next, then guides in groups', async () => {
    const html = await page()
    const [before = '', top = ''] = html.slice(0, html.indexOf('id="operation-')).split('<section id="top"')
    expect(before).not.toContain('<section id=')
    for (const [, paragraph = ''] of createGuide(options).matchAll(/^(\*\*.*)$/gm))
      expect(top).toContain(/^\*\*(.*)\*\*/.exec(paragraph)?.[1])
    for (const text of [`${baseUrl}/pets?limit=2`, '$PETSTORE_KEY', 'HTTP/1.1', 'Bella']) expect(top).toContain(text)
    expect(top).toContain(`<a href="${contactUrl.replace('&', '&amp;')}">the operator of this service</a>`)
    const order = [
      'operation-createPet',
      'guides',
      'guides-keys-and-limits',
      'authentication',
      'guides-requests',
      'errors',
    ]
    const places = [...order, 'response-headers', 'schemas'].map((id) => html.indexOf(` id="${id}"`))
    expect(places).toEqual([...places].sort((a, b) => a - b))
    expect(Math.min(...places)).toBeGreaterThan(0)
  })

  test('has a target for every link within it', async () => {
    const html = await page()
    const ids = new Set(values(html, 'id'))
    const broken = values(html, 'href').filter((href) => href.startsWith('#') && !ids.has(href.slice(1)))
    expect(broken).toEqual([])
  })

  test('shows markup in texts of the document and of the settings as text, and links only to web addresses', async () => {
    const hostile = '<img src=x onerror=alert(1)> [link](javascript:alert(1)) ![image](x) `<b>` <!-- -->'
    const document = createOpenApi({ baseUrl: `https://api.example.com/'><script>/"`, sunset: new Date() })
    const poisoned = JSON.parse(JSON.stringify(document), (key, value) =>
      ['description', 'summary', 'source', 'message', 'x-stability', 'x-no-try-it-reason', 'label'].includes(key)
        ? `${key === 'description' ? value : ''} ${hostile}`
        : value,
    )
    const html = await createReferencePage(poisoned, `## ${hostile}\n\n${hostile}`, {
      baseUrl,
      base: "/'><script>",
      style: '">',
      script: '">',
      icon: '">',
    })
    const elements = [...html.matchAll(/<!?([a-z-]+)/gi)].map(([, name]) => name)
    expect(elements.filter((name) => name === 'script')).toHaveLength(1)
    expect(elements.filter((name) => name === 'img')).toHaveLength(1)
    expect(elements).not.toContain('b')
    expect(html).not.toMatch(/<!--|href="javascript/i)
    expect(html.replace(/"[^"]*"/g, '')).not.toMatch(/<[^>]* on\w+=/i)
    expect(html).toContain('&lt;img src=x onerror=alert(1)&gt;')
  })

  test.each(['', '?', '?of-another-version'])(
    'an asset with the address "%s" is served too, but must be revalidated',
    async (search) => {
      const { status, headers } = await get(`/docs/reference.css${search}`)
      expect([status, headers.get('cache-control')]).toEqual([200, 'public, no-cache'])
    },
  )

  test.each(['/docs', '/usage', '/graphql', ...parts.map((name) => `/docs/${name}`)])(
    '%s is compressed, and is not sent again if it is unchanged',
    async (path) => {
      const first = await get(path, { 'accept-encoding': 'identity' })
      const text = await first.text()
      const etag = first.headers.get('etag') ?? ''
      // The same one for each coding.
      expect(etag).toMatch(/^W\/"/)
      expect((await get(path, { 'if-none-match': etag })).status).toBe(304)
      expect((await get(path, { 'if-none-match': '"another"' })).status).toBe(200)
      for (const [encoding, decompress] of [
        ['br', brotliDecompressSync],
        ['gzip', gunzipSync],
      ] as const) {
        const compressed = await inject(
          gateway.app,
          new Request(`${baseUrl}${path}`, { headers: { ...html, 'accept-encoding': encoding } }),
        )
        expect(compressed.headers.get('content-encoding')).toBe(encoding)
        expect(decompress(await compressed.arrayBuffer()).toString()).toBe(text)
      }
    },
  )

  test.each(examples)('has %s as it is in the repository, for readers of the guide without a key', async (path) => {
    const response = await get(`/docs/${path}`)
    expect([response.headers.get('content-type'), await response.text()]).toEqual([
      `text/${scripts.includes(path) ? 'javascript' : 'plain'}; charset=utf-8`,
      readFileSync(`docs/${path}`, 'utf8'),
    ])
  })

  test('an address below it that names nothing says where the reference is', async () => {
    const response = await get('/docs/nothing')
    expect([response.status, await response.json()]).toEqual([
      404,
      {
        code: 'not_found',
        message: `There is no page at this address. The reference is at ${baseUrl}/docs.`,
        status: 404,
      },
    ])
  })
})

describe('an asset path outside of the folder', () => {
  test.each([
    '/v1/docs/../../package.json',
    '/v1/docs/../package.json',
    '/v1/docs/../openapi.json',
    '/v1/docs/..%2f..%2fpackage.json',
    '/v1/docs/..%2F..%2F..%2fetc%2fpasswd',
    '/v1/docs/%2e%2e/%2e%2e/package.json',
    '/v1/docs/%2e%2e%2f%2e%2e%2fpackage.json',
    '/v1/docs/%252e%252e%252fpackage.json',
    '/v1/docs/..\\..\\package.json',
    '/v1/docs/..%5c..%5cpackage.json',
    '/v1/docs/....//package.json',
    '/v1/docs//etc/passwd',
    '/v1/docs/%00',
    '/v1/docs/reference.js%00.css',
    '/v1/docs/./nothing.js',
    '/v1/docs/swagger-ui.js',
    '/v1/docs/main.js',
    '/v1/docs/graphiql/graphiql.js',
    '/v1/docs/__proto__',
    '/v1/docs/constructor',
    '/v1/docs/',
  ])('%s returns 404', async (target) => {
    expect(await statusOf(target)).toBe(404)
  })
})
