import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { type GraphQLSchema, printSchema } from 'graphql'
import type { GatewayPlugin } from './exchange.js'
import { createOpenApi, toYaml } from './openapi.js'

interface Page {
  type: string
  etag: string
  cacheControl: string
  bodies: Record<'br' | 'gzip' | 'identity', Uint8Array>
}

export interface DocumentsOptions {
  baseUrl: string
  sunset: Date
  schema: GraphQLSchema
}

const HOUR = 'public, max-age=3600'
// May be kept, but is asked for again, which the ETag makes cheap.
const FRESH = 'public, no-cache'

async function page(text: string | Uint8Array, type: string, cacheControl = FRESH): Promise<Page> {
  const identity = Buffer.from(text)
  const [br, zipped] = await Promise.all([
    promisify(brotliCompress)(identity, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
    promisify(gzip)(identity),
  ])
  const etag = `"${createHash('sha256').update(identity).digest('base64url').slice(0, 27)}"`
  return { type, cacheControl, etag, bodies: { br, gzip: zipped, identity } }
}

const swaggerUi = (file: string) => readFile(createRequire(import.meta.url).resolve(`swagger-ui-dist/${file}`))

const docsPage = (base: string) => `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Pet Store reference</title>
  <link rel="icon" href="data:,">
  <link rel="stylesheet" href="${base}/docs/swagger-ui.css">
</head>
<body>
  <div id="reference"></div>
  <noscript>This page needs JavaScript. The same document is at <a href="${base}/openapi.yaml">openapi.yaml</a>.</noscript>
  <script src="${base}/docs/swagger-ui-bundle.js"></script>
  <script src="${base}/docs/reference.js"></script>
</body>
</html>
`

// Swagger UI knows no mark for "not to be tried": this plugin gives it one.
const docsScript = (base: string) => `SwaggerUIBundle({
  url: ${JSON.stringify(`${base}/openapi.json`)},
  dom_id: '#reference',
  deepLinking: true,
  persistAuthorization: true,
  plugins: [() => ({
    statePlugins: { spec: { wrapSelectors: {
      allowTryItOutFor: () => (state, path, method) =>
        state.getIn(['json', 'paths', path, method, 'x-explorer-enabled']) !== false,
    } } },
  })],
})
`

/** What anybody may read: the reference, the documents that tools read, GraphiQL. Made once, at the first request. */
export function useDocuments({ baseUrl, sunset, schema }: DocumentsOptions): GatewayPlugin {
  const base = new URL(baseUrl).pathname.replace(/\/$/, '')
  const openapi = () => createOpenApi({ baseUrl, sunset })
  const makers: Record<string, () => Promise<Page>> = {
    '/docs': () => page(docsPage(base), 'text/html; charset=utf-8'),
    '/docs/reference.js': () => page(docsScript(base), 'text/javascript; charset=utf-8'),
    '/docs/swagger-ui.css': async () => page(await swaggerUi('swagger-ui.css'), 'text/css; charset=utf-8', HOUR),
    '/docs/swagger-ui-bundle.js': async () =>
      page(await swaggerUi('swagger-ui-bundle.js'), 'text/javascript; charset=utf-8', HOUR),
    '/openapi.json': () => page(JSON.stringify(openapi(), null, 2), 'application/json'),
    '/openapi.yaml': () => page(toYaml(openapi()), 'application/yaml'),
    '/schema.graphql': () => page(`${printSchema(schema)}\n`, 'application/graphql; charset=utf-8'),
    '/graphql': async () => {
      // Nine megabytes of script, which a gateway that nobody browses never loads.
      const { graphiql } = await import('./graphiql.js')
      return page(graphiql(base), 'text/html; charset=utf-8', HOUR)
    },
  }
  const pages = new Map<string, Promise<Page>>()

  return {
    async onRequest({ request, serverContext: { exchange }, endResponse, fetchAPI }) {
      const { path, method } = exchange
      if (path === null) return
      const make = Object.hasOwn(makers, path) ? makers[path] : undefined
      if (make || path === '/') exchange.allow = 'GET, HEAD'
      if (method !== 'GET') return
      if (path === '/')
        return endResponse(new fetchAPI.Response(null, { status: 302, headers: { location: `${baseUrl}/docs` } }))
      if (!make || (path === '/graphql' && !request.headers.get('accept')?.includes('text/html'))) return
      if (!pages.has(path)) pages.set(path, make())
      const { type, etag, cacheControl, bodies } = (await pages.get(path)) as Page
      const headers = { etag, 'cache-control': cacheControl, vary: 'Accept, Accept-Encoding' }
      if (request.headers.get('if-none-match')?.includes(etag))
        return endResponse(new fetchAPI.Response(null, { status: 304, headers }))
      const accepted = request.headers.get('accept-encoding') ?? ''
      const encoding = /\bbr\b/.test(accepted) ? 'br' : /\bgzip\b/.test(accepted) ? 'gzip' : 'identity'
      endResponse(
        new fetchAPI.Response(bodies[encoding] as BodyInit, {
          headers: {
            ...headers,
            'content-type': type,
            'content-length': String(bodies[encoding].length),
            ...(encoding === 'identity' ? {} : { 'content-encoding': encoding }),
          },
        }),
      )
    },
  }
}
