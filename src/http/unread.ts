import type { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { MemoryBudget } from './memory-budget.js'

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
