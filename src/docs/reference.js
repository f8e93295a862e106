// @ts-nocheck: it runs in browsers, and the server's types do not include their globals.

// A layout for Swagger UI: navigation, guides, labels, code samples, and a field for the API key. Swagger UI provides
// React, keeps the state, renders parameters and responses, and sends try-it requests.

const base = new URL('..', import.meta.url)
const title = 'Pet Store API'

const slug = (text) =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')

/** The guides are the sections of the document's description, one per second-level heading. */
function parseDescription(description) {
  const [introduction, ...sections] = description.split(/^## +/m)
  const guides = sections.map((section) => {
    const [heading, ...lines] = section.split('\n')
    return { id: slug(heading), title: heading.trim(), text: lines.join('\n').trim() }
  })
  return { introduction: introduction.trim(), guides }
}

const operationId = (tag, id) => `operations-${tag}-${id}`

// The style sheet defines the colors.
const theme = {
  hljs: {},
  'hljs-attr': { color: 'var(--code-name)' },
  'hljs-keyword': { color: 'var(--code-word)' },
  'hljs-built_in': { color: 'var(--code-word)' },
  'hljs-literal': { color: 'var(--code-word)' },
  'hljs-string': { color: 'var(--code-string)' },
  'hljs-number': { color: 'var(--code-number)' },
}

const masked = (value, header) => (header.toLowerCase() === 'authorization' ? 'Bearer <your key>' : value)

function plugin({ React, getSystem }) {
  const { createElement: h, Fragment, memo, useEffect, useMemo, useState } = React

  /** The operation in the document, with its extensions, whether it is expanded or not. */
  const operationAt = (path, method) => getSystem().specSelectors.specJson().getIn(['paths', path, method])

  const Method = ({ name }) => h('span', { className: `method ${name}` }, name.toUpperCase())

  function Marks({ operation }) {
    const stability = operation.get('x-stability')
    const sunset = operation.get('x-deprecated-sunset')
    return h(
      Fragment,
      null,
      operation.get('deprecated') && h('span', { className: 'mark deprecated' }, 'deprecated'),
      sunset && h('span', { className: 'mark deprecated' }, 'ends on ', h('time', { dateTime: sunset }, sunset)),
      stability && h('span', { className: `mark ${stability}` }, stability),
    )
  }

  function Navigation({ guides, tags, close }) {
    const [hash, setHash] = useState(location.hash)
    useEffect(() => {
      const update = () => setHash(location.hash)
      addEventListener('hashchange', update)
      return () => removeEventListener('hashchange', update)
    }, [])
    const group = (heading, items) =>
      h(
        'section',
        { key: heading },
        h('h2', null, heading),
        h(
          'ul',
          null,
          items.map(({ id, content }) =>
            h(
              'li',
              { key: id },
              h('a', { href: `#${id}`, 'aria-current': hash === `#${id}` ? 'location' : undefined }, content),
            ),
          ),
        ),
      )
    return h(
      'nav',
      { id: 'navigation', 'aria-label': 'Reference', onClick: (event) => event.target.closest('a') && close() },
      group('Guides', [
        ...guides.map((guide) => ({ id: guide.id, content: guide.title })),
        { id: 'key', content: 'Your API key' },
      ]),
      tags.map(({ name, operations }) =>
        group(
          name,
          operations.map(({ id, method, summary, deprecated }) => ({
            id: operationId(name, id),
            content: h(
              Fragment,
              null,
              deprecated ? h('s', null, summary, h('span', { className: 'unseen' }, ' (deprecated)')) : summary,
              h(Method, { name: method }),
            ),
          })),
        ),
      ),
    )
  }

  // Memoized, because Swagger UI renders everything again on every change, which is slow for the guides.
  const Guides = memo(({ guides }) => {
    const Markdown = getSystem().getComponent('Markdown')
    return guides.map(({ id, title, text }) =>
      h(
        'section',
        { key: id, id, className: 'guide' },
        h('h2', null, h('a', { href: `#${id}` }, title)),
        h(Markdown, { source: text }),
      ),
    )
  })

  /** The key pasted here is sent with every try-it request, and stays in this browser until it is removed. */
  function Key({ authActions, authSelectors, specSelectors }) {
    const [text, setText] = useState('')
    const definitions = specSelectors.securityDefinitions()
    const name = definitions.findKey((definition) => definition.get('scheme') === 'bearer')
    const used = Boolean(authSelectors.authorized().get(name))
    const submit = (event) => {
      event.preventDefault()
      if (used) authActions.logoutWithPersistOption([name])
      else if (text.trim())
        authActions.authorizeWithPersistOption({
          [name]: { name, schema: definitions.get(name), value: text.trim() },
        })
      setText('')
    }
    return h(
      'form',
      { className: 'key', onSubmit: submit },
      h('label', { htmlFor: 'key-text' }, 'API key'),
      h('input', {
        id: 'key-text',
        type: 'password',
        autoComplete: 'off',
        placeholder: used ? 'in use' : 'petstore_…',
        disabled: used,
        value: text,
        onChange: (event) => setText(event.target.value),
      }),
      h('button', { type: 'submit', className: 'btn' }, used ? 'Remove key' : 'Use key'),
      h(
        'p',
        { role: 'status' },
        used
          ? 'Requests from this page use your key and count against its quota.'
          : 'Paste a key to try operations from this page. It is stored in this browser only, and sent to this service only.',
      ),
    )
  }

  function Reference(system) {
    const { specSelectors, layoutActions, getComponent } = system
    const [open, setOpen] = useState(false)
    const json = specSelectors.specJson()
    const { info, paths, tags: groups } = useMemo(() => json.toJS(), [json])
    const { introduction, guides } = useMemo(() => parseDescription(info?.description ?? ''), [info])

    // A link to an operation opens it.
    useEffect(() => {
      if (!paths) return
      const reveal = () => {
        const id = location.hash.slice(1)
        const [kind, tag, operation] = id.split('-')
        if (kind === 'operations' && operation) layoutActions.show(['operations', tag, operation], true)
        document.getElementById(id)?.scrollIntoView()
      }
      reveal()
      addEventListener('hashchange', reveal)
      return () => removeEventListener('hashchange', reveal)
    }, [paths, layoutActions])

    if (!paths)
      return h(
        'main',
        { className: 'swagger-ui loading-page' },
        h('h1', null, title),
        specSelectors.loadingStatus() === 'failed'
          ? h('p', { role: 'alert' }, 'The API document could not be loaded. Reload the page to try again.')
          : h('p', { role: 'status' }, 'Loading …'),
      )

    const tags = groups.map(({ name }) => ({
      name,
      operations: Object.values(paths).flatMap((methods) =>
        Object.entries(methods)
          .filter(([, operation]) => operation.tags?.includes(name))
          .map(([method, operation]) => ({ ...operation, method, id: operation.operationId })),
      ),
    }))
    const Markdown = getComponent('Markdown', true)
    const Operations = getComponent('operations', true)
    const KeyField = getComponent('Key', true)
    return h(
      'div',
      { className: `swagger-ui reference${open ? ' open' : ''}` },
      h('a', { className: 'skip', href: '#content' }, 'Skip to content'),
      h(
        'header',
        null,
        h('a', { className: 'brand', href: '#content' }, title, h('span', null, info.version)),
        h(
          'button',
          {
            type: 'button',
            className: 'btn menu',
            'aria-expanded': open,
            'aria-controls': 'navigation',
            onClick: () => setOpen(!open),
          },
          'Menu',
        ),
        h(Navigation, { guides, tags, close: () => setOpen(false) }),
      ),
      h(
        'main',
        {
          id: 'content',
          tabIndex: -1,
          // The Markdown renderer makes every link open a new tab, even links within the page.
          onClick: (event) => event.target.closest('a[href^="#"]')?.removeAttribute('target'),
        },
        h('h1', null, info.title),
        h(Markdown, { source: introduction }),
        h(
          'ul',
          { className: 'documents' },
          [
            ['openapi.yaml', 'OpenAPI 3.0, YAML'],
            ['openapi.json', 'OpenAPI 3.0, JSON'],
            ['schema.graphql', 'GraphQL schema'],
            ['graphql', 'GraphiQL'],
          ].map(([path, text]) => h('li', { key: path }, h('a', { href: new URL(path, base).href }, text))),
        ),
        h(Guides, { guides }),
        h('section', { id: 'key', className: 'guide' }, h('h2', null, 'Your API key'), h(KeyField)),
        h(Operations),
      ),
    )
  }

  function OperationTag({ tag, tagObj, getComponent, children }) {
    const Markdown = getComponent('Markdown', true)
    return h(
      'section',
      { id: `operations-tag-${tag}`, className: 'tag' },
      h('h2', null, tag),
      h(Markdown, { source: tagObj.getIn(['tagDetails', 'description'], '') }),
      children,
    )
  }

  // Replaces Swagger UI's, which has a link inside the button and three more buttons beside it.
  function OperationSummary({ operationProps, isShown, toggleShown }) {
    const { method, path, summary, tag, operationId: id } = operationProps.toObject()
    const toggle = () => {
      // Without this, its link could not open it again, because the address would not change.
      history.replaceState(null, '', isShown ? location.pathname : `#${operationId(tag, id)}`)
      toggleShown()
    }
    return h(
      'h3',
      { className: 'opblock-summary' },
      h(
        'button',
        { type: 'button', 'aria-expanded': isShown, onClick: toggle },
        h(Method, { name: method }),
        // A long path may wrap before each of its segments.
        h(
          'code',
          null,
          path.split(/(?=\/)/).flatMap((part, index) => [h('wbr', { key: index }), part]),
        ),
        h('span', { className: 'summary' }, summary),
        h(Marks, { operation: operationAt(path, method) }),
      ),
    )
  }

  // The language chosen for one operation is the default for the next ones.
  let language = 'curl'
  const grammars = { curl: 'bash', JavaScript: 'javascript', Python: 'text' }

  function Samples({ operation, getComponent }) {
    const [chosen, choose] = useState(language)
    const samples = operation.get('x-codeSamples')?.toJS() ?? []
    const sample = samples.find(({ label }) => label === chosen) ?? samples[0]
    const HighlightCode = getComponent('HighlightCode', true)
    if (!sample) return null
    return h(
      'section',
      { className: 'samples' },
      h('h4', null, 'Code sample'),
      h(
        'div',
        { role: 'group', 'aria-label': 'Language', className: 'choices' },
        samples.map(({ label }) =>
          h(
            'button',
            {
              key: label,
              type: 'button',
              'aria-pressed': label === sample.label,
              onClick: () => {
                language = label
                choose(label)
              },
            },
            label,
          ),
        ),
      ),
      h(HighlightCode, { language: grammars[sample.label] ?? 'text', canCopy: true }, sample.source),
    )
  }

  /** Renders its content only when it is open. */
  function Details({ summary, Content, props }) {
    const [open, setOpen] = useState(false)
    return h(
      'details',
      { onToggle: (event) => setOpen(event.currentTarget.open) },
      h('summary', null, summary),
      open && h(Content, props),
    )
  }

  const wrapComponents = {
    parameters: (Parameters) => (props) => {
      const operation = operationAt(...props.pathMethod)
      const reason = operation.get('x-no-try-it-reason', 'This operation cannot be tried from this page.')
      return h(
        Fragment,
        null,
        h(Samples, { operation, getComponent: props.getComponent }),
        !props.allowTryItOut &&
          h(
            'div',
            { className: 'no-try' },
            h('button', { type: 'button', className: 'btn', disabled: true }, 'Try it out'),
            h('p', null, reason),
          ),
        h(Parameters, props),
      )
    },
    execute: (Execute) => (props) =>
      h(
        Fragment,
        null,
        h(Execute, props),
        getSystem().authSelectors.authorized().size === 0 &&
          h(
            'p',
            { className: 'no-key' },
            'Without a key this returns 401. ',
            h('a', { href: '#key' }, 'Paste your key.'),
          ),
      ),
    headers: (Headers) => (props) =>
      props.headers?.size > 0 && h(Details, { summary: 'Headers', Content: Headers, props }),
    // The key must not show on the screen.
    curl: (Curl) => (props) =>
      h(Curl, { ...props, request: props.request.update('headers', (headers) => headers.map(masked)) }),
    // Without a title it is always open, because its button would have no name.
    ModelCollapse: (Collapse) => (props) => (props.title ? h(Collapse, props) : props.children),
    // Labels for fields that have none, for screen readers.
    ExamplesSelect: (Select) => (props) =>
      props.examples.size > 1 && h('label', null, h('span', { className: 'unseen' }, 'Example'), h(Select, props)),
    JsonSchemaForm: (Form) => (props) =>
      props.schema.get('type') === 'array' && !props.schema.hasIn(['items', 'enum'])
        ? h(Form, props)
        : h('label', null, h('span', { className: 'unseen' }, props.description), h(Form, props)),
    TextArea: (TextArea) => (props) => h(TextArea, { 'aria-label': 'Request body', ...props }),
  }

  return {
    components: {
      Reference,
      Key,
      OperationTag,
      OperationSummary,
      // Unlike the default field for list items, this one takes an accessible name.
      JsonSchema_integer_int64: (props) => h(props.getComponent('JsonSchema_string'), props),
    },
    wrapComponents,
    rootInjects: { syntaxHighlighting: { styles: { reference: theme }, defaultStyle: theme } },
    statePlugins: {
      spec: {
        wrapSelectors: {
          allowTryItOutFor: () => (state, path, method) =>
            state.getIn(['json', 'paths', path, method, 'x-explorer-enabled']) !== false,
          // Optional parameters start empty. Otherwise every list would be requested with every filter at once.
          parameterWithMetaByIdentity:
            (select) =>
            (_state, ...which) => {
              const parameter = select(...which)
              return parameter?.get('required')
                ? parameter
                : parameter?.delete('example').deleteIn(['schema', 'example'])
            },
        },
      },
    },
  }
}

SwaggerUIBundle({
  url: new URL('openapi.json', base).href,
  dom_id: '#reference',
  layout: 'Reference',
  plugins: [plugin],
  syntaxHighlight: { theme: 'reference' },
  persistAuthorization: true,
  defaultModelExpandDepth: 2,
  displayRequestDuration: true,
})
