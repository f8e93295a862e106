import { setTimeout as sleep } from 'node:timers/promises'
import { getOrCreate } from '../../../schema/kit/get-or-create.js'

/** The most keys of one address that are looked up together, with one database query. */
const MAX_TOGETHER = 100
/** The time between look-ups for an address that is over its limit, in milliseconds. */
const PAUSE_MS = 1_000

interface Queue<T> {
  /** By key, in the order of arrival. Requests with the same key share a look-up. */
  lookups: Map<string, Promise<T>>
  /** Start the look-ups that wait, or refuse them. */
  waiting: ((admitted: boolean) => Promise<T>)[]
  /** Whether the address was over its limit at the last look. */
  over: boolean
}

/**
 * Admits look-ups of keys that this gateway does not know, which may be guesses: for each address one at a time, and one
 * a second while the address is over its limit. The keys that wait are looked up together.
 */
export class Throttle<T> {
  readonly #queues = new Map<string, Queue<T>>()

  /** @param refuse throws what a key is refused with while its address is over the limit and too many others wait */
  constructor(
    private readonly isOver: (address: string) => Promise<boolean>,
    private readonly refuse: (address: string) => Promise<never>,
  ) {}

  /** Rejects with what `refuse` throws, if too many wait. */
  run(address: string, key: string, lookUp: () => Promise<T>): Promise<T> {
    const { lookups, waiting, over } = getOrCreate(this.#queues, address, () => this.#open(address))
    const start = () =>
      new Promise<T>((resolve) => {
        const start = (admitted: boolean) => {
          const result = admitted ? lookUp() : this.refuse(address)
          resolve(result)
          return result
        }
        if (over && waiting.length >= MAX_TOGETHER) void start(false)
        else waiting.push(start)
      }).finally(() => lookups.delete(key))
    return getOrCreate(lookups, key, start)
  }

  #open(address: string): Queue<T> {
    const queue: Queue<T> = { lookups: new Map(), waiting: [], over: false }
    void this.#serve(address, queue)
    return queue
  }

  /** Admits what waits, together, until nothing waits. */
  async #serve(address: string, queue: Queue<T>): Promise<void> {
    const { waiting } = queue
    for (;;) {
      // The failures of the last look-up are counted first.
      await new Promise((resolve) => setImmediate(resolve))
      queue.over = await this.isOver(address)
      if (queue.over) {
        for (const start of waiting.splice(MAX_TOGETHER)) void start(false)
        await sleep(PAUSE_MS, undefined, { ref: false })
      }
      if (waiting.length === 0) break
      await Promise.allSettled(waiting.splice(0, MAX_TOGETHER).map((start) => start(true)))
    }
    this.#queues.delete(address)
  }
}
