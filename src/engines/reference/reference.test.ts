import { expect, test } from 'vitest'
import { createPage, html, type OpenApiDocument } from './index.js'

const document: OpenApiDocument = {
  info: { title: 'Library', version: '2.1.0' },
  servers: [{ url: 'https://library.example' }],
  tags: [{ name: 'Books', description: 'What can be borrowed.' }],
  paths: {
    '/books/{id}': {
      get: {
        operationId: 'getBook',
        summary: 'Read a book',
        description: 'With its <b>title</b>.',
        tags: ['Books'],
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer', minimum: 1 }, example: 7 }],
        responses: {
          200: {
            description: 'The book.',
            headers: {},
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Book' } } },
          },
        },
        'x-codeSamples': [{ lang: 'Shell', label: 'curl', source: 'curl https://library.example/books/7' }],
      },
    },
  },
  components: {
    schemas: {
      Book: { description: 'A book.', type: 'object', properties: { title: { type: 'string', example: 'Emma' } } },
    },
    headers: {},
  },
}

test('does what its README shows', async () => {
  const page = await createPage(document, '## Loans\n\nA loan lasts two weeks.', { icon: '/icon.svg', links: [] })
  page.title // 'Library API reference'
  html`<body>${page.bar}${page.content}</body>`.text

  expect(page.title).toBe('Library API reference')
  const { text } = html`<body>${page.bar}${page.content}</body>`
  expect(text).toContain('A loan lasts two weeks.')
  for (const address of ['operation-getBook', 'getBook.id', 'schema-Book', 'schema-Book.title', 'loans'])
    expect(text).toContain(`id="${address}"`)
  // Markup in a description is text, and the example of a response is put together from those of its fields.
  expect(text).toContain('With its &lt;b&gt;title&lt;/b&gt;.')
  expect(text).not.toContain('<b>')
  expect(text).toContain('Emma')
})

test('shows the fields of every part of a schema, what a list takes, and each example of a response', async () => {
  const { get } = document.paths['/books/{id}'] as { get: OpenApiDocument['paths'][string][string] }
  const borrower = { type: 'string', description: 'Who has it.' }
  const lent = { allOf: [{ $ref: '#/components/schemas/Book' }, { type: 'object', properties: { borrower } }] }
  const examples = {
    plain: { value: { title: 'Emma' } },
    lent: { summary: '?with=borrower', value: { borrower: 'Ann' } },
  }
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Lent' }, examples } }
  const parameter = {
    name: 'with',
    in: 'query',
    schema: { type: 'array', items: { type: 'string', enum: ['borrower'] } },
  }
  const extended: OpenApiDocument = {
    ...document,
    paths: {
      '/books/{id}': {
        get: { ...get, parameters: [parameter], responses: { 200: { description: 'It.', headers: {}, content } } },
      },
    },
    components: { ...document.components, schemas: { ...document.components.schemas, Lent: lent } },
  }
  const { content: page } = await createPage(extended, '', { icon: '/icon.svg', links: [] })
  const { text } = html`${page}`
  for (const shown of ['schema-Lent.title', 'schema-Lent.borrower']) expect(text).toContain(`id="${shown}"`)
  expect(text).toContain('each one of <code>borrower</code>')
  expect(text).toMatch(/Emma[\s\S]*\?with=borrower[\s\S]*Ann/)
})

const pageOf = async (text: string) => html`${(await createPage(document, text, { icon: '', links: [] })).content}`.text

test('guides are in the groups that comments name, and search finds them by the words of comments, which the page does not show', async () => {
  const text = await pageOf(`Books.

\`\`\`sh
curl https://library.example/books
\`\`\`

Read them.

## Loans

<!-- group: Readers -->
<!-- search: lend, borrow -->

Two weeks.

### Longer

Ask. <!-- kept -->

<!-- search: extend --> <!-- search: more -->

## Fees

<!-- group: Money -->

## Cards

<!-- group: Readers -->`)
  const groups = [...text.matchAll(/<section class="resource" id="(guides-\w+)">|<h4><a href="#(\w+)">/g)]
  expect(groups.map(([, group, guide]) => group ?? guide).filter((id) => id !== 'operation')).toEqual([
    'guides-readers',
    'loans',
    'cards',
    'guides-money',
    'fees',
  ])
  expect(text).toContain('id="loans" class="guide" data-find="Guide" data-title="Loans" data-words="lend, borrow"')
  expect(text).toContain('id="loans-longer" data-find="Guide" data-title="Longer" data-words="extend, more"')
  expect(text).toContain('&lt;!-- kept --&gt;')
  expect(text).not.toMatch(/&lt;!-- (group|search)/)
  // The introduction has its code beside it.
  expect(text).toMatch(/Books\.<\/p>\s*<p>Read them\.<\/p>[\s\S]*<div class="aside">[\s\S]*library\.example\/books/)
})

test('a paragraph of a guide has the code that follows it beside it, then what follows, in the order of the text', async () => {
  const code = (name: string) => `\`\`\`sh\n${name}\n\`\`\``
  const text = await pageOf(
    ['## Guide', 'one', 'two:', code('a1'), code('a2'), 'three', 'four:', code('b')].join('\n\n'),
  )
  const guide = text.slice(text.indexOf('<h4><a href="#guide">'), text.indexOf('id="response-headers"'))
  const blocks = [...guide.matchAll(/<div class="(row|text|aside)">|<p>(\w+):?<\/p>|<code>(\w+)/g)]
  expect(blocks.map(([, box, paragraph, sample]) => box ?? paragraph ?? sample).join(' ')).toBe(
    'row text one row text two aside a1 a2 text three row text four aside b',
  )
})

test('a text without guides makes a page without that part', async () => {
  const text = await pageOf('Only this.')
  expect(text).toContain('<p>Only this.</p>')
  expect(text).not.toMatch(/>Guides</)
})
