import type { ValidateFunction } from 'ajv'
import { Ajv2019 } from 'ajv/dist/2019.js'
import formats from 'ajv-formats'
import type { App } from '../../src/gateway/app.js'
import type { ResponseObject, Schema } from '../../src/gateway/openapi/document.js'
import { createOpenApi, type OpenApiDocument, type OperationObject } from '../../src/gateway/openapi/index.js'

// Every response of a gateway under test is compared with its own OpenAPI document: the document must list everything that
// is sent, and everything it requires must be sent.

interface SentRequest {
  method: string
  /** Absolute. */
  url: string
}

interface ReceivedResponse {
  status: number
  headers: Iterable<[string, string]>
  text: string
}

/** @throws Error that names the operation, the status and what is wrong */
export type Contract = (request: SentRequest, response: ReceivedResponse) => void

/** Headers that OpenAPI does not list: Content-Type is in `content`, the others are part of HTTP. */
const framing = new Set(['content-type', 'content-length', 'connection', 'date'])

// Refused before the operation is known: no operation lists them.
const BEFORE_OPERATIONS = new Set([408, 414, 431, 501])

const operational = new Set(['/healthz', '/readyz', '/metrics'])

/** Computes a value once for each key. */
function once<T>(compute: (key: string) => T) {
  const known = new Map<string, T>()
  return (key: string) => {
    if (!known.has(key)) known.set(key, compute(key))
    return known.get(key) as T
  }
}

/**
 * Validators by schema, compiled on first use. Clients must expect new fields, but a gateway of this version sends only
 * the fields of this document, so others are errors here.
 */
const compilerOf = once((schemas: string) => {
  const ajv = new Ajv2019({ strict: false })
  formats.default(ajv)
  // Not each part of an `allOf` lists all fields, but the parts together do.
  const close = (schema: Schema) => ({ ...schema, unevaluatedProperties: false })
  const closeAll = (properties: Record<string, Schema>) =>
    Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, close(schema)]))
  const exact: Record<string, Schema> = JSON.parse(schemas, (_, value) => {
    if (value?.items) value.items = close(value.items)
    if (value?.properties) value.properties = closeAll(value.properties)
    return value
  })
  for (const [name, schema] of Object.entries(exact)) ajv.addSchema(schema, `#/components/schemas/${name}`)
  const compiled = once((schema): ValidateFunction => ajv.compile(JSON.parse(schema)))
  return (schema: Schema) => compiled(JSON.stringify(close(schema)))
})

/** Resolves a reference to a component; returns any other value unchanged. */
export const resolved = <T>(components: Record<string, T>, value: T | { $ref: string }) =>
  (value && typeof value === 'object' && '$ref' in value ? components[value.$ref.split('/').at(-1) ?? ''] : value) as T

function segmentsOf(path: string): string[] | undefined {
  try {
    return path.split('/').map(decodeURIComponent)
  } catch {
    return undefined
  }
}

/** The documentation of one response, by lower-case header names. */
interface DocumentedResponse {
  headers: Map<string, { name: string; required: boolean; integer: boolean; validate: ValidateFunction }>
  content: Map<string, ValidateFunction>
  /** The codes of its examples; none for a success. */
  codes: unknown[]
}

