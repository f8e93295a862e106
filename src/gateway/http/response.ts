import type { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises'
import { discardBody, isFlood } from './body.js'
import type { MemoryBudget } from './memory-budget.js'

/** An answer before it is written. Names of headers are in lower case. */
export interface HttpResponse {
  status: number
  headers: Record<string, string>
  body?: string | Uint8Array
}

/** @param body JSON text */
export const jsonResponse = (body: string, status = 200, headers: Record<string, string> = {}): HttpResponse => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body,
})

/**
 * How long a client waits whose body came in too many pieces, in milliseconds. To read them takes longer than all other
 * work for its request, and is done before anything is known about it.
 */
const FLOOD_DELAY_MS = 1_000

/** Writes an answer, with its length. Returns a promise if it has to wait for the rest of the request. */
export function send(res: ServerResponse, { status, headers, body }: HttpResponse): Promise<void> | undefined {
  const { req } = res
  const isHead = req.method === 'HEAD'
  if (body !== undefined) headers['content-length'] = String(Buffer.byteLength(body))
  if (req.complete === false || req.readableLength > 0 || isFlood(req))
    return sendBeforeEnd(res, { status, headers, body: isHead ? '' : body })
  res.writeHead(status, headers).end(isHead ? undefined : body)
}

/** Writes an answer to a request whose body is not read. */
async function sendBeforeEnd(res: ServerResponse, { status, headers, body = '' }: HttpResponse) {
  const { req } = res
  const isWhole = discardBody(req)
  // What has arrived is read first.
  await immediate()
  if (isFlood(req)) {
    headers.connection = 'close'
    await sleep(FLOOD_DELAY_MS)
  }
  res.writeHead(status, headers)
  if (headers.connection === 'close' || !res.shouldKeepAlive) {
    // A connection that is closed with unread bytes is reset, and the client may lose the response.
    if (body.length > 0) res.write(body)
    else res.flushHeaders()
    void isWhole.then(() => res.end())
  } else {
    res.end(body)
    void isWhole.then((whole) => whole || req.destroy())
  }
}

/** How long a client may read nothing of its response, in milliseconds. */
export const STALL_MS = 10_000
/** How much of all responses together may wait for clients to read, in characters or bytes. */
export const MAX_UNREAD = 67_108_864

/**
 * Watches a response that its client has not read yet. The connection of a client that reads nothing for some seconds is
 * closed, and so is the one that has waited longest of the client that holds most, if too much waits in all.
 *
 * @param holder the key or the address that asked
 */
export function watchUnread(res: ServerResponse, holder: string, budget: MemoryBudget, stallMs = STALL_MS): void {
  const { socket, writableLength: bytes } = res
  if (!(socket instanceof Socket)) return
  const holding = { holders: [holder], bytes: 0, giveUp: () => res.destroy() }
  res.once('close', () => budget.release(holding))
  // To Node, a part of a large write is progress too. It sets its own timeout again when all is written.
  socket.setTimeout(stallMs)
  budget.hold(holding, bytes)
}
