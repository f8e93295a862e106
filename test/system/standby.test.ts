import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isInstalled, Postgres } from '../lab/faults/postgres.js'
import { hasPgbouncer, startPgbouncer } from '../support/pgbouncer.js'
import { openRemote, readiness } from '../support/remote.js'

describe.runIf(isInstalled())('a primary with a synchronous standby', () => {
  let primary: Postgres
  let standby: Postgres
  beforeAll(async () => {
    primary = await Postgres.create()
    standby = await primary.createStandby()
  })
  afterAll(async () => {
    await primary.end()
    await standby.end()
  })

  /** A gateway on a database of its own, with a pet. Returns the check of what clients see, which returns how to order. */
  async function open(name: string, urlOf: (database: string) => string) {
    await primary.admin(`CREATE DATABASE ${name} OWNER petstore`, 'postgres')
    const { call, url, errors } = await openRemote({ DATABASE_URL: urlOf(name) })
    const category = (await call('POST', '/categories', { name: 'Dogs' })).body
    const pet = (await call('POST', '/pets', { name: 'Rex', categoryId: category.id })).body
    const key = () => ({ 'idempotency-key': randomUUID() })
    const writes: (() => ReturnType<typeof call>)[] = [
      () => call('POST', '/store/orders', { petId: pet.id }, key()),
      () => call('POST', '/pets', { name: 'Max', categoryId: category.id }, key()),
      () => call('POST', '/categories', { name: 'Cats' }, key()),
      () => call('POST', '/store/orders', { petId: pet.id }),
      () => call('POST', '/pets', { name: 'Max', categoryId: category.id }),
      () => call('POST', '/categories', { name: 'Cats' }),
      () => call('PATCH', `/inventory/${pet.id}`, { quantity: 3 }),
      () => call('PATCH', `/pets/${pet.id}`, { name: 'Bello' }),
      () => call('PATCH', `/categories/${category.id}`, { name: 'Birds' }, { 'if-match': '*' }),
    ]
    const reads = ['/pets', `/pets/${pet.id}`, '/categories', '/store/orders', '/inventory']
    return async () => {
      const statuses = { read: new Set<number>(), write: [] as number[] }
      let stopped = false
      const clients = [
        ...Array.from({ length: 40 }, async (_, i) => {
          for (let n = i; !stopped; n++) statuses.write.push((await writes[n % writes.length]?.())?.status ?? 0)
        }),
        ...reads.map(async (path) => {
          for (; !stopped; await sleep(20)) statuses.read.add((await call('GET', path)).status)
        }),
      ]
      const connections: { all: number; waiting: number }[] = []
      // Three of each client.
      while (statuses.write.length < 120) {
        await sleep(100)
        const [row] = await primary.admin(`SELECT count(*)::int AS all,
          (count(*) FILTER (WHERE wait_event = 'SyncRep'))::int AS waiting
          FROM pg_stat_activity WHERE usename = 'petstore' AND datname = '${name}'`)
        connections.push(row)
      }
      expect(await readiness(url)).toEqual([200, { status: 'ok', database: 'ok', limits: 'memory' }])
      stopped = true
      await Promise.all(clients)
      expect([...statuses.read], name).toEqual([200])
      expect(new Set(statuses.write), name).toEqual(new Set([503]))
      expect(Math.max(...connections.map(({ waiting }) => waiting)), name).toBeLessThanOrEqual(20)
      // A pooler has connections of its own.
      if (name === 'direct') expect(Math.max(...connections.map(({ all }) => all))).toBeLessThanOrEqual(22)
      // What a cancelled COMMIT leaves is there, and the standby does not have it.
      expect(await primary.admin('SELECT name FROM "Pet"', name)).toEqual([{ name: 'Rex' }])
      expect(errors(), name).not.toMatch(/"level":[56]0/)
      return async () => (await call('POST', '/store/orders', { petId: pet.id })).status
    }
  }

  test('without the standby: reads go on, writes return 503 and are not performed without it, and connections are bounded, also behind a pooler', async () => {
    const checks = [await open('direct', (name) => primary.url('petstore', name))]
    if (hasPgbouncer) {
      const pooled = await startPgbouncer('transaction', primary.url())
      checks.push(await open('pooled', (name) => pooled(name, '?pgbouncer=true')))
    }
    await standby.stop('SIGQUIT')
    // Whatever was seen, the next test needs the standby.
    const orders = await Promise.all(checks.map((check) => check())).finally(() => standby.start('hot_standby=on'))
    for (const order of orders) await expect.poll(order).toBe(201)
  })

  test('a gateway on the standby is ready as read-only, serves reads, and writes when it is promoted', async () => {
    const first = await openRemote({ DATABASE_URL: primary.url() })
    expect((await first.call('POST', '/categories', { name: 'Dogs' })).status).toBe(201)
    const second = await openRemote({ DATABASE_URL: standby.url() }, first.key)
    expect(await readiness(second.url)).toEqual([200, { status: 'read-only', database: 'read-only', limits: 'memory' }])
    await expect.poll(async () => (await second.call('GET', '/categories/1')).status).toBe(200)
    expect((await second.call('POST', '/categories', { name: 'Cats' })).status).toBe(503)
    await primary.stop('SIGQUIT')
    await standby.admin('SELECT pg_promote()')
    await expect.poll(async () => (await readiness(second.url))[1].status).toBe('ok')
    await expect.poll(async () => (await second.call('POST', '/categories', { name: 'Cats' })).status).toBe(201)
  })
})
