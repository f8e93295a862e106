import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { PrismaPg } from '@prisma/adapter-pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { PrismaClient } from '../prisma/generated/client/client.js'
import { models } from '../schema/kit/model.js'
import { type Embedded, openEmbedded } from '../src/engines/embedded/open.js'
import { readMigrations } from '../src/engines/postgres/migrations/history.js'
import { migrate as migrateServer } from '../src/engines/postgres/migrations/migrations.js'
import { StartupError } from '../src/startup-error.js'
import { diff, readStatus } from './lab/tools/schema-engine.js'
import { checksOf } from './lab/tools/value-checks.js'
import { resetStore } from './support/calls.js'
import { useGateway } from './support/gateway.js'
import { hasPgbouncer, startPgbouncer } from './support/pgbouncer.js'
import { scratchDatabase, testDatabaseUrl, useClient } from './support/postgres.js'

const server = testDatabaseUrl
const ours = readMigrations()
const names = ours.map(({ name }) => name)
let embedded: Embedded | undefined

beforeAll(async () => {
  embedded = await openEmbedded({ dataDir: '', port: 0, inMemory: true })
})
afterAll(() => embedded?.close())

/** The URL of an empty database. */
async function empty(kind: string): Promise<string> {
  if (kind !== 'embedded') return scratchDatabase()
  const url = embedded?.url ?? ''
  await (await useClient(url)).query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
  return url
}

