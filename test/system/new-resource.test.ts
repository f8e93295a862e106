import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { addCustomer, resource } from '../support/new-resource.js'
import { freePort } from '../support/ports.js'
import { runNode, type Started, startGateway } from '../support/process.js'

// Adds a resource the way CONTRIBUTING.md describes: a model, a file in schema/, a line in schema/index.ts, `npm run migration`,
// and nothing in src/.

let folder: string
let written: string
let gateway: Started
let key: string
let port: number
const cleanups: (() => unknown)[] = []

const run = promisify(execFile)
const edit = async (path: string, change: (text: string) => string) =>
  writeFile(join(folder, path), change(await readFile(join(folder, path), 'utf8')))
const script = async (name: string, ...args: string[]) =>
  (await run('npm', ['run', name, '--', ...args], { cwd: folder })).stdout
const fileOf = (name: string) => `test/${name}.test.ts`
/** What vitest's JSON reporter writes. */
interface Results {
  testResults: { assertionResults: { fullName: string; status: string; failureMessages: string[] }[] }[]
}
const settings = () => ({ DATA_DIR: join(folder, 'data'), EMBEDDED_DB_PORT: String(port) })
const start = () => startGateway(settings(), (cleanup) => cleanups.push(cleanup), folder)

beforeAll(async () => {
  port = await freePort()
  folder = await mkdtemp(join(tmpdir(), 'petstore-resource-'))
  const { stdout } = await run('git', ['ls-files', '--cached', '--others', '--exclude-standard'])
  for (const path of stdout.trim().split('\n')) if (existsSync(path)) await cp(path, join(folder, path))
  await symlink(resolve('node_modules'), join(folder, 'node_modules'))
  await addCustomer(folder)
  written = await script('migration', 'customers')
  await script('build')
  gateway = await start()
  key = JSON.parse(await readFile(join(folder, 'data/demo-keys.json'), 'utf8')).Business
})
afterAll(async () => {
  for (const cleanup of cleanups) await cleanup()
  await rm(folder, { recursive: true, force: true })
})

async function ask(path: string, { headers = {}, ...init }: RequestInit & { headers?: Record<string, string> } = {}) {
  const all = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers }
  const response = await fetch(gateway.url + path, { headers: all, ...init })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text && JSON.parse(text) }
}

const send = async (query: string, variables = {}, headers = {}) =>
  (await ask('/graphql', { method: 'POST', body: JSON.stringify({ query, variables }), headers })).body
const post = (path: string, body: unknown, headers = {}) =>
  ask(path, { method: 'POST', body: JSON.stringify(body), headers })
const patch = (path: string, body: unknown, headers = {}) =>
  ask(path, { method: 'PATCH', body: JSON.stringify(body), headers })
const codes = ({ errors }: { errors: { extensions: { code: string } }[] }) =>
  errors.map(({ extensions }) => extensions.code)

/** A connection to the database, until the test ends. */
async function openAdmin() {
  const admin = new pg.Client(`postgresql://postgres@127.0.0.1:${port}/postgres`)
  await admin.connect()
  onTestFinished(() => admin.end())
  return admin
}

test('its file is declarations: at most 60 lines', () => {
  expect(resource.trim().split('\n').length).toBeLessThanOrEqual(60)
})

test('npm run migration says what it has added to the model, and writes one migration, after which nothing is missing', async () => {
  expect(written).toContain('prisma/schema.prisma, model Customer: plainName String @default("") @ignore\n')
  expect(written).toContain('prisma/schema.prisma, model Customer: @@index([plainName, name, id])\n')
  expect(written.match(/^prisma\/migrations\/\d{14}_\w+/gm)).toEqual([
    expect.stringMatching(/^prisma\/migrations\/\d{14}_customers$/),
  ])
  expect(await script('migration', 'again')).toContain(
    'The migrations have all that prisma/schema.prisma and the lists need.',
  )
})

test('its rows are in the sample data of a first start, and the document has them as examples', async () => {
  const { body } = await ask('/customers')
  expect(body[0]).toEqual({ id: 1, name: 'Ada', email: 'ada@example.com', phone: '+44 20 7946 0000', categoryId: 2 })
  expect(body).toHaveLength(5)
  const { paths } = (await ask('/openapi.json')).body
  const example = ({ content }: { content: Record<string, { example: unknown }> }) =>
    content['application/json']?.example
  const { plain, expanded } = paths['/customers'].get.responses[200].content['application/json'].examples
  expect(plain.value).toEqual([body[0]])
  expect(expanded.value).toEqual((await ask('/customers?limit=1&expand=category')).body)
  const { requestBody, responses } = paths['/customers'].post
  expect(example(requestBody)).toMatchObject({ name: 'Ada', email: 'grace@example.com' })
  expect(example(responses[201])).toMatchObject({ id: 1, name: 'Ada', email: 'grace@example.com' })
  const admin = await openAdmin()
  await admin.query('TRUNCATE customers RESTART IDENTITY')
})

