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
}

export interface ServerResult {
  median: Sample
  peakMemoryMB: number
  rounds: Sample[]
}

export interface Ratio {
  median: number
  min: number
  max: number
}

export interface WorkloadResult {
  id: string
  title: string
  connections: number
  servers: Partial<Record<ServerId, ServerResult>>
  /** Requests per second of the gateway over those of a peer in the same round. */
  ratios: Partial<Record<ServerId, Ratio>>
}

/** Time for a request in the second case over the first. */
export interface GrowthResult {
  title: string
  from: { name: string; perSecond: number }
  to: { name: string; perSecond: number }
  slowdown: Ratio
  target: number
}

export interface MemoryPoint {
  requests: number
  memoryMB: number
}

export interface Results {
  date: string
  commit: string
  quick: boolean
  machine: Machine
  loader: string
  rounds: number
  seconds: number
  pets: number
  keys: number
  workloads: WorkloadResult[]
  growth: GrowthResult[]
  /** Resident memory under load after few and after many requests. */
  memory?: { few: MemoryPoint; many: MemoryPoint }
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
  }
}

/** Compared round by round: other work of the machine affects both sides of a round. */
export function ratio(over: number[], under: number[]): Ratio {
  const ratios = under.map((value, round) => (over[round] as number) / value)
  return { median: median(ratios), min: Math.min(...ratios), max: Math.max(...ratios) }
}
