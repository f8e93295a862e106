/** The latest turns that count, and by how many those that accepted a connection must outnumber the others. */
const LATEST_TURNS = 16
const BACKLOG_TURNS = 4

/**
 * Tells when connections wait to be accepted. Node accepts one in each turn of the event loop, so turns have to be short
 * then.
 */
export class AcceptBacklog {
  readonly #onCalm: () => void
  #accepted = false
  #acceptingTurns = 0

  /** @param onCalm called in each turn after which no connections wait */
  constructor(onCalm: () => void) {
    this.#onCalm = onCalm
  }

  get isWaiting(): boolean {
    return this.#acceptingTurns >= BACKLOG_TURNS
  }

  /** Must be called for each accepted connection. */
  connected = (): void => {
    if (!this.#accepted && this.#acceptingTurns === 0) setImmediate(this.#endTurn)
    this.#accepted = true
  }

  readonly #endTurn = (): void => {
    this.#acceptingTurns = Math.min(this.#acceptingTurns + (this.#accepted ? 1 : -1), LATEST_TURNS)
    this.#accepted = false
    if (this.#acceptingTurns > 0) setImmediate(this.#endTurn)
    if (!this.isWaiting) this.#onCalm()
  }
}
