import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** What can happen to an exchange. */
const faults = ['drop the request', 'drop the answer', 'delay', 'duplicate', 'cut the answer'] as const
type Fault = (typeof faults)[number]

interface Exchange {
  method: string
  url: string
  headers: IncomingHttpHeaders
  body: Buffer
}

interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
}

function forward(upstream: string, { method, url, headers, body }: Exchange) {
  return new Promise<Answer>((resolve, reject) => {
    const sent = request(new URL(url, upstream), { method, headers, agent: false }, async (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      )
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

export interface Network {
  url: string
  /** How often each fault happened. */
  happened: Record<Fault, number>
  close(): Promise<void>
}

/**
 * A proxy in front of several gateways that spoils a third of all exchanges.
 *
 * @param upstreams their current URLs; each exchange goes to one at random
 */
export async function createNetwork(upstreams: () => string[]): Promise<Network> {
  const happened = Object.fromEntries(faults.map((fault) => [fault, 0])) as Record<Fault, number>
  const server: Server = createServer(async (req, res) => {
    const hangUp = () => req.socket.destroy()
    try {
      const chunks: Buffer[] = []
      for await (const chunk of req) chunks.push(chunk)
      const exchange = {
        method: req.method ?? '',
        url: req.url ?? '',
        headers: req.headers,
        body: Buffer.concat(chunks),
      }
      const upstream = () => {
        const urls = upstreams()
        return urls[Math.floor(Math.random() * urls.length)] as string
      }
      const fault = Math.random() < 1 / 3 ? faults[Math.floor(Math.random() * faults.length)] : undefined
      if (fault) happened[fault]++
      if (fault === 'drop the request') return hangUp()
      if (fault === 'delay') await sleep(Math.random() * 1_000)
      const first = forward(upstream(), exchange)
      const second = fault === 'duplicate' ? forward(upstream(), exchange) : undefined
      const answer = await (second ? Promise.any([first, second]) : first)
      if (fault === 'drop the answer') return hangUp()
      const { 'transfer-encoding': _, ...headers } = answer.headers
      res.writeHead(answer.status, headers)
      if (fault !== 'cut the answer') return res.end(answer.body)
      res.write(answer.body.subarray(0, answer.body.length / 2))
      await sleep(10)
      hangUp()
    } catch {
      hangUp()
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    happened,
    async close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
