import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'
import { testDatabaseUrl, useClient, waitingForLocks } from './support/postgres.js'

// What writes of several rows make others wait for. The embedded database performs one statement at a time.

describe.skipIf(!testDatabaseUrl)('writes of several rows', async () => {
  if (!testDatabaseUrl) return
  const gateway = await sharedGateway()
  const PETS = 30
  let first: number
  let categoryId: number
  beforeEach(async () => {
    categoryId = (await gateway.post('/categories', { name: 'Dogs' })).body.id
    const { body: pets } = await gateway.post(
      '/pets/batch',
      times(PETS, () => ({ name: 'Rex', categoryId })),
    )
    first = pets[0].id
  })
  const ids = (from: number, count: number) => times(count, (i) => first + from + i)
  const rename = (changed: number[], name = 'Tom') =>
    gateway.patch(
      '/pets/batch',
      changed.map((id) => ({ id, name })),
    )

  /** A transaction of another client that holds a lock on rows until `commit`. */
  async function hold(table: string, key: string, held: number[], strength: string) {
    const client = await useClient(gateway.database.url)
    await client.query('BEGIN')
    await client.query(`SELECT FROM "${table}" WHERE "${key}" = ANY ($1) FOR ${strength}`, [held])
    return { commit: () => client.query('COMMIT') }
  }
  const observer = async () => {
    const client = await useClient(gateway.database.url)
    return () => waitingForLocks(client)
  }

  test('wait for no order of the same pets that is being created, unless they change a status', async () => {
    const waiting = await observer()
    const { commit } = await hold('Pet', 'id', ids(0, PETS), 'KEY SHARE')
    expect((await rename(ids(0, 20))).status).toBe(200)
    const stock = ids(0, 20).map((petId) => ({ petId, quantity: 3 }))
    expect((await gateway.patch('/inventory/batch', stock)).status).toBe(200)
    // The status of a pet is a part of the key to which its stock refers.
    let ended = false
    const sold = gateway
      .patch(
        '/pets/batch',
        ids(0, 20).map((id) => ({ id, status: 'sold' })),
      )
      .finally(() => {
        ended = true
      })
    await expect.poll(waiting).toBe(1)
    expect(ended).toBe(false)
    await commit()
    expect((await sold).status).toBe(200)
  })

  test('do not make orders of the same pets wait while they change no status', async () => {
    // As a batch of names locks them.
    const { commit } = await hold('Pet', 'id', ids(0, PETS), 'NO KEY UPDATE')
    expect((await gateway.post('/store/orders', { petId: first })).status).toBe(201)
    await commit()
  })

  test('wait for each other before they take a connection, and for no write of other rows', async () => {
    const waiting = await observer()
    const { commit } = await hold('Pet', 'id', ids(0, 1), 'UPDATE')
    const stuck = times(12, (i) => rename(ids(0, 10 + (i % 3))))
    await expect.poll(waiting).toBe(1)
    for (let i = 0; i < 5; i++) {
      expect((await rename(ids(20, 10))).status).toBe(200)
      expect((await gateway.patch(`/pets/${first + 19}`, { name: 'Alone' })).status).toBe(200)
    }
    expect(await waiting()).toBe(1)
    expect(gateway.database.pool().inUse).toBeLessThanOrEqual(3)
    await commit()
    expect((await Promise.all(stuck)).map(({ status }) => status)).toEqual(times(12, () => 200))
  })

  test.each(['', 'with an Idempotency-Key'])(
    'of one operation with @atomic never meet those of another one in the database, in whatever order: %s',
    async (keyed) => {
      const waiting = await observer()
      const change = (changed: number[]) =>
        `updatePets(input: [${changed.map((id) => `{ id: ${id}, name: "x" }`)}]) { id }`
      const low = ids(0, 10)
      const high = ids(10, 10)
      const document = (a: number[], b: number[]) => `mutation @atomic {
        a: ${change(a)} b: ${change(b)} c: updatePet(petId: ${b[0]}, input: { name: "y" }) { id }
        d: updateInventory(petId: ${a[0]}, input: { quantity: 1 }) { quantity }
      }`
      let done = 0
      // One after another: the last one must not wait for longer than a request may.
      const all = times(10, async (i) => {
        const headers: Record<string, string> = keyed ? { 'idempotency-key': `${first} ${i}` } : {}
        const { body } = await gateway.graphql(i % 2 ? document(low, high) : document(high, low), {}, { headers })
        done++
        return body.errors
      })
      let most = 0
      while (done < all.length) most = Math.max(most, (await waiting()) ?? 0)
      expect(await Promise.all(all)).toEqual(times(10, () => undefined))
      expect(most).toBe(0)
    },
  )

  test.each([
    ['POST', (petId: number) => gateway.post('/store/orders?takeStock=true', { petId })],
    [
      'POST with an Idempotency-Key',
      (petId: number) =>
        gateway.post('/store/orders?takeStock=true', { petId }, { headers: { 'idempotency-key': randomUUID() } }),
    ],
    [
      'a mutation with an Idempotency-Key',
      (petId: number) =>
        gateway.graphql(
          'mutation ($id: Int64!) { createOrder(input: { petId: $id }, takeStock: true) { id } }',
          { id: petId },
          { headers: { 'idempotency-key': randomUUID() } },
        ),
    ],
    ['POST /inventory/adjustments', (petId: number) => gateway.post('/inventory/adjustments', [{ petId, by: -1 }])],
  ])('that take from one stock take two connections at most, and delay no others: %s', async (_name, sell) => {
    const stock = ids(0, 2).map((petId) => ({ petId, quantity: 20 }))
    await gateway.patch('/inventory/batch', stock)
    const waiting = await observer()
    const { commit } = await hold('InventoryItem', 'petId', ids(0, 1), 'UPDATE')
    onTestFinished(() => commit().catch(() => {}) as Promise<void>)
    const stuck = times(12, () => sell(first))
    await expect.poll(waiting).toBeGreaterThan(0)
    for (let i = 0; i < 5; i++) expect((await sell(first + 1)).status).toBeLessThan(300)
    expect(await waiting()).toBeLessThanOrEqual(2)
    await commit()
    for (const { status } of await Promise.all(stuck)) expect(status).toBeLessThan(300)
    const left = await Promise.all(ids(0, 2).map(async (id) => (await gateway.get(`/inventory/${id}`)).body.quantity))
    expect(left).toEqual([8, 15])
  })

  test('that give back to one stock take two connections at most, and delay no others', async () => {
    await gateway.patch(
      '/inventory/batch',
      ids(0, 2).map((petId) => ({ petId, quantity: 20 })),
    )
    const orders = times(12, () => ({ petId: first }))
    const { body: placed } = await gateway.post('/store/orders/batch?takeStock=true', orders)
    const waiting = await observer()
    const { commit } = await hold('InventoryItem', 'petId', ids(0, 1), 'UPDATE')
    onTestFinished(() => commit().catch(() => {}) as Promise<void>)
    const stuck = placed.map(({ id }: { id: number }) => gateway.delete(`/store/orders/${id}?returnStock=true`))
    await expect.poll(waiting).toBeGreaterThan(0)
    for (let i = 0; i < 5; i++) {
      const { status } = await gateway.post('/store/orders?takeStock=true', { petId: first + 1 })
      expect(status).toBe(201)
    }
    expect(await waiting()).toBeLessThanOrEqual(2)
    await commit()
    for (const { status } of await Promise.all(stuck)) expect(status).toBe(204)
    expect((await gateway.get(`/inventory/${first}`)).body.quantity).toBe(20)
  })

  test('wait for one that fills up the stock, and get what it has brought', async () => {
    await gateway.patch(`/inventory/${first}`, { quantity: 0 })
    const waiting = await observer()
    const client = await useClient(gateway.database.url)
    await client.query('BEGIN')
    await client.query(`UPDATE "Pet" SET status = 'pending' WHERE id = $1`, [first])
    await client.query(`UPDATE "InventoryItem" SET quantity = 10 WHERE "petId" = $1`, [first])
    const order = (headers: Record<string, string>) =>
      gateway.post('/store/orders?takeStock=true', { petId: first }, { headers })
    const answers = [order({}), order({ 'idempotency-key': randomUUID() })]
    await expect.poll(waiting).toBe(2)
    await client.query('COMMIT')
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([201, 201])
  })

  test('that name the same rows by variables wait for each other, too', async () => {
    const waiting = await observer()
    const { commit } = await hold('Pet', 'id', ids(0, 1), 'UPDATE')
    onTestFinished(() => commit().catch(() => {}) as Promise<void>)
    const operation = `mutation ($pets: [PetChange!]!, $petId: Int64!) @atomic {
      updatePets(input: $pets) { id }
      updatePet(petId: $petId, input: { name: "z" }) { id }
    }`
    const stuck = times(6, () =>
      gateway.graphql(operation, { pets: ids(0, 3).map((id) => ({ id, name: 'v' })), petId: first + 5 }),
    )
    await expect.poll(waiting).toBe(1)
    const free = await gateway.graphql(operation, {
      pets: ids(10, 3).map((id) => ({ id, name: 'v' })),
      petId: first + 15,
    })
    expect(free.body.errors).toBe(undefined)
    expect(await waiting()).toBe(1)
    await commit()
    for (const { body } of await Promise.all(stuck)) expect(body.errors).toBe(undefined)
  })
})
