import { setTimeout as sleep } from 'node:timers/promises'
import autocannon from 'autocannon'
import { plans } from '../../src/auth/api-keys.js'
import { createLog } from '../../src/log.js'
import { openRateLimiter, type Subject } from '../../src/rate-limit/index.js'
import { benchDatabase, PETS, startRedis, startServer } from './servers.js'

// `npm run bench:limits`: whether the limits are exact over several gateways, what they cost, and what a Redis that
// stops does to requests. The same gateway with limits and without, by turns: a noisy machine is noisy to both.

const GATEWAYS = 4
const CONCURRENT = 2_000
const CONNECTIONS = 32
const SECONDS = Number(process.env.BENCH_SECONDS ?? 2)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
/** Requests per second, over both variants, at which latencies are compared: far from a full machine. */
const RATE = 300
const DECISIONS = 100_000
const STOPPED_MS = 3_000
const SLOWEST_MS = 250

type Server = Awaited<ReturnType<typeof startServer>>
/** What autocannon returns is both, which its types do not know. */
type Load = Promise<autocannon.Result> & autocannon.Instance

interface Variant {
  name: string
  server: Server
  /** The least that it may do of what the first variant does; 0 is not judged. */
  goal: number
}

const redis = await startRedis()
const database = await benchDatabase()
const start = (env: Record<string, string>) =>
  startServer(['--import', 'tsx', 'test/bench/gateway.ts'], { DATABASE_URL: database.url, ...env })
const id = () => 1 + Math.floor(Math.random() * PETS)
const onePet = () => `/pets/${id()}`
const aPage = () => `/pets?limit=1&after=${id()}`
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

async function get(url: string, key: string) {
  const began = performance.now()
  const response = await fetch(url + onePet(), { headers: bearer(key) })
  await response.arrayBuffer()
  return { ok: response.ok, ms: performance.now() - began }
}

function cannon(url: string, path: () => string, duration: number) {
  const requests = [{ setupRequest: (request: autocannon.Request) => ({ ...request, path: path() }) }]
  return autocannon({ url, connections: CONNECTIONS, duration, headers: bearer(database.key), requests }) as Load
}

const quantile = (values: number[], q: number) =>
  values.toSorted((a, b) => a - b)[Math.floor(q * (values.length - 1))] as number
const median = (values: number[]) => quantile(values, 0.5)

function report(what: string, result: string, good?: boolean) {
  console.log(`${what.padEnd(42)} ${result}${good === undefined ? '' : good ? '   ok' : '   MISSED'}`)
}

/** All at once, over all gateways, with a key that nobody has used. */
async function exactness() {
  const gateways = await Promise.all(Array.from({ length: GATEWAYS }, () => start({ REDIS_URL: redis.url })))
  const all = Array.from({ length: CONCURRENT }, (_, i) =>
    get((gateways[i % GATEWAYS] as Server).url, database.business),
  )
  const admitted = (await Promise.all(all)).filter(({ ok }) => ok).length
  for (const gateway of gateways) await gateway.stop()
  const exact = admitted === plans.Business.minute
  const what = `admitted of ${CONCURRENT} at once, ${GATEWAYS} gateways`
  report(what, `${admitted}, the plan says ${plans.Business.minute}`, exact)
  if (!exact) process.exitCode = 1
}

/** Requests per second and processor time per request, without limits and with each kind of them. */
async function throughput(what: string, path: () => string, variants: Variant[]) {
  const measured = variants.map(() => [] as { rate: number; cpu: number }[])
  for (let round = 0; round <= ROUNDS; round++) {
    for (const i of round % 2 ? variants.keys() : [...variants.keys()].reverse()) {
      const { name, server } = variants[i] as Variant
      const before = server.cpu()
      const { '2xx': answered, non2xx, errors, duration } = await cannon(server.url, path, SECONDS)
      if (non2xx || errors) throw new Error(`${name}: ${non2xx} responses were not 2xx, ${errors} errors`)
      const cpu = ((server.cpu() - before) / answered) * 1e6
      // The first round only warms up.
      if (round > 0) measured[i]?.push({ rate: answered / duration, cpu })
    }
  }
  console.log(what)
  const [without = []] = measured
  for (const [i, { name, goal }] of variants.entries()) {
    const own = measured[i] ?? []
    const compared = (value: 'rate' | 'cpu') => ({
      typical: Math.round(median(own.map((round) => round[value]))),
      ratio: median(own.map((round, at) => round[value] / (without[at]?.[value] as number))),
    })
    const [rate, cpu] = [compared('rate'), compared('cpu')]
    const numbers = `${rate.ratio.toFixed(2)} ×  ${rate.typical}/s   CPU ${cpu.ratio.toFixed(2)} ×  ${cpu.typical} µs`
    report(`  ${name}`, numbers, goal ? rate.ratio >= goal : undefined)
  }
}

