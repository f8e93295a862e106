import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { type GraphQLSchema, printSchema } from 'graphql'
import { ApiError } from '../../schema/errors.js'
import type { RequestContext, RequestHead } from '../http/context.js'
import type { HttpResponse } from '../http/response.js'
import type { Options } from '../openapi/index.js'
import { projectPath } from '../project.js'

interface Page {
  type: string
  etag: string
  headers: Record<string, string>
  bodies: Record<'br' | 'gzip' | 'identity', Uint8Array>
}

export interface DocumentsOptions extends Options {
  schema: GraphQLSchema
}

const HOUR = 'public, max-age=3600'
// May be cached, but must be revalidated; the ETag makes that cheap.
const REVALIDATE = 'public, no-cache'

/** @param headers more headers, with names in lower case */
async function page(text: string | Uint8Array, type: string, headers: Record<string, string> = {}): Promise<Page> {
  const identity = Buffer.from(text)
  const [br, zipped] = await Promise.all([
    promisify(brotliCompress)(identity, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
    promisify(gzip)(identity),
  ])
  const etag = `"${createHash('sha256').update(identity).digest('base64url').slice(0, 27)}"`
  return {
    type,
    etag,
    headers: { 'cache-control': REVALIDATE, 'x-content-type-options': 'nosniff', ...headers },
    bodies: { br, gzip: zipped, identity },
  }
}

const require = createRequire(import.meta.url)
const assets = {
  // Swagger UI without its style sheet: reference.css replaces it.
  'swagger-ui-bundle.js': { file: require.resolve('swagger-ui-dist/swagger-ui-bundle.js'), type: 'text/javascript' },
  'reference.js': { file: projectPath('src/docs/reference.js'), type: 'text/javascript' },
  'reference.css': { file: projectPath('src/docs/reference.css'), type: 'text/css' },
}

const docsPage = (base: string) => `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>Pet Store API reference</title>
  <link rel="icon" href="data:,">
  <link rel="stylesheet" href="${base}/docs/reference.css">
  <script src="${base}/docs/swagger-ui-bundle.js" defer></script>
  <script src="${base}/docs/reference.js" type="module"></script>
</head>
<body>
  <div id="reference"></div>
  <noscript>This page needs JavaScript. The same document is at <a href="${base}/openapi.yaml">openapi.yaml</a>.</noscript>
</body>
</html>
`

/** The page loads only what the gateway serves, and sends requests only to the API. */
const docsHeaders = (baseUrl: string) => ({
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    `connect-src 'self' ${new URL(baseUrl).origin}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
})

/** The pages and documents that need no key. Each is created once, on its first request. */
export function createDocs({ baseUrl, sunset, schema }: DocumentsOptions) {
  const base = new URL(baseUrl).pathname.replace(/\/$/, '')
  // Imported with the first request: most gateways never serve the document, and its code takes memory.
  const openapi = async () => {
    const { createOpenApi, toYaml } = await import('../openapi/index.js')
    const document = createOpenApi({ baseUrl, sunset })
    return { json: JSON.stringify(document, null, 2), yaml: toYaml(document) }
  }
  const creators = new Map<string, () => Promise<Page>>([
    ['/docs', () => page(docsPage(base), 'text/html; charset=utf-8', docsHeaders(baseUrl))],
    ...Object.entries(assets).map(
      ([name, { file, type }]) =>
        [`/docs/${name}`, async () => page(await readFile(file), `${type}; charset=utf-8`)] as const,
    ),
    ['/openapi.json', async () => page((await openapi()).json, 'application/json')],
    ['/openapi.yaml', async () => page((await openapi()).yaml, 'application/yaml')],
    ['/schema.graphql', () => page(`${printSchema(schema)}\n`, 'application/graphql; charset=utf-8')],
    [
      '/graphql',
      async () => {
        // Loaded only if somebody opens the page, because the script has nine megabytes.
        const { graphiql } = await import('../graphql/graphiql.js')
        const { html, csp } = graphiql(base)
        return page(html, 'text/html; charset=utf-8', { 'cache-control': HOUR, 'content-security-policy': csp })
      },
    ],
  ])
  const pages = new Map<string, Promise<Page>>()

  function createOnce(path: string, create: () => Promise<Page>) {
    const created =
      pages.get(path) ??
      create().catch((error) => {
        pages.delete(path)
        throw error
      })
    pages.set(path, created)
    return created
  }

  function respond({ type, etag, headers: own, bodies }: Page, { headers: requested }: RequestHead): HttpResponse {
    const headers = { ...own, etag, vary: 'Accept, Accept-Encoding' }
    if (requested['if-none-match']?.includes(etag)) return { status: 304, headers }
    const accepted = String(requested['accept-encoding'] ?? '')
    const encoding = /\bbr\b/.test(accepted) ? 'br' : /\bgzip\b/.test(accepted) ? 'gzip' : 'identity'
    return {
      status: 200,
      headers: {
        ...headers,
        'content-type': type,
        ...(encoding === 'identity' ? {} : { 'content-encoding': encoding }),
      },
      body: bodies[encoding],
    }
  }

  /**
   * The response to a request for a page; undefined for any other request.
   *
   * @throws ApiError not_found, for a path below /docs/ that is not an asset
   */
  return (context: RequestContext): HttpResponse | Promise<HttpResponse> | undefined => {
    const { path, method, head } = context
    const create = path === null ? undefined : creators.get(path)
    // The URL as sent, because the path has `..` resolved and may have left the folder.
    const below = path?.startsWith('/docs/') || head.url?.startsWith(`${base}/docs/`)
    if (below && !(create && path?.startsWith('/docs/'))) throw new ApiError('not_found')
    if (create || path === '/') context.allow = 'GET, HEAD'
    if (method !== 'GET' || path === null) return
    if (path === '/') return { status: 302, headers: { location: `${baseUrl}/docs` } }
    if (!create || (path === '/graphql' && !head.headers.accept?.includes('text/html'))) return
    return createOnce(path, create).then((page) => respond(page, head))
  }
}
