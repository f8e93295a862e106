import { getOrCreate } from '../../schema/get-or-create.js'

/** What a client holds of the budget. */
export interface Holding {
  /** Who holds it: an address or a key, and what belongs to that, for example a key of this address. */
  readonly holders: readonly string[]
  bytes: number
  /** Ends it, so that others fit. */
  giveUp(): void
}

/**
 * Memory that clients share. If another part does not fit, the client that holds most loses what it has held
 * longest, so that slow clients cannot shut out others.
 */
export class MemoryBudget {
  /** In the order in which they began. */
  readonly #holdings = new Set<Holding>()
  #bytes = 0
  #givenUp = 0

  /** @param max in bytes */
  constructor(private readonly max: number) {}

  get figures() {
    return { holdings: this.#holdings.size, bytes: this.#bytes, givenUp: this.#givenUp }
  }

  /** Must be called when something takes memory, and may be called again when it takes more. */
  hold(holding: Holding, bytes: number): void {
    this.#bytes += bytes - (this.#holdings.has(holding) ? holding.bytes : 0)
    this.#holdings.add(holding)
    holding.bytes = bytes
    while (this.#bytes > this.max) {
      const oldest = oldestOfLargest([...this.#holdings])
      this.release(oldest)
      this.#givenUp++
      oldest.giveUp()
    }
  }

  /** Must be called when it takes no memory anymore. May be called more than once. */
  release(holding: Holding): void {
    if (this.#holdings.delete(holding)) this.#bytes -= holding.bytes
  }
}

function oldestOfLargest(holdings: Holding[], depth = 0): Holding {
  const groups = new Map<string | undefined, { bytes: number; holdings: Holding[] }>()
  for (const holding of holdings) {
    const group = getOrCreate(groups, holding.holders[depth], () => ({ bytes: 0, holdings: [] }))
    group.bytes += holding.bytes
    group.holdings.push(holding)
  }
  const largest = [...groups.values()].reduce((a, b) => (b.bytes > a.bytes ? b : a)).holdings
  const [oldest] = largest as [Holding]
  return depth + 1 < oldest.holders.length ? oldestOfLargest(largest, depth + 1) : oldest
}
