import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { send } from './load.js'
import { type GatewayProcess, KEYED_PET, type World } from './world.js'

// Clients that repeat each order with its key until a gateway acknowledges it, as a shop would. All take from one stock.

const CLIENTS = 2
const PAUSE_MS = 200
/** More than they order. */
const STOCK = 1_000_000
/** How long an order is repeated after the end. */
const PATIENCE_MS = 10_000
/** Those that say: repeat it. A request with this key may be at work. */
const REPEATED = [409, 502, 503]

export async function startOrders(world: World) {
  const orders = (columns: string) => `${columns} FROM "Order" WHERE "petId" = ${KEYED_PET}`
  await world.postgres.admin(orders('DELETE'))
  await world.postgres.admin(`UPDATE "InventoryItem" SET quantity = ${STOCK} WHERE "petId" = ${KEYED_PET}`)
  const acknowledged: number[] = []
  const wrong: string[] = []
  let endsAt = Number.POSITIVE_INFINITY

  async function order(client: number, name: string) {
    for (let n = client; performance.now() < endsAt; n++) {
      const to = world.entrance ?? (world.gateways[n % world.gateways.length] as GatewayProcess)
      const answer = await send(to, {
        method: 'POST',
        path: '/store/orders?takeStock=true',
        key: world.keys[client] as string,
        body: { petId: KEYED_PET },
        headers: { 'idempotency-key': name },
      }).catch(() => undefined)
      if (answer?.status === 201) return acknowledged.push(JSON.parse(answer.text).id)
      if (answer && !REPEATED.includes(answer.status)) return wrong.push(`${answer.status} ${answer.text}`)
      await sleep(PAUSE_MS)
    }
    wrong.push('an order was not acknowledged')
  }
  let stopped = false
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (; !stopped; await sleep(PAUSE_MS)) await order(client, randomUUID())
  })
  return {
    /**
     * Resolves, when the last order is acknowledged, with how many there are, how many are lost or there twice, and what the
     * stock has too much or too little for those that are there.
     */
    async stop() {
      stopped = true
      endsAt = performance.now() + PATIENCE_MS
      await Promise.all(clients)
      const rows = new Set((await world.postgres.admin(orders('SELECT id'))).map(({ id }) => Number(id)))
      const [{ quantity }] = (await world.postgres.admin(
        `SELECT quantity FROM "InventoryItem" WHERE "petId" = ${KEYED_PET}`,
      )) as [{ quantity: number }]
      const distinct = new Set(acknowledged)
      const lost = [...distinct].filter((id) => !rows.has(id)).length
      const doubled = rows.size - (distinct.size - lost)
      return { orders: acknowledged.length, lost, doubled, unsold: quantity - (STOCK - rows.size), wrong: wrong[0] }
    },
  }
}
