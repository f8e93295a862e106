import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seed } from '../prisma/seed.js'
import { type Gateway, openGateway } from './support/gateway.js'
import { freePort } from './support/ports.js'

// The files of the guide, in a project of their own, with the clients that test/generators installs.

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
  const guide = await readFile('docs/guides/12-graphql-clients.md', 'utf8')
  // A file has its name in a comment, which JSON does not allow.
  const files = [...guide.matchAll(/^```\w+\n(?:\/\/ (\S+)\n)?([\s\S]*?)^```$/gm)]
  for (const [, name = 'relay.config.json', code = ''] of files) {
    await mkdir(dirname(`${project}/${name}`), { recursive: true })
    await writeFile(`${project}/${name}`, code.replaceAll(documented, gateway.config.BASE_URL))
  }
  await writeFile(`${project}/schema.graphql`, (await gateway.get('/schema.graphql')).text)
  await run(process.execPath, ['--import', 'tsx', 'test/generators/guide.mjs', project])
})
afterAll(() => gateway.close())

const execute = async (file: string, key: string, env: Record<string, string> = {}) => {
  const { stdout } = await run(process.execPath, ['--import', 'tsx', `${project}/${file}`], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, PETSTORE_KEY: key, ...env },
  })
  return stdout.trim()
}

test.concurrent('the files of the guide compile with strict, and an id is a number', async () => {
  await writeFile(
    `${project}/src/typed.ts`,
    `import type { ResultOf } from '@graphql-typed-document-node/core'
import type { Pets } from './pets'
type Id = NonNullable<ResultOf<typeof Pets>['pets']>[number]['id']
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
  ['relay.js', 9],
])(
  '%s reads all pages, waits for its limit without a ban, and finds a mutation in its cache',
  async (file, quantity) => {
    const { key, row } = await gateway.createKey({ plan: 'Enterprise', minuteLimit: 2, dayLimit: 1000 })
    const output = await execute(`src/${file}`, key)
    expect(output).toBe(`12 Rex ${quantity}`)
    expect(await gateway.prisma.apiKey.findUnique({ where: { id: row.id } })).toMatchObject({ bannedUntil: null })
  },
)

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