const createContract = (options: { baseUrl: string; sunset: Date }): Contract => {
  const document = createOpenApi(options)
  const base = new URL(options.baseUrl).pathname.replace(/\/$/, '')
  const { schemas, headers, responses } = document.components
  const compile = compilerOf(JSON.stringify(schemas))
  const documentedHeaders = (of: ResponseObject['headers']): DocumentedResponse['headers'] =>
    new Map(
      Object.entries(of).map(([name, reference]) => {
        const { required = false, schema } = resolved(headers, reference)
        const integer = schema.type === 'integer'
        return [name.toLowerCase(), { name, required, integer, validate: compile(schema) }]
      }),
    )
  const documented = (response: ResponseObject): DocumentedResponse => {
    const content = Object.entries(response.content ?? {})
    const examples = content.flatMap(([, media]) => Object.values(media.examples ?? {}))
    return {
      headers: documentedHeaders(response.headers),
      content: new Map(content.map(([type, { schema }]) => [type, compile(schema)])),
      codes: examples.flatMap(({ value }) => (value as { code?: unknown } | null)?.code ?? []),
    }
  }

  // A path without parameters wins over one that has them (OpenAPI, Paths Object).
  const variable = ({ segments }: { segments: unknown[] }) => segments.filter((segment) => segment === undefined).length
  const sorted = routesOf(document).sort((a, b) => variable(a) - variable(b))
  const routes = sorted.map((route) => ({
    ...route,
    documented: once((status) => {
      const response = route.operation.responses[status]
      return response && documented(resolved(responses, response))
    }),
  }))
  /** The headers of every response, also where no operation is. */
  const common = documentedHeaders(
    Object.fromEntries(
      Object.entries(headers).filter(([name]) => /RateLimit|^X-Request-Id$|^Access-Control/.test(name)),
    ),
  )
  const refusal: DocumentedResponse['content'] = new Map([['application/json', compile(schemas.Error as Schema)]])

  const find = (method: string, pathname: string) => {
    const segments = pathname.startsWith(`${base}/`) ? segmentsOf(pathname.slice(base.length)) : undefined
    const matching = routes.filter(
      (route) =>
        route.segments.length === segments?.length &&
        route.segments.every((segment, i) => (segment === undefined ? segments[i] !== '' : segment === segments[i])),
    )
    const [first] = matching
    return matching.find((route) => route.method === method && variable(route) === variable(first ?? route))
  }

  return ({ method, url }, { status, headers: sent, text }) => {
    // Not by URL, which resolves dots.
    const [, pathname = ''] = /^https?:\/\/[^/?#]*([^?#]*)/.exec(url) ?? []
    const head = method === 'HEAD'
    const route = BEFORE_OPERATIONS.has(status) ? undefined : find(head ? 'GET' : method, pathname)
    const must = (holds: unknown, statement: string) => {
      if (holds) return
      const request = `${method} ${pathname.slice(0, 200)} (${route?.operation.operationId ?? 'no operation'})`
      throw new Error(`The OpenAPI document is wrong: ${request} returned ${status}, but ${statement}`)
    }
    const values = new Map([...sent].map(([name, value]) => [name.toLowerCase(), value]))

    function checkHeaders(listed: DocumentedResponse['headers']) {
      for (const [key, { name, required, integer, validate }] of listed) {
        const value = values.get(key)
        if (value === undefined) must(!required, `${name} is missing`)
        else must(validate(integer && /^-?\d+$/.test(value) ? Number(value) : value), `${name} is ${value}`)
      }
    }
    function checkBody(content: DocumentedResponse['content'], codes?: unknown[]) {
      const type = values.get('content-type')?.split(';')[0]
      if (content.size === 0) must(text === '' && type === undefined, 'a body is not listed')
      const validate = content.get(type ?? '')
      must(validate || content.size === 0, `the content type ${type} is not listed`)
      if (head) must(text === '', 'HEAD has a body')
      if (head || !validate) return
      const body = JSON.parse(text)
      must(
        validate(body),
        `the body${validate.errors?.map((error) => `${error.instancePath} ${error.message}`)}: ${text}`,
      )
      if (status < 400) return
      must(body.status === status, `its body says ${body.status}`)
      if (codes) must(codes.includes(body.code), `the code ${body.code} is not listed`)
    }

    if (route) {
      const response = route.documented(String(status)) as DocumentedResponse
      must(response, 'the status is not listed')
      for (const name of values.keys())
        must(framing.has(name) || response.headers.has(name), `the header ${name} is not listed`)
      checkHeaders(response.headers)
      checkBody(response.content, response.codes)
    } else if (!operational.has(pathname)) {
      checkHeaders(common)
      const isGraphql = pathname === `${base}/graphql`
      const mustWait = status === 429 || status === 503
      // GraphQL answers a part of an operation, too.
      must(values.has('retry-after') === mustWait || (isGraphql && !mustWait), 'Retry-After is there or missing')
      if (status >= 400 && !isGraphql) checkBody(refusal)
    }
  }
}

const routesOf = (document: OpenApiDocument) =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]: [string, OperationObject]) => ({
      method: method.toUpperCase(),
      /** A parameter's is undefined. */
      segments: path.split('/').map((segment) => (segment.startsWith('{') ? undefined : segment)),
      operation,
    })),
  )

const contracts = once((options) => {
  const { baseUrl, sunset } = JSON.parse(options)
  return createContract({ baseUrl, sunset: new Date(sunset) })
})

/** The contract of a gateway with these settings. The document is created on the first response. */
export const contractOf = ({ BASE_URL, PET_BY_ID_SUNSET }: { BASE_URL: string; PET_BY_ID_SUNSET: Date }): Contract => {
  const options = JSON.stringify({ baseUrl: BASE_URL, sunset: PET_BY_ID_SUNSET })
  return (request, response) => contracts(options)(request, response)
}

/** The app, with `check` called for every response before it ends. */
export function withContract(app: App, baseUrl: string, check: Contract): App {
  return {
    ...app,
    handle(req, res) {
      const { method = '', url } = req
      const chunks: Buffer[] = []
      const keep = (chunk: unknown) => {
        if (typeof chunk === 'string' || chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk as string))
      }
      const { writeHead, write, end } = res
      // A response does not store the headers passed to writeHead.
      let given: unknown
      res.writeHead = ((...args: Parameters<typeof writeHead>) => {
        given = args.at(-1)
        return writeHead.apply(res, args)
      }) as typeof writeHead
      res.write = ((...args: Parameters<typeof write>) => {
        keep(args[0])
        return write.apply(res, args)
      }) as typeof write
      res.end = ((...args: Parameters<typeof end>) => {
        keep(args[0])
        const headers = Object.entries({ ...res.getHeaders(), ...(typeof given === 'object' && given) })
        const text = Buffer.concat(chunks).toString()
        check(
          { method, url: `http://localhost${url}` },
          { status: res.statusCode, headers: headers.map(([name, value]) => [name, String(value)]), text },
        )
        return end.apply(res, args)
      }) as typeof end
      return app.handle(req, res)
    },
    async malformed(remoteAddress, reason) {
      const response = await app.malformed(remoteAddress, reason)
      const { status, headers, body } = response
      check({ method: 'GET', url: baseUrl }, { status, headers: Object.entries(headers), text: String(body) })
      return response
    },
  }
}