test('over REST: create, read, list, pagination, validation', async () => {
  const created = await post('/customers', { name: ' Ada ', email: 'ada@example.com' })
  expect([created.status, created.body]).toEqual([201, { id: 1, name: 'Ada', email: 'ada@example.com' }])
  expect(created.headers.get('location')).toMatch(/\/customers\/1$/)
  await post('/customers', { name: 'Émile', email: 'emile@example.com', phone: '1', categoryId: 2 })
  expect((await ask('/customers/2')).body).toEqual({
    id: 2,
    name: 'Émile',
    email: 'emile@example.com',
    phone: '1',
    categoryId: 2,
  })
  const first = await ask('/customers?limit=1')
  expect(first.body).toEqual([created.body])
  expect(first.headers.get('link')).toMatch(/<[^>]+\/customers\?limit=1&after=1>; rel="next"/)
  expect((await ask('/customers?limit=1&after=1')).headers.has('link')).toBe(false)
  expect((await post('/customers', { name: 'Ada' })).body).toEqual({
    code: 'invalid_request',
    message: 'email is required.',
    status: 400,
  })
  expect((await post('/customers', [])).body.message).toBe('The body is an empty list; it must be a JSON object.')
  expect((await post('/customers', { name: 'Eve', email: 'eve@example.com', categoryId: 99 })).body).toMatchObject({
    code: 'unknown_reference',
    message: 'categoryId 99 does not exist.',
  })
  expect((await ask('/customers/4711')).body).toMatchObject({ message: 'There is no customer 4711.' })
  expect((await post('/customers', { name: 'Eve', email: 'eve' })).body.message).toBe(
    'email is "eve"; it must be an e-mail address.',
  )
  expect((await ask('/customers', { method: 'DELETE' })).headers.get('allow')).toBe('GET, HEAD, POST')
})

test('an optional column is cleared by null, by PATCH and in a batch', async () => {
  expect((await patch('/customers/2', { phone: null, categoryId: null })).body).not.toHaveProperty('phone')
  expect((await patch('/customers/batch', [{ id: 2, phone: '2' }])).body[0].phone).toBe('2')
  expect((await patch('/customers/batch', [{ id: 2, phone: null }])).body[0]).not.toHaveProperty('phone')
  expect((await patch('/customers/2', { name: null })).status).toBe(400)
  expect((await patch('/customers/2', { phone: '1', categoryId: 2 })).status).toBe(200)
})

test('the same e-mail twice is a conflict that names the field, however it is sent', async () => {
  const [ada, emile] = ['ada@example.com', 'emile@example.com']
  const conflict = (field = 'email') => ({
    status: 409,
    body: { code: 'conflict', message: `${field} is already taken: it must be unique.`, status: 409 },
  })
  expect(await post('/customers', { name: 'Eve', email: ada })).toMatchObject(conflict())
  expect(await patch('/customers/2', { email: ada })).toMatchObject(conflict())
  const key = { 'idempotency-key': 'eve' }
  for (const replayed of [null, 'true']) {
    const answer = await post('/customers', { name: 'Eve', email: ada }, key)
    expect(answer).toMatchObject(conflict())
    expect(answer.headers.get('idempotency-replayed')).toBe(replayed)
  }
  expect(await patch('/customers/2', { email: ada }, { 'if-match': '*' })).toMatchObject(conflict())
  const eve = { name: 'Eve', email: 'eve@example.com' }
  expect(await post('/customers/batch', [eve, { name: 'Max', email: emile }])).toMatchObject(conflict('[1].email'))
  expect(await post('/customers/batch', [eve, eve])).toMatchObject(conflict('[1].email'))
  expect(
    await patch('/customers/batch', [
      { id: 2, phone: '3' },
      { id: 1, email: emile },
    ]),
  ).toMatchObject(conflict('[1].email'))
  const create = 'createCustomer(input: { name: "Eve", email: $email }) { id }'
  const both = `($email: String!) { a: ${create} b: createCustomer(input: { name: "Zoe", email: "zoe@example.com" }) { name } }`
  const { data, errors } = await send(`mutation ${both}`, { email: ada })
  expect(data).toEqual({ a: null, b: { name: 'Zoe' } })
  expect(errors).toMatchObject([{ message: conflict().body.message, path: ['a'], extensions: { code: 'conflict' } }])
  const atomic = await send(`mutation ($email: String!) @atomic { ${create} }`, { email: ada })
  expect([atomic.data, codes(atomic)]).toEqual([null, ['conflict']])
  expect((await ask('/customers')).body.map(({ name }: { name: string }) => name)).toEqual(['Ada', 'Émile', 'Zoe'])
})

