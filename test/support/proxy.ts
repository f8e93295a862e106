import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy in front of a server, which can fail like a network or that server. */
export class TcpProxy {
  readonly #sockets = new Set<Socket>()
  readonly #server
  #hanging = false
  /** What the next request that is held has. */
  #holds: string | undefined
  /** By the connection to the database. */
  readonly #held = new Map<Socket, Buffer[]>()
  /** How many connections it has accepted. */
  accepted = 0

  /** @param target where new connections lead */
  private constructor(public target: URL) {
    this.#server = createServer((client) => {
      this.accepted++
      const server = connect(Number(this.target.port), this.target.hostname)
      for (const [from, to] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#sockets.add(from)
        from
          .on('error', () => {})
          .on('close', () => {
            this.#sockets.delete(from)
            if (!this.#hanging && !this.#held.has(to)) to.destroy()
          })
        from.on('data', (data) => this.#forward(from === client, data, to))
        if (this.#hanging) from.pause()
      }
    })
  }

  static async open(targetUrl: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(targetUrl))
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

  /**
   * Delivers the next request that has a text, and what follows it on its connection, only when the returned function is
   * called.
   */
  holdNext(text = ''): () => void {
    this.#holds = text
    return () => {
      for (const [to, chunks] of this.#held) for (const chunk of chunks) to.write(chunk)
      this.#held.clear()
    }
  }

  #forward(isRequest: boolean, data: Buffer, to: Socket): void {
    if (isRequest && this.#holds !== undefined && data.includes(this.#holds)) {
      this.#holds = undefined
      this.#held.set(to, [])
    }
    const held = this.#held.get(to)
    if (held) held.push(data)
    else to.write(data)
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
