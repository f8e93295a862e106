import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../observe/index.js'
import { Child } from './child.js'
import { fresh } from './fresh.js'
import { countsOf } from './totals.js'

/** A topic of which the last answers count on. */
const METRICS = 'metrics'
/** A process that has served this long is replaced immediately. */
const STEADY_MS = 60_000
/** How long the next start waits after an end that came earlier: twice as long each time. */
const FIRST_WAIT_MS = 1_000
const MAX_WAIT_MS = 30_000

export interface PrimaryOptions {
  count: number
  log: Logger
}

/** Starts processes that run the same program and share its ports, and replaces those that end. */
export class Primary {
  readonly #options: PrimaryOptions
  readonly #children = new Set<Child>()
  readonly #ask = fresh((topic) => this.#gather(topic))
  /** What processes had counted that have ended. */
  #counts: unknown[] = []
  readonly #stopping = new AbortController()

  constructor(options: PrimaryOptions) {
    this.#options = options
  }

  /**
   * Resolves when all serve, with what the first one says of itself.
   *
   * @throws StartupError if one of them cannot serve; the others must then be stopped
   */
  async start(): Promise<string> {
    // The first one applies migrations. If it cannot serve, no other can.
    const first = this.#fork()
    const text = await first.ready
    this.#stopping.signal.throwIfAborted()
    const others = Array.from({ length: this.#options.count - 1 }, () => this.#fork())
    await Promise.all(others.map(({ ready }) => ready))
    for (const child of [first, ...others]) void this.#replace(child)
    return text
  }

  /** Sends SIGTERM to all, and resolves when all have ended. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    const children = [...this.#children]
    for (const child of children) child.end()
    await Promise.all(children.map(({ ended }) => ended))
  }

  #fork(): Child {
    const child = new Child(this.#ask)
    this.#children.add(child)
    void child.ended.then(() => {
      this.#children.delete(child)
      const metrics = child.last.get(METRICS)
      if (metrics) this.#counts = [countsOf([...this.#counts, JSON.parse(metrics)])]
    })
    return child
  }

  /** Replaces a process that ends, then the one in its place, and so on. */
  async #replace(child: Child): Promise<void> {
    const { signal: stopping } = this.#stopping
    let waitMs = 0
    for (let current = child; ; current = this.#fork()) {
      const end = await current.ended
      if (stopping.aborted) return
      const servedMs = current.servesSince === undefined ? 0 : performance.now() - current.servesSince
      waitMs = servedMs > STEADY_MS ? 0 : Math.min(waitMs * 2 || FIRST_WAIT_MS, MAX_WAIT_MS)
      const { log } = this.#options
      log.error({ gateway: current.id, ...end, waitMs }, 'a process has ended; another one takes its place')
      await delay(waitMs, undefined, { signal: stopping }).catch(() => {})
      if (stopping.aborted) return
    }
  }

  async #gather(topic: string): Promise<(string | null)[]> {
    const serving = [...this.#children].filter(({ servesSince }) => servesSince !== undefined)
    const answers = await Promise.all(
      serving.map(
        async (child) => (await child.ask(topic)) ?? (topic === METRICS ? child.last.get(topic) : null) ?? null,
      ),
    )
    // One that has ended since is no longer asked, and what it had counted is kept.
    const present = answers.filter((_, index) => !serving[index]?.hasEnded)
    return topic === METRICS ? [...present, ...this.#counts.map((counts) => JSON.stringify(counts))] : present
  }
}
