/** A value that could not be resolved. */
export class Failure {
  constructor(readonly error: unknown) {}
}

export function isPromise(value: unknown): value is Promise<unknown> {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false
  return typeof (value as { then?: unknown }).then === 'function'
}

/** Continues with a value: immediately, unless it is a promise. */
export const andThen = <T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> =>
  isPromise(value) ? (value as Promise<T>).then(next) : next(value)

/** A value, or a promise that does not reject. Nor do the promises of a list stay unhandled until they are waited for. */
export function toFailure(value: unknown): unknown {
  if (isPromise(value)) return value.then(toFailure, (error) => new Failure(error))
  ignoreRejections(value)
  return value
}

/** All values: immediately, unless one is a promise. */
export function all<T>(values: readonly (T | Promise<T>)[]): readonly T[] | Promise<readonly T[]> {
  if (!values.some(isPromise)) return values as readonly T[]
  // Promise.all takes several times as long, and most fields are resolved for one object.
  return values.length === 1 ? (values[0] as Promise<T>).then((value) => [value]) : Promise.all(values)
}

/**
 * Calls a function for each item, and returns all results, of which some may be promises. If a call throws, nothing waits
 * for those before it.
 */
export function callAll<T, R>(items: Iterable<T>, call: (item: T) => R): R[] {
  const results: R[] = []
  try {
    for (const item of items) results.push(call(item))
  } catch (error) {
    ignoreRejections(results)
    throw error
  }
  return results
}

/** Values, of which some may be promises; those that reject become failures. */
export const allToFailures = (values: readonly unknown[]): readonly unknown[] | Promise<readonly unknown[]> =>
  values.some(isPromise) ? all(values.map(toFailure)) : values

/** Handles the rejections of promises that nothing waits for, or not yet. Calling `then` of others would start queries. */
export function ignoreRejections(value: unknown): undefined {
  if (value instanceof Promise) value.then(ignoreRejections, () => {})
  else if (Array.isArray(value)) value.forEach(ignoreRejections)
}
