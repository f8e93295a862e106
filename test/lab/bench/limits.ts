import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { freePort } from '../../support/ports.js'
import { Refusal, runProgram } from './lifecycle.js'
import { chooseLoader, type Loader } from './load.js'
import { requireProc } from './machine.js'
import { type RunningServer, startProcess } from './processes.js'
import { draw, fill, headersFor, maximaFor } from './requests.js'
import { median, ratio } from './results.js'
import { connectScratch, createScratchDatabase } from './scratch.js'
import { createKey, seed } from './seed.js'
import { buildGateway, compilePeers, startById } from './servers.js'
import { getOne, getTwenty, type Template } from './templates.js'

// `npm run bench:limits`: whether the limits are exact over several gateways, what counting in Redis costs compared with
// counting in memory, and what requests notice of a Redis that stops. It has a Redis of its own, which it may stop.

const PETS = 100_000
const GATEWAYS = 4
const CONCURRENT = 2_000
const BUSINESS_PER_MINUTE = 1_000
const CONNECTIONS = 32
const SECONDS = 3
const ROUNDS = 5
/** Requests per second at which latencies are compared: far from a full machine. */
const RATE = 300
const STOPPED_MS = 3_000
const SLOWEST_MS = 250

const maxima = maximaFor(PETS)

function report(what: string, result: string, good = true) {
  console.log(`${what.padEnd(46)} ${result}${good ? '' : '   MISSED'}`)
  if (!good) process.exitCode = 1
}

const quantile = (values: number[], q: number) =>
  values.toSorted((a, b) => a - b)[Math.floor(q * (values.length - 1))] as number

/** Empty, in memory, and ours to stop. */
async function startRedis() {
  const port = await freePort()
  const child = startProcess('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', ''])
  child.once('error', () => {})
  const url = `redis://127.0.0.1:${port}`
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null })
  redis.on('error', () => {})
  for (let tries = 0; ; tries++) {
    const ready = await redis.connect().then(
      () => true,
      () => false,
    )
    if (ready) break
    if (tries > 50) throw new Refusal('redis-server did not start. Is it installed?')
    await sleep(100)
  }
  redis.disconnect()
  return { url, signal: (name: NodeJS.Signals) => child.kill(name) }
}

async function getPet(url: string, key: string) {
  const { path } = fill(getOne, draw(maxima))
  const began = performance.now()
  const response = await fetch(url + path, { headers: headersFor(key, undefined) })
  await response.arrayBuffer()
  return { ok: response.ok, status: response.status, ms: performance.now() - began }
}

/** All requests concurrently, over all gateways, with an unused key. */
async function exactness(gateways: RunningServer[], key: string) {
  const requests = Array.from({ length: CONCURRENT }, (_, i) =>
    getPet((gateways[i % GATEWAYS] as RunningServer).url, key),
  )
  const answers = await Promise.all(requests)
  // What was admitted and then failed has still been counted.
  const admitted = answers.filter(({ status }) => status !== 429).length
  const failed = answers.filter(({ ok, status }) => !ok && status !== 429).length
  const what = `admitted of ${CONCURRENT} concurrent requests, ${GATEWAYS} gateways`
  report(what, `${admitted}, the plan allows ${BUSINESS_PER_MINUTE}`, admitted === BUSINESS_PER_MINUTE)
  if (failed) report('  of them failed', `${failed}; an overloaded machine answers 503`)
}

interface Compared {
  memory: RunningServer
  shared: RunningServer
  keys: string[]
  loader: Loader
}

/** Requests per second and processor time, with the counters in Redis over those in memory. */
async function throughput(what: string, template: Template, { memory, shared, keys, loader }: Compared) {
  const servers = [memory, shared] as const
  const rates: [number[], number[]] = [[], []]
  const cpu: [number[], number[]] = [[], []]
  for (let round = 0; round <= ROUNDS; round++) {
    for (const i of round % 2 ? ([0, 1] as const) : ([1, 0] as const)) {
      const { url, cpuSeconds } = servers[i]
      const before = cpuSeconds()
      const load = { url, connections: CONNECTIONS, seconds: SECONDS, seed: round, templates: [template], keys, maxima }
      const { requests, seconds, failed } = await loader.run(load)
      if (failed) throw new Refusal(`${what}: ${failed} requests failed`)
      // The first round only warms up.
      if (round === 0) continue
      rates[i].push(requests / seconds)
      cpu[i].push(((cpuSeconds() - before) / requests) * 1e6)
    }
  }
  const rate = ratio(rates[1], rates[0])
  const [own, other] = [median(cpu[1]), median(cpu[0])].map(Math.round)
  report(
    `${what}: Redis over memory`,
    `${rate.median.toFixed(2)} × requests/s (${rate.min.toFixed(2)} to ${rate.max.toFixed(2)}), CPU ${own} µs over ${other} µs`,
  )
}

