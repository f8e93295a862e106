import { setTimeout as sleep } from 'node:timers/promises'
import type { PrismaClient } from '../../prisma/generated/client/client.js'
import { conflictDelay, isRolledBack, MAX_REPEATS } from '../database/index.js'
import { inTime } from '../deadline.js'
import { unavailable } from '../http/errors.js'

type Operation<T> = () => PromiseLike<T>

/**
 * Runs the operations of one request. Once the request has waited for the database for `ms`, its operations fail with
 * `unavailable`; a GraphQL operation keeps the fields that were answered before. What PostgreSQL rolls back because of a
 * conflict is repeated: single statements by the pool of connections, and operations and transactions of several here.
 */
export function createDeadline(ms: number) {
  const deadline = performance.now() + ms

  async function repeat<T>(operation: Operation<T>, error: unknown, repeats = 0): Promise<T> {
    if (!isRolledBack(error) || repeats === MAX_REPEATS || performance.now() > deadline) throw error
    await sleep(conflictDelay(repeats + 1))
    return operation().then(undefined, (next) => repeat(operation, next, repeats + 1))
  }

  return function run<T>(operation: Operation<T>): Promise<T> {
    const left = deadline - performance.now()
    if (left <= 0) return Promise.reject(unavailable())
    return inTime(
      operation().then(undefined, (error) => repeat(operation, error)),
      left,
      unavailable,
    )
  }
}

/** The client of one request, whose operations are run by `run`. */
export function createRequestClient(prisma: PrismaClient, run: ReturnType<typeof createDeadline>): PrismaClient {
  // One for the client and its models: a request needs both.
  const handler: ProxyHandler<object> = {
    get(target, name) {
      const value = Reflect.get(target, name)
      if (typeof value === 'object' && value !== null) return new Proxy(value, handler)
      return typeof value === 'function' ? (...args: unknown[]) => run<unknown>(() => value.apply(target, args)) : value
    },
  }
  return new Proxy(prisma, handler) as PrismaClient
}
