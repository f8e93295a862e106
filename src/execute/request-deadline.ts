import { setTimeout as sleep } from 'node:timers/promises'
import { conflictDelay, isRolledBack, MAX_REPEATS } from '../database/index.js'
import { inTime } from '../deadline.js'
import { unavailable } from '../http/errors.js'

/** How long a request may still wait for the database, `ms` from now on. */
export function createDeadline(ms: number) {
  const endsAt = performance.now() + ms

  /** Rejects with `unavailable` if the operation is not done in time. GraphQL keeps the fields that were answered before. */
  function run<T>(operation: () => Promise<T>): Promise<T> {
    const left = endsAt - performance.now()
    return left > 0 ? inTime(operation(), left, unavailable) : Promise.reject(unavailable())
  }

  async function repeat<T>(attempt: () => Promise<T>, repeats = 0): Promise<T> {
    try {
      return await attempt()
    } catch (error) {
      if (!isRolledBack(error) || repeats === MAX_REPEATS || performance.now() > endsAt) throw error
      await sleep(conflictDelay(repeats + 1))
      return repeat(attempt, repeats + 1)
    }
  }

  return {
    /** By performance.now(). What is sent to the database must end before. */
    endsAt,
    run,
    /** Repeats a transaction that PostgreSQL rolls back because of a conflict. The pool repeats single statements. */
    runTransaction: <T>(attempt: () => Promise<T>) => run(() => repeat(attempt)),
  }
}
