import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import type { ApiKey } from '../prisma/generated/client/client.js'
import { createLog } from '../src/engines/observe/log.js'
import { createSecret, KeyUsage, writeKeys } from '../src/gateway/keys/index.js'
import { sharedGateway } from './support/gateway.js'
import { testDatabaseUrl } from './support/postgres.js'

// The database writes what happens to keys, also when Studio or SQL changes them.

const gateway = await sharedGateway({ env: { BAN_AFTER: '1' }, keyTtlMs: 1 })
const admin = new pg.Client({ connectionString: gateway.database.url })
await admin.connect()
afterAll(() => admin.end())

const eventsOf = (prefix: string) => gateway.prisma.apiKeyEvent.findMany({ where: { prefix }, orderBy: { id: 'asc' } })
/** What happened after the creation. */
const after = async ({ prefix }: ApiKey) =>
  (await eventsOf(prefix)).slice(1).map(({ event, source, changes }) => [event, source, changes])
const edit = (id: number, sql: string) => admin.query(`UPDATE "ApiKey" SET ${sql} WHERE id = ${id}`)

describe('the history of a key', () => {
  test('begins with its creation, and does not have its hash', async () => {
    const { row } = await gateway.createKey({ name: 'Ann', plan: 'Pro' })
    const [created] = await eventsOf(row.prefix)
    expect(created).toMatchObject({ keyId: row.id, name: 'Ann', event: 'created', source: 'database' })
    expect(created?.changes).toMatchObject({ name: [null, 'Ann'], plan: [null, 'Pro'], access: [null, 'write'] })
    expect(JSON.stringify(created?.changes)).not.toContain(row.hash.slice(0, 9))
    expect(Math.abs(Number(created?.at) - Date.now())).toBeLessThan(60_000)
  })

  test('has every column that changes, but not lastUsedAt', async () => {
    const { row } = await gateway.createKey()
    const { row: other } = await gateway.createKey()
    const { prefix, hash } = createSecret()
    const values: Record<string, string> = {
      id: '700000',
      name: `'Bob'`,
      owner: `'Bob Lee'`,
      email: `'bob@example.com'`,
      note: `'From the north.'`,
      plan: `'Business'`,
      prefix: `'${prefix}'`,
      hash: `'${hash}'`,
      createdAt: `'2026-01-01Z'`,
      expiresAt: `'2027-01-01Z'`,
      revokedAt: `'2027-01-01Z'`,
      bannedUntil: `'2027-01-01Z'`,
      originId: '1',
      access: `'read'`,
      replacedById: String(other.id),
    }
    const { rows } = await admin.query(`SELECT column_name AS name FROM information_schema.columns
      WHERE table_name = 'ApiKey' AND table_schema = current_schema()`)
    const columns = rows
      .map(({ name }) => name)
      .filter((name) => !['lastUsedAt', 'minuteLimit', 'dayLimit'].includes(name))
    expect(Object.keys(values).sort()).toEqual(columns.sort())
    let id = row.id
    for (const column of columns.sort((a, b) => Number(a === 'id') - Number(b === 'id'))) {
      await edit(id, `"${column}" = ${values[column]}, "lastUsedAt" = now()`)
      const [last] = await gateway.prisma.apiKeyEvent.findMany({ orderBy: { id: 'desc' }, take: 1 })
      expect([Object.keys(last?.changes as object), last?.source]).toEqual([[column], 'database'])
      if (column === 'id') id = 700_000
      expect(last?.keyId).toBe(id)
    }
    // All events go with the key to its new id.
    expect(await gateway.prisma.apiKeyEvent.count({ where: { keyId: id } })).toBe(columns.length + 1)
    await edit(id, `"plan" = 'Enterprise', "minuteLimit" = 1, "dayLimit" = 2`)
    const [last] = await gateway.prisma.apiKeyEvent.findMany({ orderBy: { id: 'desc' }, take: 1 })
    expect(last?.changes).toEqual({ plan: ['Business', 'Enterprise'], minuteLimit: [null, 1], dayLimit: [null, 2] })
  })

  test('has of owner, email and note whether there was one, never what it was', async () => {
    const values = { owner: 'Ann Lee', email: 'ann@example.com', note: 'Call before noon.' }
    const { row } = await gateway.createKey(values)
    await edit(row.id, `"owner" = 'Bob Lee', "email" = 'bob@example.com'`)
    await edit(row.id, `"owner" = 'Bob Lee', "note" = NULL`)
    await edit(row.id, `"note" = 'Call later.', "plan" = 'Pro'`)
    await admin.query(`DELETE FROM "ApiKey" WHERE id = ${row.id}`)
    const [created, ...later] = await eventsOf(row.prefix)
    expect(created?.changes).toMatchObject({ owner: [null, true], email: [null, true], note: [null, true] })
    expect(later.map(({ changes }) => changes)).toEqual([
      { owner: [true, true], email: [true, true] },
      { note: [true, null] },
      { note: [null, true], plan: ['Free', 'Pro'] },
      expect.objectContaining({ owner: [true, null], email: [true, null], note: [true, null] }),
    ])
    const { rows } = await admin.query('SELECT row_to_json("ApiKeyEvent")::text AS text FROM "ApiKeyEvent"')
    expect(JSON.stringify(rows)).not.toMatch(/Lee|@example|Call/)
  })

  test('has nothing of an update that changes nothing, or only lastUsedAt', async () => {
    const { row } = await gateway.createKey()
    await edit(row.id, `"lastUsedAt" = now()`)
    await edit(row.id, `"plan" = 'Free', "lastUsedAt" = now()`)
    const usage = new KeyUsage({ query: gateway.database.query, log: createLog('silent') })
    usage.count({ key: row }, 1)
    await usage.close()
    expect(await after(row)).toEqual([])
  })

  test('names bans and their end, revocations and their end', async () => {
    const { row } = await gateway.createKey()
    const [later, past, never] = [`'2999-01-01Z'`, `'2026-01-01Z'`, 'NULL']
    for (const end of [later, never, later, past]) await edit(row.id, `"bannedUntil" = ${end}`)
    for (const moment of [past, never]) await edit(row.id, `"revokedAt" = ${moment}`)
    await edit(row.id, `"name" = 'Bob'`)
    const names = (await after(row)).map(([event]) => event)
    expect(names).toEqual(['banned', 'unbanned', 'banned', 'unbanned', 'revoked', 'restored', 'changed'])
  })

  test('says that a ban came from the gateway, and that an admin lifted it', async () => {
    const { key, row } = await gateway.createLimitedKey(1, 1)
    for (const wait of [0, 0, 1_100]) {
      await sleep(wait)
      await gateway.get('/pets', { key })
    }
    await expect.poll(() => after(row)).toHaveLength(1)
    await edit(row.id, `"bannedUntil" = NULL`)
    expect(await after(row)).toMatchObject([
      ['banned', 'gateway', { bannedUntil: [null, expect.stringMatching(/^\d{4}-.*\+00:00$/)] }],
      ['unbanned', 'database', {}],
    ])
  })

  test('says who wrote, also when others write on the same connection later or at the same time', async () => {
    const { row } = await gateway.createKey()
    const { prisma } = gateway
    const where = { id: row.id }
    for (const source of ['command line', 'gateway'] as const) {
      await writeKeys(prisma, source, ({ apiKey }) => apiKey.update({ where, data: { name: source } }))
      await prisma.apiKey.update({ where, data: { name: `after ${source}` } })
    }
    const failed = writeKeys(prisma, 'gateway', ({ apiKey }) => apiKey.update({ where, data: { name: ' ' } }))
    await expect(failed).rejects.toThrow()
    await prisma.apiKey.update({ where, data: { name: 'after a failure' } })
    const sources = (await after(row)).map(([, source]) => source)
    expect(sources).toEqual(['command line', 'database', 'gateway', 'database', 'database'])
  })

  test('stays when the key is deleted', async () => {
    const { row } = await gateway.createKey({ name: 'Gone' })
    await admin.query(`DELETE FROM "ApiKey" WHERE id = ${row.id}`)
    const events = await eventsOf(row.prefix)
    expect(events.map(({ event, keyId, name }) => [event, keyId, name])).toEqual([
      ['created', null, 'Gone'],
      ['deleted', null, 'Gone'],
    ])
    expect(events[1]?.changes).toMatchObject({ id: [row.id, null] })
  })

  test.runIf(testDatabaseUrl)(
    'is written for a role that may edit keys only, and that role cannot change it',
    async () => {
      const role = `petstore_${randomUUID().slice(0, 8)}`
      const { row } = await gateway.createKey()
      await admin.query(`CREATE ROLE ${role}; GRANT SELECT, UPDATE ON "ApiKey" TO ${role}; SET ROLE ${role}`)
      try {
        await edit(row.id, `"name" = 'Carl'`)
        await expect(admin.query('DELETE FROM "ApiKeyEvent"')).rejects.toThrow(/permission denied/)
      } finally {
        await admin.query(`RESET ROLE; DROP OWNED BY ${role}; DROP ROLE ${role}`)
      }
      expect(await after(row)).toEqual([['changed', 'database', { name: ['test', 'Carl'] }]])
    },
  )
})
