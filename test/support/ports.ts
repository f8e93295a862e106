import { once } from 'node:events'
import { createServer } from 'node:net'
import { threadId } from 'node:worker_threads'

const [first, count] = [12_000, 10_000]
let next = (process.pid * 97 + threadId * 1_009) % count

/**
 * A port that nothing listens on. It stays free while a test keeps it without a listener, because systems take the ports
 * of outgoing connections and of `listen(0)` from a range above 32,767. The port of a Redis cluster's bus, 10,000 higher,
 * is below that range too.
 */
export async function freePort(): Promise<number> {
  const port = first + (next++ % count)
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    return freePort()
  }
  server.close()
  await once(server, 'close')
  return port
}
