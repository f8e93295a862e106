import type { createPage as create } from './page.js'

export type { Header, OpenApiDocument, ResponseObject, Schema } from './document.js'
export { type Content, html, type Markup } from './html.js'
export { icon } from './icon.js'
export { slug } from './slug.js'

/** Loaded with the first page: its libraries take memory, and most gateways never serve one. */
export const createPage = async (...page: Parameters<typeof create>) => (await import('./page.js')).createPage(...page)
