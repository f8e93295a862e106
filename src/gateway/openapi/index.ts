import { stringify } from 'yaml'
import { operations } from '../../../schema/index.js'
import { createSofaDocument } from '../rest/index.js'
import type { Generated, Options } from './document.js'
import { guideLinks, readGuides, readIntroduction, readSummary } from './guides.js'
import { createCommonHeaders, createSharedHeaders, headerRefs } from './headers.js'
import { createOperation } from './operation.js'
import { createResponses, createSharedResponses } from './responses.js'
import { createSchemas } from './schemas.js'

export type { Options } from './document.js'
export { PUBLISHED_DEFAULTS } from './guides.js'

export type OperationObject = ReturnType<typeof createOperation> & { responses: ReturnType<typeof createResponses> }
export type OpenApiDocument = ReturnType<typeof createOpenApi>

/**
 * The OpenAPI description of the REST surface: SOFA's document, completed from the metadata of the fields, the bounds
 * and the error catalogue that the service itself uses. The same options always give the same document.
 */
export function createOpenApi(options: Options) {
  const { baseUrl, contactUrl } = options
  const generated = createSofaDocument() as unknown as Generated
  const commonHeaders = createCommonHeaders()
  const common = headerRefs(...Object.keys(commonHeaders))
  const shared = createSharedResponses(common)
  const paths: Record<string, Record<string, OperationObject>> = {}
  for (const operation of operations) {
    const { path, method } = operation.rest
    const responses = createResponses(operation, options, common, shared)
    const described = { ...createOperation(operation, generated, options), responses }
    paths[path] = { ...paths[path], [method.toLowerCase()]: described }
  }
  const tags = [...new Map(operations.map(({ rest: { tag } }) => [tag.name, tag])).values()]
  const document = {
    openapi: '3.0.3',
    info: {
      title: 'Pet Store',
      version: '1.0.0',
      // Generators copy it into each file.
      description: `${readSummary(options)}\n\nGuides, also as [one text](${baseUrl}/docs/guides.md):\n\n${guideLinks(options)}`,
      contact: { name: 'Pet Store', url: contactUrl ?? `${baseUrl}/docs` },
      license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    },
    servers: [{ url: baseUrl, 'x-internal': false }],
    security: [{ bearer: [] }, { apiKey: [] }],
    tags,
    'x-tagGroups': [{ name: 'Pet Store', tags: tags.map(({ name }) => name) }],
    externalDocs: { description: 'The GraphQL schema of the same service', url: `${baseUrl}/schema.graphql` },
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'The API key as a bearer token.' },
        apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'The API key in a header of its own.' },
      },
      schemas: createSchemas(generated.components.schemas),
      headers: { ...commonHeaders, ...createSharedHeaders() },
      responses: shared,
    },
  }
  // A plain tree: nothing undefined, and nothing shared, of which YAML would make anchors.
  return JSON.parse(JSON.stringify(document)) as typeof document
}

/** The introduction and the guides, as one text. */
export const createGuide = (options: Options) => `${readIntroduction(options)}\n\n${readGuides(options)}\n`

/** Dates are quoted, because YAML 1.1 readers would take them for more than text; lines are not folded. */
export const toYaml = (document: OpenApiDocument) => stringify(document, { compat: 'yaml-1.1', lineWidth: 0 })