describe.each(server ? ['embedded', 'PostgreSQL'] : ['embedded'])('migrations (%s)', (kind) => {
  const migrate: typeof migrateServer = (url, options) =>
    migrateServer(url, { isEmbedded: kind === 'embedded', ...options })

  test('are applied to an empty database, and recorded as Prisma Migrate does', async () => {
    const url = await empty(kind)
    expect(await migrate(url)).toEqual(names)
    expect(await migrate(url)).toEqual([])
    const { rows } = await (await useClient(url)).query('SELECT * FROM "_prisma_migrations"')
    expect(rows).toEqual(
      names.map((migration_name) => ({
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        checksum: expect.stringMatching(/^[0-9a-f]{64}$/),
        finished_at: expect.any(Date),
        migration_name,
        logs: null,
        rolled_back_at: null,
        started_at: expect.any(Date),
        applied_steps_count: 1,
      })),
    )
  })

  test('are applied once each if four gateways start at the same time, and leave no difference that Prisma would report', async () => {
    const url = await empty(kind)
    const applied = await Promise.all([1, 2, 3, 4].map(() => migrate(url)))
    expect(applied.flat().sort()).toEqual(names)
    const [history, drift] = [await readStatus(url), await diff(url)]
    const none = { history: null, editedMigrationNames: [], failedMigrationNames: [], hasMigrationsTable: true }
    expect(history).toMatchObject(none)
    expect([drift.exitCode, drift.stdout]).toEqual([0, expect.stringMatching(/empty migration/)])
  })

  test('do not wait for the lock if none is missing', async () => {
    const url = await empty(kind)
    await migrate(url)
    const migrator = await useClient(url)
    await migrator.query('SELECT pg_advisory_lock(72707369)')
    expect(await migrate(url)).toEqual([])
    await migrator.query('SELECT pg_advisory_unlock(72707369)')
  })

  test('that fail are rolled back, and the next start tries again', async () => {
    const url = await empty(kind)
    const broken = [...ours, { name: '20990101000000_broken', sql: 'CREATE TABLE "Left" (); SELECT nonsense' }]
    const failed = migrate(url, { migrations: broken })
    await expect(failed).rejects.toThrow(StartupError)
    await expect(failed).rejects.toThrow(/^the migration 20990101000000_broken failed and was rolled back: .*nonsense/)
    const { rows } = await (await useClient(url)).query(`SELECT to_regclass('"Left"') AS left`)
    expect(rows).toEqual([{ left: null }])
    expect(await migrate(url)).toEqual([])
    const repaired = [...ours, { name: '20990101000000_broken', sql: 'SELECT 1' }]
    expect(await migrate(url, { migrations: repaired })).toHaveLength(1)
  })

  test.each([
    ['edited', `UPDATE "_prisma_migrations" SET "checksum" = repeat('0', 64)`, 'was edited after'],
    ['failed', `UPDATE "_prisma_migrations" SET "finished_at" = NULL`, 'failed in the database'],
  ])('fail if the history has one that is %s', async (_, sql, message) => {
    const url = await empty(kind)
    await migrate(url)
    await (await useClient(url)).query(sql)
    await expect(migrate(url)).rejects.toThrow(StartupError)
    await expect(migrate(url)).rejects.toThrow(message)
  })

  test('of a newer version are left alone and named, and the database is served', async () => {
    const url = await empty(kind)
    const newer = [...ours, { name: '20990101000000_newer', sql: 'ALTER TABLE "Pet" ADD COLUMN "chip" TEXT' }]
    await migrate(url, { migrations: newer })
    const notices: string[] = []
    expect(await migrate(url, { onNotice: (message) => notices.push(message) })).toEqual([])
    expect(notices).toEqual([expect.stringMatching(/migrations of a newer version.*: 20990101000000_newer$/)])
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) })
    onTestFinished(() => prisma.$disconnect())
    await prisma.category.create({ data: { name: 'Dogs', pets: { create: { name: 'Rex' } } } })
    expect(await prisma.pet.findMany({ include: { inventory: true } })).toMatchObject([{ name: 'Rex' }])
  })

  test('bring a database of the first version up to date, with everything in it', async () => {
    const url = await empty(kind)
    await migrate(url, { migrations: ours.slice(0, 1) })
    const db = await useClient(url)
    await db.query(`
      INSERT INTO "Category" ("name", "description") VALUES ('Dogs', 'Of every size.'), ('  Écureuils ', NULL), (' ', '');
      INSERT INTO "Pet" ("name", "categoryId", "status") VALUES ('Rex', 1, 'sold'), (E'\tTom\n', 2, 'available');
      INSERT INTO "Pet" ("id", "name", "categoryId") VALUES (900, '\u3000', 1), (9007199254740991, 'Last', 1);
      UPDATE "InventoryItem" SET "quantity" = 7 WHERE "petId" = 1;
      DELETE FROM "InventoryItem" WHERE "petId" = 2;
      INSERT INTO "Order" ("petId", "quantity", "shipDate", "complete")
        VALUES (1, 3, '2026-12-24T18:00:00.123Z', true), (900, 1, NULL, false);
      INSERT INTO "ApiKey" ("name", "plan", "prefix", "hash", "minuteLimit", "dayLimit", "createdAt", "expiresAt")
        VALUES ('Ann', 'Enterprise', 'petstore_0123abcd', repeat('a', 64), 5, 50, '2026-01-01Z', '2027-01-01Z');
      INSERT INTO "ApiKey" ("id", "name", "prefix", "hash", "createdAt", "expiresAt", "revokedAt", "bannedUntil", "lastUsedAt")
        VALUES (0, ' ', '', repeat('b', 64), '-infinity', 'infinity', 'infinity', 'infinity', '0044-03-15 BC')`)
    expect(await migrate(url)).toEqual(names.slice(1))
    const rows = async (sql: string) => (await db.query({ text: sql, rowMode: 'array' })).rows
    const categories = 'SELECT "id", "name", "description", "nameKey", "plainName" FROM "Category" ORDER BY "id"'
    expect(await rows(categories)).toEqual([
      ['1', 'Dogs', 'Of every size.', 'dogs', 'dogs'],
      ['2', 'Écureuils', null, 'écureuils', 'ecureuils'],
      ['3', 'Category 3', '', 'category 3', 'category 3'],
    ])
    const pets =
      'SELECT "id", "name", "categoryId", "status", "nameKey", "plainName", "inStock" FROM "Pet" ORDER BY "id"'
    expect(await rows(pets)).toEqual([
      ['1', 'Rex', '1', 'sold', 'rex', 'rex', true],
      ['2', 'Tom', '2', 'available', 'tom', 'tom', false],
      ['900', 'Pet 900', '1', 'available', 'pet 900', 'pet 900', false],
      ['9007199254740991', 'Last', '1', 'available', 'last', 'last', false],
    ])
    const stock = 'SELECT "petId", "status", "categoryId", "quantity" FROM "InventoryItem" ORDER BY "petId"'
    expect(await rows(stock)).toEqual([
      ['1', 'sold', '1', 7],
      ['2', 'available', '2', 0],
      ['900', 'available', '1', 0],
      ['9007199254740991', 'available', '1', 0],
    ])
    expect(await rows('SELECT "id", "petId", "quantity", "shipDate", "complete" FROM "Order" ORDER BY "id"')).toEqual([
      ['1', '1', 3, new Date('2026-12-24T18:00:00.123Z'), true],
      ['2', '900', 1, null, false],
    ])
    const [first, end] = [new Date(0), new Date('9999-12-31T23:59:59.999Z')]
    const [created, expires] = [new Date('2026-01-01'), new Date('2027-01-01')]
    expect(
      await rows(`SELECT "id", "name", "prefix", "minuteLimit", "dayLimit", "createdAt", "expiresAt", "revokedAt",
        "bannedUntil", "lastUsedAt" FROM "ApiKey" ORDER BY "id"`),
    ).toEqual([
      [1, 'Ann', 'petstore_0123abcd', 5, 50, created, expires, null, null, null],
      [2, 'Key 0', 'petstore_00000002', null, null, first, end, end, end, first],
    ])
    // New rows get ids after those that admins chose.
    expect(await rows(`INSERT INTO "Pet" ("name", "categoryId") VALUES ('New', 3) RETURNING "id"`)).toEqual([['901']])
    expect(await rows(`INSERT INTO "Order" ("petId") VALUES (901) RETURNING "id"`)).toEqual([['3']])
    expect(await migrate(url)).toEqual([])
  })

  test('fill what lists read also for rows that somebody changes meanwhile', async () => {
    const url = await empty(kind)
    const fill = names.indexOf('20261127100100_fill_plain_names_and_stock')
    // Each change happens after one of the migrations that lead to the filling.
    const changes = [
      `UPDATE "InventoryItem" SET "quantity" = 5 WHERE "petId" < 4`,
      `UPDATE "Pet" SET "name" = 'Émile' WHERE "id" IN (1, 4)`,
      `UPDATE "Pet" SET "categoryId" = 1 WHERE "id" = 2; UPDATE "InventoryItem" SET "quantity" = 0 WHERE "petId" = 3`,
      `INSERT INTO "Pet" ("name", "categoryId") VALUES ('Zoë', 2); UPDATE "InventoryItem" SET "quantity" = 1 WHERE "petId" = 5`,
    ]
    await migrate(url, { migrations: ours.slice(0, fill - changes.length) })
    const db = await useClient(url)
    await db.query(`INSERT INTO "Category" ("name") VALUES ('Dogs'), ('Cats');
      INSERT INTO "Pet" ("name", "categoryId") SELECT 'Rex', 2 FROM generate_series(1, 4)`)
    for (const [i, change] of changes.entries()) {
      await migrate(url, { migrations: ours.slice(0, fill - changes.length + i + 1) })
      await db.query(change)
    }
    await migrate(url)
    const { rows } = await db.query({
      text: `SELECT "id", "plainName", "inStock", "quantity", i."categoryId", i."categoryId" = p."categoryId"
        FROM "Pet" p JOIN "InventoryItem" i ON "id" = "petId" ORDER BY "id"`,
      rowMode: 'array',
    })
    expect(rows).toEqual([
      ['1', 'emile', true, 5, '2', true],
      ['2', 'rex', true, 5, '1', true],
      ['3', 'rex', false, 0, '2', true],
      ['4', 'emile', false, 0, '2', true],
      ['5', 'zoe', true, 1, '2', true],
    ])
  })

  test('have the same checksum with any line endings', async () => {
    const url = await empty(kind)
    await migrate(url, { migrations: ours.map(({ name, sql }) => ({ name, sql: sql.replaceAll('\n', '\r\n') })) })
    expect(await migrate(url)).toEqual([])
  })
})

