import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Gateway } from './gateway.js'

// Requests that no client library sends.

/** A connection that ends with the test. */
export async function dial(gateway: Gateway): Promise<Socket> {
  const socket = connect((await gateway.listen()).port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** The statuses of all answers until the connection closes. */
export async function statuses(socket: Socket): Promise<number[]> {
  let text = ''
  for await (const chunk of socket) text += chunk
  return [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status))
}
