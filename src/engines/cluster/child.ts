import cluster, { type Worker } from 'node:cluster'
import { inTime } from '../../deadline.js'
import { StartupError } from '../../startup-error.js'
import { ANSWER_MS, late, type ToMember, type ToPrimary } from './messages.js'
import { countsOf } from './totals.js'

/** A topic whose last answer is not lost with the process. */
export const METRICS = 'metrics'

/** How a process ended. */
export interface End {
  code?: number | null
  signal?: string | null
  /** Why it could not serve, in its own words or those of the system. */
  reason?: string
}

/** A handle of Node's that can be closed. */
interface Closable {
  close(): void
}

/** A process that the primary has started, until it ends. */
export class Child {
  readonly #worker: Worker | undefined
  /** Resolves when it serves, with what it says of itself. */
  readonly ready: Promise<string>
  readonly ended: Promise<End>
  hasEnded = false
  /** Since when it serves, and since when it has answered nothing, by performance.now(). */
  servesSince: number | undefined
  silentSince: number | undefined
  /** The last metrics that it has answered. */
  #metrics: string | undefined
  readonly #answers = new Map<number, (answer: string) => void>()
  #asked = 0

  /** @param ask what answers a question of this process for all */
  constructor(ask: (topic: string) => Promise<(string | null)[]>) {
    let reason: string | undefined
    try {
      this.#worker = cluster.fork()
    } catch (error) {
      // The system starts no process now. It may also say so later, by the event `error`.
      reason = (error as Error).message
    }
    const worker = this.#worker
    const handed = worker ? handedOver(worker) : new Map<unknown, Closable>()
    this.ended = new Promise((resolve) => {
      const end = (how: End) => {
        this.hasEnded = true
        for (const handle of handed.values()) handle.close()
        resolve({ ...how, reason })
      }
      if (!worker) return end({})
      worker.on('exit', (code, signal) => end({ code, signal }))
      worker.on('error', ({ message }) => {
        reason ??= message
        if (worker.process.pid === undefined) end({})
      })
    })
    this.ready = new Promise((resolve, reject) => {
      worker?.on('message', async (message: ToPrimary) => {
        if (message.type === 'ready') {
          this.servesSince = performance.now()
          resolve(message.text)
        } else if (message.type === 'failed') reason = message.reason
        else if (message.type === 'answer') this.#answers.get(message.id)?.(message.answer)
        else this.#send({ type: 'answers', id: message.id, answers: await ask(message.topic) })
      })
      void this.ended.then(({ code, signal, reason }) =>
        reject(new StartupError(reason ?? `a process ended with ${signal ?? code} before it served`)),
      )
    })
    // Without one who waits, its end says why.
    this.ready.catch(() => {})
  }

  /** What the log calls it. */
  get name() {
    return { gateway: this.#worker?.id, pid: this.#worker?.process.pid }
  }

  /** Its answer, as JSON; null if it gives none in time. */
  async ask(topic: string): Promise<string | null> {
    const id = this.#asked++
    const answer = new Promise<string>((resolve) => this.#answers.set(id, resolve))
    this.#send({ type: 'question', id, topic })
    try {
      const given = await inTime(Promise.race([answer, this.ended.then(() => null)]), ANSWER_MS, late)
      if (given !== null && topic === METRICS) this.#metrics = given
      return given
    } catch {
      return null
    } finally {
      this.#answers.delete(id)
    }
  }

  /** What it had counted when it was last asked for metrics: as JSON, null if it never was. */
  counts(): string | null {
    return this.#metrics ? JSON.stringify(countsOf([JSON.parse(this.#metrics)])) : null
  }

  end(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.#worker?.process.kill(signal)
  }

  #send(message: ToMember): void {
    // If it fails, the process is ending.
    if (!this.hasEnded) this.#worker?.send(message, () => {})
  }
}

/**
 * The connection of each port that was last handed to a process. Node closes its own copy when the process says that it has
 * it. If it dies before, Node forgets the connection, and its client would wait forever. To close it twice does no harm.
 */
function handedOver({ process }: Worker): Map<unknown, Closable> {
  const send = process.send.bind(process) as (...sent: unknown[]) => boolean
  const handed = new Map<unknown, Closable>()
  process.send = (...sent: unknown[]) => {
    const [message, handle] = sent as [{ key?: unknown }, Closable | undefined]
    if (typeof handle?.close === 'function') handed.set(message.key, handle)
    return send(...sent)
  }
  return handed
}
