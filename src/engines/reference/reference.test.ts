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
