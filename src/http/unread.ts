import type { ServerResponse } from 'node:http'
import { Socket } from 'node:net'

/** How long a client may read nothing of its response, in milliseconds. */
export const STALL_MS = 10_000
/** How much of all responses together may wait for clients to read, in characters or bytes. */
const MAX_UNREAD = 67_108_864

interface Reader {
  /** The key or the address that asked. */
  readonly holder: string
  readonly bytes: number
}

/**
 * The responses that clients have not read yet. The connection of a client that reads nothing for some seconds is
 * closed. If too much waits in all, the client that holds most of it loses the connection that has waited longest.
 */
export class UnreadResponses {
  /** In the order in which they began to wait. */
  readonly #readers = new Map<ServerResponse, Reader>()
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /** Watches a response that has been sent. Nearly all have left the process by then. */
  watch(res: ServerResponse, holder: string): void {
    const { socket, writableLength: bytes } = res
    if (bytes === 0 || !(socket instanceof Socket)) return
    this.#readers.set(res, { holder, bytes })
    this.#bytes += bytes
    res.once('close', () => this.#forget(res))
    // To Node, a part of a large write is progress too. It sets its own timeout again when all is written.
    socket.setTimeout(STALL_MS)
    while (this.#bytes > MAX_UNREAD) this.#cut()
  }

  #forget(res: ServerResponse): void {
    this.#bytes -= this.#readers.get(res)?.bytes ?? 0
    this.#readers.delete(res)
  }

  #cut(): void {
    const held = new Map<string, number>()
    for (const { holder, bytes } of this.#readers.values()) held.set(holder, (held.get(holder) ?? 0) + bytes)
    const most = Math.max(...held.values())
    for (const [res, { holder }] of this.#readers) {
      if (held.get(holder) !== most) continue
      this.#forget(res)
      res.destroy()
      return
    }
  }
}