test('bounds of texts and numbers are those that `npm run migration` writes for what inputs refuse', async () => {
  const { prisma, database } = await useGateway()
  const { nameOf, columnOf } = database.tables
  const written = Object.entries(models).flatMap(([model, { fields }]) =>
    fields
      .filter(({ kind }) => kind !== 'object')
      .flatMap(({ name }) => checksOf(model, name, columnOf(model, name).stored))
      .map(([rule]) => [nameOf(model), rule]),
  )
  const stored = await prisma.$queryRaw<{ table: string; rule: string }[]>`
    SELECT relname AS "table", conname AS rule FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid WHERE contype = 'c'`
  expect(stored.map(({ table, rule }) => [table, rule])).toEqual(expect.arrayContaining(written))
  expect(written).toEqual(
    expect.arrayContaining([
      ['Category', 'description must have at most 1000 characters'],
      ['InventoryItem', 'quantity must be at least 0'],
      ['Order', 'quantity must be at least 1'],
      ['Pet', 'name must have 1 to 100 characters'],
      ['Pet', 'name must not begin or end with white space'],
    ]),
  )
})

describe.runIf(server)('migrations that have to wait', () => {
  /** Runs `migrate` with what it says, while another session holds something. */
  async function waiting(url: string, hold: string, waitMs: number) {
    const holder = await useClient(url)
    await holder.query(hold)
    const { rows } = await holder.query('SELECT pg_backend_pid() AS pid')
    const notices: string[] = []
    const result = migrateServer(url, { waitMs, onNotice: (message) => notices.push(message) })
    result.catch(() => {})
    return { holder, pid: rows[0].pid, notices, result }
  }

  test('for another migration say so, and continue when it ends, or when nothing is missing anymore', async () => {
    const url = await empty('PostgreSQL')
    const { holder, pid, notices, result } = await waiting(url, 'SELECT pg_advisory_lock(72707369)', 60_000)
    await expect.poll(() => notices).toHaveLength(1)
    expect(notices[0]).toMatch(
      `waiting up to 60 seconds for the migration lock, held by process ${pid} of the database`,
    )
    await holder.query('SELECT pg_advisory_unlock(72707369)')
    expect(await result).toEqual(names)

    const other = await empty('PostgreSQL')
    await migrateServer(other)
    await (await useClient(other)).query('ALTER TABLE "_prisma_migrations" RENAME TO "hidden"')
    const second = await waiting(other, 'SELECT pg_advisory_lock(72707369)', 60_000)
    await expect.poll(() => second.notices).toHaveLength(1)
    await second.holder.query('ALTER TABLE "hidden" RENAME TO "_prisma_migrations"')
    expect(await second.result).toEqual([])
  })

  test('fail after a while with one message that names the session to end', async () => {
    const url = await empty('PostgreSQL')
    const { pid, result } = await waiting(url, 'SELECT pg_advisory_lock(72707369)', 500)
    await expect(result).rejects.toThrow(StartupError)
    await expect(result).rejects.toThrow(
      new RegExp(`after 0.5 seconds, the migration lock is still held by process ${pid} .*; .* pg_terminate_backend`),
    )
  })

  test('for a table let others use it in between, and continue when it is free', async () => {
    const url = await empty('PostgreSQL')
    await migrateServer(url, { migrations: ours.slice(0, 1) })
    const { holder, pid, notices, result } = await waiting(url, 'BEGIN; SELECT * FROM "Category"', 60_000)
    await expect.poll(() => notices).toHaveLength(1)
    expect(notices[0]).toMatch(
      new RegExp(`for a table that the migration ${names[1]} changes, held by process ${pid} `),
    )
    expect((await holder.query('SELECT * FROM "Pet"')).rows).toEqual([])
    await holder.query('COMMIT')
    expect(await result).toEqual(names.slice(1))
  })

  test('are tried again if PostgreSQL ends one because of a deadlock with a running gateway', async () => {
    const url = await empty('PostgreSQL')
    await migrateServer(url)
    const both = { ...(ours[0] as (typeof ours)[0]), name: '29990101000000_both', sql: 'LOCK "Category"; LOCK "Pet"' }
    const holder = await useClient(url)
    await holder.query('BEGIN; SELECT * FROM "Pet"')
    const result = migrateServer(url, { migrations: [...ours, both] })
    const blocked = () => holder.query(`SELECT FROM pg_locks WHERE NOT granted AND relation = '"Pet"'::regclass`)
    await expect.poll(async () => (await blocked()).rowCount).toBe(1)
    // One of the two must be ended.
    await holder.query('SELECT * FROM "Category"').catch(() => {})
    await holder.query('ROLLBACK')
    expect(await result).toEqual([both.name])
  })
})

