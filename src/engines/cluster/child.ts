import cluster from 'node:cluster'
import { inTime } from '../../deadline.js'
import { StartupError } from '../../startup-error.js'
import type { ToMember, ToPrimary } from './messages.js'

const ANSWER_MS = 3_000

/** How a process ended. */
export interface End {
  code?: number | null
  signal?: string | null
  /** Why it could not serve, in its own words or those of the system. */
  reason?: string
}

/** A process that the primary has started, until it ends. */
export class Child {
  readonly #worker = cluster.fork()
  readonly id = this.#worker.id
  /** Resolves when it serves, with what it says of itself. */
  readonly ready: Promise<string>
  readonly ended: Promise<End>
  /** Since when it serves, by performance.now(). */
  servesSince: number | undefined
  hasEnded = false
  /** Its last answers, by topic. */
  readonly last = new Map<string, string>()
  readonly #answers = new Map<number, (answer: string) => void>()
  #asked = 0

  /** @param ask what answers a question of this process for all */
  constructor(ask: (topic: string) => Promise<(string | null)[]>) {
    const worker = this.#worker
    let reason: string | undefined
    const handed = this.#handedOver()
    this.ended = new Promise((resolve) => {
      const end = (how: End) => {
        this.hasEnded = true
        handed()?.close()
        resolve({ ...how, reason })
      }
      worker.on('exit', (code, signal) => end({ code, signal }))
      // A process that the system does not start has no exit.
      worker.on('error', ({ message }) => {
        reason ??= message
        if (worker.process.pid === undefined) end({})
      })
    })
    this.ready = new Promise((resolve, reject) => {
      worker.on('message', async (message: ToPrimary) => {
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

  /** Its answer, as JSON; null if it gives none in time. */
  async ask(topic: string): Promise<string | null> {
    const id = this.#asked++
    const answer = new Promise<string>((resolve) => this.#answers.set(id, resolve))
    this.#send({ type: 'question', id, topic })
    const late = () => new Error('late')
    try {
      const given = await inTime(Promise.race([answer, this.ended.then(() => null)]), ANSWER_MS, late)
      if (given !== null) this.last.set(topic, given)
      return given
    } catch {
      return null
    } finally {
      this.#answers.delete(id)
    }
  }

  end(): void {
    this.#worker.process.kill('SIGTERM')
  }

  /**
   * The connection that was last handed to the process. Node closes its own copy when the process says that it has it. If
   * it dies before, Node forgets the connection, and its client would wait forever. To close it twice does no harm.
   */
  #handedOver(): () => { close(): void } | undefined {
    const { process } = this.#worker
    const send = process.send.bind(process) as (...message: unknown[]) => boolean
    let last: { close(): void } | undefined
    process.send = (...message: unknown[]) => {
      const [, handle] = message
      if (handle && typeof handle === 'object' && 'close' in handle) last = handle as { close(): void }
      return send(...message)
    }
    return () => last
  }

  #send(message: ToMember): void {
    // If it fails, the process is ending.
    if (!this.hasEnded) this.#worker.send(message, () => {})
  }
}
