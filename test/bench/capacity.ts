import type { Results, Sample } from './results.js'
import { workloads } from './workloads.js'

// What the measured work per request means for sizes. Everything that is not measured is an assumption, and stands here.

export const assumptions = {
  /** Share of a core that a gateway process uses at most: above it, waiting times grow fast. */
  gatewayUse: 0.7,
  /** The same for the one thread of a Redis server. */
  redisUse: 0.6,
  /** The same for the cores of a PostgreSQL server. */
  postgresUse: 0.6,
  /** Cores of one PostgreSQL server, primary or replica. */
  postgresCores: 16,
  /** Work of a replica to replay a write, as a share of what the write costs the primary. */
  replay: 0.3,
  /** Connections of each gateway (its pool). */
  poolSize: 10,
  /** Connections that a PostgreSQL server serves well without a pooler. */
  postgresConnections: 400,
} as const

/** Microseconds of processor time for one request. */
export interface Work {
  gateway: number
  redis: number
  postgres: number
  bytes: number
}

export interface Constants {
  /** By workload. */
  measured: { title: string; work: Work }[]
  read: Work
  write: Work
  mix: Work
  /** The share of writes in the mix. */
  writeShare: number
  /** Redis' work for a decision that shares nothing with others. */
  redisAlone: number
  memoryMB: number
}

const workOf = ({ cpu, redisCpu, postgresCpu = 0, bytes }: Sample): Work => ({
  gateway: cpu,
  redis: redisCpu,
  postgres: postgresCpu,
  bytes,
})

/** The mean of several kinds of requests by their shares. */
function mean(parts: { work: Work; share: number }[]): Work {
  const total = parts.reduce((sum, { share }) => sum + share, 0)
  const of = (field: keyof Work) => parts.reduce((sum, { work, share }) => sum + work[field] * share, 0) / total
  return { gateway: of('gateway'), redis: of('redis'), postgres: of('postgres'), bytes: of('bytes') }
}

/** The constants that a run of the benchmark has measured. */
export function constantsOf({ workloads: results }: Results): Constants {
  const own = (id: string) => {
    const server = results.find((result) => result.id === id)?.servers.gateway
    if (!server) throw new Error(`The results hold no workload ${id}. Run: npm run bench`)
    if (server.median.postgresCpu === undefined)
      throw new Error('The results hold no processor time of PostgreSQL: it ran on another machine.')
    return { work: workOf(server.median), memoryMB: server.peakMemoryMB }
  }
  const shares = workloads.find(({ id }) => id === 'mix')?.templates ?? []
  const weigh = (workload: string, method: string, path: RegExp) => ({
    work: own(workload).work,
    share: shares
      .filter((template) => template.method === method && path.test(template.path))
      .reduce((sum, { weight }) => sum + weight, 0),
  })
  const reads = [
    weigh('get-one', 'GET', /^\/pets\/\{pet\}$/),
    weigh('get-20', 'GET', /^\/pets\?limit=20&after/),
    weigh('get-filtered', 'GET', /status=/),
  ]
  const writes = [weigh('post-order', 'POST', /orders/), weigh('patch-stock', 'PATCH', /inventory/)]
  const sum = (parts: { share: number }[]) => parts.reduce((total, { share }) => total + share, 0)
  return {
    measured: results
      .filter(({ connections }) => connections === 32)
      .map(({ id, title }) => ({ title, work: own(id).work })),
    read: mean(reads),
    write: mean(writes),
    mix: mean([...reads, ...writes]),
    writeShare: sum(writes) / (sum(reads) + sum(writes)),
    redisAlone: own('get-one-alone').work.redis,
    memoryMB: Math.max(...results.map(({ id }) => own(id).memoryMB)),
  }
}

const MICROSECONDS = 1e6

/** Requests per second that one of each carries, for one kind of work. */
export const carriedBy = ({ gateway, redis, postgres }: Work) => ({
  gateway: (MICROSECONDS / gateway) * assumptions.gatewayUse,
  redis: (MICROSECONDS / redis) * assumptions.redisUse,
  postgres: (MICROSECONDS / postgres) * assumptions.postgresUse * assumptions.postgresCores,
})

export interface Sizing {
  perSecond: number
  gateways: number
  memoryGB: number
  shards: number
  primaries: number
  /** For all primaries together. */
  replicas: number
  connections: number
  pooler: boolean
  gigabitsPerSecond: number
}

/** What a rate of the mix needs. */
export function sizeFor(perSecond: number, constants: Constants): Sizing {
  const { read, write, mix, writeShare, redisAlone, memoryMB } = constants
  const { gatewayUse, redisUse, postgresUse, postgresCores, replay, poolSize, postgresConnections } = assumptions
  const cores = (work: number, rate: number) => (work * rate) / MICROSECONDS
  const gateways = Math.max(2, Math.ceil(cores(mix.gateway, perSecond) / gatewayUse))
  const server = postgresUse * postgresCores
  const writeCores = cores(write.postgres, perSecond * writeShare)
  const readCores = cores(read.postgres, perSecond * (1 - writeShare))
  // One primary takes everything while it can. Beyond that, writes fill primaries, and reads go to replicas, each of
  // which also replays what its primary writes.
  const primaries = Math.max(1, Math.ceil(writeCores / server))
  const forReads = server - (writeCores / primaries) * replay
  const replicas = writeCores + readCores <= server ? 0 : Math.ceil(readCores / forReads)
  return {
    perSecond,
    gateways,
    memoryGB: (gateways * memoryMB) / 1024,
    shards: Math.max(1, Math.ceil(cores(Math.max(redisAlone, mix.redis), perSecond) / redisUse)),
    primaries,
    replicas,
    connections: gateways * poolSize,
    pooler: gateways * poolSize > postgresConnections,
    gigabitsPerSecond: (perSecond * mix.bytes * 8) / 1e9,
  }
}