/** A migration that builds indexes while others write, as CONTRIBUTING.md describes. */
const withIndexes = [
  ...ours,
  {
    name: '20990101000000_indexes',
    sql: `-- Two; of each we hear.
CREATE INDEX CONCURRENTLY "Pet_name_idx" ON "Pet" ("name");
CREATE INDEX CONCURRENTLY IF NOT EXISTS "Order_shipDate_idx" ON "Order" ("shipDate");
`,
  },
]

async function indexes(url: string) {
  const { rows } = await (await useClient(url)).query(
    `SELECT indexrelid::regclass::text AS name, indisvalid AS valid FROM pg_index
     WHERE indexrelid::regclass::text IN ('"Pet_name_idx"', '"Order_shipDate_idx"') ORDER BY 1`,
  )
  return rows
}
const bothValid = [
  { name: '"Order_shipDate_idx"', valid: true },
  { name: '"Pet_name_idx"', valid: true },
]

/** An empty schema, and a transaction for whose end a concurrent build of an index waits, because it is older. */
async function withReader() {
  const url = await empty('PostgreSQL')
  await migrateServer(url)
  const reader = await useClient(url)
  await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM "Pet"')
  return { url, reader }
}

async function locksLeft(url: string) {
  const { rows } = await (await useClient(url)).query(
    `SELECT FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  )
  return rows.length
}

test('the embedded database builds the same indexes', async () => {
  const url = await empty('embedded')
  expect(await migrateServer(url, { migrations: withIndexes, isEmbedded: true })).toHaveLength(withIndexes.length)
  expect(await indexes(url)).toEqual(bothValid)
  expect(await migrateServer(url, { migrations: withIndexes, isEmbedded: true })).toEqual([])
})

test('a migration that builds an index concurrently and does more is refused before it does anything', async () => {
  const url = await empty('embedded')
  const mixed = [{ name: '1_mixed', sql: 'CREATE TABLE "Left" (); CREATE INDEX CONCURRENTLY "i" ON "Left" ("x")' }]
  await expect(migrateServer(url, { migrations: mixed })).rejects.toThrow(
    'the migration 1_mixed builds an index concurrently, so it may have CREATE INDEX CONCURRENTLY "…" statements only; move "CREATE TABLE \\"Left\\" ()" to another migration',
  )
})

describe.runIf(server)('indexes that are built concurrently', () => {
  test('are built once by three gateways, whose waiting does not delay the build, while others write', async () => {
    const { url, reader } = await withReader()
    const notices: string[] = []
    const options = { migrations: withIndexes, waitMs: 1_000, onNotice: (message: string) => notices.push(message) }
    const starts = Promise.all([migrateServer(url, options), migrateServer(url, options), migrateServer(url, options)])
    starts.catch(() => {})
    const waiting = () => notices.filter((notice) => /^waiting .* the migration lock, held by process/.test(notice))
    await expect.poll(waiting).toHaveLength(2)
    // Longer than they would wait for anything else.
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    const writer = await useClient(url)
    await writer.query(`SET lock_timeout = '5s'; INSERT INTO "Category" ("name") VALUES ('Dogs')`)
    await writer.query(`INSERT INTO "Pet" ("name", "categoryId") VALUES ('Rex', 1)`)
    await reader.query('COMMIT')
    expect((await starts).flat()).toEqual(['20990101000000_indexes'])
    expect(await indexes(url)).toEqual(bothValid)
    expect(await locksLeft(url)).toBe(0)
  })

  test('are built again if a build was interrupted', async () => {
    const { url, reader } = await withReader()
    const start = migrateServer(url, { migrations: withIndexes })
    start.catch(() => {})
    await expect.poll(() => indexes(url)).toEqual([{ name: '"Pet_name_idx"', valid: false }])
    await reader.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_progress_create_index WHERE datname = current_database()`,
    )
    await expect(start).rejects.toThrow()
    await reader.query('COMMIT')
    expect(await indexes(url)).toEqual([{ name: '"Pet_name_idx"', valid: false }])
    expect(await migrateServer(url, { migrations: withIndexes })).toEqual(['20990101000000_indexes'])
    expect(await indexes(url)).toEqual(bothValid)
  })

  test('that a killed gateway has left to the server are waited for, and not built twice', async () => {
    const { url, reader } = await withReader()
    const left = (await useClient(url)).query('CREATE INDEX CONCURRENTLY "Pet_name_idx" ON "Pet" ("name")')
    await expect.poll(() => indexes(url)).toHaveLength(1)
    const { rows } = await reader.query(`SELECT '"Pet_name_idx"'::regclass::oid AS oid`)
    const notices: string[] = []
    const start = migrateServer(url, { migrations: withIndexes, onNotice: (message) => notices.push(message) })
    start.catch(() => {})
    await expect.poll(() => notices.at(-1)).toMatch(/^waiting .* for an index of the migration/)
    await reader.query('COMMIT')
    await left
    await start
    expect((await reader.query(`SELECT '"Pet_name_idx"'::regclass::oid AS oid`)).rows).toEqual(rows)
    expect(await indexes(url)).toEqual(bothValid)
  })
})

