import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { ApiKey } from '../prisma/generated/client/client.js'
import { createLog } from '../src/engines/observe/log.js'
import { createReads } from '../src/engines/postgres/reads.js'
import { ApiKeyCache, createSecret } from '../src/gateway/keys/index.js'
import { times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'
import { openWatchedDatabase } from './support/statements.js'

const database = await openWatchedDatabase()
const { prisma, statements } = database
const gateway = await sharedGateway({ database, keyTtlMs: 500 })

const create = () => gateway.createKey({ plan: 'Business' })
const status = async (key: string) => (await gateway.get('/categories', { key })).status
const run = (sql: string) => prisma.$executeRawUnsafe(sql)
/** Uses a key until a request has the expected result, as a client would that does not pause. */
const expectSoon = (result: () => Promise<unknown>, expected: unknown) =>
  expect.poll(result, { interval: 20, timeout: 8_000 }).toEqual(expected)

/** Uses keys until their rows are no longer read. */
async function useSteadily(...keys: string[]) {
  for (let i = 0; i < 8; i++) {
    for (const key of keys) expect(await status(key)).toBe(200)
    await sleep(100)
  }
}

/** A cache, a clock that goes only when it is used, and a database that can be away. */
function open() {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const { row } = createReads(database.tables)(database.query)
  const state = { isAway: false, slowUntil: Promise.resolve(), answers: 0 }
  let looking: Promise<unknown> = Promise.resolve()
  const assertThere = () => {
    if (state.isAway) throw new Error('The database is away')
  }
  const query: typeof database.query = async (...statement) => {
    assertThere()
    const rows = database.query(...statement)
    looking = rows
    return rows
  }
  const reads = {
    row: (async (...asked) => {
      assertThere()
      const answer = await row(...asked)
      state.answers++
      await state.slowUntil
      return answer
    }) as typeof row,
  }
  const cache = new ApiKeyCache({ query, reads, log: createLog('silent') })
  /** What is read in some seconds in which all keys are used each second. */
  const use = async (keys: string[], seconds = 1) => {
    const before = statements.length
    for (let i = 0; i < seconds; i++) {
      // A little more than a second: the clock adds fractions, which are not exact.
      vi.advanceTimersByTime(1_001)
      for (const key of keys) await cache.find(key)
      for (let seen: unknown; seen !== looking; await sleep(1)) {
        seen = looking
        await looking
      }
    }
    const sent = statements.slice(before)
    const count = (table: string) => sent.filter((sql) => sql.includes(`FROM "public"."${table}"`)).length
    return { rows: count('ApiKey'), looks: count('ApiKeyEvent') }
  }
  return { cache, use, state }
}

describe('while keys do not change', () => {
  test('their rows are not read again, however many are in use: one statement every two seconds sees the changes', async () => {
    const keys = (await Promise.all(times(20, () => gateway.createKey()))).map(({ key }) => key)
    const { use } = open()
    await use(keys, 10)
    expect(await use(keys, 600)).toEqual({ rows: 0, looks: 300 })
  })

  test('a row that changes while it is read is read again', async () => {
    const [{ key: other }, { key, row }] = [await create(), await create()]
    const { cache, use, state } = open()
    await use([other], 10)
    let goOn = () => {}
    state.slowUntil = new Promise<void>((resolve) => (goOn = resolve))
    const { answers } = state
    const reading = cache.find(key)
    await expect.poll(() => state.answers).toBe(answers + 1)
    await prisma.apiKey.update({ where: { id: row.id }, data: { plan: 'Pro' } })
    await use([other], 2)
    goOn()
    expect(await reading).toMatchObject({ plan: 'Business' })
    expect(await cache.find(key)).toMatchObject({ plan: 'Pro' })
  })

  test('nothing is read for keys that are not used', async () => {
    const { key } = await gateway.createKey()
    const { use } = open()
    await use([key], 10)
    expect(await use([], 600)).toEqual({ rows: 0, looks: 0 })
  })

  test('their rows are read every quarter of an hour, so a change takes effect that no trigger saw', async () => {
    const { key, row } = await gateway.createKey()
    const { cache, use } = open()
    await use([key], 10)
    await run('ALTER TABLE "ApiKey" DISABLE TRIGGER USER')
    await prisma.apiKey.update({ where: { id: row.id }, data: { plan: 'Pro' } })
    await run('ALTER TABLE "ApiKey" ENABLE TRIGGER USER')
    expect(await use([key], 880)).toMatchObject({ rows: 0 })
    expect(await cache.find(key)).toMatchObject({ plan: 'Free' })
    expect(await use([key], 20)).toMatchObject({ rows: 1 })
    expect(await cache.find(key)).toMatchObject({ plan: 'Pro' })
  })
})

describe('while the database is away', () => {
  test('a key whose change was seen is used for five seconds as it was, then not at all', async () => {
    const [{ key, row }, { key: other }] = [await create(), await create()]
    const { cache, use, state } = open()
    await use([key, other], 10)
    await prisma.apiKey.update({ where: { id: row.id }, data: { plan: 'Pro' } })
    await use([other], 2)
    state.isAway = true
    // It was seen in the last second.
    vi.advanceTimersByTime(3_900)
    expect(await cache.find(key)).toMatchObject({ plan: 'Business' })
    vi.advanceTimersByTime(1_200)
    await expect(cache.find(key)).rejects.toThrow('The database is away')
    expect(await cache.find(other)).toMatchObject({ plan: 'Business' })
    state.isAway = false
    expect(await cache.find(key)).toMatchObject({ plan: 'Pro' })
  })

  test('one failure does not let a key be used that is revoked later, while no request asks', async () => {
    const [{ key, row }, { key: other }, { key: fresh }] = [await create(), await create(), await create()]
    const { cache, use, state } = open()
    await use([key, other], 10)
    state.isAway = true
    await expect(cache.find(fresh)).rejects.toThrow('The database is away')
    state.isAway = false
    await use([key, other], 60)
    await prisma.apiKey.update({ where: { id: row.id }, data: { revokedAt: new Date() } })
    vi.advanceTimersByTime(240_000)
    expect(await cache.find(key)).toBeUndefined()
  })
})

describe('a change takes effect on a key that is in use', () => {
  const where = ({ id }: ApiKey) => `WHERE id = ${id}`
  test.each<[string, (row: ApiKey) => string, number]>([
    ['it is revoked', (row) => `UPDATE "ApiKey" SET "revokedAt" = now() ${where(row)}`, 401],
    ['it expires', (row) => `UPDATE "ApiKey" SET "expiresAt" = now() ${where(row)}`, 401],
    ['it is banned', (row) => `UPDATE "ApiKey" SET "bannedUntil" = now() + interval '1 hour' ${where(row)}`, 429],
    ['it is deleted', (row) => `DELETE FROM "ApiKey" ${where(row)}`, 401],
    ['it gets another secret', (row) => `UPDATE "ApiKey" SET hash = '${createSecret().hash}' ${where(row)}`, 401],
    [
      'it is revoked, and gets another id',
      (row) => `UPDATE "ApiKey" SET "revokedAt" = now(), id = ${row.id} + 1000000 ${where(row)}`,
      401,
    ],
  ])('%s', async (_, sql, expected) => {
    const { key, row } = await create()
    await useSteadily(key)
    await run(sql(row))
    await expectSoon(() => status(key), expected)
  })

  test('its ban and its revocation are lifted', async () => {
    const { key, row } = await create()
    for (const [set, lift] of [
      [`"bannedUntil" = now() + interval '1 hour'`, '"bannedUntil" = NULL'],
      ['"revokedAt" = now()', '"revokedAt" = NULL'],
    ]) {
      await useSteadily(key)
      await run(`UPDATE "ApiKey" SET ${set} ${where(row)}`)
      await expectSoon(async () => (await status(key)) === 200, false)
      await run(`UPDATE "ApiKey" SET ${lift} ${where(row)}`)
      await expectSoon(() => status(key), 200)
    }
  })

  test('its transaction ends after later changes have been seen', async () => {
    // The embedded database performs one transaction at a time.
    if (database.embedded) return
    const [late, other] = [await create(), await create()]
    const [undone, kept] = [await create(), await create()]
    await useSteadily(late.key, other.key, undone.key, kept.key)
    const beside = await gateway.openBeside({ keyTtlMs: 500 })
    const statusBeside = async () => (await beside.get('/categories', { key: late.key })).status
    const revoke = (row: ApiKey) => `UPDATE "ApiKey" SET "revokedAt" = now() ${where(row)}`
    await prisma.$transaction(
      async (transaction) => {
        await transaction.$executeRawUnsafe(revoke(late.row))
        await prisma
          .$transaction(async (transaction) => {
            await transaction.$executeRawUnsafe(revoke(undone.row))
            throw new Error('Rolled back')
          })
          .catch(() => {})
        await run(revoke(other.row))
        await expectSoon(() => status(other.key), 401)
        for (const { key } of [late, undone, kept]) expect(await status(key)).toBe(200)
        for (let i = 0; i < 8; i++, await sleep(100)) expect(await statusBeside()).toBe(200)
      },
      { timeout: 30_000 },
    )
    await expectSoon(() => status(late.key), 401)
    await expectSoon(statusBeside, 401)
    expect(await status(undone.key)).toBe(200)
    await run(revoke(kept.row))
    await expectSoon(() => status(kept.key), 401)
  })

  test('thousands of others change with it, in a transaction that ends after a later change has been seen', async () => {
    await run(`INSERT INTO "ApiKey" (name, prefix, hash)
      SELECT 'many', 'petstore_' || lpad(i::text, 8, '0'), encode(sha256(i::text::bytea), 'hex') FROM generate_series(1, 11000) AS i`)
    const { key, row } = await gateway.createKey({ plan: 'Business', name: 'many' })
    const [kept, other] = [await create(), await create()]
    await useSteadily(key, kept.key, other.key)
    const revoke = (what: string) => `UPDATE "ApiKey" SET "revokedAt" = now() ${what}`
    let beside = gateway
    await prisma.$transaction(
      async (transaction) => {
        await transaction.$executeRawUnsafe(revoke(where(row)))
        await transaction.$executeRawUnsafe(revoke(`WHERE name = 'many' AND "revokedAt" IS NULL`))
        // The embedded database performs one transaction at a time.
        if (database.embedded) return
        await run(revoke(where(other.row)))
        await expectSoon(() => status(other.key), 401)
        beside = await gateway.openBeside({ keyTtlMs: 500 })
        for (let i = 0; i < 8; i++, await sleep(100))
          for (const each of [gateway, beside]) expect((await each.get('/categories', { key })).status).toBe(200)
      },
      { timeout: 30_000 },
    )
    await expectSoon(() => status(key), 401)
    await expectSoon(async () => (await beside.get('/categories', { key })).status, 401)
    expect(await status(kept.key)).toBe(200)
    await run(`UPDATE "ApiKey" SET "revokedAt" = NULL ${where(row)}`)
    await expectSoon(() => status(key), 200)
  })

  test.each([
    ['emptied', 'TRUNCATE "ApiKeyEvent" RESTART IDENTITY'],
    ['shortened', 'DELETE FROM "ApiKeyEvent" WHERE id > (SELECT max(id) FROM "ApiKeyEvent") - 3'],
    ['given far higher ids', `SELECT setval('"ApiKeyEvent_id_seq"', (SELECT max(id) + 1000000000 FROM "ApiKeyEvent"))`],
    ['that of another time', 'UPDATE "ApiKeyEvent" SET at = at - interval \'1 day\''],
  ])('the history was %s', async (_, sql) => {
    const [one, two] = [await create(), await create()]
    await useSteadily(one.key, two.key)
    // Until this commits, nothing is seen of it.
    await prisma.$transaction([
      prisma.$executeRawUnsafe(`UPDATE "ApiKey" SET "revokedAt" = now() ${where(one.row)}`),
      prisma.$executeRawUnsafe(sql),
    ])
    await expectSoon(() => status(one.key), 401)
    await useSteadily(two.key)
    await run(`UPDATE "ApiKey" SET "revokedAt" = now() ${where(two.row)}`)
    await expectSoon(() => status(two.key), 401)
  })

  test('the history cannot be read, which is logged once', async () => {
    const [one, two] = [await create(), await create()]
    await useSteadily(one.key, two.key)
    await run('ALTER TABLE "ApiKey" DISABLE TRIGGER USER')
    await run('ALTER TABLE "ApiKeyEvent" RENAME TO "Away"')
    await run(`UPDATE "ApiKey" SET "revokedAt" = now() ${where(one.row)}`)
    await expectSoon(() => status(one.key), 401)
    await useSteadily(two.key)
    const failures = gateway.logged.filter((line) => line.includes('failed to read the history of keys'))
    expect(failures).toHaveLength(1)
    await run('ALTER TABLE "Away" RENAME TO "ApiKeyEvent"')
    await run('ALTER TABLE "ApiKey" ENABLE TRIGGER USER')
    await useSteadily(two.key)
    await run(`UPDATE "ApiKey" SET "revokedAt" = now() ${where(two.row)}`)
    await expectSoon(() => status(two.key), 401)
  })
})

test('the trigger that writes the history is called for each column of a key but `lastUsedAt`', async () => {
  const names = (sql: string) =>
    prisma.$queryRawUnsafe<{ name: string }[]>(sql).then((rows) => rows.map(({ name }) => name))
  const watched = await names(`SELECT event_object_column AS name FROM information_schema.triggered_update_columns
    WHERE trigger_name = 'ApiKey_history'`)
  const columns = await names(`SELECT column_name AS name FROM information_schema.columns
    WHERE table_name = 'ApiKey' AND table_schema = current_schema()`)
  expect([...watched, 'lastUsedAt'].sort()).toEqual(columns.sort())
})
