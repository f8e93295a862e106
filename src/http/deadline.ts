import { unavailable } from './errors.js'

/**
 * Rejects with `unavailable` if the promise takes longer than `ms`.
 *
 * @param recover what to try when the promise is rejected, within the same time
 */
export function inTime<T>(promise: PromiseLike<T>, ms: number, recover?: (error: unknown) => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(unavailable()), ms)
    const done = (value: T) => {
      clearTimeout(timer)
      resolve(value)
    }
    const fail = (error: unknown) => {
      clearTimeout(timer)
      reject(error)
    }
    promise.then(done, recover ? (error) => recover(error).then(done, fail) : fail)
  })
}
