import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seed } from '../../prisma/seed.js'
import { times } from '../support/calls.js'
import { type Gateway, openGateway } from '../support/gateway.js'
import { blocks, guide, guides, introduction } from '../support/guides.js'
import { has, type Language, runPrograms } from '../support/programs.js'

const baseUrl = 'https://petstore.example/v1'

let gateway: Gateway
let patient: Gateway
beforeAll(async () => {
  gateway = await openGateway({ env: { BASE_URL: baseUrl } })
  await seed(gateway.prisma)
  const database = { ...gateway.database, close: async () => {} }
  patient = await openGateway({ env: { BASE_URL: baseUrl }, database, seconds: { minute: 2, day: 600, address: 2 } })
})
afterAll(async () => {
  await patient.close()
  await gateway.close()
})

/** Runs examples unchanged, except that the base URL of the guides is replaced by that of a test gateway. */
async function runExamples(language: Language, examples: string[], to: Gateway, key: string) {
  const actual = `${(await to.listen()).url}/v1`
  // Links in responses have the base URL of the guides too.
  const follow = `const { fetch } = globalThis
globalThis.fetch = (url, init) => fetch(typeof url === 'string' ? url.replace(process.env.DOCUMENTED, process.env.ACTUAL) : url, init)`
  const programs = examples.map((example) => example.replaceAll(baseUrl, actual))
  const env = { PETSTORE_KEY: key, DOCUMENTED: baseUrl, ACTUAL: actual }
  // Clients that the guides import are installed there.
  return runPrograms(language, language === 'JavaScript' ? [follow, ...programs] : programs, env, 'test/system')
}

describe.concurrent('the examples', () => {
  test.skipIf(!has('Shell'))('in a shell', async () => {
    // The generators of clients run where they are installed: see rest-clients.test.ts.
    const examples = [introduction, ...guides.values()]
      .flatMap((text) => blocks(text, 'sh'))
      .filter((code) => !code.startsWith('npx'))
    expect(examples.length).toBeGreaterThan(2)
    const output = await runExamples('Shell', examples, gateway, gateway.key)
    expect(output).toMatch(/^HTTP\/1\.1 200 OK/m)
    expect(output).toContain('"plan":"Enterprise"')
    expect(output).toContain('{"data":{"pets":[{"name":"Rex"')
    expect(output).toMatch(/304$/m)
  })

  test('that add to a stock: run at the same time, in any language, none is lost', async () => {
    const stock = async () => (await gateway.get('/inventory/1')).body.quantity
    const before = await stock()
    const text = guide('caching-and-lost-updates')
    const [, shell = ''] = blocks(text, 'sh')
    const examples: [Language, string[]][] = [
      ['Shell', [shell]],
      ['JavaScript', blocks(text, 'js')],
      ['Python', blocks(text, 'python')],
    ]
    const runnable = examples.filter(([language]) => has(language))
    await Promise.all(runnable.map(([language, programs]) => runExamples(language, programs, gateway, gateway.key)))
    // The test of all examples in a shell may have added one more.
    expect((await stock()) - before).toBeGreaterThanOrEqual(runnable.length)
  })

  test('that sell a cart and cancel an order: run at the same time, the stock is what was sold and not returned', async () => {
    const before = await Promise.all([9, 11].map((id) => gateway.get(`/inventory/${id}`)))
    const [example = ''] = blocks(guide('selling'), 'js')
    const [first, second] = before.map(({ body }) => body.quantity)
    // There is enough for five carts in the one stock, and for six in the other: what was canceled can be sold again.
    const outputs = await Promise.all(times(6, () => runExamples('JavaScript', [example], gateway, gateway.key)))
    const sold = outputs.filter((output) => output.includes('sold')).length
    expect(sold).toBe(Math.floor(second / 5))
    const after = await Promise.all([9, 11].map((id) => gateway.get(`/inventory/${id}`)))
    expect(after.map(({ body }) => body.quantity)).toEqual([first, second - 5 * sold])
  })

  test('that reads all pages of a list', async () => {
    const output = await runExamples('JavaScript', blocks(guide('lists'), 'js'), gateway, gateway.key)
    expect(output.trim().split('\n')).toHaveLength(12)
  })

  test.skipIf(!has('Python'))('that place an order with an Idempotency-Key', async () => {
    for (const [language, block] of [
      ['JavaScript', 'js'],
      ['Python', 'python'],
    ] as const) {
      const output = await runExamples(language, blocks(guide('safe-retries'), block), gateway, gateway.key)
      expect(output).toMatch(/petId'?: 4/)
    }
  })

  test('that back off: each waits after a 429 and is not banned', async () => {
    const examples = blocks(guide('backing-off'), 'js')
    expect(examples).toHaveLength(4)
    const { key, row } = await patient.createKey({ plan: 'Enterprise', minuteLimit: 1, dayLimit: 1000 })
    patient.logged.length = 0
    await runExamples('JavaScript', examples, patient, key)
    const requests = patient.logged.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request')
    const statuses = requests.map(({ status }) => status)
    // Each example after the first one finds the window used up.
    expect(statuses.filter((status) => status === 200)).toHaveLength(4)
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(3)
    expect(statuses.length).toBeLessThanOrEqual(10)
    expect(await patient.prisma.apiKey.findUnique({ where: { id: row.id } })).toMatchObject({ bannedUntil: null })
  })
})

test('the example that imports pets in batches: run twice, it creates nothing twice', async () => {
  const kittens = async () => (await gateway.get('/pets?search=kitten&sort=name&limit=1&count=true')).headers
  for (let run = 0; run < 2; run++)
    await runExamples('JavaScript', blocks(guide('batches'), 'js'), gateway, gateway.key)
  expect((await kittens()).get('x-total-count')).toBe('250')
})
