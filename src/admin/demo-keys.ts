import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { seed } from '../../prisma/seed.js'
import { attempt } from '../../schema/kit/attempt.js'
import { type Plan, plans } from '../../schema/kit/plans.js'
import type { Statement } from '../engines/postgres/index.js'
import type { Database } from '../gateway/database/index.js'
import { createSecret, storedSecret, writeKeys } from '../gateway/keys/index.js'
import { StartupError } from '../startup-error.js'
import { isEnded, type KeyEnd } from './key.js'

const names = Object.keys(plans) as Plan[]
const file = z.record(z.enum(names), z.string())

export type DemoKeys = z.infer<typeof file>

/** Not asked through Prisma, whose first query takes a tenth of a start. */
const HAS: Statement = {
  kind: 'SELECT',
  tables: ['Category', 'ApiKey', 'ApiKeyEvent'],
  text: `SELECT pg_sequence_last_value('"public"."Category_id_seq"') IS NOT NULL AS "samples",
  EXISTS (SELECT FROM "public"."ApiKeyEvent" WHERE "event" = 'created' AND "source" = 'gateway') AS "demo",
  EXISTS (SELECT FROM "public"."ApiKey") AS "keys"`,
}

const ROW: Statement = {
  kind: 'SELECT',
  tables: ['ApiKey'],
  text: 'SELECT "revokedAt", "expiresAt" FROM "public"."ApiKey" WHERE "hash" = $1',
}

/**
 * One key per plan for trying the embedded service. The secrets are random, created on the first start together with the
 * sample data, and stored in a file that only its owner can read. As for all keys, the database stores only their hashes.
 * Demo keys that an admin has ended stay so, with or without their file: the history of keys says that there were some.
 *
 * @returns undefined if the free one cannot be used
 */
export async function demoKeys(
  database: Pick<Database, 'prisma' | 'query'>,
  dataDir: string,
): Promise<DemoKeys | undefined> {
  const { prisma, query } = database
  const path = join(dataDir, 'demo-keys.json')
  const draft = `${path}.new`
  const stored = await read(path)
  if (stored === null)
    throw new StartupError(
      `${path} is not a valid file of demo keys; delete it, and create keys: npm run keys -- create`,
    )
  const [has] = await query(HAS, [])
  if (!has?.samples) await seed(prisma)
  const begun = await read(draft)
  // The history of a database can be younger than its keys.
  const isMade = has?.demo || (stored && has?.keys)
  if (isMade && begun === undefined) {
    const [row] = stored ? await query(ROW, [storedSecret(stored.Free).hash]) : []
    return row && !isEnded(row as KeyEnd) ? stored : undefined
  }
  // The file first: without it, the secrets of the rows would be lost. If a start is interrupted in between, the next
  // one finds the draft and continues.
  const keys = stored ?? begun ?? (Object.fromEntries(names.map((plan) => [plan, createSecret().key])) as DemoKeys)
  await writeFile(draft, `${JSON.stringify(keys, null, 2)}\n`, { mode: 0o600 })
  const rows = names.map((plan) => ({
    name: `Demo ${plan}`,
    plan,
    ...storedSecret(keys[plan]),
    ...(plan === 'Enterprise' && { minuteLimit: 5_000, dayLimit: 1_000_000 }),
  }))
  await writeKeys(prisma, 'gateway', ({ apiKey }) => apiKey.createMany({ data: rows, skipDuplicates: true }))
  await rename(draft, path)
  return keys
}

/** Undefined if there is no such file, null if it is not valid. */
async function read(path: string): Promise<DemoKeys | null | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : (attempt(() => file.parse(JSON.parse(text))) ?? null)
}
