import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seed } from '../../prisma/seed.js'
import { type Gateway, openGateway } from '../support/gateway.js'
import { freePort } from '../support/ports.js'

// The files of the guides to clients, in a project of their own, with the clients that are installed in test/generators.

const run = promisify(execFile)
const project = 'test/generators/guide'
const documented = 'https://petstore.example/v1'

let gateway: Gateway
beforeAll(async () => {
  const port = await freePort()
  gateway = await openGateway({
    env: { BASE_URL: `http://127.0.0.1:${port}/v1` },
    seconds: { minute: 2, day: 600, address: 2 },
  })
  await seed(gateway.prisma)
  await gateway.listen(port)

  await rm(project, { recursive: true, force: true })
  const guides = ['12-graphql-clients', '13-admin-interfaces'].map((name) => readFile(`docs/guides/${name}.md`, 'utf8'))
  // A file has its name in a comment, which JSON does not allow.
  const files = [...(await Promise.all(guides)).join('\n').matchAll(/^```\w+\n(?:\/\/ (\S+)\n)?([\s\S]*?)^```$/gm)]
  for (const [, name = 'relay.config.json', code = ''] of files) {
    await mkdir(dirname(`${project}/${name}`), { recursive: true })
    await writeFile(`${project}/${name}`, code.replaceAll(documented, gateway.config.BASE_URL))
  }
  await writeFile(`${project}/schema.graphql`, (await gateway.get('/schema.graphql')).text)
  await run(process.execPath, ['--import', 'tsx', 'test/generators/guide.mjs', project])
  await writeFile(
    `${project}/src/mount.jsx`,
    `import { act, create } from 'react-test-renderer'

globalThis.IS_REACT_ACT_ENVIRONMENT = true
let mounted
export const rows = () => mounted?.root.findAllByType('p').map(({ children: [text] }) => text) ?? []
export const buttons = (label) => mounted.root.findAllByType('button').filter(({ children: [text] }) => text.startsWith(label))
/** Until there are rows, and other ones. */
async function changed(action) {
  const before = String(rows())
  await act(action)
  while (rows().length === 0 || String(rows()) === before) await act(() => new Promise((done) => setTimeout(done, 20)))
}
export const mount = (app) => changed(() => (mounted = create(app)))
export const press = (button) => changed(() => button.props.onClick())
`,
  )
})
afterAll(() => gateway.close())

const execute = async (file: string, key: string) => {
  const { stdout } = await run(process.execPath, ['--import', 'tsx', `${project}/${file}`], {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PETSTORE_KEY: key,
      TSX_TSCONFIG_PATH: `${project}/tsconfig.json`,
    },
  })
  return stdout.trim()
}

