import pg from 'pg'
import { inTime } from '../../../deadline.js'
import type { Logger } from '../../observe/index.js'
import { isFull } from './errors.js'

const TIMEOUT_MS = 2_000
const late = () => new Error(`the database did not answer within ${TIMEOUT_MS / 1000} seconds`)

/** What requests may expect: answers, answers to reads, or to wait for one of few connections. */
export type Reachability = 'ok' | 'read-only' | 'full'

/** Answers that say why there is no connection now; the network's say that nobody is there. */
const isRefused = ({ code = '' }: { code?: string }) => !/^(E[A-Z]|57P)/.test(code)

/**
 * Asks the database whether it answers, over a connection of its own, because a busy pool does not mean that the
 * database is unreachable. Nor does a probe without a connection, if requests are answered. Pings that overlap are one.
 * Logs when the database stops and starts answering.
 */
export class Probe {
  #client: pg.Client | undefined
  #connecting: Promise<pg.Client> | undefined
  #pinging: Promise<Reachability> | undefined
  #said: Reachability | 'away' = 'ok'

  /** @param answersSince whether requests have had an answer since a moment, by performance.now() */
  constructor(
    private readonly connectionString: string,
    private readonly answersSince: (moment: number) => boolean,
    private readonly log: Logger | undefined,
  ) {}

  /** Rejects if the database does not answer within two seconds. */
  ping(): Promise<Reachability> {
    const startedAt = performance.now()
    this.#pinging ??= inTime(this.#pingTwice(), TIMEOUT_MS, late)
      .then(
        ([row]) => this.#say(row?.readOnly === 'on' ? 'read-only' : 'ok'),
        (error) => {
          this.close()
          if (isFull(error)) return this.#say('full', error)
          if (isRefused(error) && this.answersSince(startedAt)) return this.#say('ok')
          this.#say('away', error)
          throw error
        },
      )
      .finally(() => {
        this.#pinging = undefined
      })
    return this.#pinging
  }

  #say<State extends Reachability | 'away'>(state: State, error?: unknown): State {
    const { log } = this
    if (state !== this.#said) {
      if (state === 'ok') log?.info('the database is reachable again')
      if (state === 'away') log?.warn({ err: error }, 'the database is unreachable')
      if (state === 'full') log?.warn({ err: error }, 'the database has no connection left')
      if (state === 'read-only') log?.warn('the database is read-only: a standby?')
    }
    this.#said = state
    return state
  }

  /** Asks something else over the same connection, with the same patience. */
  query<Row>(text: string, values: unknown[]): Promise<Row[]> {
    return inTime(this.#ask<Row>(text, values), TIMEOUT_MS, late).catch((error) => {
      this.close()
      throw error
    })
  }

  close(): void {
    this.#client?.connection.stream.destroy()
    this.#client = undefined
    this.#connecting = undefined
  }

  /** A connection that was closed since the last ping does not mean that the database is unreachable. */
  #pingTwice() {
    const used = this.#client !== undefined
    const startedAt = performance.now()
    const ask = () =>
      this.#ask<{ readOnly: string }>(`SELECT current_setting('transaction_read_only') AS "readOnly"`, [])
    return ask().catch((error) => {
      this.close()
      if (!used || performance.now() - startedAt > TIMEOUT_MS / 2) throw error
      return ask()
    })
  }

  async #ask<Row>(text: string, values: unknown[]): Promise<Row[]> {
    this.#connecting ??= this.#connect()
    return (await (await this.#connecting).query(text, values)).rows
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.connectionString,
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
