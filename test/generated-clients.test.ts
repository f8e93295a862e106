import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Report, Target } from './generators/round.js'
import { type Gateway, openGateway } from './support/gateway.js'
import { freePort } from './support/process.js'

// Clients as people generate them, from what the gateway itself publishes.

const run = promisify(execFile)
const clients = ['openapi-fetch', 'hey-api', 'orval', 'graphql']

let gateway: Gateway
beforeAll(async () => {
  const port = await freePort()
  gateway = await openGateway({ env: { BASE_URL: `http://127.0.0.1:${port}` } })
  await gateway.listen(port)
  await rm('test/generators/generated', { recursive: true, force: true })
  await Promise.all(
    clients.map((client) => run(process.execPath, ['test/generators/generate.mjs', client, gateway.config.BASE_URL])),
  )
})
afterAll(() => gateway.close())

test.concurrent('generated clients, and programs that use them, compile under strict', async () => {
  const { stdout } = await run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'test/generators']).catch(
    (error: { stdout: string }) => error,
  )
  expect(stdout).toBe('')
})

test.concurrent.each(clients)('a client by %s performs a whole round', async (client) => {
  const { key } = await gateway.createKey()
  const limited = await gateway.createKey({ plan: 'Enterprise', minuteLimit: 1, dayLimit: 5 })
  const { round }: { round: (target: Target) => Promise<Report> } = await import(`./generators/${client}.round.ts`)

  const { petIds, ...report } = await round({ url: gateway.config.BASE_URL, key, limitedKey: limited.key })

  const [a = 0, b, c, d, e] = petIds
  expect(report).toEqual({
    category: { id: expect.any(Number), name: 'Dogs' },
    order: { id: expect.any(Number), petId: a, quantity: 2, complete: false },
    stock: 7,
    pages: [[a, b], [c, d], [e]],
    found: [d, e],
    missing: { status: 404, code: 'not_found' },
    unknown: { status: 422, code: 'unknown_reference' },
    limited: { status: 429, code: 'rate_limited', retryAfter: expect.stringMatching(/^\d+$/) },
  })
  const stored = await gateway.prisma.pet.findMany({
    where: { categoryId: report.category.id },
    orderBy: { id: 'asc' },
    select: { id: true, name: true },
  })
  expect(stored).toEqual(
    ['Rex', 'Bella', 'Max', 'Luna', 'Rocky'].map((name, i) => ({ id: BigInt(petIds[i] ?? 0), name })),
  )
})
