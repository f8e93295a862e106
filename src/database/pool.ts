import { Socket } from 'node:net'
import pg from 'pg'

/** The most statements that share a connection at once. Each one waits for those before it. */
const MAX_SHARED = 8

interface PendingStatement {
  statement: pg.QueryConfig
  resolve: (result: never) => void
  reject: (error: unknown) => void
}

/** A socket that sends everything written in one turn of the event loop at once, because system calls are expensive. */
class GatheringSocket extends Socket {
  #gathering = false

  override write = ((...args: [never]) => {
    if (!this.#gathering) {
      this.#gathering = true
      this.cork()
      setImmediate(() => {
        this.#gathering = false
        this.uncork()
      })
    }
    return super.write(...args)
  }) as Socket['write']
}

/**
 * A pool in which equal statements that arrive together share a connection, which sends them without waiting for each
 * result (`pipeline` of pg). Only equal statements, because they use the same tables: a lock on another table cannot
 * block them. Transactions have their own connection.
 */
export class PipelinedPool extends pg.Pool {
  readonly #open = new Map<string, PendingStatement[]>()

  constructor(config: pg.PoolConfig) {
    super({ ...config, pipeline: true, stream: () => new GatheringSocket() } as pg.PoolConfig)
  }

  override query(statement: pg.QueryConfig | string) {
    if (typeof statement === 'string') return super.query(statement) as Promise<never>
    return new Promise<never>((resolve, reject) => {
      this.#batchFor(statement.text).push({ statement, resolve, reject })
    })
  }

  #batchFor(text: string): PendingStatement[] {
    const open = this.#open.get(text)
    if (open && open.length < MAX_SHARED) return open
    const batch: PendingStatement[] = []
    this.#open.set(text, batch)
    setImmediate(() => {
      if (this.#open.get(text) === batch) this.#open.delete(text)
      this.#send(batch).catch((error) => {
        for (const { reject } of batch) reject(error)
      })
    })
    return batch
  }

  async #send(batch: PendingStatement[]): Promise<void> {
    const client = await this.connect()
    let connectionError: Error | undefined
    const onError = (error: Error) => {
      connectionError = error
    }
    client.on('error', onError)
    await Promise.all(
      batch.map(({ statement, resolve, reject }) =>
        client.query(statement).then(
          (result) => resolve(result as never),
          (error) => {
            // After an error that PostgreSQL reports, the connection is still usable.
            if (!(error instanceof pg.DatabaseError) || error.severity === 'FATAL') onError(error)
            reject(error)
          },
        ),
      ),
    )
    client.off('error', onError)
    client.release(connectionError)
  }
}
