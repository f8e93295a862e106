import type { Header, OperationObject, Parameter, ResponseObject } from './document.js'
import { exampleOf, fields, flatten, headerFields, pretty, resolve, schemaFields, typeOf, type View } from './fields.js'
import { type Content, html, type Markup } from './html.js'
import { codeBlock } from './markdown.js'

export interface Described {
  path: string
  /** In lower case. */
  method: string
  operation: OperationObject
}

export const address = ({ operation }: Described) => `#operation-${operation.operationId}`

export const badge = (method: string) => html`<span class="method ${method}">${method.toUpperCase()}</span>`

/** Deprecated, experimental, beta. */
export const marks = ({ operation }: Described): Content => [
  operation.deprecated && html` <span class="mark deprecated">deprecated</span>`,
  operation['x-stability'] && html` <span class="mark ${operation['x-stability']}">${operation['x-stability']}</span>`,
]

/** A long path breaks before its segments. */
const breakable = (path: string) => path.split(/(?=\/)/).map((part) => html`<wbr>${part}`)

/** Text beside the code that illustrates it. What follows the text is beside the code, too, and below it on a phone. */
export const row = (text: Content, aside?: Content, more?: Content) =>
  html`<div class="row"><div class="text">${text}</div>${aside && html`<div class="aside">${aside}</div>`}${more && html`<div class="text">${more}</div>`}</div>`

const places = { path: 'Path parameters', query: 'Query parameters', header: 'Request headers' }

const parametersOf = ({ operation }: Described) => operation.parameters ?? []

function parameters(view: View, described: Described): Content {
  const { operation } = described
  const all = parametersOf(described).map((parameter) => resolve<Parameter>(view, parameter))
  return Object.entries(places).map(([place, title]) => {
    const here = all.filter((parameter) => parameter.in === place)
    return (
      here.length > 0 && [
        html`<h5>${title}</h5>`,
        fields(
          view,
          here.map(({ name, schema, description, required }) => ({
            name,
            schema,
            description: description ?? schema.description,
            required,
            id: `${operation.operationId}.${name}`,
            title: name,
            kind: `Parameter of ${operation.operationId}`,
          })),
        ),
      ]
    )
  })
}

function requestBody(view: View, { operation }: Described): Content {
  const { content, description } = operation.requestBody ?? {}
  const [media] = Object.values(content ?? {})
  if (!content || !media?.schema) return
  return html`<h5>Request body <span class="type">${typeOf(media.schema)}</span></h5>
<p>${description} Sent as ${Object.keys(content).map((type, index) => [index > 0 && ' or ', html`<code>${type}</code>`])}.</p>
${schemaFields(view, media.schema)}`
}

const languages: Record<string, string> = { Shell: 'bash', JavaScript: 'javascript', Python: 'python' }

const samples = ({ operation }: Described) => html`<div class="samples">
<div class="tabs" role="group" aria-label="Language">${operation['x-codeSamples'].map(
  ({ label }) => html`<button type="button" data-language="${label}">${label}</button>`,
)}</div>
${operation['x-codeSamples'].map(
  ({ lang, label, source }) =>
    html`<div class="panel" data-language="${label}">${codeBlock(source, languages[lang])}</div>`,
)}
</div>`

/** A field of the form that tries the operation. */
function input(view: View, { name, in: place, schema, required, example }: Parameter): Markup {
  const flat = flatten(view, schema)
  const values = flat.enum ?? (flat.type === 'boolean' ? [true, false] : undefined)
  const attributes = html`name="${name}" data-in="${place}"${required && html` required`}`
  const control = values
    ? html`<select ${attributes}><option></option>${values.map((value) => html`<option>${String(value)}</option>`)}</select>`
    : html`<input ${attributes} autocomplete="off" spellcheck="false"${
        required
          ? html` value="${String(example ?? '')}"`
          : html` placeholder="${[example].flat().slice(0, 2).join(', ')}"`
      }${flat.type === 'array' && html` data-list`}>`
  return html`<label><code>${name}</code>${control}</label>`
}

