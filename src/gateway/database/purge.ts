import { Prisma, type PrismaClient } from '../../../prisma/generated/client/client.js'
import type { Logger } from '../../engines/observe/index.js'

const ROWS = 500

export interface PurgeOptions {
  prisma: PrismaClient
  log: Logger
  table: 'IdempotentAnswer' | 'ApiKeyUsage'
  /** Which rows are old. */
  condition: Prisma.Sql
  everyMs: number
}

/** Deletes old rows regularly, in small batches that delay other requests little. Returns the function that ends it. */
export function purgeRegularly({ prisma, log, table, condition, everyMs }: PurgeOptions): () => void {
  const name = Prisma.raw(`"public"."${table}"`)
  async function purge() {
    try {
      for (let deleted = ROWS; deleted === ROWS; )
        deleted = await prisma.$executeRaw`
          DELETE FROM ${name} WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM ${name} WHERE ${condition} LIMIT ${ROWS} FOR UPDATE SKIP LOCKED))`
    } catch (error) {
      log.warn({ err: error, table }, 'failed to delete old rows')
    }
  }
  const timer = setInterval(purge, everyMs).unref()
  return () => clearInterval(timer)
}
