import { setTimeout as sleep } from 'node:timers/promises'
import { conflictDelay, isRolledBack, MAX_REPEATS } from '../database/index.js'
import { inTime } from '../deadline.js'
import { unavailable } from '../http/errors.js'

type Operation<T> = () => Promise<T>

/**
 * Runs the operations of one request. Once the request has waited for the database for `ms`, its operations fail with
 * `unavailable`; a GraphQL operation keeps the fields that were answered before. What PostgreSQL rolls back because of a
 * conflict is repeated: single statements by the pool of connections, and transactions here.
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
