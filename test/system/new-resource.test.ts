import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Started, startGateway } from '../support/process.js'

// Adds a resource the way CONTRIBUTING.md describes: a model, a migration, a file in schema/, a line in schema/index.ts, and
// nothing in src/.

const model = `
/// A company that supplies pets.
model Supplier {
  /// Unique identifier assigned by the service on creation.
  id   BigInt @id @default(autoincrement()) @map("number")
  /// The supplier's name.
  name String

  @@map("suppliers")
}
`

const migration = `CREATE TABLE "suppliers" ("number" BIGSERIAL PRIMARY KEY, "name" TEXT NOT NULL,
  "nameKey" TEXT NOT NULL GENERATED ALWAYS AS ("folded"("name")) STORED);
CREATE INDEX "suppliers_name" ON "suppliers" ("nameKey" COLLATE "C", "name" COLLATE "C", "number");`

const resource = `
import { builder, columnDescription, idArg } from './kit/builder.js'
import { found } from './kit/errors.js'
import { name } from './kit/input/rules.js'
import { addList, beginsWith, defineList } from './kit/lists/define.js'

const Supplier = builder.prismaObject('Supplier', {
  fields: (t) => ({
    id: t.expose('id', { type: 'Int64', example: 7 }),
    name: t.exposeString('name', { example: 'Paws Ltd' }),
  }),
})

const NewSupplier = builder.inputType('NewSupplier', {
  description: 'A supplier to create.',
  fields: (t) => ({ name: t.string({ required: true, validate: name, description: columnDescription('Supplier', 'name') }) }),
})

const suppliers = defineList({
  model: 'Supplier',
  type: Supplier,
  name: 'suppliers',
  key: 'id',
  filters: {
    search: beginsWith('name', { type: 'String', validate: name, description: 'Only suppliers whose name begins with this.', example: 'Paws' }),
  },
  sorts: ['name'],
  indexes: [[], ['name']],
})

addList(suppliers, {
  description: 'The suppliers',
  rest: { method: 'GET', path: '/suppliers', tag: 'Store', summary: 'List suppliers' },
})

builder.queryFields((t) => ({
  supplier: t.field({
    type: Supplier,
    description: 'One supplier.',
    rest: { method: 'GET', path: '/suppliers/{supplierId}', tag: 'Store', summary: 'Get a supplier', stability: 'beta' },
    args: { supplierId: idArg(t.arg, 'Supplier') },
    resolve: async (_root, { supplierId: id }, { reads }) => found(await reads.row('Supplier', 'id', id), 'supplier', id),
  }),
}))

builder.mutationFields((t) => ({
  createSupplier: t.field({
    type: Supplier,
    description: 'Creates a supplier.',
    rest: { method: 'POST', path: '/suppliers', tag: 'Store', summary: 'Create a supplier', location: '/suppliers/{id}' },
    args: { body: t.arg({ type: NewSupplier, required: true, description: 'The supplier to create.' }) },
    resolve: (_root, { body }, { writes }) => writes.create('Supplier', body),
  }),
  updateSupplier: t.field({
    type: Supplier,
    description: 'Renames a supplier.',
    rest: { method: 'PATCH', path: '/suppliers/{supplierId}', tag: 'Store', summary: 'Rename a supplier' },
    args: { supplierId: idArg(t.arg, 'Supplier'), body: t.arg({ type: NewSupplier, required: true, description: 'What changes.' }) },
    resolve: async (_root, { supplierId: id, body }, { writes }) =>
      found(await writes.update('Supplier', { ...body, id }), 'supplier', id),
  }),
}))
`