// First and one after the other, since they say what is in the store.
describe('the data provider of refine', () => {
  test('shows the pages of a table by their numbers, and what an update has changed', async () => {
    await writeFile(
      `${project}/src/mounted-table.jsx`,
      `import { LowStock } from './LowStock'
import { buttons, mount, press, rows } from './mount'

await mount(<LowStock />)
const shown = () => [...rows(), buttons('Page')[0].children[0]]
const pages = [shown()]
await press(buttons('Page')[0])
pages.push(shown())
await press(buttons('+')[0])
console.log(JSON.stringify([...pages, shown()]))
process.exit()
`,
    )
    expect(JSON.parse(await execute('src/mounted-table.jsx', gateway.key))).toEqual([
      ['4: 2', '1: 3', '5: 4', 'Page 1 of 2'],
      ['7: 6', '9: 12', 'Page 2 of 2'],
      ['7: 7', '9: 12', 'Page 2 of 2'],
    ])
  })

  test('jumps ahead, keeps the total, reads many, and updates and deletes only what was seen', async () => {
    await writeFile(
      `${project}/src/provided.ts`,
      `import { dataProvider } from './data-provider'
import { petstoreFetch } from './petstore-fetch'

const provider = () => dataProvider('${gateway.config.BASE_URL}', petstoreFetch)
const [one, other] = [provider(), provider()]
const status = (promise: Promise<unknown>) => promise.then(() => 200, ({ statusCode }) => statusCode)
const pets = (currentPage: number) => one.getList({
  resource: 'pets',
  pagination: { currentPage, pageSize: 5 },
  sorters: [{ field: 'name', order: 'desc' }],
  filters: [{ field: 'search', operator: 'eq', value: '' }],
})
const jump = await pets(3)
const back = await pets(2)
const { data: many } = await one.getMany!({ resource: 'inventory', ids: [10, 11] })
const orders = await one.getList({ resource: 'store/orders', pagination: { mode: 'off' }, filters: [{ field: 'complete', operator: 'eq', value: false }] })
const refused = await status(one.getList({ resource: 'pets', filters: [{ field: 'search', operator: 'eq', value: 'Re' }] }))
const { data: made } = await one.create({ resource: 'categories', variables: { name: 'Rodents' } })
const { data: pet } = await one.create({ resource: 'pets', variables: { name: 'Zoe', categoryId: made.id } })
const id = pet.id!
const change = (provider: typeof one, name: string) => status(provider.update({ resource: 'pets', id, variables: { name } }))
await other.getOne({ resource: 'pets', id })
const read = await one.getOne({ resource: 'pets', id })
const updates = [await change(one, 'Zora'), await change(one, 'Zelda'), await change(other, 'Zita')]
const deletions = [await status(other.deleteOne({ resource: 'pets', id })), await status(one.deleteOne({ resource: 'pets', id }))]
const gone = await status(one.getOne({ resource: 'pets', id }))
await one.getOne({ resource: 'categories', id: made.id! })
deletions.push(await status(one.deleteOne({ resource: 'categories', id: made.id! })))
const names = (rows: any[]) => rows.map(({ name }) => name)
console.log(JSON.stringify({
  jump: [...names(jump.data), jump.total], back: [...names(back.data), back.total], many: many.map(({ id }) => id),
  orders: orders.total, refused, read: read.data.name, updates, deletions, gone,
}))
`,
    )
    expect(JSON.parse(await execute('src/provided.ts', gateway.key))).toEqual({
      jump: ['Bubbles', 'Bella', 12],
      back: ['Nemo', 'Max', 'Luna', 'Kiwi', 'Finn', 12],
      many: [10, 11],
      orders: 3,
      refused: 400,
      read: 'Zoe',
      updates: [200, 200, 412],
      deletions: [412, 200, 200],
      gone: 404,
    })
  })
})

test.concurrent('the files of the guides compile with strict, and an id is a number', async () => {
  await writeFile(
    `${project}/src/typed.ts`,
    `import type { ResultOf } from '@graphql-typed-document-node/core'
import type { Pets } from './pets'
type Id = NonNullable<ResultOf<typeof Pets>['petsConnection']>['edges'][number]['node']['id']
export const id: Id = 1
// @ts-expect-error: an id is a number
export const text: Id = '1'
`,
  )
  const { stdout } = await run(process.execPath, [
    'node_modules/typescript/bin/tsc',
    '-p',
    `${project}/tsconfig.json`,
  ]).catch((error: { stdout: string }) => error)
  expect(stdout).toBe('')
})

test.concurrent.each([
  ['apollo.ts', 7],
  ['urql.ts', 8],
])(
  '%s reads all pages, waits for its limit without a ban, and finds a mutation in its cache',
  async (file, quantity) => {
    const { key, row } = await gateway.createKey({ plan: 'Enterprise', minuteLimit: 2, dayLimit: 1000 })
    const output = await execute(`src/${file}`, key)
    expect(output).toBe(`12 Bella ${quantity}`)
    expect(await gateway.prisma.apiKey.findUnique({ where: { id: row.id } })).toMatchObject({ bannedUntil: null })
  },
)

