/** A value that could not be resolved. */
export class Failure {
  constructor(readonly error: unknown) {}
}

export function isPromise(value: unknown): value is Promise<unknown> {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false
  return typeof (value as { then?: unknown }).then === 'function'
}

/** Continues with a value: immediately, unless it is a promise. */
export const after = <T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> =>
  isPromise(value) ? (value as Promise<T>).then(next) : next(value)

/** Values, of which some may be promises; those that reject become failures. */
export function settled(values: readonly unknown[]): readonly unknown[] | Promise<readonly unknown[]> {
  if (!values.some(isPromise)) return values
  abandon(values)
  return Promise.all(
    values.map((value) => (isPromise(value) ? value.then(undefined, (error) => new Failure(error)) : value)),
  )
}

/** Handles the rejections of promises that nothing waits for, or not yet. Calling `then` of others would start queries. */
export function abandon(value: unknown): undefined {
  if (value instanceof Promise) value.then(abandon, () => {})
  else if (Array.isArray(value)) value.forEach(abandon)
}
