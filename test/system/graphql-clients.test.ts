import { execFile } from 'node:child_process'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { isObjectType } from 'graphql'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seed } from '../../prisma/seed.js'
import { schema } from '../../schema/index.js'
import { type Gateway, openGateway } from '../support/gateway.js'
import { filesOf, GuideProject } from '../support/guide-project.js'
import { freePort } from '../support/ports.js'

// The files of the guides to GraphQL clients and to admin interfaces.

const run = promisify(execFile)

let gateway: Gateway
let project: GuideProject
beforeAll(async () => {
  const port = await freePort()
  gateway = await openGateway({
    env: { BASE_URL: `http://127.0.0.1:${port}/v1` },
    seconds: { minute: 2, day: 600, address: 2 },
  })
  await seed(gateway.prisma)
  await gateway.listen(port)

  project = new GuideProject('test/lab/generators/guide', gateway.config.BASE_URL)
  await project.create(filesOf('graphql-clients', 'admin-interfaces'))
  await project.write('schema.graphql', (await gateway.get('/schema.graphql')).text)
  await run(process.execPath, ['--import', 'tsx', 'test/lab/generators/guide.mjs', project.folder])
})
afterAll(() => gateway.close())

// First and one after the other, since they say what is in the store.
describe('the data provider of refine', () => {
  test('shows the pages of a table by their numbers, and what an update has changed', async () => {
    await project.write(
      'src/mounted-table.jsx',
      `import { LowStock } from './LowStock'
import { buttons, mount, press, rows } from '../../mount'

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
    expect(JSON.parse(await project.execute('src/mounted-table.jsx', gateway.key))).toEqual([
      ['4: 2', '1: 3', '5: 4', 'Page 1 of 2'],
      ['7: 6', '9: 12', 'Page 2 of 2'],
      ['7: 7', '9: 12', 'Page 2 of 2'],
    ])
  })

  test.each([
    ['REST', './data-provider', 'dataProvider', '', 'store/orders'],
    ['GraphQL', './graphql-data-provider', 'graphqlDataProvider', '/graphql', 'orders'],
  ])(
    'over %s: jumps ahead, keeps the total, reads many, and changes and deletes what was seen, alone or many at once',
    async (name, file, provider, path, orders) => {
      await project.write(
        `src/provided-${name}.ts`,
        `import { ${provider} } from '${file}'
import { petstoreFetch } from './petstore-fetch'

const provider = () => ${provider}('${gateway.config.BASE_URL}${path}', petstoreFetch)
const [one, other] = [provider(), provider()]
const status = (promise: Promise<unknown>) => promise.then(() => 200, ({ statusCode }) => statusCode)
const eq = (field: string, value: unknown) => ({ field, operator: 'eq' as const, value })
const ids = ({ data }: { data: any[] }) => data.map(({ id }) => id)
const names = ({ data, total }: { data: any[]; total?: number }) => [...data.map(({ name }) => name), total]
const pets = (currentPage: number) => one.getList({
  resource: 'pets',
  pagination: { currentPage, pageSize: 5 },
  sorters: [{ field: 'name', order: 'desc' }],
  filters: [eq('search', '')],
})
const all = (resource: string, ...filters: ReturnType<typeof eq>[]) =>
  one.getList({ resource, pagination: { mode: 'off' }, filters })

const lists = {
  jump: names(await pets(3)),
  back: names(await pets(2)),
  many: ids(await one.getMany!({ resource: 'inventory', ids: ['10', 11] })),
  none: ids(await one.getMany!({ resource: 'pets', ids: [] })),
  ofPet: ids(await all('${orders}', eq('petId', 8))),
  open: (await all('${orders}', eq('complete', false))).total,
}
const refusals = [await status(all('pets', eq('search', 'Re'))), await all('pets', eq('colour', 'red')).catch(({ message }) => /colour/.test(message))]

const { data: made } = await one.create({ resource: 'categories', variables: { name: '${name}' } })
const create = async (name: string) => (await one.create({ resource: 'pets', variables: { name, categoryId: made.id } })).data.id!
const [zoe, yara] = [await create('Zoe'), await create('Yara')]
const change = (provider: typeof one, name: string) => status(provider.update({ resource: 'pets', id: zoe, variables: { name } }))
await other.getOne({ resource: 'pets', id: zoe })
const read = await one.getOne({ resource: 'pets', id: zoe })
const updates = [await change(one, 'Zora'), await change(one, 'Zelda'), await change(other, 'Zita'), await change(other, 'Zita')]

const set = (resource: string, ids: any[], variables: object) => one.updateMany!({ resource, ids, variables })
await one.getOne({ resource: 'pets', id: yara })
const sold = await set('pets', [String(yara), zoe], { status: 'sold' })
const missing = await status(set('inventory', [zoe, 999], { quantity: 4 }))
const { data: kept } = await one.getOne({ resource: 'inventory', id: zoe })
const stock = await set('inventory', [zoe, yara], { quantity: 9 })
const { data: ordered } = await one.create({ resource: '${orders}', variables: { petId: zoe } })
const done = await set('${orders}', [ordered.id], { complete: false, quantity: 5 })
const batches = {
  sold: sold.data.map(({ id, status }: any) => [id === zoe || id === yara, status]),
  seen: await status(one.update({ resource: 'pets', id: yara, variables: { name: 'Yuki' } })),
  missing: [missing, kept.quantity],
  stock: stock.data.map(({ quantity }: any) => quantity),
  ordered: done.data.map(({ quantity }: any) => quantity),
}

await other.getOne({ resource: 'pets', id: yara })
await one.update({ resource: 'pets', id: yara, variables: { status: 'pending' } })
const remove = (provider: typeof one, resource: string, id: any) => status(provider.deleteOne({ resource, id }))
const deletions = [await remove(other, 'pets', yara), await remove(one, '${orders}', ordered.id), await remove(one, 'pets', yara), await remove(one, 'pets', zoe)]
const gone = await status(one.getOne({ resource: 'pets', id: zoe }))
await one.getOne({ resource: 'categories', id: made.id! })
deletions.push(await remove(one, 'categories', made.id))
console.log(JSON.stringify({ lists, refusals, read: read.data.name, updates, batches, deletions, gone }))
`,
      )
      expect(JSON.parse(await project.execute(`src/provided-${name}.ts`, gateway.key))).toEqual({
        lists: {
          jump: ['Bubbles', 'Bella', 12],
          back: ['Nemo', 'Max', 'Luna', 'Kiwi', 'Finn', 12],
          many: [10, 11],
          none: [],
          ofPet: [5],
          open: 3,
        },
        refusals: [400, true],
        read: 'Zoe',
        updates: [200, 200, 412, 412],
        batches: {
          sold: [
            [true, 'sold'],
            [true, 'sold'],
          ],
          seen: 200,
          missing: [404, 0],
          stock: [9, 9],
          ordered: [5],
        },
        deletions: [412, 200, 200, 200, 200],
        gone: 404,
      })
    },
  )
})

test.concurrent('the files of the guides compile with strict, and an id is a number', async () => {
  await project.write(
    'src/typed.ts',
    `import type { ResultOf } from '@graphql-typed-document-node/core'
import type { Pets } from './pets'
type Id = NonNullable<ResultOf<typeof Pets>['petsConnection']>['edges'][number]['node']['id']
export const id: Id = 1
// @ts-expect-error: an id is a number
export const text: Id = '1'
`,
  )
  expect(await project.compile()).toBe('')
})

test.concurrent.each([
  ['apollo.ts', 7],
  ['urql.ts', 8],
])(
  '%s reads all pages, waits for its limit without a ban, and finds a mutation in its cache',
  async (file, quantity) => {
    const { key, row } = await gateway.createKey({ plan: 'Enterprise', minuteLimit: 2, dayLimit: 1000 })
    const output = await project.execute(`src/${file}`, key)
    expect(output).toBe(`12 Bella ${quantity}`)
    expect(await gateway.prisma.apiKey.findUnique({ where: { id: row.id } })).toMatchObject({ bannedUntil: null })
  },
)

test.concurrent('the cache of urql.ts knows every type: it warns of none', async () => {
  const withoutId = Object.values(schema.getTypeMap()).filter(
    (type) =>
      isObjectType(type) &&
      !type.getFields().id &&
      !/^(__|Query$|Mutation$)|(Connection|Edge|PageInfo)$/.test(type.name),
  )
  const file = filesOf('graphql-clients').get('src/urql.ts') ?? ''
  const [, keys = ''] = /keys: \{([^}]*)\}/.exec(file.replace('{ petId }', '')) ?? []
  expect(Array.from(keys.matchAll(/(\w+):/g), ([, name]) => name).sort()).toEqual(
    withoutId.map(({ name }) => name).sort(),
  )

  const everything = `{
    quota { plan minute { limit } day { limit } key { name } } usage(days: 1) { date requests }
    pets(limit: 1) { id category { id } inventory { quantity petId } orders(limit: 1) { id } } inventory(limit: 1) { petId }
  }`
  await project.write(
    'src/urql-types.ts',
    `console.warn = (...words: unknown[]) => console.log('warned:', ...words)\n${file}\nconst all = await client.query(${JSON.stringify(everything)}, {})\nconsole.log(all.error?.message, Object.keys(all.data))`,
  )
  const { key } = await gateway.createKey()
  expect(await project.execute('src/urql-types.ts', key)).toMatch(
    /^12 Bella \d\nundefined \[.*quota.*usage.*pets.*inventory.*\]$/s,
  )
})

test.concurrent('PetList.jsx of Relay pages forward and backward to the same list, and shows what a mutation has changed', async () => {
  await project.write(
    'src/mounted-list.jsx',
    `import { Suspense } from 'react'
import { RelayEnvironmentProvider } from 'react-relay'
import { environment } from './environment'
import { PetList } from './PetList'
import { buttons, mount, press, rows } from '../../mount'

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
  const { forward, end, backward, after } = JSON.parse(await project.execute('src/mounted-list.jsx', key))
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
  await project.write(
    'src/lost.ts',
    `import { petstoreFetch } from './petstore-fetch'
const query = 'mutation { createOrder(input: { petId: 4, quantity: 77 }) { id } }'
const headers = { 'Content-Type': 'application/json' }
const response = await petstoreFetch('${address}', { method: 'POST', headers, body: JSON.stringify({ query }) })
console.log(response.status, response.headers.get('idempotency-replayed'))
`,
  )
  expect(await project.execute('src/lost.ts', gateway.key)).toBe('200 true')
  expect(await gateway.prisma.order.count({ where: { quantity: 77 } })).toBe(1)
  network.close()
})

// It adds pets, which the other tests must not see.
test('Category.jsx of Relay pages below an object by its nodeId, and drops what was deleted', async () => {
  const { id } = await gateway.prisma.category.create({ data: { name: 'Fish' } })
  for (const name of ['Nemo', 'Dory', 'Wanda']) await gateway.prisma.pet.create({ data: { name, categoryId: id } })
  await project.write(
    'src/mounted-category.jsx',
    `import { Suspense } from 'react'
import { RelayEnvironmentProvider } from 'react-relay'
import { Category } from './Category'
import { environment } from './environment'
import { buttons, mount, press, rows } from '../../mount'

await mount(<RelayEnvironmentProvider environment={environment}><Suspense><Category id={${id}} /></Suspense></RelayEnvironmentProvider>)
const first = rows()
await press(buttons('Next')[0])
const all = rows()
await press(buttons('Delete')[1])
console.log(JSON.stringify({ first, all, left: rows() }))
process.exit()
`,
  )
  const { first, all, left } = JSON.parse(await project.execute('src/mounted-category.jsx', gateway.key))
  const names = (rows: string[]) => rows.map((row) => row.replace('Delete', '').trim())
  expect([names(first), names(all), names(left)]).toEqual([
    ['Nemo', 'Dory'],
    ['Nemo', 'Dory', 'Wanda'],
    ['Nemo', 'Wanda'],
  ])
})
