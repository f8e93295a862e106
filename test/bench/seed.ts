import { createHash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Client } from 'pg'

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

/** Pets as in a shop that is open: most of them for sale, with up to four orders each. */
const shop = (pets: number) => [
  `INSERT INTO "Pet" (name, "categoryId", status)
    SELECT 'Pet ' || i, 1 + i % ${CATEGORIES},
      (CASE i / ${CATEGORIES} % 10 WHEN 8 THEN 'pending' WHEN 9 THEN 'sold' ELSE 'available' END)::"PetStatus"
    FROM generate_series(1, ${pets}) AS i`,
  `INSERT INTO "InventoryItem" ("petId", status, quantity) SELECT id, status, id % 1000 FROM "Pet"`,
  `INSERT INTO "Order" ("petId", quantity, complete)
    SELECT i, n, n = 1 FROM generate_series(1, ${pets}) AS i, generate_series(1, i % 5) AS n ORDER BY n, i`,
  // By these a good engineer has the peers answer lists by name.
  `CREATE INDEX ON "Pet" (lower(name) COLLATE "C", name COLLATE "C", id)`,
  `CREATE INDEX ON "Pet" ("categoryId", lower(name) COLLATE "C", name COLLATE "C", id)`,
]

/** Many years later: nine of ten pets are sold, half are in one category, and nine of ten orders are for one pet. */
const archive = (pets: number) => [
  'SELECT setseed(0.5)',
  `INSERT INTO "Pet" (name, "categoryId", status)
    SELECT (ARRAY['Rex', 'Bella', 'Zoë'])[1 + i % 3] || ' ' || i,
      CASE WHEN random() < 0.5 THEN 1 ELSE 1 + i % ${CATEGORIES} END,
      (CASE WHEN random() < 0.9 THEN 'sold' WHEN random() < 0.8 THEN 'available' ELSE 'pending' END)::"PetStatus"
    FROM generate_series(1, ${pets}) AS i`,
  `INSERT INTO "InventoryItem" ("petId", status, quantity)
    SELECT id, status, CASE status WHEN 'sold' THEN 0 ELSE id % 1000 END FROM "Pet"`,
  `INSERT INTO "Order" ("petId", quantity, "shipDate", complete)
    SELECT CASE WHEN random() < 0.9 THEN 7 ELSE 1 + floor(random() * ${pets}) END, 1,
      CASE WHEN random() < 0.8 THEN timestamptz '2026-01-01Z' + i * interval '1 minute' END, random() < 0.9
    FROM generate_series(1, ${pets}) AS i`,
]

interface SeedOptions {
  pets: number
  data: 'shop' | 'archive'
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
    ALTER TABLE "Order" SET (autovacuum_enabled = off);
    ALTER TABLE "Pet" DISABLE TRIGGER USER`)
  for (const statement of (data === 'shop' ? shop : archive)(pets)) await client.query(statement)
  await client.query('ALTER TABLE "Pet" ENABLE TRIGGER USER')
  await client.query('VACUUM ANALYZE')
  await client.query('CHECKPOINT')
  const keys: string[] = []
  for (let i = 0; i < KEYS; i++) keys.push(await createKey(client, { plan: 'Enterprise', limit: UNLIMITED }))
  return keys
}

/** Removes what a workload wrote, so that every round begins with the same tables. */
export async function createTidy(client: Client) {
  const { rows } = await client.query('SELECT coalesce(max(id), 0) AS last FROM "Order"')
  return async () => {
    await client.query('DELETE FROM "Order" WHERE id > $1', [rows[0].last])
    await client.query('VACUUM ANALYZE "Order", "InventoryItem"')
    await client.query('CHECKPOINT')
  }
}
