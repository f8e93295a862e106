import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy in front of a database, which can fail like a network or a server. */
export class DatabaseProxy {
  readonly #sockets = new Set<Socket>()
  readonly #server
  #hanging = false
  /** How many connections it has accepted. */
  accepted = 0

  private constructor(readonly target: URL) {
    this.#server = createServer((client) => {
      this.accepted++
      const server = connect(Number(target.port), target.hostname)
      for (const [from, to] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#sockets.add(from)
        from
          .on('error', () => {})
          .on('close', () => {
            this.#sockets.delete(from)
            if (!this.#hanging) to.destroy()
          })
        from.on('data', (data) => void to.write(data))
        if (this.#hanging) from.pause()
      }
    })
  }

  static async open(databaseUrl: string): Promise<DatabaseProxy> {
    const proxy = new DatabaseProxy(new URL(databaseUrl))
    await proxy.restore()
    return proxy
  }

  get url(): string {
    const url = new URL(this.target)
    url.host = `127.0.0.1:${this.#port}`
    return url.href
  }

  #port = 0

  /** Forwards nothing, not even the end of a connection, and accepts new ones: a server that hangs or is cut off. */
  hang(): void {
    this.#hanging = true
    for (const socket of this.#sockets) socket.pause()
  }

  resume(): void {
    this.#hanging = false
    for (const socket of this.#sockets) socket.resume()
  }

  /** Closes all connections and accepts none: a server that is gone. */
  async cut(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((closed) => this.#server.close(closed))
  }

  async restore(): Promise<void> {
    await once(this.#server.listen(this.#port, '127.0.0.1'), 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
  }
}
