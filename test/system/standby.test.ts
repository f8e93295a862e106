import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isInstalled, Postgres } from '../faults/postgres.js'
import { hasPgbouncer, startPgbouncer } from '../support/pgbouncer.js'
import { openRemote, readiness } from '../support/remote.js'

async function primaryAndStandby() {
  const primary = await Postgres.create()
  onTestFinished(() => primary.end())
  const standby = await primary.createStandby()
  onTestFinished(() => standby.end())
  return { primary, standby }
}

describe.runIf(isInstalled())('a primary with a synchronous standby', () => {
  test('a gateway on the standby is ready as read-only, serves reads, and writes when it is promoted', async () => {
    const { primary, standby } = await primaryAndStandby()
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

  test.each(hasPgbouncer ? [false, true] : [false])(
    'without the standby: reads go on, writes return 503 and are not performed without it, and connections are bounded (pooler: %s)',
    async (pooler) => {
      const { primary, standby } = await primaryAndStandby()
      const pooled = pooler && (await startPgbouncer('transaction', primary.url()))('petstore', '?pgbouncer=true')
      const { call, url, errors } = await openRemote({ DATABASE_URL: pooled || primary.url() })
      const category = (await call('POST', '/categories', { name: 'Dogs' })).body
      const pet = (await call('POST', '/pets', { name: 'Rex', categoryId: category.id })).body
      await standby.stop('SIGQUIT')

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
      let stopped = false
      const statuses = { read: new Set<number>(), write: [] as number[] }
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
        FROM pg_stat_activity WHERE usename = 'petstore'`)
        connections.push(row)
      }
      expect(await readiness(url)).toEqual([200, { status: 'ok', database: 'ok', limits: 'memory' }])
      stopped = true
      await Promise.all(clients)
      expect([...statuses.read]).toEqual([200])
      expect(new Set(statuses.write)).toEqual(new Set([503]))
      expect(Math.max(...connections.map(({ waiting }) => waiting))).toBeLessThanOrEqual(20)
      // A pooler has connections of its own.
      if (!pooler) expect(Math.max(...connections.map(({ all }) => all))).toBeLessThanOrEqual(22)
      // What a cancelled COMMIT leaves is there, and the standby does not have it.
      expect(await primary.admin('SELECT name FROM "Pet"')).toEqual([{ name: 'Rex' }])
      expect(errors()).not.toMatch(/"level":[56]0/)

      await standby.start('hot_standby=on')
      const order = async () => (await call('POST', '/store/orders', { petId: pet.id })).status
      await expect.poll(order).toBe(201)
    },
  )
})
