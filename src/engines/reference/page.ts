import type { Header, OpenApiDocument, ResponseObject } from './document.js'
import { exampleOf, headerFields, pretty, resolve, schemaFields, typeOf, type View } from './fields.js'
import { type Guide, readGuides } from './guides.js'
import { type Content, html, type Markup } from './html.js'
import { icon } from './icon.js'
import { codeBlock, createMarkdown } from './markdown.js'
import { address, badge, type Described, marks, operationSection, row } from './operation.js'
import { slug } from './slug.js'

export interface PageOptions {
  /** The address of the picture beside the title. */
  icon: string
  /** What the page links to beside its base URL, such as the document itself. */
  links: { href: string; text: string }[]
}

/** A page without its frame: reference.css styles it, and reference.js makes it searchable and sends requests. */
export interface Page {
  title: string
  description: string
  /** For the bar at the top. */
  bar: Content
  content: Content
}

const describedIn = (document: OpenApiDocument): Described[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )

/** Finds the description of a piece of code in a text: an operation such as `GET /pets/1`, or an error code. */
function createLinks(document: OpenApiDocument, operations: Described[]) {
  const codes = new Set(document.components.schemas.Error?.properties?.code?.['x-extensible-enum'] as string[])
  const routes = operations.map((described) => ({
    described,
    // A path names its operation with a parameter's name and with its value.
    pattern: new RegExp(`^${described.method} ${described.path.replace(/\{\w+\}/g, '[^/]+')}$`, 'i'),
  }))
  return (code: string) => {
    if (codes.has(code)) return `#error-${code}`
    const found = routes.find(({ pattern }) => pattern.test(code.split('?')[0] ?? ''))
    return found && address(found.described)
  }
}

/** The headers that every response of every operation has. */
function commonHeaders(view: View, operations: Described[]): Record<string, Header> {
  const { headers } = view.document.components
  const responses = operations.flatMap(({ operation }) =>
    Object.values(operation.responses).map((response) => resolve<ResponseObject>(view, response)),
  )
  const isCommon = (name: string) => responses.every((response) => name in response.headers)
  return Object.fromEntries(Object.entries(headers).filter(([name]) => isCommon(name)))
}

/** Operations by tag, then by resource, in the order of the document. */
function groups(document: OpenApiDocument, operations: Described[]) {
  /** `Orders` for /store/orders and all paths below it. */
  const resourceOf = ({ path }: Described) => {
    const above = path.split('/').map((_, i, parts) => parts.slice(0, i + 1).join('/'))
    const name =
      above
        .find((path) => path in document.paths)
        ?.split('/')
        .at(-1) ?? ''
    return name.charAt(0).toUpperCase() + name.slice(1)
  }
  return document.tags.map((tag) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(tag.name))
    const resources = [...new Set(own.map(resourceOf))].map((name) => ({
      name,
      id: `${slug(tag.name)}-${slug(name)}`,
      operations: own.filter((described) => resourceOf(described) === name),
    }))
    return { ...tag, resources }
  })
}

const links = (items: { href: string; content: Content }[]) =>
  html`<ul>${items.map(({ href, content }) => html`<li><a href="${href}">${content}</a></li>`)}</ul>`

function schemaSection(view: View, name: string): Markup {
  const schema = view.document.components.schemas[name] ?? {}
  return html`<section id="schema-${name}" class="schema" data-find="Schema" data-title="${name}">
${row(
  html`<h3><a href="#schema-${name}">${name}</a></h3>
${view.markdown.block(schema.description)}${schema.items ? html`<p class="type">${typeOf(schema)}</p>` : schemaFields(view, schema, name)}`,
  codeBlock(pretty(exampleOf(view, schema)), 'json'),
)}
</section>
`
}

/** The reference, whole: it can be read, printed and indexed without its script. */
export function createPage(document: OpenApiDocument, text: string, { icon: picture, links: more }: PageOptions): Page {
  const operations = describedIn(document)
  const view: View = { document, markdown: createMarkdown(createLinks(document, operations)) }
  const { introduction, samples, groups: guides } = readGuides(text, view)
  const common = commonHeaders(view, operations)
  const tags = groups(document, operations)
  const names = Object.keys(document.components.schemas).sort()
  const server = document.servers[0]?.url ?? ''
  const title = `${document.info.title} API`

  const guideLinks = (sections: Guide[]) => links(sections.map(({ id, title }) => ({ href: `#${id}`, content: title })))

  const navigation = html`<nav id="navigation" popover aria-label="Reference">
<section>${links([{ href: '#top', content: 'Introduction' }])}</section>
${tags.map(
  ({ name, resources }) =>
    html`<section><h2>${name}</h2>${resources.map(
      (resource) =>
        html`<h3>${resource.name}</h3>${links(
          resource.operations.map((described) => ({
            href: address(described),
            content: html`<span>${described.operation.summary}${marks(described)}</span>${badge(described.method)}`,
          })),
        )}`,
    )}</section>`,
)}
${
  guides.length > 0 &&
  html`<section><h2>Guides</h2>${guides.map(
    ({ name, sections }) => html`${name && html`<h3>${name}</h3>`}${guideLinks(sections)}`,
  )}</section>`
}
<section><h2>Headers and schemas</h2>${links([
    { href: '#response-headers', content: 'Response headers' },
    { href: '#schemas', content: 'All schemas' },
    ...names.map((name) => ({ href: `#schema-${name}`, content: name })),
  ])}</section>
