import { expect, onTestFinished, vi } from 'vitest'
import { openDatabase } from '../../src/gateway/database/index.js'
import { readSettings } from '../../src/settings.js'
import { type Gateway, openGateway } from './gateway.js'
import { queryOnce } from './postgres.js'
import { keys } from './remote.js'

// What must hold whatever a server, a database or a role sets in sessions with PostgreSQL.

type Env = Record<string, string>

const MINUTE_MS = 60_000
const fromNow = (minutes: number) => new Date(Date.now() + minutes * MINUTE_MS).toISOString()

/** A gateway that bans for ten minutes. Close it to write what its keys have used. */
async function openGatewayOn(env: Env) {
  const database = await openDatabase(readSettings(env), { timeoutMs: 30_000 })
  return openGateway({ database: { ...database, env }, redisUrl: '', env: { BAN_AFTER: '3', BAN_SECONDS: '600' } })
}

/** A status, and seconds to wait: a ban of ten minutes that began within the last two is about ten. */
async function ask(gateway: Gateway, { key }: { key: string }) {
  const { status, headers } = await gateway.get('/categories', { key })
  const seconds = Number(headers.get('retry-after'))
  return [status, seconds > 480 && seconds < 610 ? 'ten minutes' : seconds]
}

/**
 * Expects that keys, bans, dates and usage are what they are in UTC.
 *
 * @param env the settings of gateways and commands
 * @param url leads to the same database, past a pooler
 */
export async function expectMomentsToHold(env: Env, url: string): Promise<void> {
  const gateway = await openGatewayOn(env)
  const create = (name: string, ...options: string[]) => keys(env, 'create', '--name', name, '--plan', ...options)
  const good = await create('good', 'Free')
  const expiring = await create('expiring', 'Free', '--expires', fromNow(30))
  const expired = await create('expired', 'Free', '--expires', fromNow(30))
  const revoked = await create('revoked', 'Free')
  const banned = await create('banned', 'Free')
  const abusing = await create('abusing', 'Enterprise', '--minute-limit', '1', '--day-limit', '100')
  const secondsUntil = async (column: string, { id }: { id: number }) =>
    (
      await queryOnce(
        url,
        `SELECT extract(epoch FROM "${column}" - now())::float AS s FROM "public"."ApiKey" WHERE id = ${id}`,
      )
    )[0].s
  expect(Math.round((await secondsUntil('expiresAt', expiring)) / 600)).toBe(3)
  await queryOnce(url, `UPDATE "public"."ApiKey" SET "expiresAt" = '${fromNow(-1)}' WHERE id = ${expired.id}`)
  await keys(env, 'revoke', String(revoked.id))
  await keys(env, 'ban', String(banned.id), '--for', '600')
  expect(await ask(gateway, good)).toEqual([200, 0])
  expect(await ask(gateway, expiring)).toEqual([200, 0])
  expect(await ask(gateway, expired)).toEqual([401, 0])
  expect(await ask(gateway, revoked)).toEqual([401, 0])
  expect(await ask(gateway, banned)).toEqual([429, 'ten minutes'])
  const list: { name: string; state: string; expiresAt: string }[] = await keys(env, 'list')
  expect(Object.fromEntries(list.map(({ name, state }) => [name, state]))).toEqual({
    good: 'active',
    expiring: 'active',
    expired: 'expired',
    revoked: 'revoked',
    banned: 'banned',
    abusing: 'active',
    unlimited: 'active',
  })
  const shown = list.find(({ name }) => name === 'expiring')?.expiresAt as string
  expect(Math.round((Date.parse(shown) - Date.now()) / MINUTE_MS / 10)).toBe(3)

  // A gateway writes its bans into the rows of keys, for other gateways.
  await vi.waitUntil(async () => (await gateway.get('/categories', { key: abusing.key })).code === 'key_banned', {
    timeout: 60_000,
    interval: 300,
  })
  await expect.poll(() => secondsUntil('bannedUntil', abusing)).toBeGreaterThan(480)
  expect(await secondsUntil('bannedUntil', abusing)).toBeLessThanOrEqual(600)

  const { body: category } = await gateway.post('/categories', { name: 'Dogs' })
  const { body: pet } = await gateway.post('/pets', { name: 'Émile', categoryId: category.id })
  expect((await gateway.get('/pets?sort=name&search=%C3%89')).body).toEqual([pet])
  const shipDates = [
    '2026-02-03T23:30:00.000Z',
    '2026-03-04T00:30:00.000Z',
    '1970-01-01T00:00:00.000Z',
    '9999-12-31T23:59:59.999Z',
  ]
  const orders = []
  for (const shipDate of shipDates) orders.push((await gateway.post('/store/orders', { petId: pet.id, shipDate })).body)
  expect(orders.map(({ shipDate }) => shipDate)).toEqual(shipDates)
  expect((await gateway.get('/store/orders')).body).toEqual(orders)
  const between = '/store/orders?sort=shipDate&shipDateFrom=2026-02-03T23:30:00Z&shipDateBefore=2026-03-04T00:30:00Z'
  expect((await gateway.get(between)).body).toEqual(orders.slice(0, 1))
  // Cursors hold moments.
  const walked: string[] = []
  let path = '/store/orders?sort=shipDate&limit=1'
  for (let i = 0; i < shipDates.length; i++) {
    const { body, headers } = await gateway.get(path)
    walked.push(body[0].shipDate)
    const [, next = ''] = /<([^>]*)>; rel="next"/.exec(headers.get('link') ?? '') ?? []
    path = next.replace(gateway.config.BASE_URL, '')
  }
  expect(walked).toEqual(shipDates.toSorted())
  const idempotent = { headers: { 'idempotency-key': 'once' } }
  const [first, second] = [
    await gateway.post('/store/orders', { petId: pet.id, shipDate: shipDates[0] }, idempotent),
    await gateway.post('/store/orders', { petId: pet.id, shipDate: shipDates[0] }, idempotent),
  ]
  expect([second.status, second.text]).toEqual([201, first.text])

  // What keys have used is counted on days of UTC, and written at the end.
  const days = [new Date().toISOString().slice(0, 10)]
  await gateway.close()
  days.push(new Date().toISOString().slice(0, 10))
  const beside = await openGatewayOn(env)
  onTestFinished(() => beside.close())
  expect(await ask(beside, revoked)).toEqual([401, 0])
  expect(await ask(beside, abusing)).toEqual([429, 'ten minutes'])
  const { body: usage } = await beside.get('/quota/usage?days=2', { key: good.key })
  expect(days).toContain(usage.find(({ requests }: { requests: number }) => requests > 0)?.date)
  const [used] = await keys(env, 'usage', '--days', '2')
  expect(days).toContain(used.days[0].day)
  const events: { event: string; at: string }[] = await keys(env, 'history', String(banned.id))
  expect(events.map(({ event }) => event)).toEqual(['created', 'banned'])
  for (const { at } of events) expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(5 * MINUTE_MS)
}
