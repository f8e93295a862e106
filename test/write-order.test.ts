import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openProxiedDatabase } from './support/database.js'
import { type Answer, type Gateway, openGateway } from './support/gateway.js'
import { testDatabaseUrl, useClient } from './support/postgres.js'

// The embedded database performs statements in the order in which they arrive.
describe.skipIf(!testDatabaseUrl)('a write that returned 503', () => {
  /** A gateway that gives up after `timeoutMs`, its database behind a proxy, and a connection of an administrator. */
  async function useGateway(timeoutMs: number) {
    const { database, proxy, behind } = await openProxiedDatabase({ timeoutMs })
    // What the proxy holds is the next statement: it must be a write, not a look at the changes of keys.
    const gateway = await openGateway({ database: behind, keyTtlMs: 600_000 })
    onTestFinished(() => gateway.close())
    const admin = await useClient(database.url)
    await database.prisma.category.create({ data: { name: 'Dogs' } })
    return { gateway, database, proxy, admin }
  }

  const mutation = 'mutation($id: Int64!, $name: String!) { updatePet(petId: $id, input: {name: $name}) { id } }'
  let keys = 0
  const kinds: [string, (gateway: Gateway, id: number, name: string) => Promise<Answer>][] = [
    ['plain', (gateway, id, name) => gateway.patch(`/pets/${id}`, { name })],
    ['conditional', (gateway, id, name) => gateway.patch(`/pets/${id}`, { name }, { headers: { 'if-match': '*' } })],
    [
      'with an Idempotency-Key',
      (gateway, id, name) => gateway.graphql(mutation, { id, name }, { headers: { 'idempotency-key': `k${keys++}` } }),
    ],
  ]

  test('because of a lock is not performed after a later one was acknowledged', async () => {
    const { gateway, database, admin } = await useGateway(2_000)
    let acknowledged = 0
    for (let round = 0; round < 6; round++) {
      const ids: number[] = []
      for (const _ of kinds) {
        const pet = await database.prisma.pet.create({ data: { name: 'new', categoryId: 1n } })
        ids.push(Number(pet.id))
      }
      await admin.query('BEGIN')
      await admin.query('SELECT 1 FROM "Pet" WHERE id = ANY ($1) FOR UPDATE', [ids])
      const early = kinds.flatMap(([, write], i) =>
        [1, 2, 3, 4].map((n) => write(gateway, ids[i] as number, `early ${n}`)),
      )
      for (const { status } of await Promise.all(early)) expect(status).toBe(503)
      const late = Promise.all(
        kinds.map(async ([, write], i) => {
          const answer = await write(gateway, ids[i] as number, 'late')
          return answer.status
        }),
      )
      // At another moment in each round.
      await sleep(100 * round)
      await admin.query('COMMIT')
      const statuses = await late
      const active = async () =>
        (
          await admin.query(
            `SELECT FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()`,
          )
        ).rowCount
      await expect.poll(active).toBe(0)
      const pets = await database.prisma.pet.findMany({
        where: { id: { in: ids.map(BigInt) } },
        orderBy: { id: 'asc' },
      })
      for (const [i, { name }] of pets.entries()) {
        const possible = statuses[i] === 200 ? ['late'] : ['new', 'late']
        expect(possible, kinds[i]?.[0]).toContain(name)
        if (statuses[i] === 200) acknowledged++
      }
    }
    expect(acknowledged).toBeGreaterThan(0)
  })

  test('because of the network is not performed when the network delivers it', async () => {
    const { gateway, database, proxy } = await useGateway(4_000)
    for (const [i, [name, write]] of kinds.entries()) {
      const id = i + 1
      await database.prisma.pet.create({ data: { name: 'new', categoryId: 1n } })
      expect([name, (await write(gateway, id, 'first')).status]).toEqual([name, 200])
      const deliver = proxy.holdNext()
      expect([name, (await write(gateway, id, 'early')).status]).toEqual([name, 503])
      const late = async () => (await write(gateway, id, 'late')).status
      await expect.poll(late).toBe(200)
      deliver()
      await sleep(200)
      expect(await database.prisma.pet.findUnique({ where: { id: BigInt(id) } })).toMatchObject({ name: 'late' })
    }
  })
})
