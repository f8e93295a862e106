import type { Redis } from 'ioredis'
import type { Client } from 'pg'
import { Refusal } from './lifecycle.js'
import type { Load, Loader, LoadResult } from './load.js'
import type { Options } from './options.js'
import { type RunningServer, runCommand } from './processes.js'
import type { Maxima } from './requests.js'
import {
  median,
  medianSample,
  overOurs,
  overPeer,
  type Sample,
  type ServerResult,
  type WorkloadResult,
} from './results.js'
import { nodeFor, type ServerId, serverTitles, startById } from './servers.js'
import { postgresCpu, postgresSeconds, redisCpuSeconds } from './stores.js'
import type { Template } from './templates.js'
import { verifySameAnswers } from './verify.js'
import { countedRequests, watched } from './watch.js'
import { templatesFor, type Workload } from './workloads.js'

/** Everything that measuring needs. */
export interface Bench {
  options: Options
  loader: Loader
  redis: Redis
  redisUrl: string
  database: Database
}

export interface Database {
  url: string
  client: Client
  keys: string[]
  maxima: Maxima
  tidy(): Promise<void>
}

export interface Target {
  /** For messages. */
  name: string
  server: RunningServer
  database: Database
  templates: Template[]
  connections: number
}

/** What servers and stores spend for each request while all of these loads run. */
export async function spend(bench: Bench, name: string, servers: RunningServer[], loads: Load[]) {
  const { client } = bench.database
  const read = async () => ({
    cpu: servers.reduce((sum, server) => sum + server.cpuSeconds(), 0),
    redis: await redisCpuSeconds(bench.redis),
    postgres: await postgresCpu(client),
  })
  const before = await read()
  const results = await Promise.all(loads.map((load) => bench.loader.run(load)))
  const after = await read()
  const sum = (field: 'requests' | 'failed') => results.reduce((sum, result) => sum + result[field], 0)
  const requests = sum('requests')
  if (sum('failed')) {
    const warnings = servers.flatMap(({ warnings }) => warnings.slice(-5)).join('\n')
    throw new Refusal(`${name}: ${sum('failed')} of ${requests} requests failed.\n${warnings}`)
  }
  if (requests === 0)
    throw new Refusal(
      `${name}: no request was answered in ${loads[0]?.seconds} s. Is the machine busy with other work?`,
    )
  const each = (total: number) => (total * 1e6) / requests
  const postgres = postgresSeconds(before.postgres, after.postgres)
  const spent = {
    cpu: each(after.cpu - before.cpu),
    redisCpu: each(after.redis - before.redis),
    ...(postgres === undefined ? {} : { postgresCpu: each(postgres) }),
    memoryMB: median(servers.map((server) => server.memoryMB())),
  }
  return { requests, results, spent }
}

/** Loads one server for some seconds, and measures what it and the stores spent in that time. */
export async function sample(bench: Bench, target: Target, seconds: number, seed: number) {
  const { name, server, database, templates, connections } = target
  const { keys, maxima } = database
  const load = { url: server.url, connections, seconds, seed, templates, keys, maxima }
  const { requests, results, spent } = await spend({ ...bench, database }, name, [server], [load])
  const [result] = results as [LoadResult]
  const { p50, p99 } = result
  const round: Sample = { ...spent, perSecond: requests / result.seconds, p50, p99, bytes: result.bytes / requests }
  return { requests, round }
}

/** New code is slow: it is compiled in company, but the heap is not blown up. */
const WARM_UP_CONNECTIONS = 8

/** Each server in a fresh process, first with few connections, then with many. */
export async function measureWorkload(bench: Bench, workload: Workload): Promise<WorkloadResult[]> {
  const servers = new Map<ServerId, RunningServer>()
  const ids = (Object.keys(workload.servers) as ServerId[]).filter(bench.options.hasServer)
  const node = await nodeFor(ids)
  const env = { DATABASE_URL: bench.database.url, REDIS_URL: bench.redisUrl }
  try {
    for (const id of ids) servers.set(id, await startById(id, env, { node, processes: workload.processes }))
    const version = (await runCommand(node, ['--version'])).trim()
    return (await measureServers(bench, workload, servers)).map((result) => ({ ...result, node: version }))
  } finally {
    await Promise.all([...servers.values()].map((server) => server.stop()))
  }
}

