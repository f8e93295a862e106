import { execFile } from 'node:child_process'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { isObjectType } from 'graphql'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seed } from '../../prisma/seed.js'
import { schema } from '../../schema/index.js'
import { type Gateway, openGateway } from '../support/gateway.js'
import { filesOf, GuideProject } from '../support/guide-project.js'
import { freePort } from '../support/ports.js'

// The files of the guide to GraphQL clients.

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
  await project.create(filesOf('graphql-clients'))
  await project.write('schema.graphql', (await gateway.get('/schema.graphql')).text)
  await run(process.execPath, ['--import', 'tsx', 'test/lab/generators/guide.mjs', project.folder])
})
afterAll(() => gateway.close())

test.concurrent('the files of the guide compile with strict, and an id is a number', async () => {
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
    quota { plan minute { limit } day { limit } key { name } } usage(days: 1) { date requests outcomes { code } } usageByHour(hours: 1) { hour requests outcomes { code } }
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