</nav>`

  const main = html`<main id="content" tabindex="-1" data-server="${server}">
<p id="missing" class="note" role="alert" hidden></p>
<section id="top" data-find="Section" data-title="Introduction" data-words="start, get started, getting started, quick start, overview, get a key, contact, base url">
${row(
  html`<h1>${title} <small>${document.info.version}</small></h1>${introduction}
<p class="scripted keyless">To try operations on this page, <button type="button" class="link" popovertarget="key">add your key</button>.</p>`,
  html`<h2 class="label">Base URL</h2>${codeBlock(server)}
${samples}
<div class="documents">${links(more.map(({ href, text }) => ({ href, content: text })))}</div>`,
  guides.length > 0 &&
    html`<p class="label">Guides</p><dl class="guides">${guides.map(
      ({ name, sections }) => html`<dt>${name}</dt><dd>${guideLinks(sections)}</dd>`,
    )}</dl>`,
)}
</section>
${tags.map(
  ({ name, description, resources }) => html`<section id="${slug(name)}" class="tag">
<h2><a href="#${slug(name)}">${name}</a></h2>
${view.markdown.block(description)}
${resources.map(
  (resource) => html`<section id="${resource.id}" class="resource">
<h3><a href="#${resource.id}">${resource.name}</a></h3>
${resource.operations.map((described) => operationSection(view, described, common))}
</section>`,
)}
</section>
`,
)}
${
  guides.length > 0 &&
  html`<section id="guides" class="tag">
<h2><a href="#guides">Guides</a></h2>
${guides.map(
  ({ name, id, sections }) => html`<section class="resource"${name && html` id="${id}"`}>
${name && html`<h3><a href="#${id}">${name}</a></h3>`}
${sections.map(
  ({
    id,
    title,
    words,
    content,
  }) => html`<section id="${id}" class="guide" data-find="Guide" data-title="${title}" data-words="${words}">
<h4><a href="#${id}">${title}</a></h4>
${content}
</section>
`,
)}
</section>`,
)}
</section>
`
}
<section id="response-headers" class="tag guide" data-find="Guide" data-title="Response headers">
<h2><a href="#response-headers">Response headers</a></h2>
${row(
  html`<p>Every response has these headers:</p>`,
  codeBlock(
    Object.entries(common)
      .map(([name, { example }]) => `${name}: ${example}`)
      .join('\n'),
    'http',
  ),
  html`${headerFields(view, common, true)}
<p>Some have these, too:</p>
${headerFields(
  view,
  Object.fromEntries(Object.entries(document.components.headers).filter(([name]) => !(name in common))),
  true,
)}`,
)}
</section>
<section id="schemas" class="tag">
<h2><a href="#schemas">Schemas</a></h2>
<ul class="index">${names.map((name) => html`<li><a href="#schema-${name}">${name}</a>${view.markdown.block(document.components.schemas[name]?.description?.split('\n')[0])}</li>`)}</ul>
${names.map((name) => schemaSection(view, name))}
</section>
</main>`

  return {
    title: `${title} reference`,
    description: `The reference of the ${title}: guides, every operation with code samples, every schema and error.`,
    bar: html`<button type="button" class="menu" popovertarget="navigation" aria-label="Menu">${icon('menu')}</button>
<a class="brand" href="#top"><img src="${picture}" alt="" width="24" height="24">${document.info.title}</a>
<button type="button" class="find scripted" id="open-search">${icon('search')}<span>Search</span><kbd>/</kbd></button>`,
    content: html`${navigation}
${main}
<dialog id="search" aria-label="Search">
<input id="search-text" type="text" role="combobox" aria-expanded="true" aria-controls="search-results" aria-autocomplete="list" aria-label="Search" placeholder="Operations, fields, errors, guides" autocomplete="off" spellcheck="false">
<div id="search-results" role="listbox" aria-label="Results"></div>
<p id="search-state" role="status"></p>
</dialog>`,
  }
}
