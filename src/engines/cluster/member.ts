import cluster, { type Worker } from 'node:cluster'
import { fresh } from './fresh.js'
import type { ToMember, ToPrimary } from './messages.js'

/** A process among those that share a port, or a process alone. */
export interface Member {
  /** Tells the start that this process serves. @param text what the start prints when all do */
  ready(text: string): void
  /** Tells the start why this process cannot serve. */
  failed(reason: string): Promise<void>
  /** Sets what this process answers if a member asks about a topic: a value that JSON can hold. */
  answer(topic: string, give: () => unknown): void
  /**
   * The answers of all processes that serve: not older than a second, undefined for one that does not answer within three.
   * What is kept of processes that have ended follows them.
   */
  ask(topic: string): Promise<unknown[]>
}

/** A process that shares its port with no other. */
export class Alone implements Member {
  protected readonly given = new Map<string, () => unknown>()

  ready(text: string): void {
    process.stdout.write(text)
  }

  async failed(reason: string): Promise<void> {
    process.stderr.write(`${reason}\n`)
  }

  answer(topic: string, give: () => unknown): void {
    this.given.set(topic, give)
  }

  async ask(topic: string): Promise<unknown[]> {
    return [await this.given.get(topic)?.()]
  }
}

/** A process that the primary has started. */
class Forked extends Alone {
  #serves = false
  #asked = 0
  readonly #waiting = new Map<number, (answers: unknown[]) => void>()

  constructor(private readonly worker: Worker) {
    super()
    worker.on('message', (message: ToMember) => {
      if (message.type === 'question') return void this.#reply(message.id, message.topic)
      this.#waiting.get(message.id)?.(message.answers.map((answer) => (answer ? JSON.parse(answer) : undefined)))
      this.#waiting.delete(message.id)
    })
  }

  override ready(text: string): void {
    this.#serves = true
    void this.#send({ type: 'ready', text })
  }

  override failed(reason: string): Promise<void> {
    return this.#send({ type: 'failed', reason })
  }

  override ask(topic: string): Promise<unknown[]> {
    // Until it serves, nobody asks it: its own answer would not be among them.
    if (!this.#serves) return super.ask(topic)
    return this.#askAll(topic)
  }

  readonly #askAll = fresh(
    (topic) =>
      new Promise<unknown[]>((resolve) => {
        const id = this.#asked++
        this.#waiting.set(id, resolve)
        void this.#send({ type: 'ask', id, topic })
      }),
  )

  async #reply(id: number, topic: string): Promise<void> {
    await this.#send({ type: 'answer', id, answer: JSON.stringify(await this.given.get(topic)?.()) })
  }

  /** Resolves when the message is sent. Without a primary, Node ends this process. */
  #send(message: ToPrimary): Promise<void> {
    return new Promise((resolve) => this.worker.send(message, () => resolve()))
  }
}

/** This process as a member of its cluster. */
export const joinCluster = (): Member => (cluster.worker ? new Forked(cluster.worker) : new Alone())