test('lists are in two orders, searched whatever the case and the accents, counted, and paged in both on both surfaces', async () => {
  const names = ({ body }: { body: { name: string }[] }) => body.map(({ name }) => name)
  expect(names(await ask('/customers?sort=name&direction=desc'))).toEqual(['Zoe', 'Émile', 'Ada'])
  expect(names(await ask('/customers?search=eM&sort=name'))).toEqual(['Émile'])
  expect(names(await ask('/customers?categoryId=2'))).toEqual(['Émile'])
  expect((await ask('/customers?count=true')).headers.get('x-total-count')).toBe('3')
  const [, next] = /<([^>]+)>/.exec((await ask('/customers?sort=name&limit=1')).headers.get('link') ?? '') ?? []
  const { pathname, search } = new URL(next ?? '')
  expect(names(await ask(pathname + search))).toEqual(['Émile'])
  const query =
    '{ customersConnection(last: 1, sort: name) { totalCount edges { cursor node { name } } pageInfo { hasPreviousPage } } }'
  expect((await send(query)).data.customersConnection).toEqual({
    totalCount: 3,
    edges: [{ cursor: expect.any(String), node: { name: 'Zoe' } }],
    pageInfo: { hasPreviousPage: true },
  })
})

test('relations lead both ways, and protect what is referred to', async () => {
  const query = '{ category(categoryId: 2) { id customers { name category { id } } } customers { category { id } } }'
  expect(await send(query)).toEqual({
    data: {
      category: { id: 2, customers: [{ name: 'Émile', category: { id: 2 } }] },
      customers: [{ category: null }, { category: { id: 2 } }, { category: null }],
    },
  })
  const expanded = await ask('/customers?expand=category')
  expect(expanded.body.map(({ category }: { category?: { id: number } }) => category?.id)).toEqual([
    undefined,
    2,
    undefined,
  ])
  expect((await ask('/categories?expand=customers')).status).toBe(400)
  const none = 'mutation { updateCustomer(customerId: 2, input: { categoryId: null }) { category { id } } }'
  expect(await send(none)).toEqual({ data: { updateCustomer: { category: null } } })
  await patch('/customers/2', { categoryId: 2 })
  const { body } = await post('/categories', { name: 'Dragons' })
  await patch('/customers/1', { categoryId: body.id })
  expect((await ask(`/categories/${body.id}`, { method: 'DELETE' })).body).toMatchObject({
    code: 'conflict',
    message: `Category ${body.id} has pets or customers. Delete or change them first.`,
  })
  await patch('/customers/1', { categoryId: null })
  expect((await ask(`/categories/${body.id}`, { method: 'DELETE' })).status).toBe(204)
})

test('it has tags, and changes under a condition, on both surfaces; it is read again by its nodeId', async () => {
  const etag = async () => (await ask('/customers/2')).headers.get('etag') ?? ''
  const rename = async (name: string, ifMatch: string) =>
    (await patch('/customers/2', { name }, { 'if-match': ifMatch })).status
  const before = await etag()
  expect((await ask('/customers/2', { headers: { 'if-none-match': before } })).status).toBe(304)
  expect(await rename('Emil', before)).toBe(200)
  expect(await rename('Ada', before)).toBe(412)
  const update = `mutation ($ifMatch: String) { updateCustomer(customerId: 2, input: { name: "Émile" }, ifMatch: $ifMatch) { etag nodeId } }`
  expect(codes(await send(update, { ifMatch: before }))).toEqual(['precondition_failed'])
  const { etag: after, nodeId } = (await send(update, { ifMatch: await etag() })).data.updateCustomer
  expect(after).toBe(before)
  const read = 'query ($nodeId: ID!) { node(nodeId: $nodeId) { ... on Customer { name } } }'
  expect((await send(read, { nodeId })).data).toEqual({ node: { name: 'Émile' } })
})

