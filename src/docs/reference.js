// @ts-nocheck: it runs in browsers, whose globals the server's types must not know.

// A face for Swagger UI, made of its own parts: navigation, guides, marks, samples, a field for the key. Swagger UI
// brings React, keeps the state, draws parameters and responses, and sends what is tried.

const base = new URL('..', import.meta.url)
const title = 'Pet Store API'

const slug = (text) =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')

/** The guides are the sections of the document's description, one for each heading of the second level. */
function parseDescription(description) {
  const [introduction, ...sections] = description.split(/^## +/m)
  const guides = sections.map((section) => {
    const [heading, ...lines] = section.split('\n')
    return { id: slug(heading), title: heading.trim(), text: lines.join('\n').trim() }
  })
  return { introduction: introduction.trim(), guides }
}

const operationId = (tag, id) => `operations-${tag}-${id}`

// Its colours are the style sheet's.
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

  /** The operation as the document has it, with its extensions, expanded or not. */
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

  // Swagger UI draws everything anew whenever anything changes, which for the guides would be slow.
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

  /** The key that is pasted here goes with everything that is tried, and stays in this browser until it is forgotten. */
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
      h('button', { type: 'submit', className: 'btn' }, used ? 'Forget it' : 'Use it'),
      h(
        'p',
        { role: 'status' },
        used
          ? 'What you try goes out with your key, and counts against its quota.'
          : 'Paste a key to try operations from this page. It is kept in this browser only, and sent to this service only.',
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
          ? h('p', { role: 'alert' }, 'The document could not be loaded. Try again in a moment.')
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
      h('a', { className: 'skip', href: '#content' }, 'Skip to the content'),
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
          // The renderer of Markdown would open every link in a new tab, those within the page too.
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

  // Swagger UI's own puts a link into the button, and the button beside three others.
  function OperationSummary({ operationProps, isShown, toggleShown }) {
    const { method, path, summary, tag, operationId: id } = operationProps.toObject()
    const toggle = () => {
      // Its link opens it again only where the address is another.
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
        // A path may break before each of its parts.
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

  // What is chosen for one operation is what the next ones show first.
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

  /** What is drawn only when somebody opens it. */
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
            'Without a key the answer is 401. ',
            h('a', { href: '#key' }, 'Paste yours.'),
          ),
      ),
    headers: (Headers) => (props) =>
      props.headers?.size > 0 && h(Details, { summary: 'Headers', Content: Headers, props }),
    // The key does not belong on the screen.
    curl: (Curl) => (props) =>
      h(Curl, { ...props, request: props.request.update('headers', (headers) => headers.map(masked)) }),
    // What has no title is always open: there is nothing to name the button.
    ModelCollapse: (Collapse) => (props) => (props.title ? h(Collapse, props) : props.children),
    // Names for fields that have none.
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
      // Of the fields of a list this one takes a name, too.
      JsonSchema_integer_int64: (props) => h(props.getComponent('JsonSchema_string'), props),
    },
    wrapComponents,
    rootInjects: { syntaxHighlighting: { styles: { reference: theme }, defaultStyle: theme } },
    statePlugins: {
      spec: {
        wrapSelectors: {
          allowTryItOutFor: () => (state, path, method) =>
            state.getIn(['json', 'paths', path, method, 'x-explorer-enabled']) !== false,
          // What is optional begins empty, or every list would be tried with every filter at once.
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
