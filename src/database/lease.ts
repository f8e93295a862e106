import type pg from 'pg'
import { isCanceled, isRefusal, isStale, OutOfTime } from './errors.js'
import type { Lane, Lanes } from './lanes.js'

/** A connection for a limited time. When the time is over, the connection is closed. */
export class Lease {
  readonly client: Promise<pg.PoolClient>
  readonly #lanes: Lanes
  readonly #lane: Lane
  readonly #timer: NodeJS.Timeout
  #connected: pg.PoolClient | undefined
  #late = false
  /** Why the connection cannot be used again. */
  #lost: Error | undefined
  #failed = false

  constructor(lanes: Lanes, lane: Lane, connect: () => Promise<pg.PoolClient>, timeoutMs: number) {
    this.#lanes = lanes
    this.#lane = lane
    let giveUp = (_: Error) => {}
    let start = () => {}
    this.client = new Promise((resolve, reject) => {
      giveUp = reject
      start = () => {
        connect().then(
          (client) => {
            this.#connected = client.on('error', this.#onError)
            if (this.#late) this.release()
            else resolve(client)
          },
          (error) => {
            this.#fail(error)
            this.release()
            reject(error)
          },
        )
      }
    })
    this.#timer = setTimeout(() => {
      this.#late = true
      giveUp(new OutOfTime())
      if (!lanes.cancel(lane, start)) this.#connected?.connection.stream.destroy()
    }, timeoutMs)
    lanes.enter(lane, start)
  }

  readonly #onError = (error: Error) => {
    this.#lost = error
    this.#fail(error)
  }

  #fail(error: unknown): void {
    this.#failed = true
    this.#lane.failed(error)
  }

  run(client: pg.PoolClient, statement: pg.QueryConfig): Promise<never> {
    return client.query(statement).then(
      (result) => {
        // A successful rollback does not show that the tables of the transaction answer.
        if (statement.text !== 'ROLLBACK') this.#lane.answered()
        return result as never
      },
      (error) => {
        if (!isRefusal(error) || isStale(error)) this.#onError(error as Error)
        else if (isCanceled(error)) this.#fail(error)
        else this.#lane.answered()
        throw this.#late ? new OutOfTime() : error
      },
    )
  }

  release(): void {
    clearTimeout(this.#timer)
    this.#connected?.off('error', this.#onError)
    this.#connected?.release(this.#lost)
    this.#lanes.leave(this.#lane, this.#failed)
  }
}
