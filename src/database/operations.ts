type Start = () => PromiseLike<unknown>

/** A Prisma client that hands each of its operations to `run`, which starts it. */
export function throughEach<T extends object>(client: T, run: (start: Start) => Promise<unknown>): T {
  // One for the client and its models: a request needs both.
  const handler: ProxyHandler<object> = {
    get(target, name) {
      const value = Reflect.get(target, name)
      if (typeof value === 'object' && value !== null) return new Proxy(value, handler)
      return typeof value === 'function' ? (...args: unknown[]) => run(() => value.apply(target, args)) : value
    },
  }
  return new Proxy(client, handler) as T
}