async function measureServers(bench: Bench, workload: Workload, servers: Map<ServerId, RunningServer>) {
  const { options, database } = bench
  const { id, title, setUp } = workload
  const gateway = servers.get('gateway') as RunningServer
  /** Requests that the gateways answered, and those that they may have counted without an answer. */
  let [sent, left] = [0, 0]
  const measure = async (id: ServerId, connections: number, seconds: number, seed: number) => {
    const name = `${title}, ${serverTitles[id]}`
    const server = servers.get(id) as RunningServer
    const target = { name, server, database, templates: templatesFor(workload, id), connections }
    const { requests, round } = await sample(bench, target, seconds, seed)
    // With or without Idempotency-Key, gateways count together.
    if (id.startsWith('gateway')) {
      sent += requests
      // Each load may leave one request on each connection that was counted, but not waited for.
      left += connections
    }
    return round
  }
  /** Rounds that alternate over the servers. */
  const measureTogether = async (connections: number): Promise<WorkloadResult> => {
    const order = [...servers.keys()].filter((id) => workload.servers[id]?.includes(connections))
    const rounds = new Map<ServerId, Sample[]>(order.map((id) => [id, []]))
    for (let round = 1; round <= options.rounds; round++) {
      if (workload.writes) await database.tidy()
      for (const id of order.reverse())
        rounds.get(id)?.push(await measure(id, connections, options.seconds, round * 1_000 + connections))
    }
    const results = [...servers.keys()].flatMap((id) => {
      const own = rounds.get(id)
      return own ? [[id, { median: medianSample(own), rounds: own }]] : []
    })
    const result = { id, title, connections, servers: Object.fromEntries(results) }
    printWorkload(result)
    return result
  }
  if (setUp) await database.client.query(setUp)
  return watched(bench.redis, [gateway], async () => {
    const cost = await verifySameAnswers(workload, servers, database)
    const counted = await countedRequests(gateway, database.keys)
    for (const id of servers.keys()) await measure(id, WARM_UP_CONNECTIONS, options.warmUpSeconds, 0)
    const results: WorkloadResult[] = []
    for (const connections of workload.servers.gateway ?? [])
      if (options.hasLevel(connections)) results.push(await measureTogether(connections))
    if (workload.writes) await database.tidy()
    const now = (await countedRequests(gateway, database.keys)) - counted
    if (now < sent * cost.least || now > (sent + left) * cost.most)
      throw new Refusal(`${title}: the gateway answered ${sent} requests and counted ${now}.`)
    return results
  })
}

function printWorkload(result: WorkloadResult) {
  console.log(`\n${result.title}, ${result.connections}`)
  for (const [id, { median }] of Object.entries(result.servers) as [ServerId, ServerResult][]) {
    const { perSecond, p50, p99, cpu, postgresCpu = Number.NaN, memoryMB } = median
    const [cpuRatio, rate] = [overOurs(result, id, 'cpu'), overPeer(result, id, 'perSecond')]
    const compared = id === 'gateway' ? '' : `CPU ${cpuRatio?.median.toFixed(2)} ×, rate ${rate?.median.toFixed(2)} ×`
    console.log(
      `  ${serverTitles[id].padEnd(38)} ${String(Math.round(perSecond)).padStart(6)}/s   p50 ${p50.toFixed(2)} ms   ` +
        `p99 ${p99.toFixed(1)} ms   CPU ${Math.round(cpu)} µs   PostgreSQL ${Math.round(postgresCpu)} µs   ${Math.round(memoryMB)} MB   ${compared}`,
    )
  }
}