describe.runIf(server && hasPgbouncer)('through PgBouncer in transaction mode', () => {
  test.each([1, 2, 3])('three first starts at the same time leave every migration once and no lock (%i)', async () => {
    const url = await empty('PostgreSQL')
    const pooled = (await startPgbouncer('transaction', url))(new URL(url).pathname.slice(1))
    const options = { migrations: withIndexes }
    const applied = await Promise.all([
      migrateServer(pooled, options),
      migrateServer(pooled, options),
      migrateServer(pooled, options),
    ])
    expect(applied.flat().sort()).toEqual(withIndexes.map(({ name }) => name))
    expect(await indexes(url)).toEqual(bothValid)
    expect(await locksLeft(url)).toBe(0)
  })
})

test.runIf(server)('a role without the right to create tables is enough if no migration is missing', async () => {
  const url = await empty('PostgreSQL')
  await migrateServer(url)
  const role = `petstore_${randomUUID().slice(0, 8)}`
  const admin = await useClient(url)
  await admin.query(
    `CREATE ROLE ${role}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role}`,
  )
  expect(await migrateServer(`${url}?options=${encodeURIComponent(`-c role=${role}`)}`)).toEqual([])
  await admin.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
})

test.runIf(server)('a database that cannot store every text is refused', async () => {
  const url = await scratchDatabase(`ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`)
  await expect(migrateServer(url)).rejects.toThrow(/its encoding is SQL_ASCII.*ENCODING 'UTF8'/)
})

