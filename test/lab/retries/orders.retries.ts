import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { type Database, openDatabase } from '../../../src/gateway/database/index.js'
import { createSecret } from '../../../src/gateway/keys/index.js'
import { openTestDatabase } from '../../support/database.js'
import { freePort } from '../../support/ports.js'
import { testDatabaseUrl } from '../../support/postgres.js'
import { dataFolder, type Started, startGateway } from '../../support/process.js'
import { createNetwork } from './network.js'

// Clients that time out and retry with the same Idempotency-Key, while a third of all exchanges is spoiled and gateways
// are killed. Each order must be placed exactly once, its client must learn its id, and the stock must be what was not sold.

const share = Number(process.env.RETRIES_SHARE ?? 1)
const CLIENTS = 20
/** Clients go on until gateways were killed this often, or the run would show nothing. */
const MIN_KILLS = 2

/** Restarts a gateway again and again, `aliveMs` after each start. */
function keepKilling(start: () => Promise<Started>, aliveMs: number) {
  let stopped = false
  let kills = 0
  let current: Started | undefined
  const done = (async () => {
    while (!stopped) {
      current = await start()
      for (const end = Date.now() + aliveMs; !stopped && Date.now() < end; ) await sleep(50)
      if (stopped) break
      await current.stop('SIGKILL')
      kills++
    }
  })()
  return {
    url: () => current?.url,
    kills: () => kills,
    async stop() {
      stopped = true
      await done
      return current
    },
  }
}

async function createKey({ prisma }: Pick<Database, 'prisma'>) {
  const { key, prefix, hash } = createSecret()
  const limits = { minuteLimit: 2_000_000_000, dayLimit: 2_000_000_000 }
  await prisma.apiKey.create({ data: { name: 'retries', plan: 'Enterprise', prefix, hash, ...limits } })
  return key
}

/** More than the clients order. */
const STOCK = 1_000_000

async function stockPet({ prisma }: Pick<Database, 'prisma'>) {
  await prisma.category.create({ data: { name: 'Dogs', pets: { create: { name: 'Rex' } } } })
  await prisma.inventoryItem.update({ where: { petId: 1 }, data: { quantity: STOCK } })
}

const stockLeft = async ({ prisma }: Pick<Database, 'prisma'>) =>
  (await prisma.inventoryItem.findUniqueOrThrow({ where: { petId: 1 } })).quantity

interface Surface {
  path: string
  body: (petId: number) => unknown
  /** The id of the order; undefined if the answer is not that of a placed order. */
  idOf: (status: number, body: never) => number | undefined
}

const rest: Surface = {
  path: '/store/orders?takeStock=true',
  body: (petId) => ({ petId }),
  idOf: (status, body: { id: number }) => (status === 201 ? body.id : undefined),
}

const graphql: Surface = {
  path: '/graphql',
  body: (petId) => ({
    query: `mutation { createOrder(input: { petId: ${petId} }, takeStock: true) { id pet { name } } }`,
  }),
  idOf: (_status, body: { data?: { createOrder?: { id: number } } }) => body.data?.createOrder?.id,
}

/** Places an order as a careful client does: it retries until it has an answer that is final. */
async function placeOrder(url: string, apiKey: string, { path, body, idOf }: Surface, petId: number): Promise<number> {
  const headers = {
    authorization: `Bearer ${apiKey}`,
    'content-type': 'application/json',
    'idempotency-key': randomUUID(),
  }
  for (;;) {
    try {
      const signal = AbortSignal.timeout(3_000)
      const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body(petId)), signal })
      const answer = (await response.json()) as never
      const id = idOf(response.status, answer)
      if (id !== undefined) return id
      if (![409, 429, 503].includes(response.status) && !JSON.stringify(answer).includes('"unavailable"'))
        throw Object.assign(new Error(`${response.status} ${JSON.stringify(answer)}`), { isFinal: true })
    } catch (error) {
      if ((error as { isFinal?: boolean }).isFinal) throw error
    }
    await sleep(100 + Math.random() * 200)
  }
}

/** Places at least `count` orders and returns their ids. */
async function placeOrders(count: number, kills: () => number, place: (petId: number) => Promise<number>) {
  const ids: number[] = []
  let left = count
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (left-- > 0 || kills() < MIN_KILLS) ids.push(await place(1))
    }),
  )
  return ids.sort((a, b) => a - b)
}

for (const [name, surface] of Object.entries({ REST: rest, GraphQL: graphql }))
  test.runIf(testDatabaseUrl)(`${name}: two gateways, of which one is killed every two seconds`, async () => {
    const database = await openTestDatabase()
    await stockPet(database)
    const key = await createKey(database)
    const env = { ...database.env, ...(process.env.TEST_REDIS_URL && { REDIS_URL: process.env.TEST_REDIS_URL }) }
    const steady = await startGateway(env)
    const killed = keepKilling(() => startGateway(env), 2_000)
    const network = await createNetwork(() => [steady.url, killed.url() ?? steady.url])
    onTestFinished(() => network.close())

    const count = Math.ceil(1_000 * share)
    const ids = await placeOrders(count, killed.kills, (petId) => placeOrder(network.url, key, surface, petId))
    await killed.stop()
    const placed = await database.prisma.order.findMany({ select: { id: true }, orderBy: { id: 'asc' } })
    console.log(`${ids.length} orders, ${killed.kills()} kills, faults: ${JSON.stringify(network.happened)}`)
    expect(placed.map(({ id }) => Number(id))).toEqual(ids)
    expect(await stockLeft(database)).toBe(STOCK - ids.length)
    expect(ids.length).toBeGreaterThanOrEqual(count)
  })

test('the embedded database: one gateway that is killed two seconds after each start', async () => {
  const DATA_DIR = await dataFolder()
  const EMBEDDED_DB_PORT = '0'
  const setUp = await openDatabase({ DATA_DIR, EMBEDDED_DB_PORT: 0 })
  await stockPet(setUp)
  const key = await createKey(setUp)
  await setUp.close()
  const PORT = String(await freePort())
  const killed = keepKilling(() => startGateway({ DATA_DIR, EMBEDDED_DB_PORT, PORT }), 2_000)
  const network = await createNetwork(() => [`http://127.0.0.1:${PORT}`])
  onTestFinished(() => network.close())

  const count = Math.ceil(200 * share)
  const ids = await placeOrders(count, killed.kills, (petId) => placeOrder(network.url, key, rest, petId))
  await (await killed.stop())?.stop()
  const database = await openDatabase({ DATA_DIR, EMBEDDED_DB_PORT: 0 })
  onTestFinished(() => database.close())
  const placed = await database.prisma.order.findMany({ select: { id: true }, orderBy: { id: 'asc' } })
  console.log(`${ids.length} orders, ${killed.kills()} kills, faults: ${JSON.stringify(network.happened)}`)
  expect(placed.map(({ id }) => Number(id))).toEqual(ids)
  expect(await stockLeft(database)).toBe(STOCK - ids.length)
  expect(ids.length).toBeGreaterThanOrEqual(count)
})
