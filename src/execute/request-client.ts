import { setTimeout as sleep } from 'node:timers/promises'
import type { PrismaClient } from '../../prisma/generated/client/client.js'
import { conflictDelay, MAX_REPEATS, throughEach } from '../database/index.js'
import { inTime } from '../http/deadline.js'
import { unavailable } from '../http/errors.js'

/**
 * The client of one request. Once the request has waited for the database for `ms`, its operations fail with
 * `unavailable`; a GraphQL operation keeps the fields that were answered before.
 */
export function createRequestClient(prisma: PrismaClient, ms: number): PrismaClient {
  const deadline = performance.now() + ms

  // Single statements are repeated by the pool of connections; this repeats operations of several.
  async function repeat(operation: () => PromiseLike<unknown>, error: unknown, repeats = 0): Promise<unknown> {
    const isConflict = (error as { code?: string } | null)?.code === 'P2034'
    if (!isConflict || repeats === MAX_REPEATS || performance.now() > deadline) throw error
    await sleep(conflictDelay(repeats + 1))
    return operation().then(undefined, (next) => repeat(operation, next, repeats + 1))
  }

  function run(operation: () => PromiseLike<unknown>): Promise<unknown> {
    const left = deadline - performance.now()
    return left > 0 ? inTime(operation(), left, (error) => repeat(operation, error)) : Promise.reject(unavailable())
  }

  return throughEach(prisma, run)
}
