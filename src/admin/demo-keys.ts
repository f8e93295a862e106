import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { PrismaClient } from '../../prisma/generated/client/client.js'
import { createSecret } from '../auth/index.js'
import { StartupError } from '../settings.js'

const file = z.object({ Free: z.string(), Pro: z.string(), Business: z.string(), Enterprise: z.string() })

export type DemoKeys = z.infer<typeof file>

/**
 * One key per plan for trying the embedded service. The secrets are random, made the first time and kept beside the
 * data, readable by their owner alone; the database has only their hashes, as of all keys.
 */
export async function demoKeys(prisma: PrismaClient, dataDir: string): Promise<DemoKeys> {
  const path = join(dataDir, 'demo-keys.json')
  const kept = await readFile(path, 'utf8').catch(() => undefined)
  if (kept !== undefined) return parse(kept, path)
  const secrets = {} as DemoKeys
  const rows = (['Free', 'Pro', 'Business', 'Enterprise'] as const).map((plan) => {
    const { key, prefix, hash } = createSecret()
    secrets[plan] = key
    const limits = plan === 'Enterprise' ? { minuteLimit: 5_000, dayLimit: 1_000_000 } : {}
    return { name: `Demo ${plan}`, plan, prefix, hash, ...limits }
  })
  await mkdir(dataDir, { recursive: true })
  // The file first: a secret that is in the database but nowhere else could never be used.
  await writeFile(`${path}.new`, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 })
  await prisma.apiKey.createMany({ data: rows })
  await rename(`${path}.new`, path)
  return secrets
}

function parse(text: string, path: string): DemoKeys {
  try {
    return file.parse(JSON.parse(text))
  } catch {
    throw new StartupError(`${path} does not hold the demo keys any more; delete it to get new ones`)
  }
}
