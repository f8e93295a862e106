// Very many rows as a shop has them after years, and the worst for indexes: most have the same status, category, pet and stock or
// none, and the few others come first or last. Names are of every script, and some as long as they may be.

export interface Skewed {
  /** Pets, and orders. */
  rows: number
  /** Categories that exist, at least five. */
  categories: number
  /** How many of the pets are in stock. */
  inStock?: 'few' | 'most'
}

/** As many rows as a statement writes within any timeout. */
const BATCH = 20_000

/** Without the triggers that make the stock of a pet, both are written faster, and `inStock` must be right. */
export const stockTriggers = (verb: 'DISABLE' | 'ENABLE') =>
  `ALTER TABLE "Pet" ${verb} TRIGGER "Pet_inventory", ${verb} TRIGGER "Pet_new_in_stock"`

/** The statements that fill a migrated, empty database. */
export function skewed({ rows, categories, inStock = 'few' }: Skewed): string[] {
  const few = Math.min(500, rows / 200)
  const ends = (first: unknown, last: unknown, others: string) =>
    `CASE WHEN i <= ${few} THEN ${first} WHEN i > ${rows - few} THEN ${last} ELSE ${others} END`
  const batches = Array.from({ length: Math.ceil(rows / BATCH) }, (_, i) => i * BATCH)
  const each = (statement: string, joined = '') =>
    batches.map((done) => `${statement} FROM generate_series(${done + 1}, ${Math.min(done + BATCH, rows)}) i ${joined}`)
  return [
    stockTriggers('DISABLE'),
    ...each(`INSERT INTO "Pet" ("name", "categoryId", "status", "inStock")
      SELECT CASE WHEN i % 50 = 0 THEN repeat((ARRAY['狗', '🐶', 'ß', 'Я'])[1 + i / 50 % 4], 90)
          ELSE (ARRAY['Rex', 'Bella', 'Zoë', '狗猫', 'Яна', 'Ωμέγα', '🐶 rex', 'ᏣᎳᎩ', 'كلب', 'ꙀԱ'])[1 + i % 10] END || ' ' || i,
        ${ends(2, 3, `CASE WHEN i % 2 = 0 THEN 1 ELSE 4 + i % ${categories - 4} END`)},
        (${ends(`'available'`, `'pending'`, `'sold'`)})::"PetStatus",
        ${inStock === 'few' ? ends(true, true, 'false') : ends(false, false, 'true')}`),
    stockTriggers('ENABLE'),
    ...each(
      `INSERT INTO "InventoryItem" ("petId", "status", "categoryId", "quantity")
        SELECT i, "status", "categoryId", CASE WHEN "inStock" THEN 1 + i % 999 ELSE 0 END`,
      'JOIN "Pet" ON "id" = i',
    ),
    ...each(`INSERT INTO "Order" ("petId", "shipDate", "complete")
      SELECT ${ends(2, 3, `CASE WHEN i % 10 = 0 THEN 4 + i % ${rows - 4} ELSE 1 END`)},
        CASE WHEN i % 4 > 0 THEN timestamptz '2026-01-01Z' + i * interval '1 minute' END,
        i BETWEEN ${few + 1} AND ${rows - few}`),
  ]
}