/** Each request goes to either at random, in the same seconds: what else the machine does strikes both. */
async function latency({ memory, shared, keys }: Compared) {
  const times = { memory: [] as number[], shared: [] as number[] }
  const all: Promise<unknown>[] = []
  const began = performance.now()
  for (let i = 0; i < RATE * SECONDS * 2; i++) {
    await sleep(Math.max(0, began + (i * 1000) / RATE - performance.now()))
    const [server, own] = Math.random() < 0.5 ? [memory, times.memory] : [shared, times.shared]
    all.push(getPet(server.url, keys[i % keys.length] as string).then(({ ms }) => own.push(ms)))
  }
  await Promise.all(all)
  for (const q of [0.5, 0.99]) {
    const [without, added] = [quantile(times.memory, q), quantile(times.shared, q) - quantile(times.memory, q)]
    report(`Redis adds to p${q * 100}, at ${RATE}/s`, `${added.toFixed(2)} ms to ${without.toFixed(2)} ms`)
  }
}

/** Redis stops in the middle of a full load, and goes on. */
async function outage(redis: Awaited<ReturnType<typeof startRedis>>, { shared, keys }: Compared) {
  const degraded = async () => /degraded/.test(await (await fetch(`${shared.url}/readyz`)).text())
  const times = { before: [] as number[], after: [] as number[] }
  let phase: keyof typeof times = 'before'
  let failed = 0
  let running = true
  const clients = Array.from({ length: CONNECTIONS }, async (_, i) => {
    while (running) {
      const { ok, ms } = await getPet(shared.url, keys[i] as string)
      times[phase].push(ms)
      if (!ok) failed++
    }
  })
  await sleep(2_000)
  phase = 'after'
  redis.signal('SIGSTOP')
  await sleep(STOPPED_MS)
  const noticed = await degraded()
  redis.signal('SIGCONT')
  await sleep(3_000)
  running = false
  await Promise.all(clients)
  const back = !(await degraded())
  const [before, after] = [times.before, times.after].map((own) => Math.round(Math.max(...own))) as [number, number]
  report(`Redis stopped for ${STOPPED_MS / 1000} s: failed requests`, String(failed), failed === 0)
  report('  slowest request', `${after} ms (before: ${before} ms)`, after < SLOWEST_MS)
  report('  counted alone, then in Redis again', noticed && back ? 'yes' : 'no', noticed && back)
}

await runProgram(async () => {
  requireProc()
  const loader = await chooseLoader()
  const redis = await startRedis()
  await buildGateway()
  const scratch = await createScratchDatabase('_limits')
  const start = (env: Record<string, string>) => startById('gateway', { DATABASE_URL: scratch.url, ...env })
  // The gateway applies the migrations when it starts.
  const memory = await start({})
  await compilePeers()
  const client = await connectScratch(scratch)
  const keys = await seed(client, { pets: PETS, data: 'shop' })
  const gateways = await Promise.all(Array.from({ length: GATEWAYS }, () => start({ REDIS_URL: redis.url })))
  await exactness(gateways, await createKey(client, { plan: 'Business' }))
  const [shared, ...others] = gateways as [RunningServer, ...RunningServer[]]
  for (const gateway of others) await gateway.stop()

  const compared = { memory, shared, keys, loader }
  console.log(`\n${loader.name}, ${CONNECTIONS} connections, ${ROUNDS} rounds of ${SECONDS} s, medians`)
  await throughput('GET one', getOne, compared)
  await throughput('GET 20', getTwenty, compared)
  await latency(compared)
  await outage(redis, compared)
})
