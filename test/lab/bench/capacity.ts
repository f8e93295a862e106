import { find, type Results, type Sample } from './results.js'
import { mixed } from './templates.js'

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

/** The workloads of the mix, as it is weighted. */
const parts = {
  read: [
    ['get-one', /^\/pets\/\{pet\}$/],
    ['get-20', /^\/pets\?limit=20&after/],
    ['get-filtered', /status=/],
  ],
  write: [
    ['post-order', /orders/],
    ['patch-stock', /inventory/],
  ],
} as const

const sum = (parts: { share: number }[]) => parts.reduce((total, { share }) => total + share, 0)

/** The constants that a run of the benchmark has measured; undefined where one is missing. */
export function constantsOf(results: Results): Constants | undefined {
  const own = (id: string, connections = 32) => {
    const sample = find(results, id, connections)?.servers.gateway?.median
    return sample?.postgresCpu === undefined ? undefined : workOf(sample)
  }
  const weigh = (kind: keyof typeof parts) =>
    parts[kind].flatMap(([id, path]) => {
      const work = own(id)
      return work
        ? [{ work, share: sum(mixed.filter((t) => path.test(t.path)).map((t) => ({ share: t.weight }))) }]
        : []
    })
  const [reads, writes, alone] = [weigh('read'), weigh('write'), own('get-one', 1)]
  if (reads.length + writes.length < 5 || !alone) return
  // The others are in two processes.
  const ofOne = results.workloads.filter(({ id }) => !id.endsWith('-two'))
  const inCompany = ofOne.filter(({ connections }) => connections === 32)
  const memories = ofOne.map(({ servers }) => servers.gateway?.median.memoryMB ?? 0)
  return {
    measured: inCompany.flatMap(({ id, title }) => {
      const work = own(id)
      return work ? [{ title, work }] : []
    }),
    read: mean(reads),
    write: mean(writes),
    mix: mean([...reads, ...writes]),
    writeShare: sum(writes) / (sum(reads) + sum(writes)),
    redisAlone: alone.redis,
    memoryMB: Math.max(...memories),
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