test('batches write all or none, and cost what they say', async () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => ({ name: 'Bo', email: `bo${i}@example.com` }))
  const created = await post('/customers/batch', many(11))
  expect([created.status, created.headers.get('x-ratelimit-cost')]).toEqual([201, '2'])
  const ids: number[] = created.body.map(({ id }: { id: number }) => id)
  expect((await patch('/customers/batch', [{ id: ids[0], name: 'Mo' }, { id: 4711 }])).body).toMatchObject({
    code: 'not_found',
    message: 'There is no customer 4711, which [1] names.',
  })
  expect((await ask(`/customers/${ids[0]}`)).body.name).toBe('Bo')
  expect((await post('/customers/batch', many(101))).status).toBe(400)
  for (const id of ids) expect((await ask(`/customers/${id}`, { method: 'DELETE' })).status).toBe(204)
  const [{ id }] = (await ask('/customers?search=Zoe&sort=name')).body
  expect((await send(`mutation { deleteCustomer(customerId: ${id}) { name } }`)).data).toEqual({
    deleteCustomer: { name: 'Zoe' },
  })
})

test('it counts in the quota on both surfaces', async () => {
  const remaining = async () => (await ask('/quota')).body.minute.remaining
  const before = await remaining()
  const query = '{ customers(limit: 1) { name } customer(customerId: 2) { id } }'
  expect((await send(query)).data).toEqual({ customers: [{ name: 'Ada' }], customer: { id: 2 } })
  expect(before - (await remaining())).toBe(2)
  await ask('/customers')
  expect(before - (await remaining())).toBe(3)
})

test('it is in the OpenAPI document and in the GraphQL schema: examples, bounds, conflicts, its tag, its stability', async () => {
  const { paths, components, tags } = (await ask('/openapi.json')).body
  expect(tags.map(({ name }: { name: string }) => name)).toEqual(['Pets', 'Store', 'Customers'])
  expect(Object.keys(paths['/customers'])).toEqual(['get', 'post'])
  expect(paths['/customers/{customerId}'].get).toMatchObject({
    operationId: 'getCustomer',
    tags: ['Customers'],
    'x-stability': 'beta',
    parameters: [{ name: 'customerId', in: 'path', example: 1 }, { name: 'expand' }, { name: 'If-None-Match' }],
  })
  const conflicting = Object.entries(paths as Record<string, Record<string, { responses: object }>>).flatMap(
    ([path, item]) =>
      path.startsWith('/customers')
        ? Object.entries(item).flatMap(([method, { responses }]) => ('409' in responses ? `${method} ${path}` : []))
        : [],
  )
  expect(conflicting.sort()).toEqual([
    'patch /customers/batch',
    'patch /customers/{customerId}',
    'post /customers',
    'post /customers/batch',
  ])
  expect(components.schemas.NewCustomer).toMatchObject({
    required: ['name', 'email'],
    properties: { name: { maxLength: 100, example: 'Ada' } },
  })
  expect(components.schemas.NewCustomer.properties.phone).not.toHaveProperty('nullable')
  expect(components.schemas.CustomerUpdate.properties.phone.nullable).toBe(true)
  const sdl = await (await fetch(`${gateway.url}/schema.graphql`)).text()
  expect(sdl).toContain('createCustomer(')
})

test('it is in the reference, under its name, with its stability', async () => {
  const html = await (await fetch(`${gateway.url}/docs`)).text()
  for (const id of [
    'operation-listCustomers',
    'operation-createCustomer',
    'schema-NewCustomer.name',
    'customers-customers',
  ])
    expect(html).toContain(`id="${id}"`)
  expect(html).toContain('<h3>Customers</h3>')
  expect(html).toMatch(/href="#operation-getCustomer"><span>Get a customer <span class="mark beta">/)
})

test('admins read what its columns mean, and cannot store what the API could not bear', async () => {
  const admin = await openAdmin()
  const { rows } = await admin.query(
    `SELECT obj_description('customers'::regclass) AS "table", col_description('customers'::regclass, 2) AS "name"`,
  )
  expect(rows).toEqual([{ table: 'Somebody who buys pets.', name: "The customer's name." }])
  const insert = (id: number, name: string) =>
    admin.query('INSERT INTO "customers" ("id", "name", "email") VALUES ($1, $2, $2)', [id, name])
  await expect(insert(1_000, 'x'.repeat(101))).rejects.toThrow('name must have 1 to 100 characters')
  await expect(insert(1_000, 'Émilie ')).rejects.toThrow('name must not begin or end with white space')
  await expect(insert(0, 'zero')).rejects.toThrow('id must be from 1 to 9007199254740991')
  await insert(1_000, 'ÉMILIE')
  const emil = await post('/customers', { name: 'emil', email: 'emil@example.com' })
  expect(emil.body.id).toBe(1_001)
  const found = (await ask('/customers?search=%C3%A9mil&sort=name')).body
  expect(found.map(({ name }: { name: string }) => name)).toEqual(['emil', 'Émile', 'ÉMILIE'])
  for (const id of [1_000, 1_001]) await ask(`/customers/${id}`, { method: 'DELETE' })
})