test.concurrent('PetList.jsx of Relay pages forward and backward to the same list, and shows what a mutation has changed', async () => {
  await writeFile(
    `${project}/src/mounted-list.jsx`,
    `import { Suspense } from 'react'
import { RelayEnvironmentProvider } from 'react-relay'
import { environment } from './environment'
import { PetList } from './PetList'
import { buttons, mount, press, rows } from './mount'

await mount(<RelayEnvironmentProvider environment={environment}><Suspense><PetList /></Suspense></RelayEnvironmentProvider>)
while (buttons('Next').length) await press(buttons('Next')[0])
const forward = rows()
await press(buttons('To the end')[0])
const end = rows()
while (buttons('Previous').length) await press(buttons('Previous')[0])
const backward = rows()
await press(buttons('+')[8])
console.log(JSON.stringify({ forward, end, backward, after: rows()[8] }))
// Relay keeps what was shown for some minutes.
process.exit()
`,
  )
  const { key, row } = await gateway.createKey({ plan: 'Enterprise', minuteLimit: 2, dayLimit: 1000 })
  const { forward, end, backward, after } = JSON.parse(await execute('src/mounted-list.jsx', key))
  expect(forward).toHaveLength(12)
  expect(forward[8]).toBe('Rex 3')
  const names = (rows: string[]) => rows.map((row) => row.split(' ')[0])
  expect(names(end)).toEqual(names(forward).slice(-5))
  // The other tests change a stock meanwhile.
  expect(names(backward)).toEqual(names(forward))
  expect(after).toBe('Rex 4')
  expect(await gateway.prisma.apiKey.findUnique({ where: { id: row.id } })).toMatchObject({ bannedUntil: null })
})

test.concurrent('a mutation whose answer is lost is sent again, and performed once', async () => {
  let lost = 0
  const port = Number(new URL(gateway.config.BASE_URL).port)
  // Loses the first answer.
  const network = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming
    incoming.pipe(
      request({ port, method, path: url, headers }, (answer) => {
        if (lost++ === 0) return answer.resume().on('end', () => outgoing.destroy())
        outgoing.writeHead(answer.statusCode ?? 0, answer.headers)
        answer.pipe(outgoing)
      }),
    )
  }).listen(0)
  const address = `http://127.0.0.1:${(network.address() as AddressInfo).port}/v1/graphql`
  await writeFile(
    `${project}/src/lost.ts`,
    `import { petstoreFetch } from './petstore-fetch'
const query = 'mutation { createOrder(input: { petId: 4, quantity: 77 }) { id } }'
const headers = { 'Content-Type': 'application/json' }
const response = await petstoreFetch('${address}', { method: 'POST', headers, body: JSON.stringify({ query }) })
console.log(response.status, response.headers.get('idempotency-replayed'))
`,
  )
  expect(await execute('src/lost.ts', gateway.key)).toBe('200 true')
  expect(await gateway.prisma.order.count({ where: { quantity: 77 } })).toBe(1)
  network.close()
})

// It adds pets, which the other tests must not see.
test('Category.jsx of Relay pages below an object by its nodeId, and drops what was deleted', async () => {
  const { id } = await gateway.prisma.category.create({ data: { name: 'Fish' } })
  for (const name of ['Nemo', 'Dory', 'Wanda']) await gateway.prisma.pet.create({ data: { name, categoryId: id } })
  await writeFile(
    `${project}/src/mounted-category.jsx`,
    `import { Suspense } from 'react'
import { RelayEnvironmentProvider } from 'react-relay'
import { Category } from './Category'
import { environment } from './environment'
import { buttons, mount, press, rows } from './mount'

await mount(<RelayEnvironmentProvider environment={environment}><Suspense><Category id={${id}} /></Suspense></RelayEnvironmentProvider>)
const first = rows()
await press(buttons('Next')[0])
const all = rows()
await press(buttons('Delete')[1])
console.log(JSON.stringify({ first, all, left: rows() }))
process.exit()
`,
  )
  const { first, all, left } = JSON.parse(await execute('src/mounted-category.jsx', gateway.key))
  const names = (rows: string[]) => rows.map((row) => row.replace('Delete', '').trim())
  expect([names(first), names(all), names(left)]).toEqual([
    ['Nemo', 'Dory'],
    ['Nemo', 'Dory', 'Wanda'],
    ['Nemo', 'Wanda'],
  ])
})