describe.runIf(server)('a migration by another gateway', () => {
  test('that changes tables does not disturb the requests to a gateway that runs', async () => {
    const gateway = await useGateway()
    await resetStore(gateway.prisma)
    let stopped = false
    const statuses = new Set<number>()
    const query = '{ pets(limit: 3) { name category { name } inventory { quantity } orders { id } } }'
    const reads = ['/pets/1', '/pets?limit=5', '/categories?sort=name', '/store/orders'].map(
      (path) => () => gateway.get(path),
    )
    const writes = [
      () => gateway.patch('/inventory/1', { quantity: 3 }),
      () => gateway.post('/store/orders', { petId: 1 }),
      () => gateway.patch('/categories/1', { name: 'Dogs' }),
      () => gateway.patch('/pets/1', { name: 'Rex' }, { headers: { 'if-match': '*' } }),
      () => gateway.post('/pets', { name: 'Max', categoryId: 1 }, { headers: { 'idempotency-key': randomUUID() } }),
      () => gateway.post('/pets', { name: 'Max', categoryId: 1 }),
    ]
    const clients = [...reads, ...reads, ...writes, () => gateway.graphql(query)].map(async (send) => {
      while (!stopped) statuses.add((await send()).status)
    })
    const changes = [
      'ALTER TABLE "Pet" ADD COLUMN "note" text',
      'ALTER TABLE "Category" ALTER COLUMN "description" TYPE varchar(1000)',
      'ALTER TABLE "Pet" DROP COLUMN "note"',
      'ALTER TABLE "Order" ADD COLUMN "note" text',
      'ALTER TABLE "Order" DROP COLUMN "note"',
      'ALTER TABLE "Category" ALTER COLUMN "description" TYPE text',
    ]
    for (const change of changes) {
      await sleep(200)
      await gateway.prisma.$executeRawUnsafe(change)
    }
    await sleep(200)
    stopped = true
    await Promise.all(clients)
    expect([...statuses].sort()).toEqual([200, 201])
  })
})
