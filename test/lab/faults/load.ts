import { request } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type GatewayProcess, PETS, type World } from './world.js'

// A steady load with known keys: reads and writes on both surfaces, over all gateways that accept requests.

const REQUESTS_PER_SECOND = 100
const READY_EVERY_MS = 100
const TIMEOUT_MS = 20_000

type Body = Record<string, unknown>

/** What the database must hold because a client was told so. */
interface Write {
  table: 'Category' | 'Order' | 'InventoryItem'
  /** The id of the row; of InventoryItem the pet's. */
  id: number
  quantity?: number
}

interface Kind {
  name: string
  method: string
  path: (n: number) => string
  body?: (n: number) => Body
  /** The table that it needs. */
  needs?: 'Pet' | 'Category' | 'Order' | 'InventoryItem'
  /** What an answer promises. */
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any kind
  promises?: (body: any, n: number) => Write
}

const pet = (n: number) => 1 + (n % PETS)
const query = (text: string) => ({ method: 'POST', path: () => '/graphql', body: () => ({ query: text }) })

const kinds: Kind[] = [
  { name: 'read a pet', method: 'GET', path: (n) => `/pets?id=${pet(n)}`, needs: 'Pet' },
  {
    name: 'create a category',
    method: 'POST',
    path: () => '/categories',
    body: (n) => ({ name: `Category ${n}` }),
    needs: 'Category',
    promises: ({ id }) => ({ table: 'Category', id }),
  },
  { name: 'list orders', method: 'GET', path: () => '/store/orders?limit=5', needs: 'Order' },
  {
    name: 'create an order',
    method: 'POST',
    path: () => '/store/orders',
    body: (n) => ({ petId: pet(n) }),
    needs: 'Order',
    promises: ({ id }) => ({ table: 'Order', id }),
  },
  {
    name: 'set a stock',
    method: 'PATCH',
    path: (n) => `/inventory/${pet(n)}`,
    body: (n) => ({ quantity: n }),
    needs: 'InventoryItem',
    promises: (_, n) => ({ table: 'InventoryItem', id: pet(n), quantity: n }),
  },
  { name: 'query pets', ...query('{ pets(limit: 5) { id name } }'), needs: 'Pet' },
  {
    name: 'mutate: create a category',
    ...query('mutation { createCategory(input: { name: "GraphQL" }) { id } }'),
    needs: 'Category',
    promises: ({ data }) => ({ table: 'Category', id: data.createCategory.id }),
  },
  { name: 'query orders', ...query('{ orders(limit: 2) { id } }'), needs: 'Order' },
  { name: 'read the quota', method: 'GET', path: () => '/quota' },
]

export interface Sample {
  kind: Kind
  /** By performance.now(). */
  at: number
  ms: number
  /** `cut`: a process that was killed took the connection with it. */
  outcome: 'answered' | 'refused' | 'failed' | 'cut'
  detail: string
  write?: Write
}

interface Request {
  method: string
  path: string
  key: string
  body?: Body
  headers?: Record<string, string>
}

interface Answer {
  status: number
  retryAfter: string | undefined
  text: string
}

/** Sends a request over a connection that is kept. */
export function send(
  { url, agent }: Pick<GatewayProcess, 'url' | 'agent'>,
  { method, path, key, body, headers: more }: Request,
) {
  return new Promise<Answer>((resolve, reject) => {
    const text = body && JSON.stringify(body)
    const headers = {
      'x-api-key': key,
      ...(text && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      ...more,
    }
    const sent = request(url + path, { method, agent, headers, timeout: TIMEOUT_MS })
    sent.on('timeout', () => sent.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)))
    sent.on('error', reject)
    sent.on('response', (response) => {
      let received = ''
      response.setEncoding('utf8').on('data', (data) => {
        received += data
      })
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'], text: received }),
      )
    })
    sent.end(text)
  })
}

/** A refusal that the contract allows says `unavailable` and when to come again. */
function outcomeOf({ status, retryAfter, text }: Answer): Sample['outcome'] {
  const { errors, code } = JSON.parse(text)
  const codes: string[] = errors?.map((error: { extensions: { code: string } }) => error.extensions.code) ?? [code]
  if (status < 300 && !errors) return 'answered'
  return codes.every((each) => each === 'unavailable') && /^[1-9]\d*$/.test(retryAfter ?? '') ? 'refused' : 'failed'
}

