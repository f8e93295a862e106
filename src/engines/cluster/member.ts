import cluster, { type Worker } from 'node:cluster'
import { inTime } from '../../deadline.js'
import { fresh } from './fresh.js'
import { ANSWER_MS, late, type ToMember, type ToPrimary } from './messages.js'

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
    // A banner that cannot be written ends no service.
    process.stdout.on('error', () => {}).write(text)
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
    // The primary is gone, and with it the port.
    worker.on('error', () => process.exit(1))
    worker.on('message', (message: ToMember) => {
      if (message.type === 'question') return void this.#reply(message.id, message.topic)
      this.#waiting.get(message.id)?.(message.answers.map((answer) => (answer ? JSON.parse(answer) : undefined)))
    })
  }

  override ready(text: string): void {
    this.#serves = true
    void this.#send({ type: 'ready', text })
  }

  override failed(reason: string): Promise<void> {
    return this.#send({ type: 'failed', reason })
  }

  override async ask(topic: string): Promise<unknown[]> {
    // Until it serves, the primary does not ask it, and not all processes have started.
    return this.#serves ? this.#askAll(topic) : [...(await super.ask(topic)), undefined]
  }

  readonly #askAll = fresh(async (topic): Promise<unknown[]> => {
    const id = this.#asked++
    const answers = new Promise<unknown[]>((resolve) => this.#waiting.set(id, resolve))
    void this.#send({ type: 'ask', id, topic })
    // The primary itself waits ANSWER_MS. If it hangs, no process is asked.
    return inTime(answers, ANSWER_MS + 1_000, late)
      .catch(() => [undefined])
      .finally(() => this.#waiting.delete(id))
  })

  async #reply(id: number, topic: string): Promise<void> {
    await this.#send({ type: 'answer', id, answer: JSON.stringify((await this.given.get(topic)?.()) ?? null) })
  }

  /** Resolves when the message is sent. Without a primary, Node ends this process. */
  #send(message: ToPrimary): Promise<void> {
    return new Promise((resolve) => this.worker.send(message, () => resolve()))
  }
}

/** This process as a member of its cluster. */
export const joinCluster = (): Member => (cluster.worker ? new Forked(cluster.worker) : new Alone())
