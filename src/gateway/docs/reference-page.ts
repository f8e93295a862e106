import { createPage, html, type OpenApiDocument } from '../../engines/reference/index.js'
import { layout } from './layout.js'

/** The addresses of what the page loads and links to. */
export interface ReferenceAddresses {
  baseUrl: string
  /** The path of the base URL. */
  base: string
  style: string
  script: string
  icon: string
}

/** The reference in the frame of all pages. */
export async function createReferencePage(
  document: OpenApiDocument,
  guides: string,
  addresses: ReferenceAddresses,
): Promise<string> {
  const { baseUrl, base, style, script, icon } = addresses
  const links = [
    { href: `${base}/openapi.yaml`, text: 'OpenAPI, YAML' },
    { href: `${base}/openapi.json`, text: 'OpenAPI, JSON' },
    { href: `${base}/schema.graphql`, text: 'GraphQL schema' },
    { href: `${base}/graphql`, text: 'GraphiQL' },
    { href: `${base}/usage`, text: 'Usage of a key' },
  ]
  return layout({
    ...(await createPage(document, guides, { icon, links })),
    address: `${baseUrl}/docs`,
    base,
    icon,
    assets: html`<link rel="stylesheet" href="${style}">
<script src="${script}"></script>`,
  })
}
