import { getOrCreate } from '../../../schema/kit/get-or-create.js'

/** What a client holds of the budget. */
export interface Holding {
  /** Who holds it: an address or a key, and what belongs to that, for example a key of this address. */
  readonly holders: readonly string[]
  bytes: number
  /** Ends it, so that others fit. */
  giveUp(): void
}

interface Group {
  bytes: number
  /** In the order in which they began. */
  holdings: Set<Holding>
}

/**
 * Memory that clients share. If another part does not fit, the client that holds most loses what it has held
 * longest, so that slow clients cannot shut out others.
 */
export class MemoryBudget {
  /** By their first holders. */
  readonly #groups = new Map<string | undefined, Group>()
  #bytes = 0
  #givenUp = 0

  /** @param max in bytes */
  constructor(private readonly max: number) {}

  get figures() {
    const holdings = [...this.#groups.values()].reduce((sum, { holdings }) => sum + holdings.size, 0)
    return { holdings, bytes: this.#bytes, givenUp: this.#givenUp }
  }

  /** Must be called when something takes memory, and may be called again when it takes more. */
  hold(holding: Holding, bytes: number): void {
    const group = getOrCreate(this.#groups, holding.holders[0], () => ({ bytes: 0, holdings: new Set() }))
    const more = bytes - (group.holdings.has(holding) ? holding.bytes : 0)
    group.holdings.add(holding)
    group.bytes += more
    this.#bytes += more
    holding.bytes = bytes
    while (this.#bytes > this.max) {
      const oldest = oldestOfLargest(this.#groups)
      this.release(oldest)
      this.#givenUp++
      oldest.giveUp()
    }
  }

  /** Must be called when it takes no memory anymore. May be called more than once. */
  release(holding: Holding): void {
    const [holder] = holding.holders
    const group = this.#groups.get(holder)
    if (!group?.holdings.delete(holding)) return
    group.bytes -= holding.bytes
    this.#bytes -= holding.bytes
    if (group.holdings.size === 0) this.#groups.delete(holder)
  }
}

function oldestOfLargest(groups: ReadonlyMap<string | undefined, Group>, depth = 1): Holding {
  const { holdings } = [...groups.values()].reduce((a, b) => (b.bytes > a.bytes ? b : a))
  const [oldest] = holdings as unknown as [Holding]
  if (depth === oldest.holders.length) return oldest
  const within = new Map<string | undefined, Group>()
  for (const holding of holdings) {
    const group = getOrCreate(within, holding.holders[depth], () => ({ bytes: 0, holdings: new Set() }))
    group.bytes += holding.bytes
    group.holdings.add(holding)
  }
  return oldestOfLargest(within, depth + 1)
}
