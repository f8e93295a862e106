import { html } from '../../../engines/reference/index.js'
import { layout } from '../layout.js'

/** The address of the service, and those of what the page loads. */
export interface GraphiqlAddresses {
  baseUrl: string
  /** The path of the base URL. */
  base: string
  style: string
  /** The script that all pages share. */
  shared: string
  script: string
  icon: string
}

/** GraphiQL, whose schema is the published one: it can be explored without a key. */
export const createGraphiqlPage = ({ baseUrl, base, style, shared, script, icon }: GraphiqlAddresses): string =>
  layout({
    title: 'Pet Store GraphiQL',
    description: 'Explore the GraphQL schema of the Pet Store API, and run queries and mutations.',
    address: `${baseUrl}/graphql`,
    base,
    icon,
    assets: html`<link rel="stylesheet" href="${style}">
<script src="${shared}"></script>
<script type="module" src="${script}"></script>
<link rel="preload" as="fetch" href="${base}/schema.graphql" crossorigin>`,
    bar: html`<a class="brand" href="${base}/docs"><img src="${icon}" alt="" width="24" height="24">Pet Store</a>
<a class="to-reference" href="${base}/docs">Reference</a>`,
    content: html`<main id="content" class="graphiql" tabindex="-1" data-server="${baseUrl}" data-base="${base}">
<h1 class="unseen">GraphiQL</h1>
<p class="scripted" id="state" role="status">Loading GraphiQL …</p>
<noscript><p>GraphiQL needs JavaScript. The <a href="${base}/docs">reference</a> does not, and
<a href="${base}/schema.graphql">schema.graphql</a> is the schema.</p></noscript>
<div id="graphiql"></div>
</main>`,
  })
