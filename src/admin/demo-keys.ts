import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { PrismaClient } from '../../prisma/generated/client/client.js'
import { type Plan, plans } from '../../schema/plans.js'
import { createSecret } from '../auth/index.js'
import { StartupError } from '../settings.js'

const names = Object.keys(plans) as Plan[]
const file = z.record(z.enum(names), z.string())

export type DemoKeys = z.infer<typeof file>

/**
 * One key per plan for trying the embedded service. The secrets are random, created on the first start, and stored in a
 * file that only its owner can read. As for all keys, the database stores only their hashes.
 */
export async function demoKeys(prisma: PrismaClient, dataDir: string): Promise<DemoKeys> {
  const path = join(dataDir, 'demo-keys.json')
  const stored = await readFile(path, 'utf8').catch(() => undefined)
  if (stored !== undefined) return parse(stored, path)
  const secrets = {} as DemoKeys
  const rows = names.map((plan) => {
    const { key, prefix, hash } = createSecret()
    secrets[plan] = key
    const limits = plan === 'Enterprise' ? { minuteLimit: 5_000, dayLimit: 1_000_000 } : {}
    return { name: `Demo ${plan}`, plan, prefix, hash, ...limits }
  })
  await mkdir(dataDir, { recursive: true })
  // The file first: without it, nobody could know the secrets of the rows.
  await writeFile(`${path}.new`, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 })
  await prisma.apiKey.createMany({ data: rows })
  await rename(`${path}.new`, path)
  return secrets
}

function parse(text: string, path: string): DemoKeys {
  try {
    return file.parse(JSON.parse(text))
  } catch {
    throw new StartupError(`${path} is not a valid file of demo keys; delete it to create new keys`)
  }
}