/** Sends the request to a gateway that accepts some; a refused connection is tried elsewhere, as every proxy does. */
async function measure({ gateways, entrance, keys }: World, kind: Kind, n: number): Promise<Sample> {
  const at = performance.now()
  for (let isAgain = false; ; ) {
    const accepting = entrance ? [entrance] : gateways.filter(({ accepts }) => accepts)
    const gateway = accepting[n % accepting.length]
    const done = (outcome: Sample['outcome'], detail: string, write?: Write) => {
      return { kind, at, ms: performance.now() - at, outcome, detail, write }
    }
    if (!gateway) return done('failed', 'no gateway accepts requests')
    try {
      const { method } = kind
      const key = keys[n % keys.length] as string
      const answer = await send(gateway, { method, path: kind.path(n), key, body: kind.body?.(n) })
      const outcome = outcomeOf(answer)
      const write = outcome === 'answered' ? kind.promises?.(JSON.parse(answer.text), n) : undefined
      return done(outcome, `${answer.status} ${answer.text.slice(0, 300)}`, write)
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      // A proxy may close a kept connection at any moment. Then a client sends what changes nothing again (RFC 9112, 9.3.1).
      if (entrance && kind.method === 'GET' && code === 'ECONNRESET' && !isAgain) {
        isAgain = true
        continue
      }
      if (code !== 'ECONNREFUSED') return done(gateway.signalled === 'SIGKILL' ? 'cut' : 'failed', message)
      gateway.accepts = false
    }
  }
}

export function startLoad(world: World) {
  const { gateways } = world
  const samples: Sample[] = []
  /** What /readyz of each gateway answered. */
  const readiness: { at: number; status: number }[] = []
  const pending = new Set<Promise<unknown>>()
  const delays = monitorEventLoopDelay({ resolution: 10 })
  delays.enable()
  let stopped = false

  async function keepSending() {
    const began = performance.now()
    for (let n = 0; !stopped; await sleep(5))
      for (; n < ((performance.now() - began) / 1000) * REQUESTS_PER_SECOND; n++) {
        const sample = measure(world, kinds[n % kinds.length] as Kind, n).then((done) => {
          samples.push(done)
          pending.delete(sample)
        })
        pending.add(sample)
      }
  }
  async function keepLooking() {
    for (; !stopped; await sleep(READY_EVERY_MS)) for (const gateway of gateways) void look(gateway)
  }
  async function look(gateway: GatewayProcess) {
    const at = performance.now()
    const response = await fetch(`${gateway.url}/readyz`, { signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(
      () => undefined,
    )
    const { status } = response ? ((await response.json()) as { status: string }) : { status: 'away' }
    gateway.accepts = response !== undefined && status !== 'draining'
    if (gateway.accepts) readiness.push({ at, status: response?.status ?? 0 })
  }
  const running = [keepSending(), keepLooking()]
  return {
    samples,
    readiness,
    /** The longest stall of this process so far. */
    get stallMs() {
      return delays.max / 1e6
    },
    /** Resolves when every request has its answer. */
    async stop() {
      stopped = true
      await Promise.all(running)
      await Promise.all(pending)
      delays.disable()
    },
  }
}

/** How many of the acknowledged writes the database holds. */
export async function countFound({ postgres }: World, writes: Write[]) {
  const rowsOf = async (table: Write['table'], columns: string) =>
    new Map((await postgres.admin(`SELECT ${columns} FROM "${table}"`)).map((row) => [Number(row.id), row]))
  const found = {
    Category: await rowsOf('Category', 'id'),
    Order: await rowsOf('Order', 'id'),
    InventoryItem: await rowsOf('InventoryItem', '"petId" AS id, quantity'),
  }
  // A later write may have set the stock higher: all of them count up.
  return writes.filter(({ table, id, quantity = 0 }) => {
    const row = found[table].get(id)
    return row && (row.quantity ?? 0) >= quantity
  }).length
}