/** The form that sends the operation. The script of the page makes it work. */
function trial(view: View, described: Described): Markup {
  const { operation, method, path } = described
  const reason = operation['x-no-try-it-reason']
  if (reason) return html`<div class="no-try"><button type="button" disabled>Try it</button><p>${reason}</p></div>`
  const body = Object.entries(operation.requestBody?.content ?? {})[0]
  return html`<details class="try scripted"><summary>Try it</summary>
<form data-method="${method.toUpperCase()}" data-path="${path}">
${parametersOf(described).map((parameter) => input(view, resolve<Parameter>(view, parameter)))}
${body && html`<label><span>Body</span><textarea name="body" data-type="${body[0]}" rows="${pretty(body[1].example).split('\n').length}" spellcheck="false">${pretty(body[1].example)}</textarea></label>`}
<p class="send"><button type="submit">Send ${method.toUpperCase()}</button> <span class="keyless">Without a key this returns 401. <button type="button" class="link" popovertarget="key">Add your key</button></span></p>
</form>
<p class="result" role="status"></p>
<div class="answer"></div>
</details>`
}

/** Headers that several operations send are described in one place. */
const headerLink = ({ document }: View, name: string) =>
  name in document.components.headers
    ? html`<a href="#header-${name}"><code>${name}</code></a>`
    : html`<code>${name}</code>`

const isError = (status: string) => Number(status) >= 400

const difference = <T>(from: Record<string, T>, ...others: Record<string, unknown>[]) =>
  Object.fromEntries(Object.entries(from).filter(([name]) => !others.some((other) => name in other)))

/** @param common the headers that every response of every operation has: they are described once */
export function operationSection(view: View, described: Described, common: Record<string, Header>): Markup {
  const { operation, method, path } = described
  const { operationId, summary, description, responses } = operation
  const all = Object.entries(responses).map(([status, response]) => ({
    status,
    ...resolve<ResponseObject>(view, response),
  }))
  const successes = all.filter(({ status }) => !isError(status))
  const errors = all.filter(({ status }) => isError(status))
  const sunset = operation['x-deprecated-sunset']
  const shown = successes[0]?.headers ?? {}

  const success = ({ status, description, headers, content }: (typeof all)[number]) => {
    const [media] = Object.values(content ?? {})
    const own = difference(headers, common)
    return row(
      html`<h5>Returns ${status}${media && html` <span class="type">${typeOf(media.schema)}</span>`}</h5>
${view.markdown.block(description)}${media && schemaFields(view, media.schema)}
${Object.keys(own).length > 0 && html`<h6>Headers, beside <a href="#response-headers">those of every response</a></h6>${headerFields(view, own)}`}`,
      media &&
        Object.values(media.examples ?? { '': { value: media.example ?? exampleOf(view, media.schema) } }).map(
          ({ summary, value }) =>
            html`<h5>Example ${status}${summary && html` <span class="type">${summary}</span>`}</h5>${codeBlock(pretty(value), 'json')}`,
        ),
    )
  }

  const refusals = errors.flatMap(({ status, content }) =>
    Object.values(content ?? {}).flatMap(({ examples = {} }) =>
      Object.entries(examples).map(([code, { value }]) => ({ status, code, value })),
    ),
  )
  return html`<article id="operation-${operationId}" data-find="Operation" data-title="${summary}" data-hint="${method.toUpperCase()} ${path} · ${operationId}">
${row(
  html`<h4><a href="${address(described)}">${summary}</a>${marks(described)}</h4>
<p class="endpoint">${badge(method)} <code>${breakable(path)}</code></p>
${sunset && html`<p class="note">Deprecated: it ends on <time datetime="${sunset}">${sunset}</time>.</p>`}
${view.markdown.block(description)}
${parameters(view, described)}
${requestBody(view, described)}`,
  [samples(described), trial(view, described)],
)}
${successes.map(success)}
${row(
  html`<h5>Errors</h5><ul class="errors">${errors.map(({ status, description, headers }) => {
    const own = Object.keys(difference(headers, common, shown))
    return html`<li><span class="status">${status}</span><div>${view.markdown.block(description)}${own.length > 0 && html`<p class="bounds">with ${own.map((name, index) => [index > 0 && ', ', headerLink(view, name)])}</p>`}</div></li>`
  })}</ul>`,
  html`<h5>Examples of errors</h5>${refusals.map(
    ({ status, code, value }, index) =>
      html`<details name="errors-${operationId}"${index === 0 && html` open`}><summary><span class="status">${status}</span> <code>${code}</code></summary>${codeBlock(pretty(value), 'json')}</details>`,
  )}`,
)}
</article>
`
}