let folder: string
let gateway: Started
let key: string
const cleanups: (() => unknown)[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petstore-resource-'))
  for (const path of ['schema', 'src', 'docs/guides', 'prisma', 'package.json', 'tsconfig.json', 'prisma.config.ts'])
    await cp(path, join(folder, path), { recursive: true, filter: (source) => !source.includes('generated') })
  await symlink(resolve('node_modules'), join(folder, 'node_modules'))
  const edit = async (path: string, change: (text: string) => string) =>
    writeFile(join(folder, path), change(await readFile(join(folder, path), 'utf8')))
  await edit('prisma/schema.prisma', (text) => text + model)
  await mkdir(join(folder, 'prisma/migrations/29990101000000_suppliers'))
  await writeFile(join(folder, 'prisma/migrations/29990101000000_suppliers/migration.sql'), migration)
  await writeFile(join(folder, 'schema/supplier.ts'), resource)
  await edit('schema/index.ts', (text) => text.replace("import './kit/quota.js'", "import './supplier.js'\n$&"))
  await promisify(execFile)('npm', ['run', 'build'], { cwd: folder })
  gateway = await startGateway({ DATA_DIR: join(folder, 'data') }, (cleanup) => cleanups.push(cleanup), folder)
  key = /Bearer (\w+)/.exec(gateway.output)?.[1] ?? ''
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

test('a resource declared in schema/ works over REST: create, read, list, pagination, validation', async () => {
  const create = (body: unknown) => ask('/suppliers', { method: 'POST', body: JSON.stringify(body) })
  const created = await create({ name: ' Paws Ltd ' })
  expect([created.status, created.body]).toEqual([201, { id: 1, name: 'Paws Ltd' }])
  expect(created.headers.get('location')).toMatch(/\/suppliers\/1$/)
  await create({ name: 'Claws Ltd' })
  expect((await ask('/suppliers/2')).body).toEqual({ id: 2, name: 'Claws Ltd' })
  const first = await ask('/suppliers?limit=1')
  expect(first.body).toEqual([{ id: 1, name: 'Paws Ltd' }])
  expect(first.headers.get('link')).toMatch(/<[^>]+\/suppliers\?limit=1&after=1>; rel="next"/)
  expect((await ask('/suppliers?limit=1&after=1')).headers.has('link')).toBe(false)
  expect((await create({})).body).toEqual({ code: 'invalid_request', message: 'name is required.', status: 400 })
  expect((await create([])).body.message).toBe('The body is an empty list; it must be a JSON object.')
  expect((await ask('/suppliers/3')).body.code).toBe('not_found')
  expect((await ask('/suppliers', { method: 'DELETE' })).headers.get('allow')).toBe('GET, HEAD, POST')
})

test('it has tags, and changes under a condition, on both surfaces', async () => {
  const etag = async () => (await ask('/suppliers/2')).headers.get('etag') ?? ''
  const rename = async (name: string, ifMatch: string) =>
    (await ask('/suppliers/2', { method: 'PATCH', body: JSON.stringify({ name }), headers: { 'if-match': ifMatch } }))
      .status
  const before = await etag()
  expect((await ask('/suppliers/2', { headers: { 'if-none-match': before } })).status).toBe(304)
  expect(await rename('Fins Ltd', before)).toBe(200)
  expect(await rename('Paws Ltd', before)).toBe(412)
  const query = `mutation ($ifMatch: String) { updateSupplier(supplierId: 2, body: { name: "Claws Ltd" }, ifMatch: $ifMatch) { etag } }`
  const send = async (ifMatch: string) =>
    (await ask('/graphql', { method: 'POST', body: JSON.stringify({ query, variables: { ifMatch } }) })).body
  expect((await send(before)).errors[0].extensions.code).toBe('precondition_failed')
  expect((await send(await etag())).data.updateSupplier).toEqual({ etag: before })
})

test('it works over GraphQL, and counts in the quota on both surfaces', async () => {
  const remaining = async () => (await ask('/quota')).body.minute.remaining
  const before = await remaining()
  const query = '{ suppliers(limit: 1) { name } supplier(supplierId: 2) { id } }'
  const { body } = await ask('/graphql', { method: 'POST', body: JSON.stringify({ query }) })
  expect(body.data).toEqual({ suppliers: [{ name: 'Paws Ltd' }], supplier: { id: 2 } })
  expect(before - (await remaining())).toBe(2)
  await ask('/suppliers')
  expect(before - (await remaining())).toBe(3)
})

test('it is in the OpenAPI document and in the GraphQL schema, with its examples, bounds and stability', async () => {
  const { paths, components } = (await ask('/openapi.json')).body
  expect(Object.keys(paths['/suppliers'])).toEqual(['get', 'post'])
  expect(paths['/suppliers/{supplierId}'].get).toMatchObject({
    operationId: 'getSupplier',
    tags: ['Store'],
    'x-stability': 'beta',
    parameters: [{ name: 'supplierId', in: 'path', example: 7 }, { name: 'If-None-Match' }],
  })
  expect(components.schemas.Supplier.example ?? components.schemas.Supplier.properties.name.example).toBe('Paws Ltd')
  expect(components.schemas.NewSupplier.properties.name).toMatchObject({ maxLength: 100, example: 'Paws Ltd' })
  const sdl = await (await fetch(`${gateway.url}/schema.graphql`)).text()
  expect(sdl).toContain('createSupplier(')
})

test('it is in the reference, under its name, with its stability', async () => {
  const html = await (await fetch(`${gateway.url}/docs`)).text()
  for (const id of [
    'operation-listSuppliers',
    'operation-createSupplier',
    'schema-NewSupplier.name',
    'store-suppliers',
  ])
    expect(html).toContain(`id="${id}"`)
  expect(html).toContain('<h3>Suppliers</h3>')
  expect(html).toMatch(/href="#operation-getSupplier"><span>Get a supplier <span class="mark beta">/)
})
