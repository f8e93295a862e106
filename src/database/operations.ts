type Start = () => PromiseLike<unknown>

/** A Prisma client that hands each of its operations to `run`, which starts it. */
export function throughEach<T extends object>(client: T, run: (start: Start) => Promise<unknown>): T {
  return new Proxy(client, {
    get(target, name) {
      const value = Reflect.get(target, name)
      if (typeof value === 'object' && value !== null) return throughEach(value, run)
      return typeof value === 'function' ? (...args: unknown[]) => run(() => value.apply(target, args)) : value
    },
  })
}