// With the embedded database, as `npm test` does in a fresh clone.
test('every test that derives from the schema, its lists or the sample data passes with it, and asks it, too', async () => {
  await script('contract')
  const tests = await readdir(join(folder, 'test'), { withFileTypes: true })
  const names = tests.flatMap(({ name }) => (name.endsWith('.test.ts') ? `test/${name}` : []))
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
  const deriving = names.filter((_, i) => /(schema|resources)\/index\.js|prisma\/seed\.js/.test(texts[i] ?? ''))
  expect(deriving).toEqual(expect.arrayContaining(['access', 'parity', 'hostile-input', 'openapi-truth'].map(fileOf)))
  const files = [...deriving, ...['categories', 'idempotency', 'lists', 'migrations'].map(fileOf)]
  // Those that fail are in its output.
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--reporter=json', '--outputFile=results.json', ...files]
  const { code } = await runNode(vitest, folder)
  const { testResults } = JSON.parse(await readFile(join(folder, 'results.json'), 'utf8')) as Results
  const results = testResults.flatMap(({ assertionResults }) => assertionResults)
  expect(results.filter(({ status }) => status === 'failed')).toEqual([])
  expect(code).toBe(0)
  expect(results.filter(({ fullName }) => /customer/i.test(fullName)).length).toBeGreaterThan(200)
  // A third of npm test runs in this one test: beside others, on a slow machine, that takes longer than any other test may.
}, 1_800_000)

test('a list that needs more is refused at the start in one line; its migrations fill what is there, also beside others', async () => {
  await edit('prisma/schema.prisma', (text) =>
    text.replace(
      /^ {2}phone .*\n/m,
      '$&  /// The customer was born on this day.\n  born DateTime? @db.Timestamptz(3)\n',
    ),
  )
  await edit('schema/customer.ts', (text) =>
    text
      .replace("sorts: ['name']", "sorts: ['name', 'email', 'born']")
      .replace("textKeys: { name: 'plainName' }", "textKeys: { name: 'plainName', email: 'plainEmail' }")
      .replace("['categoryId']]", "['categoryId'], ['email'], ['born']]"),
  )
  await script('build')
  expect(await gateway.stop()).toBe(0)
  const { code, stderr } = await runNode(['dist/src/main.js'], folder, settings())
  expect([code, stderr]).toEqual([
    1,
    'the list customers needs an index of "customers" on ("plainEmail" COLLATE "C", "email" COLLATE "C", "id"), which the database does not have: for a new list, npm run migration -- customers writes it\n',
  ])
  const names = (await script('migration', 'customers')).match(/(?<=^prisma\/migrations\/\d{14}_)\w+/gm)
  expect(names).toEqual([
    'customers',
    'customers_fill_plainemail',
    'customers_customers_plainemail_email_id_idx',
    'customers_customers_born_id_idx',
  ])
  await script('build')
  gateway = await start()
  const emails = async (sort: string) =>
    (await ask(`/customers?sort=${sort}&direction=desc`)).body.map(({ email }: { email: string }) => email)
  expect(await emails('email')).toEqual(['emile@example.com', 'ada@example.com'])
  expect(await emails('born')).toEqual(['emile@example.com', 'ada@example.com'])
})

test('what takes something away, or a moment without a time zone, is no migration that the tool writes', async () => {
  const schema = await readFile(join(folder, 'prisma/schema.prisma'), 'utf8')
  const refused = async (change: (text: string) => string) => {
    await edit('prisma/schema.prisma', () => change(schema))
    const { stderr } = await script('migration', 'refused').catch((error) => error)
    return stderr
  }
  const without = await refused((text) => text.replace(/^( {2}email .*) @unique/m, '$1'))
  expect(without).toMatch(
    /^migrations only add \(CONTRIBUTING.md\).* write it by hand: DROP INDEX "customers_email_key"/m,
  )
  const zoneless = await refused((text) => text.replace(/^ {2}born .*\n/m, '$&  met DateTime?\n'))
  expect(zoneless).toContain('met has no time zone: add @db.Timestamptz(3) to it')
})
