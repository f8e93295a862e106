import { Socket } from 'node:net'
import pg from 'pg'

/** The most statements that share a connection at a time: each one waits for those before it. */
const MAX_SHARED = 8

interface Waiting {
  statement: pg.QueryConfig
  resolve: (result: never) => void
  reject: (error: unknown) => void
}

/** A socket that sends what is written in one turn of the event loop at once: system calls are what costs most here. */
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
 * A pool in which equal statements that arrive together share a connection, and are sent to it without waiting for each
 * other's results (`pipeline` of pg). Only equal ones, because they use the same tables: a lock on another table does
 * not hold them up. Transactions have a connection of their own.
 */
export class PipelinedPool extends pg.Pool {
  readonly #open = new Map<string, Waiting[]>()

  constructor(config: pg.PoolConfig) {
    super({ ...config, pipeline: true, stream: () => new GatheringSocket() } as pg.PoolConfig)
  }

  override query(statement: pg.QueryConfig | string) {
    if (typeof statement === 'string') return super.query(statement) as Promise<never>
    return new Promise<never>((resolve, reject) => {
      this.#batchFor(statement.text).push({ statement, resolve, reject })
    })
  }

  #batchFor(text: string): Waiting[] {
    const open = this.#open.get(text)
    if (open && open.length < MAX_SHARED) return open
    const batch: Waiting[] = []
    this.#open.set(text, batch)
    setImmediate(() => {
      if (this.#open.get(text) === batch) this.#open.delete(text)
      this.#send(batch).catch((error) => {
        for (const { reject } of batch) reject(error)
      })
    })
    return batch
  }

  async #send(batch: Waiting[]): Promise<void> {
    const client = await this.connect()
    let lost: Error | undefined
    const onError = (error: Error) => {
      lost = error
    }
    client.on('error', onError)
    await Promise.all(
      batch.map(({ statement, resolve, reject }) =>
        client.query(statement).then(
          (result) => resolve(result as never),
          (error) => {
            // After an error that PostgreSQL reports, the connection can be used again.
            if (!(error instanceof pg.DatabaseError) || error.severity === 'FATAL') onError(error)
            reject(error)
          },
        ),
      ),
    )
    client.off('error', onError)
    client.release(lost)
  }
}
