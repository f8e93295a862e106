import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { type GraphQLSchema, printSchema } from 'graphql'
import { ApiError } from '../../../schema/kit/errors.js'
import { projectPath } from '../../project.js'
import type { Settings } from '../../settings.js'
import { acceptedCoding, type HttpRequest, type HttpResponse, prefersType } from '../http/index.js'

interface Page {
  type: string
  etag: string
  headers: Record<string, string>
  bodies: Record<'br' | 'gzip' | 'identity', Uint8Array>
}

/** Where the service is, when its deprecated operations end, who gives keys, and where the endpoints of operators are. */
export type DocsSettings = Pick<Settings, 'BASE_URL' | 'PET_BY_ID_SUNSET' | 'CONTACT_URL' | 'ADMIN_PORT'>

const ICON = '/docs/favicon.svg'

/** What other services call these pages, and icons that browsers ask for by themselves. */
const ELSEWHERE: [there: RegExp, here: string][] = [
  [/^(\/api)?\/(graphql|graphiql|gql|playground|altair|voyager)$/i, '/graphql'],
  [
    /^(\/api)?\/(docs?|documentation|reference|redoc|scalar|apidocs|api-docs?|swagger(-ui)?)(\/?index)?(\.html)?$/i,
    '/docs',
  ],
  [/^(\/api|\/docs)?(\/swagger)?(\/v\d)?\/(openapi|swagger|api-docs)(\.json)?$/i, '/openapi.json'],
  [/^(\/api|\/docs)?(\/swagger)?(\/v\d)?\/(openapi|swagger)\.ya?ml$/i, '/openapi.yaml'],
  [/^\/(favicon\.(ico|png)|apple-touch-icon[\w-]*\.png)$/i, ICON],
]
const PROBES_ELSEWHERE: typeof ELSEWHERE = [
  [/^\/(health([-_/]?(z|check|live|status))?|live|livez|liveness|ping|status|up|actuator\/health)$/i, '/healthz'],
  [/^\/(ready|readyz|readiness|health\/ready)$/i, '/readyz'],
  [/^\/((actuator\/)?prometheus|metrics)$/i, '/metrics'],
]
/** No address of another service is longer. */
const MAX_ELSEWHERE = 100

// For an address that names the version of its content.
const FOREVER = 'public, max-age=31536000, immutable'
// May be cached, but must be revalidated; the ETag makes that cheap.
const REVALIDATE = 'public, no-cache'

