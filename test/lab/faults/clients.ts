import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { GatewayProcess, World } from './world.js'

// Clients that hold on to what others need.

/** Opens connections to all gateways, which live until `close`. */
export async function hold({ gateways }: Pick<World, 'gateways'>, count: number, use: (socket: Socket) => void) {
  const open = async ({ url }: GatewayProcess) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.on('error', () => {})
    await once(socket, 'connect')
    use(socket)
    return socket
  }
  const each = gateways.flatMap((gateway) => Array.from({ length: count / gateways.length }, () => gateway))
  const sockets = await Promise.all(each.map(open))
  return {
    close() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Writes again and again while the connection lives. */
export async function drip(socket: Socket, bytes: string, everyMs: number) {
  for (; !socket.destroyed && socket.writable; await sleep(everyMs)) socket.write(bytes)
}

/** Sends the request again after each response, and reports what is neither a success nor a refusal because of overload. */
export function ask(socket: Socket, request: string, report: (text: string) => void) {
  let received = ''
  socket.on('data', (data) => {
    received += data.toString('latin1')
    const end = received.indexOf('\r\n\r\n')
    const length = Number(/^content-length: (\d+)$/im.exec(received)?.[1])
    if (end < 0 || received.length < end + 4 + length) return
    if (!/^HTTP\/1\.1 (200|503 .*\r\nretry-after: [1-9])/is.test(received)) report(received.slice(0, 300))
    received = ''
    socket.write(request)
  })
  socket.write(request)
}

/** Takes every connection that PostgreSQL has, again and again as the gateways give theirs back. */
export async function hogConnections({ postgres }: Pick<World, 'postgres'>) {
  const held: Awaited<ReturnType<typeof postgres.connect>>[] = []
  let stopped = false
  const hog = async () => {
    while (!stopped)
      await postgres.connect().then(
        (client) => held.push(client),
        () => sleep(5),
      )
  }
  const hogs = Array.from({ length: 8 }, hog)
  await sleep(300)
  await postgres.terminateBackends()
  return {
    async close() {
      stopped = true
      await Promise.all(hogs)
      await Promise.all(held.map((client) => client.end().catch(() => {})))
    },
  }
}
