import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

// More load than a gateway can carry, and keys that attack it while others are polite. The gateway runs elsewhere:
//   node --import tsx test/lab/faults/overload.ts http://127.0.0.1:3000 KEY…

interface Answer {
  status: number
  retryAfter: string | undefined
  ms: number
}

interface Call {
  path: string
  key?: string
  body?: string
}

const format = ({ path, key, body }: Call) =>
  `${body ? 'POST' : 'GET'} ${path} HTTP/1.1\r\nHost: localhost\r\n${key ? `X-API-Key: ${key}\r\n` : ''}${
    body ? `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` : ''
  }\r\n${body ?? ''}`

/** A client that keeps its connection, and has one request under way. Far cheaper than fetch, so that many fit. */
class Client {
  readonly #url: URL
  #socket: Socket | undefined

  constructor(url: string) {
    this.#url = new URL(url)
  }

  /** Rejects when the connection ends before the answer does. */
  send(call: Call): Promise<Answer> {
    const startedAt = performance.now()
    this.#socket ??= connect(Number(this.#url.port), this.#url.hostname).setNoDelay()
    const socket = this.#socket
    return new Promise((resolve, reject) => {
      let text = ''
      const done = (act: () => void) => {
        socket.removeAllListeners()
        socket.on('error', () => {})
        act()
      }
      const fail = (error?: Error) => {
        this.#socket = undefined
        done(() => reject(error ?? new Error('the connection closed')))
      }
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
        const end = text.indexOf('\r\n\r\n')
        const length = Number(/^content-length: (\d+)/im.exec(text)?.[1])
        if (end < 0 || text.length < end + 4 + length) return
        const status = Number(text.slice(9, 12))
        const retryAfter = /^retry-after: (\d+)/im.exec(text.slice(0, end))?.[1]
        done(() => resolve({ status, retryAfter, ms: performance.now() - startedAt }))
      })
      socket.on('error', fail)
      socket.on('close', () => fail())
      socket.write(format(call))
    })
  }

  close() {
    this.#socket?.destroy()
  }
}

/** Sends one request after the other until the signal. Whatever has no answer counts as status 0. */
async function keepSending(url: string, calls: Call[], signal: AbortSignal, seen: (answer: Answer) => void) {
  const client = new Client(url)
  for (let n = 0; !signal.aborted; n++)
    seen(await client.send(calls[n % calls.length] as Call).catch(() => ({ status: 0, retryAfter: undefined, ms: 0 })))
  client.close()
}

export interface OverloadOptions {
  url: string
  keys: string[]
  connections?: number
  seconds?: number
  path?: string
}

/** Loads the gateway with clients that never back off. */
export async function overload(options: OverloadOptions) {
  const { url, keys, connections = 1_500, seconds = 10, path = '/pets?limit=20' } = options
  const statuses: Record<number, number> = {}
  const readyz: Answer[] = []
  let slowestMs = 0
  let withoutRetryAfter = 0
  const seen = ({ status, retryAfter, ms }: Answer) => {
    statuses[status] = (statuses[status] ?? 0) + 1
    slowestMs = Math.max(slowestMs, ms)
    if (status === 503 && !retryAfter) withoutRetryAfter++
  }
  const load = new AbortController()
  const clients = Array.from({ length: connections }, (_, i) =>
    keepSending(url, [{ path, key: keys[i % keys.length] }], load.signal, seen),
  )
  const looking = (async () => {
    while (!load.signal.aborted) {
      // Each on a connection of its own, as probes are sent.
      await keepOnce(url, '/readyz').then((answer) => readyz.push(answer))
      await sleep(250)
    }
  })()
  await sleep(seconds * 1000)
  load.abort()
  const endedAt = performance.now()
  const calm = { path, key: keys[0] }
  const client = new Client(url)
  // Recovered: ten answers in a row, each within a tenth of a second.
  for (let good = 0; good < 10; ) {
    const { status, ms } = await client.send(calm)
    good = status === 200 && ms < 100 ? good + 1 : 0
    if (performance.now() - endedAt > 10_000) break
  }
  const recoveredMs = performance.now() - endedAt
  client.close()
  await Promise.all([...clients, looking])
  return {
    statuses,
    withoutRetryAfter,
    slowestMs: Math.round(slowestMs),
    recoveredMs: Math.round(recoveredMs),
    readyz: [...new Set(readyz.map(({ status }) => status))],
    slowestReadyzMs: Math.round(Math.max(...readyz.map(({ ms }) => ms))),
  }
}

async function keepOnce(url: string, path: string): Promise<Answer> {
  const client = new Client(url)
  const answer = await client.send({ path }).catch(() => ({ status: 0, retryAfter: undefined, ms: 0 }))
  client.close()
  return answer
}

const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN

/** What a hostile key sends: floods of cheap requests, and documents that are expensive, distinct and refused. */
const hostileCalls = (key: string): Call[] => {
  const post = (query: string) => ({ path: '/graphql', key, body: JSON.stringify({ query }) })
  const aliases = (count: number, field: string) => Array.from({ length: count }, (_, i) => `a${i}: ${field}`).join(' ')
  return [
    { path: '/pets', key },
    post(`{ ${aliases(50, 'pets(limit: 100) { id name category { name description } }')} }`),
    post(`{ ${aliases(99, '__schema { types { name } }')} }`),
    post(`{ pets(limit: 100) { ${aliases(90, 'orders(limit: 1) { id }')} } }`),
    post(`{ ${'a'.repeat(60_000)} }`),
    ...Array.from({ length: 20 }, (_, i) =>
      post(`{ pets { ${Array.from({ length: 400 }, (__, j) => `b${i}x${j}`).join(' ')} } }`),
    ),
  ]
}

export interface FairnessOptions {
  url: string
  /** The keys of the clients whose times are taken, one request under way each. */
  polite: string[]
  /** Each of these attacks with eight connections. */
  hostile: string[]
  seconds?: number
}

/** How much slower polite clients are while others attack: the ratio of the medians. */
export async function fairness({ url, polite, hostile, seconds = 5 }: FairnessOptions) {
  async function measure(attackers: string[]) {
    const stop = new AbortController()
    const times: number[] = []
    const failed: number[] = []
    const attack = attackers.flatMap((key) =>
      Array.from({ length: 8 }, () => keepSending(url, hostileCalls(key), stop.signal, () => {})),
    )
    await sleep(500)
    const clients = polite.map((key) =>
      keepSending(
        url,
        [
          { path: '/pets?limit=20', key },
          { path: '/pets?id=1', key },
        ],
        stop.signal,
        ({ status, ms }) => (status === 200 ? times.push(ms) : failed.push(status)),
      ),
    )
    await sleep(seconds * 1000)
    stop.abort()
    await Promise.all([...attack, ...clients])
    return { times, failed }
  }
  const calm = await measure([])
  const attacked = await measure(hostile)
  const [calmMs, attackedMs] = [median(calm.times), median(attacked.times)]
  return { calmMs, attackedMs, ratio: attackedMs / calmMs, failed: attacked.failed }
}

if (import.meta.filename === process.argv[1]) {
  const [url = '', ...keys] = process.argv.slice(2)
  console.log(await fairness({ url, polite: keys.slice(0, 5), hostile: keys.slice(5, 8) }))
  console.log(await overload({ url, keys }))
}
