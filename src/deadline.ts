/** A wait is counted in so many parts. */
const PARTS = 4

/**
 * Rejects with `late()` if the promise takes longer than `ms`. A stall of our own event loop counts as one part of the
 * wait, and what arrived during the stall is read before the time is over.
 */
export function inTime<T>(promise: PromiseLike<T>, ms: number, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    let parts = PARTS
    let timer: NodeJS.Timeout
    const wait = () => {
      if (parts-- > 0) timer = setTimeout(wait, ms / PARTS - 1)
      else setImmediate(() => reject(late()))
    }
    wait()
    const ending =
      <Value>(settle: (value: Value) => void) =>
      (value: Value) => {
        clearTimeout(timer)
        settle(value)
      }
    promise.then(ending(resolve), ending(reject))
  })
}
