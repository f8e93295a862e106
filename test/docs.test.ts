import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { brotliDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Gateway, inject, openGateway } from './support/gateway.js'

let gateway: Gateway
let port: number
beforeAll(async () => {
  gateway = await openGateway({ env: { BASE_URL: 'https://api.example.com/v1' } })
  port = (await gateway.listen()).port
})
afterAll(() => gateway.close())

const assets = ['swagger-ui-bundle.js', 'reference.js', 'reference.css']
const get = (path: string, headers = {}) => fetch(`http://127.0.0.1:${port}/v1${path}`, { headers })

/** The status of a request whose target is sent unchanged; fetch would normalize it. */
async function statusOf(target: string) {
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  return Number((await text(socket)).split(' ', 2)[1])
}

describe('the reference', () => {
  test('has a policy that allows only what the gateway serves, and requests to the API', async () => {
    const { status, headers } = await get('/docs')
    expect(status).toBe(200)
    const policy = headers.get('content-security-policy')?.split('; ')
    expect(policy).toEqual([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self' data:",
      "connect-src 'self' https://api.example.com",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ])
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
  })

  test('uses only assets below the base path, and all of them exist', async () => {
    const html = await (await get('/docs')).text()
    const named = [...html.matchAll(/(?:src|href)="(?!data:)([^"]*)"/g)].map(([, url]) => url)
    expect(named.sort()).toEqual([...assets.map((name) => `/v1/docs/${name}`), '/v1/openapi.yaml'].sort())
    for (const asset of assets) {
      const { status, headers } = await get(`/docs/${asset}`)
      expect([status, headers.get('content-type'), headers.get('x-content-type-options')]).toEqual([
        200,
        `text/${asset.endsWith('css') ? 'css' : 'javascript'}; charset=utf-8`,
        'nosniff',
      ])
    }
  })

  test.each(['', ...assets.map((name) => `/${name}`)])(
    '/docs%s is compressed, and is not sent again if it is unchanged',
    async (path) => {
      const first = await get(`/docs${path}`, { 'accept-encoding': 'identity' })
      const etag = first.headers.get('etag') ?? ''
      expect((await get(`/docs${path}`, { 'if-none-match': etag })).status).toBe(304)
      expect((await get(`/docs${path}`, { 'if-none-match': '"another"' })).status).toBe(200)
      const compressed = await inject(
        gateway.app,
        new Request(`https://api.example.com/v1/docs${path}`, { headers: { 'accept-encoding': 'br' } }),
      )
      expect(compressed.headers.get('content-encoding')).toBe('br')
      expect(brotliDecompressSync(await compressed.arrayBuffer()).toString()).toBe(await first.text())
    },
  )
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
    '/v1/docs/__proto__',
    '/v1/docs/constructor',
    '/v1/docs/',
  ])('%s returns 404', async (target) => {
    expect(await statusOf(target)).toBe(404)
  })
})
