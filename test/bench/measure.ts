import type { Redis } from 'ioredis'
import type { Client } from 'pg'
import { Refusal } from './lifecycle.js'
import type { Loader } from './load.js'
import type { Options } from './options.js'
import type { RunningServer } from './processes.js'
import type { Maxima } from './requests.js'
import { medianSample, ratio, type Sample, type ServerResult, type WorkloadResult } from './results.js'
import { type ServerId, serverTitles, startById } from './servers.js'
import { postgresCpu, postgresSeconds, redisCpuSeconds } from './stores.js'
import { verifySameAnswers } from './verify.js'
import { countedRequests, watched } from './watch.js'
import type { Template, Workload } from './workloads.js'

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

/** Loads one server for some seconds, and measures what it and the stores spent in that time. */
export async function sample(bench: Bench, target: Target, seconds: number, seed: number) {
  const { name, server, database, templates, connections } = target
  const { keys, maxima, client } = database
  const before = {
    cpu: server.cpuSeconds(),
    redis: await redisCpuSeconds(bench.redis),
    postgres: await postgresCpu(client),
  }
  const load = { url: server.url, connections, seconds, seed, templates, keys, maxima }
  const result = await bench.loader.run(load)
  const cpu = server.cpuSeconds() - before.cpu
  const redis = (await redisCpuSeconds(bench.redis)) - before.redis
  const postgres = postgresSeconds(before.postgres, await postgresCpu(client))
  const { requests, failed } = result
  if (failed)
    throw new Refusal(`${name}: ${failed} of ${requests} requests failed.\n${server.warnings.slice(-5).join('\n')}`)
  if (requests === 0)
    throw new Refusal(`${name}: no request was answered in ${seconds} s. Is the machine busy with other work?`)
  const each = (total: number) => (total * 1e6) / requests
  const round: Sample = {
    perSecond: requests / result.seconds,
    p50: result.p50,
    p99: result.p99,
    cpu: each(cpu),
    redisCpu: each(redis),
    ...(postgres === undefined ? {} : { postgresCpu: each(postgres) }),
    bytes: result.bytes / requests,
  }
  return { requests, round }
}

/** Rounds that alternate over all servers of a workload, each server in a fresh process. */
export async function measureWorkload(bench: Bench, workload: Workload): Promise<WorkloadResult> {
  const { options, database } = bench
  const { id, title, connections, templates } = workload
  const servers = new Map<ServerId, RunningServer>()
  const rounds = new Map<ServerId, Sample[]>()
  for (const server of workload.servers.filter(options.hasServer)) {
    servers.set(server, await startById(server, { DATABASE_URL: database.url, REDIS_URL: bench.redisUrl }))
    rounds.set(server, [])
  }
  const gateway = servers.get('gateway') as RunningServer
  let sent = 0
  const measure = async (server: ServerId, seconds: number, seed: number) => {
    const name = `${title}, ${serverTitles[server]}`
    const target = { name, server: servers.get(server) as RunningServer, database, templates, connections }
    const { requests, round } = await sample(bench, target, seconds, seed)
    if (server === 'gateway') sent += requests
    return round
  }
  await watched(bench.redis, [gateway], async () => {
    await verifySameAnswers(workload, servers, database)
    const counted = await countedRequests(gateway, database.keys)
    for (const server of servers.keys()) await measure(server, options.warmUpSeconds, 0)
    for (let round = 1; round <= options.rounds; round++) {
      if (workload.writes) await database.tidy()
      const order = [...servers.keys()]
      for (const server of round % 2 ? order : order.reverse())
        rounds.get(server)?.push(await measure(server, options.seconds, round))
    }
    if (workload.writes) await database.tidy()
    // Each load may leave one request on each connection that was counted, but not waited for.
    const extra = (await countedRequests(gateway, database.keys)) - counted - sent
    if (extra < 0 || extra > connections * (options.rounds + 1))
      throw new Refusal(`${title}: the gateway answered ${sent} requests and counted ${sent + extra}.`)
  })
  const results: Partial<Record<ServerId, ServerResult>> = {}
  for (const [server, process] of servers) {
    const own = rounds.get(server) as Sample[]
    results[server] = { median: medianSample(own), peakMemoryMB: process.peakMemoryMB(), rounds: own }
    await process.stop()
  }
  const rates = (server: ServerId) => (rounds.get(server) as Sample[]).map(({ perSecond }) => perSecond)
  const peers = [...servers.keys()].filter((server) => server !== 'gateway')
  const ratios = Object.fromEntries(peers.map((peer) => [peer, ratio(rates('gateway'), rates(peer))]))
  const result = { id, title, connections, servers: results, ratios }
  printWorkload(result)
  return result
}

function printWorkload({ title, servers, ratios }: WorkloadResult) {
  console.log(`\n${title}`)
  for (const [id, { median, peakMemoryMB }] of Object.entries(servers) as [ServerId, ServerResult][]) {
    const { perSecond, p50, p99, cpu } = median
    const compared = ratios[id] ? `gateway is ${ratios[id].median.toFixed(2)} ×` : ''
    console.log(
      `  ${serverTitles[id].padEnd(38)} ${String(Math.round(perSecond)).padStart(6)}/s   p50 ${p50.toFixed(1)} ms   p99 ${p99.toFixed(1)} ms   CPU ${Math.round(cpu)} µs   ${Math.round(peakMemoryMB)} MB   ${compared}`,
    )
  }
}
