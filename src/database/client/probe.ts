import pg from 'pg'
import { inTime } from '../../deadline.js'
import type { Logger } from '../../log.js'

const TIMEOUT_MS = 2_000
const late = () => new Error(`the database did not answer within ${TIMEOUT_MS / 1000} seconds`)

/**
 * Asks the database whether it answers, over a connection of its own, because a busy pool does not mean that the
 * database is unreachable. Pings that overlap are one. Logs when the database stops and starts answering.
 */
export class Probe {
  readonly #connectionString: string
  readonly #log: Logger | undefined
  #client: pg.Client | undefined
  #connecting: Promise<pg.Client> | undefined
  #pinging: Promise<void> | undefined
  #away = false

  constructor(connectionString: string, log?: Logger) {
    this.#connectionString = connectionString
    this.#log = log
  }

  /** Rejects if the database does not answer within two seconds. */
  ping(): Promise<void> {
    this.#pinging ??= inTime(this.#pingTwice(), TIMEOUT_MS, late)
      .then(
        () => {
          if (this.#away) this.#log?.info('the database is reachable again')
          this.#away = false
        },
        (error) => {
          this.close()
          if (!this.#away) this.#log?.warn({ err: error }, 'the database is unreachable')
          this.#away = true
          throw error
        },
      )
      .finally(() => {
        this.#pinging = undefined
      })
    return this.#pinging
  }

  /** Asks something else over the same connection, with the same patience. */
  async query<Row>(text: string, values: unknown[]): Promise<Row[]> {
    try {
      return await inTime(this.#ask<Row>(text, values), TIMEOUT_MS, late)
    } catch (error) {
      this.close()
      throw error
    }
  }

  close(): void {
    this.#client?.connection.stream.destroy()
    this.#client = undefined
    this.#connecting = undefined
  }

  /** A connection that was closed since the last ping does not mean that the database is unreachable. */
  #pingTwice(): Promise<unknown> {
    const used = this.#client !== undefined
    const startedAt = performance.now()
    return this.#ask('SELECT 1', []).catch((error) => {
      this.close()
      if (!used || performance.now() - startedAt > TIMEOUT_MS / 2) throw error
      return this.#ask('SELECT 1', [])
    })
  }

  async #ask<Row>(text: string, values: unknown[]): Promise<Row[]> {
    return (await (await this.#connected()).query(text, values)).rows
  }

  #connected(): Promise<pg.Client> {
    this.#connecting ??= this.#connect()
    return this.#connecting
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#connectionString,
      keepAlive: true,
      connectionTimeoutMillis: TIMEOUT_MS,
    })
    this.#client = client
      .on('error', () => {})
      .on('end', () => {
        if (this.#client === client) this.close()
      })
    await client.connect()
    return client
  }
}