/** Processor time of a decision in memory, by itself: the ratios above are coarser than what it costs. */
async function decision() {
  const limits = await openRateLimiter({ banAfter: 10, banSeconds: 300, log: createLog('silent') })
  const windows = [
    { name: 'minute', limit: 2_000_000_000, seconds: 60 },
    { name: 'day', limit: 2_000_000_000, seconds: 86_400 },
  ] satisfies Subject['windows']
  const client = { id: 'key:1', windows, bannable: true }
  const rounds = []
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage()
    for (let i = 0; i < DECISIONS; i++) await limits.consume(client, 1)
    const { user, system } = process.cpuUsage(before)
    rounds.push((user + system) / DECISIONS)
  }
  await limits.close()
  report('a decision in memory takes', `${median(rounds).toFixed(1)} µs of processor time`)
}

/** Each request goes to either at random, in the same seconds: whatever else the machine does strikes both alike. */
async function latency(without: Server, limited: Server) {
  const rounds = []
  for (let round = 0; round < ROUNDS; round++) {
    const times = { without: [] as number[], limited: [] as number[] }
    const all: Promise<unknown>[] = []
    const began = performance.now()
    for (let i = 0; i < RATE * SECONDS; i++) {
      await sleep(Math.max(0, began + (i * 1000) / RATE - performance.now()))
      const [server, own] = Math.random() < 0.5 ? [without, times.without] : [limited, times.limited]
      all.push(get(server.url, database.key).then(({ ms }) => own.push(ms)))
    }
    await Promise.all(all)
    rounds.push(times)
  }
  for (const q of [0.5, 0.99]) {
    const added = median(rounds.map((times) => quantile(times.limited, q) - quantile(times.without, q)))
    const typical = median(rounds.map((times) => quantile(times.without, q)))
    report(`Redis adds to p${q * 100}, at ${RATE}/s`, `${added.toFixed(2)} ms   (without: ${typical.toFixed(2)} ms)`)
  }
}

/** Under full load Redis stops in the middle, and goes on. */
async function outage(server: Server) {
  const degraded = async () => (await (await fetch(`${server.url}/readyz`)).json()).limits === 'degraded'
  const slowest = { before: 0, after: 0 }
  let when: keyof typeof slowest = 'before'
  const load = cannon(server.url, onePet, STOPPED_MS / 1000 + 5)
  load.on('response', (_client, _status, _bytes, ms) => {
    slowest[when] = Math.max(slowest[when], ms)
  })
  await sleep(2_000)
  when = 'after'
  redis.kill('SIGSTOP')
  await sleep(STOPPED_MS)
  const noticed = await degraded()
  redis.kill('SIGCONT')
  const { non2xx, errors } = await load
  const back = !(await degraded())
  const good = non2xx + errors === 0 && slowest.after < SLOWEST_MS && noticed && back
  report(`Redis stopped for ${STOPPED_MS / 1000} s: failed requests`, String(non2xx + errors), non2xx + errors === 0)
  const [after, before] = [slowest.after, slowest.before].map(Math.round)
  report('  slowest request', `${after} ms (before: ${before} ms)`, slowest.after < SLOWEST_MS)
  report('  counted alone, then in Redis again', noticed && back ? 'yes' : 'no', noticed && back)
  if (!good) process.exitCode = 1
}

try {
  await exactness()
  const [none, gathered, memory, shared] = (await Promise.all([
    start({ LIMITS: 'none' }),
    start({ LIMITS: 'gathered' }),
    start({}),
    start({ REDIS_URL: redis.url }),
  ])) as [Server, Server, Server, Server]
  const variants = [
    { name: 'without limits', server: none, goal: 0 },
    { name: 'without limits, gathered as with them', server: gathered, goal: 0 },
    { name: 'in memory', server: memory, goal: 0.95 },
    { name: 'in Redis', server: shared, goal: 0.85 },
  ]
  console.log(`\n${CONNECTIONS} connections, random ids of ${PETS}; medians of ${ROUNDS} rounds of ${SECONDS} s`)
  await throughput('GET one pet (with limits, requests that waited together share a query)', onePet, variants)
  await throughput('GET a page of one pet (a query for each request)', aPage, variants)
  await decision()
  console.log('')
  await latency(none, shared)
  await outage(shared)
} finally {
  await database.drop()
}
process.exit()
