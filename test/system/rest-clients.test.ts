import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seed } from '../../prisma/seed.js'
import { type Gateway, openGateway } from '../support/gateway.js'
import { filesOf, GuideProject } from '../support/guide-project.js'
import { blocks, guide } from '../support/guides.js'
import { freePort } from '../support/ports.js'
import { canGeneratePython } from '../support/programs.js'

// The files of the guide to generated clients, with what its commands generate.

const run = promisify(execFile)
const hasPython = canGeneratePython()

let gateway: Gateway
let project: GuideProject
/** A category with pets of few names, and their ids in order of name. */
let categoryId: bigint
let byName: number[]
beforeAll(async () => {
  const port = await freePort()
  gateway = await openGateway({
    env: { BASE_URL: `http://127.0.0.1:${port}/v1` },
    seconds: { minute: 2, day: 600, address: 2 },
  })
  await seed(gateway.prisma)
  categoryId = (await gateway.prisma.category.create({ data: { name: 'Mice' } })).id
  const names = ['Ben', 'ann', 'Ann', 'ben', 'Cleo']
  const pets = await gateway.prisma.pet.createManyAndReturn({
    data: Array.from({ length: 120 }, (_, i) => ({ name: names[i % names.length] ?? '', categoryId })),
  })
  // In lower case, then by code points, then by id.
  const rank = ({ id, name }: (typeof pets)[number]) => `${name.toLowerCase()} ${name} ${String(id).padStart(9, '0')}`
  byName = pets.sort((a, b) => (rank(a) < rank(b) ? -1 : 1)).map(({ id }) => Number(id))
  await gateway.listen(port)

  project = new GuideProject('test/lab/generators/rest', gateway.config.BASE_URL)
  const shared = [...filesOf('graphql-clients')].filter(([name]) => name === 'src/petstore-fetch.ts')
  await project.create([...shared, ...filesOf('generated-clients')])
  const commands = blocks(guide('generated-clients'), 'sh').filter((command) => !/-g python/.test(command) || hasPython)
  await Promise.all(commands.map((command) => project.shell(command)))
})
afterAll(() => gateway.close())

test.concurrent('the files of the guide compile with strict, with what its commands generate', async () => {
  expect(await project.compile()).toBe('')
})

/** A list of all pets that a question finds, of a client whose lists are generators. */
const allOf = (client: string) => `import { listPets } from './${client}'
const all = async (question: object) => {
  const ids: number[] = []
  for await (const { id } of listPets(question)) ids.push(id)
  return ids
}
`

/** For each client, such a list. */
const drivers: Record<string, string> = {
  'with-openapi-fetch.ts': allOf('with-openapi-fetch'),
  'with-swagger-typescript-api.ts': allOf('with-swagger-typescript-api'),
  'with-oazapfts.ts': allOf('with-oazapfts'),
  'with-kubb.ts': allOf('with-kubb'),
  'with-rtk-query.ts': `import { allPets } from './with-rtk-query'
const all = async (question: object) => (await allPets(question)).map(({ id }) => id)
`,
  'with-hey-api.ts': `import { QueryClient } from '@tanstack/react-query'
import { pets } from './with-hey-api'
const all = async (question: object) => {
  const { pages } = await new QueryClient().fetchInfiniteQuery({ ...pets(question), pages: Number.POSITIVE_INFINITY })
  return pages.flatMap(({ data }) => data).map(({ id }) => id)
}
`,
  'PetTable.tsx': `import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { buttons, mount, press, rows } from '../../mount'
import { PetTable } from './PetTable'
const all = async (question: object) => {
  await mount(
    <QueryClientProvider client={new QueryClient()}>
      <PetTable question={question} />
    </QueryClientProvider>,
  )
  while (buttons('More').length) await press(buttons('More')[0])
  return rows().map((row: string) => Number.parseInt(row, 10))
}
await all({ categoryId: 2 })
await press(buttons('Create')[0])
console.log(rows().at(-1))
`,
}

test.concurrent.each(Object.entries(drivers))(
  '%s creates a pet, finds two by their ids, and its lists have every row exactly once, in any order, through a limit and without a ban',
  async (file, driver) => {
    const { key, row } = await gateway.createKey({ plan: 'Enterprise', minuteLimit: 8, dayLimit: 1000 })
    const orders = [{}, { direction: 'desc' }, { sort: 'name' }, { sort: 'name', direction: 'desc' }]
    const byId = byName.toSorted((a, b) => a - b)
    const two = byId.slice(-2)
    const questions = [...orders.map((order) => ({ categoryId: Number(categoryId), limit: 50, ...order })), { id: two }]
    const program = `src/all-of-${file.replace(/\.tsx?$/, '.tsx')}`
    await project.write(
      program,
      `${driver}
const found: number[][] = []
for (const question of ${JSON.stringify(questions)}) found.push(await all(question))
console.log(JSON.stringify(found))
process.exit()
`,
    )
    const [created, ...printed] = (await project.execute(program, key)).split('\n')
    expect(created).toMatch(/^\d+ Tom$/)

    const expected = [byId, byId.toReversed(), byName, byName.toReversed(), two]
    expect(JSON.parse(printed.pop() ?? '')).toEqual(expected)
    // All pets, in descending order of name, which the file prints itself.
    if (printed.length > 0) {
      expect(printed).toContain(created)
      const ids = printed.map((line) => Number.parseInt(line, 10))
      expect(ids.filter((id) => byName.includes(id))).toEqual(byName.toReversed())
    }
    expect(await gateway.prisma.apiKey.findUnique({ where: { id: row.id } })).toMatchObject({ bannedUntil: null })
  },
)

test.skipIf(!hasPython)(
  'a client in Python finds all that it creates, in any order',
  { concurrent: true },
  async () => {
    const limited = await gateway.createKey({ plan: 'Enterprise', minuteLimit: 1, dayLimit: 1 })
    const keys = [(await gateway.createKey({ plan: 'Business' })).key, limited.key]
    await run('python3', ['-B', 'test/lab/generators/tour.py', `${project.folder}/petstore`, project.baseUrl, ...keys])
  },
)
