import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../observe/index.js'
import { Child, METRICS } from './child.js'
import { fresh } from './fresh.js'
import { countsOf } from './totals.js'

/** A process that has served this long is replaced immediately. */
const STEADY_MS = 60_000
/** How long the next start waits after an end that came earlier: twice as long each time. */
const FIRST_WAIT_MS = 1_000
const MAX_WAIT_MS = 30_000
/** How often each process is asked whether it answers, and after how long without an answer it is killed. */
const WATCH_MS = 10_000
const HANGING_MS = 30_000

export interface PrimaryOptions {
  count: number
  /** How long a process may take to stop, in milliseconds. */
  stopMs: number
  log: Logger
}

/** Starts processes that run the same program and share its ports, and replaces those that end. */
export class Primary {
  readonly #options: PrimaryOptions
  readonly #children = new Set<Child>()
  readonly #ask = fresh((topic) => this.#gather(topic))
  /** The counts of processes that have ended. */
  #counts: unknown[] = []
  readonly #stopping = new AbortController()
  #hasStarted = false

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
    this.#hasStarted = true
    setInterval(() => this.#ask('health'), WATCH_MS).unref()
    for (const child of [first, ...others]) void this.#replace(child)
    return text
  }

  /** Sends SIGTERM to all, and resolves when all have ended. One that takes too long is killed. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    const children = [...this.#children]
    for (const child of children) child.end('SIGTERM')
    const late = setTimeout(() => {
      for (const child of this.#children) child.end('SIGKILL')
    }, this.#options.stopMs)
    await Promise.all(children.map(({ ended }) => ended))
    clearTimeout(late)
  }

  #fork(): Child {
    const child = new Child(this.#ask)
    this.#children.add(child)
    void child.ended.then(() => {
      this.#children.delete(child)
      const counts = child.counts()
      if (counts) this.#counts = [countsOf([...this.#counts, JSON.parse(counts)])]
    })
    return child
  }

  /** Replaces a process that ends, then the one in its place, and so on. */
  async #replace(child: Child): Promise<void> {
    const { signal: stopping } = this.#stopping
    const { log } = this.#options
    let waitMs = 0
    for (let current = child; ; current = this.#fork()) {
      current.ready.then(
        () => current !== child && log.info(current.name, 'a process serves'),
        () => {},
      )
      const end = await current.ended
      // One that somebody has stopped ends with 0, or with SIGTERM during its start.
      const isPlanned = end.code === 0 || end.signal === 'SIGTERM'
      if (stopping.aborted) {
        if (!isPlanned)
          log.error({ ...current.name, ...end }, 'a process has ended before it had answered its requests')
        return
      }
      const servedMs = current.servesSince === undefined ? 0 : performance.now() - current.servesSince
      waitMs = servedMs > STEADY_MS ? 0 : Math.min(waitMs * 2 || FIRST_WAIT_MS, MAX_WAIT_MS)
      const level = isPlanned ? 'warn' : 'error'
      log[level]({ ...current.name, ...end, waitMs }, 'a process has ended; another one takes its place')
      await delay(waitMs, undefined, { signal: stopping }).catch(() => {})
      if (stopping.aborted) return
    }
  }

  async #gather(topic: string): Promise<(string | null)[]> {
    const serving = [...this.#children].filter(({ servesSince }) => servesSince !== undefined)
    const answers = await Promise.all(serving.map((child) => child.ask(topic)))
    const present = serving.flatMap((child, index) => {
      // It is no longer asked, and what it had counted is kept.
      if (child.hasEnded) return []
      const answer = answers[index] ?? null
      this.#note(child, answer !== null)
      return answer ?? (topic === METRICS ? child.counts() : null)
    })
    // Until all have started, those that serve are not the whole.
    const awaited = this.#hasStarted ? [] : new Array<null>(this.#options.count - serving.length).fill(null)
    const counts = topic === METRICS ? this.#counts.map((counts) => JSON.stringify(counts)) : []
    return [...present, ...awaited, ...counts]
  }

  /** Says that a process hangs, and that it no longer does. One that hangs for too long is killed, and so replaced. */
  #note(child: Child, answers: boolean): void {
    const { log } = this.#options
    const now = performance.now()
    if (answers) {
      if (child.silentSince !== undefined) log.info(child.name, 'a process answers again')
      child.silentSince = undefined
    } else if (child.silentSince === undefined) {
      log.error(child.name, 'a process does not answer')
      child.silentSince = now
    } else if (now - child.silentSince > HANGING_MS && !this.#stopping.signal.aborted) child.end('SIGKILL')
  }
}
