import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from '../log.js'

/** How long a ping may take: so many times so many milliseconds. A busy event loop delays each of them. */
const TICKS = 8
const TICK_MS = 250

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
    this.#pinging ??= this.#ping()
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
      const statement: pg.QueryConfig & { query_timeout: number } = { text, values, query_timeout: TICKS * TICK_MS }
      return (await (await this.#connected()).query(statement)).rows
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

  async #ping(): Promise<void> {
    let over = false
    const late = async () => {
      for (let tick = 0; tick < TICKS && !over; tick++) await sleep(TICK_MS, undefined, { ref: false })
      throw new Error('the database did not answer within 2 seconds')
    }
    const used = this.#client !== undefined
    // A connection that was closed since the last ping does not mean that the database is unreachable.
    const answer = this.#ask().catch((error) => {
      this.close()
      if (!used || over) throw error
      return this.#ask()
    })
    await Promise.race([answer, late()]).finally(() => {
      over = true
    })
  }

  async #ask(): Promise<void> {
    await (await this.#connected()).query('SELECT 1')
  }

  #connected(): Promise<pg.Client> {
    this.#connecting ??= this.#connect()
    return this.#connecting
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#connectionString,
      keepAlive: true,
      connectionTimeoutMillis: TICKS * TICK_MS,
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
