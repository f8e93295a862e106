import { setTimeout as sleep } from 'node:timers/promises'

/** How often PostgreSQL is asked, in milliseconds. */
const POLL_MS = 100

interface Lost {
  pid: number
  isWriting: boolean
  /** When PostgreSQL was first seen to have the backend still, by performance.now(). */
  seenAt: number | undefined
  ended(): void
}

/** The backends that PostgreSQL still has. Those that wait for a statement are ended: theirs may still be on its way. */
const REMAINING = `
  SELECT pid, CASE WHEN state LIKE 'idle%' THEN pg_terminate_backend(pid) END
  FROM pg_stat_activity WHERE pid = ANY ($1) AND application_name = $2`

/** Asks the server over a connection that is not of the pool. */
export type Ask = <Row>(text: string, values: unknown[]) => Promise<Row[]>

/**
 * The backends of PostgreSQL whose connections this gateway has lost or given up. They may still perform their statement,
 * for example when a server that was paused runs again.
 *
 * A backend is never cancelled here. A COMMIT that waits for a standby would be made without it.
 */
export class OrphanedBackends {
  readonly #lost = new Set<Lost>()
  /**
   * Resolves when none of them can perform a write anymore; undefined if none can now. Further writes wait for it:
   * otherwise a write that returned 503 could overwrite a later one.
   */
  writing: Promise<void> | undefined
  #writingEnds = () => {}
  #isWatching = false

  /**
   * @param applicationName of this pool alone: after a failover, another process may have a backend with the same pid
   * @param statementTimeoutMs how long a backend can work on one statement
   */
  constructor(
    private readonly ask: Ask,
    private readonly applicationName: string,
    private readonly statementTimeoutMs: number,
  ) {}

  /** Resolves when PostgreSQL has ended the backend. */
  ended(pid: number, isWriting: boolean): Promise<void> {
    return new Promise((resolve) => {
      if (isWriting)
        this.writing ??= new Promise((resolve) => {
          this.#writingEnds = resolve
        })
      this.#lost.add({ pid, isWriting, seenAt: undefined, ended: resolve })
      if (!this.#isWatching) void this.#watch()
    })
  }

  /** A connection was opened. PostgreSQL gives away the id of a process only when that has ended. */
  opened(pid: number | null | undefined): void {
    for (const lost of this.#lost) if (lost.pid === pid) this.#remove(lost)
    this.#checkWrites()
  }

  async #watch(): Promise<void> {
    this.#isWatching = true
    while (this.#lost.size > 0) {
      const known = [...this.#lost]
      const values = [known.map(({ pid }) => pid), this.applicationName]
      const rows = await this.ask<{ pid: number }>(REMAINING, values).catch(() => undefined)
      if (rows) this.#compare(known, new Set(rows.map(({ pid }) => pid)))
      if (this.#lost.size > 0) await sleep(POLL_MS, undefined, { ref: false })
    }
    this.#isWatching = false
  }

  #compare(known: Lost[], remaining: Set<number>): void {
    const now = performance.now()
    for (const lost of known) {
      lost.seenAt ??= now
      // Longer than its statement may take: it waits for a standby, and holds the locks of its rows.
      if (now - lost.seenAt > this.statementTimeoutMs) lost.isWriting = false
      if (!remaining.has(lost.pid)) this.#remove(lost)
    }
    this.#checkWrites()
  }

  #remove(lost: Lost): void {
    this.#lost.delete(lost)
    lost.ended()
  }

  #checkWrites(): void {
    if ([...this.#lost].some(({ isWriting }) => isWriting)) return
    this.writing = undefined
    this.#writingEnds()
  }
}

/** Behind a pooler, nobody knows which backend had a connection. Those that wait for a standby can be counted. */
const WAITING = `
  SELECT count(*)::int AS count FROM pg_stat_activity WHERE application_name = $1 AND wait_event = 'SyncRep'`

/** The connections to a pooler that this gateway has given up: as many as there are backends that wait for a standby. */
export class OrphanedConnections implements Pick<OrphanedBackends, 'writing' | 'ended'> {
  readonly writing = undefined
  readonly #lost: (() => void)[] = []

  constructor(
    private readonly ask: Ask,
    private readonly applicationName: string,
  ) {}

  /** Resolves when a backend has ended. */
  ended(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#lost.push(resolve) === 1) void this.#watch()
    })
  }

  async #watch(): Promise<void> {
    while (this.#lost.length > 0) {
      const rows = await this.ask<{ count: number }>(WAITING, [this.applicationName]).catch(() => undefined)
      if (rows?.[0]) for (const end of this.#lost.splice(rows[0].count)) end()
      if (this.#lost.length > 0) await sleep(POLL_MS, undefined, { ref: false })
    }
  }
}