/** @param headers more headers, with names in lower case */
async function page(text: string | Uint8Array, type: string, headers: Record<string, string> = {}): Promise<Page> {
  const identity = Buffer.from(text)
  const [br, zipped] = await Promise.all([
    promisify(brotliCompress)(identity, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
    promisify(gzip)(identity),
  ])
  return {
    type,
    // Weak: the codings of a page have the same one.
    etag: `W/"${digest(identity)}"`,
    headers: { 'cache-control': REVALIDATE, 'x-content-type-options': 'nosniff', ...headers },
    bodies: { br, gzip: zipped, identity },
  }
}

/** What the pages load: the type, and the files that make it up. GraphiQL's are in the build (graphiql/bundle.mjs). */
const assets = {
  'reference.css': ['text/css; charset=utf-8', 'src/gateway/docs/shared.css', 'src/engines/reference/reference.css'],
  'reference.js': [
    'text/javascript; charset=utf-8',
    'src/gateway/docs/shared.js',
    'src/engines/reference/reference.js',
  ],
  'graphiql.css': ['text/css; charset=utf-8', 'src/gateway/docs/shared.css', 'dist/graphiql/graphiql.css'],
  'graphiql.js': ['text/javascript; charset=utf-8', 'dist/graphiql/graphiql.js'],
  'usage.css': ['text/css; charset=utf-8', 'src/gateway/docs/shared.css', 'src/gateway/docs/usage.css'],
  'usage.js': [
    'text/javascript; charset=utf-8',
    'src/gateway/docs/shared.js',
    'src/gateway/docs/plot.js',
    'src/gateway/docs/figures.js',
    'src/gateway/docs/usage.js',
  ],
  'shared.js': ['text/javascript; charset=utf-8', 'src/gateway/docs/shared.js'],
  'favicon.svg': ['image/svg+xml', 'src/gateway/docs/favicon.svg'],
  'examples/import.mjs': ['text/javascript; charset=utf-8', 'docs/examples/import.mjs'],
  'examples/export.mjs': ['text/javascript; charset=utf-8', 'docs/examples/export.mjs'],
  'examples/petstore.mjs': ['text/javascript; charset=utf-8', 'docs/examples/petstore.mjs'],
  // TypeScript has no media type.
  'examples/rows.ts': ['text/plain; charset=utf-8', 'docs/examples/rows.ts'],
  'examples/react-admin.ts': ['text/plain; charset=utf-8', 'docs/examples/react-admin.ts'],
  'examples/refine.ts': ['text/plain; charset=utf-8', 'docs/examples/refine.ts'],
} satisfies Record<string, [type: string, ...files: string[]]>

type AssetName = keyof typeof assets

async function readAsset(name: AssetName) {
  const [, ...files] = assets[name]
  return Buffer.concat(await Promise.all(files.map((file) => readFile(projectPath(file)))))
}

const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('base64url').slice(0, 27)

/** A page loads only what the gateway serves, and sends requests only to the API. */
const pageHeaders = (baseUrl: string, ...rules: string[]) => ({
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    `connect-src 'self' ${new URL(baseUrl).origin}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    ...rules,
  ].join('; '),
  'referrer-policy': 'no-referrer',
})

// No text can become markup, whatever a script does with it.
const trustedTypes = ["require-trusted-types-for 'script'", "trusted-types 'none'"]

/** The pages and documents that need no key. Each is created once, on its first request. */
export function createDocs(settings: DocsSettings, schema: GraphQLSchema) {
  const { BASE_URL: baseUrl, PET_BY_ID_SUNSET: sunset, CONTACT_URL: contactUrl, ADMIN_PORT: adminPort } = settings
  const base = new URL(baseUrl).pathname.replace(/\/$/, '')
  // Imported with the first request: most gateways never serve the document or a page, and their code takes memory.
  const openapi = async () => {
    const { createGuide, createOpenApi, toYaml } = await import('../openapi/index.js')
    const options = { baseUrl, sunset, contactUrl }
    return { document: createOpenApi(options), guides: createGuide(options), toYaml }
  }
  /** The address of an asset, which changes with its content. */
  const addressOf = async (name: AssetName) => `${base}/docs/${name}?${digest(await readAsset(name))}`
  const addressesOf = (...names: AssetName[]) => Promise.all(names.map(addressOf))
  const reference = async () => {
    const [{ document, guides }, { createReferencePage }, [style = '', script = '', icon = '']] = await Promise.all([
      openapi(),
      import('./reference-page.js'),
      addressesOf('reference.css', 'reference.js', 'favicon.svg'),
    ])
    const text = await createReferencePage(document, guides, { baseUrl, base, style, script, icon })
    return page(text, 'text/html; charset=utf-8', pageHeaders(baseUrl, ...trustedTypes))
  }
  const graphiql = async () => {
    const [style = '', shared = '', script = '', icon = ''] = await addressesOf(
      'graphiql.css',
      'shared.js',
      'graphiql.js',
      'favicon.svg',
    )
    const { createGraphiqlPage } = await import('./graphiql/page.js')
    const text = createGraphiqlPage({ baseUrl, base, style, shared, script, icon })
    return page(text, 'text/html; charset=utf-8', pageHeaders(baseUrl))
  }
  const usage = async () => {
    const [style = '', script = '', icon = ''] = await addressesOf('usage.css', 'usage.js', 'favicon.svg')
    const { createUsagePage } = await import('./usage-page.js')
    const text = createUsagePage({ baseUrl, base, style, script, icon })
    return page(text, 'text/html; charset=utf-8', pageHeaders(baseUrl, ...trustedTypes))
  }
  const creators = new Map<string, () => Promise<Page>>([
    ['/docs', reference],
    ['/graphql', graphiql],
    ['/usage', usage],
    ...(Object.keys(assets) as AssetName[]).map(
      (name) => [`/docs/${name}`, async () => page(await readAsset(name), assets[name][0])] as const,
    ),
    ['/docs/guides.md', async () => page((await openapi()).guides, 'text/markdown; charset=utf-8')],
    ['/openapi.json', async () => page(JSON.stringify((await openapi()).document, null, 2), 'application/json')],
    ['/openapi.yaml', () => openapi().then(({ document, toYaml }) => page(toYaml(document), 'application/yaml'))],
    ['/schema.graphql', () => page(`${printSchema(schema)}\n`, 'application/graphql; charset=utf-8')],
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

  function responseOf({ type, etag, headers: own, bodies }: Page, request: HttpRequest): HttpResponse {
    const { head, search } = request
    const headers: Record<string, string> = { ...own, etag, vary: 'Accept, Accept-Encoding' }
    // During an upgrade, an old gateway may be asked for assets of a new one. It serves its own, uncached.
    if (search && etag === `W/"${search}"`) headers['cache-control'] = FOREVER
    if (head.headers['if-none-match']?.includes(etag)) return { status: 304, headers }
    const encoding = acceptedCoding(request, ['br', 'gzip'])
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

  /** The address of what a request without a page means. */
  function meantBy({ pathname }: HttpRequest): string | undefined {
    if (pathname.length > MAX_ELSEWHERE) return
    const below = pathname.startsWith(`${base}/`) ? pathname.slice(base.length) : pathname
    const path = below.replace(/\/+$/, '')
    const page = creators.has(path) ? path : ELSEWHERE.find(([there]) => there.test(path))?.[1]
    if (page) return baseUrl + page
    const probe = !adminPort && PROBES_ELSEWHERE.find(([there]) => there.test(path))?.[1]
    return probe && probe !== pathname ? new URL(baseUrl).origin + probe : undefined
  }

  /** Leads browsers to the page, and tells other clients where it is. Neither needs a key. */
  function redirect(request: HttpRequest, address: string): HttpResponse {
    const { method, search } = request
    const isPage = method === 'GET' && prefersType(request, 'text/html')
    if (!isPage && !address.endsWith(ICON))
      throw new ApiError('not_found', `There is nothing at this address; did you mean ${address}?`)
    return { status: 302, headers: { location: search ? `${address}?${search}` : address } }
  }

  return {
    /** Whether a path has a page, which takes GET and HEAD. */
    has: (path: string) => path === '/' || creators.has(path),

    /**
     * The response to a request for a page; undefined for any other request.
     *
     * @throws ApiError not_found, for a path below /docs/ that is not an asset, and for one that other services have
     */
    respond(request: HttpRequest): HttpResponse | Promise<HttpResponse> | undefined {
      const { path, method } = request
      const create = path === null ? undefined : creators.get(path)
      const meant = create ? undefined : meantBy(request)
      if (meant) return redirect(request, meant)
      if (path === null) return
      if (path.startsWith('/docs/') && !create)
        throw new ApiError('not_found', `There is no page at this address. The reference is at ${baseUrl}/docs.`)
      if (method !== 'GET') return
      if (path === '/') return { status: 302, headers: { location: `${baseUrl}/docs` } }
      if (!create || (path === '/graphql' && !prefersType(request, 'text/html'))) return
      return createOnce(path, create).then((page) => responseOf(page, request))
    },
  }
}
