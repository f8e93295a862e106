import type { Machine } from './machine.js'
import type { ServerId } from './servers.js'

/** One round of one server. Processor times are microseconds for each request. */
export interface Sample {
  perSecond: number
  /** Milliseconds. */
  p50: number
  p99: number
  cpu: number
  redisCpu: number
  /** Absent where PostgreSQL runs on another machine. */
  postgresCpu?: number
  bytes: number
  /** Resident at the end of the round. */
  memoryMB: number
}

export interface ServerResult {
  median: Sample
  rounds: Sample[]
}

export interface Ratio {
  median: number
  min: number
  max: number
}

/** A workload at one number of connections. */
export interface WorkloadResult {
  id: string
  title: string
  connections: number
  /** Of its servers. Reports before 2026-11-29 have none. */
  node?: string
  servers: Partial<Record<ServerId, ServerResult>>
}

/** Time for a request in the second case over the first. */
export interface GrowthResult {
  title: string
  from: { name: string; perSecond: number }
  to: { name: string; perSecond: number }
  slowdown: Ratio
  target: number
}

/** PostgreSQL's milliseconds for one statement of a request: the longest of all runs, and the mean of the slowest. */
export interface QuestionResult {
  request: string
  maxMs: number
  meanMs: number
}

export interface QuestionResults {
  /** Rows of each table. */
  rows: number
  /** Requests that differ. */
  asked: number
  /** The dearest first. */
  dearest: QuestionResult[]
  lowStock: QuestionResult
  /** Reports before 2026-11-27 have none. */
  inStock?: QuestionResult
}

/** What a request costs in microseconds of processor time, and what a gateway keeps. */
export type KeysSample = Pick<Sample, 'cpu' | 'redisCpu' | 'postgresCpu' | 'memoryMB'>

export interface KeysResult {
  title: string
  keys: number
  gateways: number
  rounds: KeysSample[]
}

export interface MemoryPoint {
  requests: number
  memoryMB: number
}

export interface Results {
  date: string
  commit: string
  quick: boolean
  minutes: number
  machine: Machine
  loader: string
  rounds: number
  seconds: number
  warmUpSeconds: number
  pets: number
  keys: number
  workloads: WorkloadResult[]
  growth: GrowthResult[]
  questions?: QuestionResults
  /** Reports before 2026-11-28 have none. */
  inUse?: KeysResult[]
  /** Resident memory under load after few and after many requests. */
  memory?: { few: MemoryPoint; many: MemoryPoint }
  /** Sections without figures. */
  failures: { section: string; message: string }[]
}

export function median(values: number[]) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const upper = sorted[Math.floor(middle)] as number
  return sorted.length % 2 ? upper : ((sorted[middle - 1] as number) + upper) / 2
}

/** Each field's own median. */
export function medianSample(rounds: Sample[]): Sample {
  const of = (field: keyof Sample) => median(rounds.map((round) => round[field] as number))
  const { postgresCpu } = rounds[0] as Sample
  return {
    perSecond: of('perSecond'),
    p50: of('p50'),
    p99: of('p99'),
    cpu: of('cpu'),
    redisCpu: of('redisCpu'),
    ...(postgresCpu === undefined ? {} : { postgresCpu: of('postgresCpu') }),
    bytes: of('bytes'),
    memoryMB: of('memoryMB'),
  }
}

/** Compared round by round: other work of the machine affects both sides of a round. */
export function ratio(over: number[], under: number[]): Ratio {
  const ratios = under.map((value, round) => (over[round] as number) / value)
  return { median: median(ratios), min: Math.min(...ratios), max: Math.max(...ratios) }
}

/** The gateway's figure over the peer's; undefined where one of them was not measured. */
export function overPeer({ servers }: WorkloadResult, peer: ServerId, field: keyof Sample): Ratio | undefined {
  const of = (id: ServerId) => servers[id]?.rounds.map((round) => round[field] as number)
  const [own, other] = [of('gateway'), of(peer)]
  return own && other && ratio(own, other)
}

/** A figure over that of the first result, which has few keys, with as many gateways. */
export function overFewKeys(inUse: KeysResult[], { gateways, rounds }: KeysResult, field: keyof KeysSample): Ratio {
  const few = inUse.find((other) => other.gateways === gateways)
  const of = (rounds: KeysSample[]) => rounds.map((round) => round[field] ?? Number.NaN)
  return ratio(of(rounds), of(few?.rounds ?? []))
}

/** The peer's figure over the gateway's. */
export function overOurs(result: WorkloadResult, peer: ServerId, field: keyof Sample): Ratio | undefined {
  const inverse = overPeer(result, peer, field)
  return inverse && { median: 1 / inverse.median, min: 1 / inverse.max, max: 1 / inverse.min }
}

export const find = ({ workloads }: Results, id: string, connections: number) =>
  workloads.find((result) => result.id === id && result.connections === connections)
