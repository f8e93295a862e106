import { createHash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Client } from 'pg'
import { skewed, stockTriggers } from '../../support/skewed.js'

export const CATEGORIES = 20
export const KEYS = 200
/** No limit is reached. */
const UNLIMITED = 2_000_000_000

function createSecret() {
  const random = `petstore_${randomBytes(20).toString('hex')}`
  const secret = random + crc32(random).toString(16).padStart(8, '0')
  return { secret, prefix: secret.slice(0, 17), hash: createHash('sha256').update(secret).digest('hex') }
}

interface KeyOptions {
  plan: 'Business' | 'Enterprise'
  limit?: number
}

/** Writes a key as `npm run keys -- create` does, and returns its secret. */
export async function createKey(client: Client, { plan, limit }: KeyOptions) {
  const { secret, prefix, hash } = createSecret()
  await client.query(
    `INSERT INTO "ApiKey" (name, plan, prefix, hash, "minuteLimit", "dayLimit") VALUES ('bench', $1, $2, $3, $4, $4)`,
    [plan, prefix, hash, limit],
  )
  return secret
}

/** Writes many keys without limits, and returns their secrets. */
export async function createKeys(client: Client, count: number): Promise<string[]> {
  const byPrefix = new Map<string, ReturnType<typeof createSecret>>()
  while (byPrefix.size < count) {
    const secret = createSecret()
    byPrefix.set(secret.prefix, secret)
  }
  const secrets = [...byPrefix.values()]
  await client.query(
    `INSERT INTO "ApiKey" (name, plan, prefix, hash, "minuteLimit", "dayLimit")
      SELECT 'bench', 'Enterprise', prefix, hash, $3, $3 FROM unnest($1::text[], $2::text[]) AS key (prefix, hash)`,
    [secrets.map(({ prefix }) => prefix), secrets.map(({ hash }) => hash), UNLIMITED],
  )
  return secrets.map(({ secret }) => secret)
}

/** All keys have been used in this hour, and some of them in each of the last 72 and on every day before. */
export async function seedUsage(client: Client, { keys, days }: { keys: number; days: number }) {
  const ids = 'SELECT id FROM "ApiKey" ORDER BY id'
  const hours = `INSERT INTO "ApiKeyUsageHour" ("keyId", name, hour, requests, cost)
    SELECT id, 'bench', date_trunc('hour', now()) - ago * interval '1 hour', 1000, 1000 FROM`
  // Some have been used by the workloads before.
  const unlessUsed = 'ON CONFLICT DO NOTHING'
  await client.query(`${hours} (${ids}) AS key, generate_series(0, 0) AS ago ${unlessUsed}`)
  await client.query(
    `${hours} (${ids} LIMIT ${keys}) AS key, generate_series(1, 71) AS ago ORDER BY ago, id ${unlessUsed}`,
  )
  await client.query(
    `INSERT INTO "ApiKeyUsage" ("keyId", name, day, requests, cost)
      SELECT id, 'bench', (now() AT TIME ZONE 'UTC')::date - ago, 1000, 1000
      FROM (${ids} LIMIT ${keys}) AS key, generate_series(3, ${days - 1}) AS ago ORDER BY ago, id ${unlessUsed}`,
  )
  await client.query('UPDATE "ApiKey" SET "lastUsedAt" = now()')
  await client.query('VACUUM ANALYZE "ApiKey", "ApiKeyEvent", "ApiKeyUsage", "ApiKeyUsageHour"')
  await client.query('CHECKPOINT')
}

/** Pets as in a shop that is open: most of them for sale, with up to four orders each. */
const shop = (pets: number) => [
  stockTriggers('DISABLE'),
  `INSERT INTO "Pet" (name, "categoryId", status, "inStock")
    SELECT 'Pet ' || i, 1 + i % ${CATEGORIES},
      (CASE i / ${CATEGORIES} % 10 WHEN 8 THEN 'pending' WHEN 9 THEN 'sold' ELSE 'available' END)::"PetStatus",
      i % 1000 > 0
    FROM generate_series(1, ${pets}) AS i`,
  stockTriggers('ENABLE'),
  `INSERT INTO "InventoryItem" ("petId", status, "categoryId", quantity)
    SELECT id, status, "categoryId", id % 1000 FROM "Pet"`,
  `INSERT INTO "Order" ("petId", quantity, complete)
    SELECT i, n, n = 1 FROM generate_series(1, ${pets}) AS i, generate_series(1, i % 5) AS n ORDER BY n, i`,
  // By these a good engineer has the peers answer lists by name.
  `CREATE INDEX ON "Pet" (lower(name) COLLATE "C", name COLLATE "C", id)`,
  `CREATE INDEX ON "Pet" ("categoryId", lower(name) COLLATE "C", name COLLATE "C", id)`,
]

export interface SeedOptions {
  pets: number
  /** Of an archive, `stocked` has most of its pets in stock, the other few. */
  data: 'shop' | 'archive' | 'stocked'
  /** Databases that share a Redis must not share key ids: counters are kept by id. */
  firstKeyId?: number
}

/**
 * Fills a migrated, empty database. Autovacuum would strike one server or the other at random; `tidy` does its work
 * between rounds.
 */
export async function seed(client: Client, { pets, data, firstKeyId = 1 }: SeedOptions) {
  await client.query(`
    ALTER SEQUENCE "ApiKey_id_seq" RESTART WITH ${firstKeyId};
    INSERT INTO "Category" (name) SELECT 'Category ' || i FROM generate_series(1, ${CATEGORIES}) AS i;
    ALTER TABLE "Pet" SET (autovacuum_enabled = off);
    ALTER TABLE "InventoryItem" SET (autovacuum_enabled = off);
    ALTER TABLE "Order" SET (autovacuum_enabled = off)`)
  const statements =
    data === 'shop'
      ? shop(pets)
      : skewed({ rows: pets, categories: CATEGORIES, inStock: data === 'stocked' ? 'most' : 'few' })
  for (const statement of statements) await client.query(statement)
  await client.query('VACUUM ANALYZE')
  await client.query('CHECKPOINT')
  const keys: string[] = []
  for (let i = 0; i < KEYS; i++) keys.push(await createKey(client, { plan: 'Enterprise', limit: UNLIMITED }))
  return keys
}

/** Removes what a workload wrote, so that every round begins with the same tables. */
export async function createTidy(client: Client) {
  const { rows } = await client.query(
    'SELECT (SELECT coalesce(max(id), 0) FROM "Order") AS orders, (SELECT coalesce(max(id), 0) FROM "Pet") AS pets',
  )
  const [{ orders, pets }] = rows
  return async () => {
    await client.query('DELETE FROM "Order" WHERE id > $1', [orders])
    await client.query('DELETE FROM "Pet" WHERE id > $1', [pets])
    await client.query('VACUUM ANALYZE "Order", "InventoryItem", "Pet"')
    await client.query('CHECKPOINT')
  }
}
