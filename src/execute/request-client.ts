import { setTimeout as sleep } from 'node:timers/promises'
import type { PrismaClient } from '../../prisma/generated/client/client.js'
import { conflictDelay } from '../database/index.js'
import { inTime } from '../http/deadline.js'
import { unavailable } from '../http/errors.js'

/** How often an operation is repeated whose transaction PostgreSQL rolled back because of a conflict with another. */
const MAX_REPEATS = 4

/**
 * The client of one request. Once the request has waited for the database for `ms`, its operations fail with
 * `unavailable`; a GraphQL operation keeps the fields that were answered before.
 */
export function createRequestClient(prisma: PrismaClient, ms: number): PrismaClient {
  const deadline = performance.now() + ms

  // Single statements are repeated by the pool of connections; this repeats operations of several.
  const attempt = (operation: () => Promise<unknown>, repeats = 0): Promise<unknown> =>
    operation().catch(async (error) => {
      if (error?.code !== 'P2034' || repeats === MAX_REPEATS || performance.now() > deadline) throw error
      await sleep(conflictDelay(repeats + 1))
      return attempt(operation, repeats + 1)
    })

  const guard = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(_, name) {
        const value = Reflect.get(target, name)
        if (typeof value === 'object' && value !== null) return guard(value)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          const left = deadline - performance.now()
          return left > 0
            ? inTime(
                attempt(() => value.apply(target, args)),
                left,
              )
            : Promise.reject(unavailable())
        }
      },
    })
  return guard(prisma)
}
