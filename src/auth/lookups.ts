import { setTimeout as sleep } from 'node:timers/promises'

/** The most keys of one address that are looked up together, with one database query. */
const MAX_TOGETHER = 100
/** The time between look-ups for an address that is over its limit, in milliseconds. */
const PAUSE_MS = 1_000

interface Queue<T> {
  /** By key, in the order of arrival. Requests with the same key share a look-up. */
  lookups: Map<string, Promise<T>>
  waiting: ((admitted: boolean) => void)[]
  running: number
  /** Whether the address was over its limit at the last look. */
  over: boolean
}

/**
 * Admits look-ups of keys that this gateway does not know, which may be guesses: for each address one at a time, and one
 * a second while the address is over its limit. The keys that wait are looked up together.
 */
export class Lookups<T> {
  readonly #queues = new Map<string, Queue<T>>()
  readonly #isOver: (address: string) => Promise<boolean>
  readonly #refuse: (address: string) => Promise<never>

  /** @param refuse throws what a key is refused with while its address is over the limit and too many others wait */
  constructor(isOver: (address: string) => Promise<boolean>, refuse: (address: string) => Promise<never>) {
    this.#isOver = isOver
    this.#refuse = refuse
  }

  /** Rejects with what `refuse` throws, if too many wait. */
  run(address: string, key: string, lookUp: () => Promise<T>): Promise<T> {
    let queue = this.#queues.get(address)
    if (!queue) {
      queue = { lookups: new Map(), waiting: [], running: 0, over: false }
      this.#queues.set(address, queue)
      void this.#admit(address, queue)
    }
    const { lookups } = queue
    let lookup = lookups.get(key)
    if (!lookup) {
      lookup = this.#run(address, queue, lookUp).finally(() => lookups.delete(key))
      lookups.set(key, lookup)
    }
    return lookup
  }

  async #run(address: string, queue: Queue<T>, lookUp: () => Promise<T>): Promise<T> {
    const { waiting, over } = queue
    const isFull = over && waiting.length >= MAX_TOGETHER
    const admitted = !isFull && (await new Promise<boolean>((resolve) => waiting.push(resolve)))
    if (!admitted) return this.#refuse(address)
    try {
      return await lookUp()
    } finally {
      if (--queue.running === 0) void this.#admit(address, queue)
    }
  }

  async #admit(address: string, queue: Queue<T>): Promise<void> {
    // The failures of the last look-up are counted first.
    await new Promise((resolve) => setImmediate(resolve))
    queue.over = await this.#isOver(address)
    if (queue.over) {
      for (const refuse of queue.waiting.splice(MAX_TOGETHER)) refuse(false)
      await sleep(PAUSE_MS, undefined, { ref: false })
    }
    if (queue.waiting.length === 0) {
      this.#queues.delete(address)
      return
    }
    const admitted = queue.waiting.splice(0, MAX_TOGETHER)
    queue.running = admitted.length
    for (const admit of admitted) admit(true)
  }
}
