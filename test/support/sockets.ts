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

export interface RawAnswer {
  status: number
  headers: Headers
  body: string
}

/** Sends bytes unchanged, and reads answers until the connection closes. */
export async function exchange(gateway: Gateway, bytes: string): Promise<RawAnswer[]> {
  const socket = await dial(gateway)
  socket.write(bytes, 'latin1')
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk)
  const answers: RawAnswer[] = []
  let rest = Buffer.concat(chunks).toString()
  while (rest) {
    const [head = ''] = rest.split('\r\n\r\n', 1)
    const [line = '', ...fields] = head.split('\r\n')
    const headers = new Headers(fields.map((field) => field.split(/: */, 2) as [string, string]))
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1])
    rest = rest.slice(head.length + 4)
    const length = Number(headers.get('content-length') ?? 0)
    if (status >= 200) answers.push({ status, headers, body: rest.slice(0, length) })
    rest = rest.slice(length)
  }
  return answers
}

/** All that arrives until the connection closes. */
export async function received(socket: Socket): Promise<string> {
  let text = ''
  for await (const chunk of socket) text += chunk
  return text
}

/** The statuses of all answers until the connection closes. */
export async function statuses(socket: Socket): Promise<number[]> {
  const text = await received(socket)
  return [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status))
}
