import type { Ratio, Results, WorkloadResult } from './results.js'
import { type ServerId, serverTitles } from './servers.js'
import { memoryPeer, workloads } from './workloads.js'

export interface TargetRow {
  what: string
  against: string
  target: string
  measured: string
  met: boolean
}

const two = (value: number) => value.toFixed(2)
/** As shown: a measured 1.50 meets a target of 1.50. */
const rounded = (value: number) => Math.round(value * 100) / 100
const spread = ({ median, min, max }: Ratio) => `${two(median)} × (${two(min)} to ${two(max)})`

/** Every target beside what was measured. */
export function compareWithTargets(results: Results): TargetRow[] {
  const rows: TargetRow[] = []
  for (const { id, targets = {} } of workloads) {
    const result = results.workloads.find((candidate) => candidate.id === id)
    for (const [peer, target] of Object.entries(targets) as [ServerId, number][]) {
      const measured = result?.ratios[peer]
      if (!result || !measured) continue
      rows.push({
        what: `requests/s, ${result.title}`,
        against: serverTitles[peer],
        target: `at least ${two(target)} ×`,
        measured: spread(measured),
        met: rounded(measured.median) >= target,
      })
    }
  }
  return [...rows, ...workloadRows(results), ...latencyRows(results), ...memoryRows(results), ...growthRows(results)]
}

/** One workload against another, both of the gateway. */
function workloadRows({ workloads: results }: Results): TargetRow[] {
  const perSecond = (id?: string) => results.find((result) => result.id === id)?.servers.gateway?.median.perSecond
  return workloads.flatMap(({ id, title, atMost }) => {
    const [own, other] = [perSecond(id), perSecond(atMost?.of)]
    if (!atMost || !own || !other) return []
    return {
      what: `time per request, ${title}`,
      against: workloads.find(({ id }) => id === atMost.of)?.title ?? '',
      target: `at most ${two(atMost.times)} ×`,
      measured: `${two(other / own)} ×`,
      met: rounded(other / own) <= atMost.times,
    }
  })
}

function latencyRows({ workloads: results }: Results): TargetRow[] {
  return workloads.flatMap(({ id, p99Peer }) => {
    const result = results.find((candidate) => candidate.id === id)
    const [own, peer] = [result?.servers.gateway?.median.p99, p99Peer && result?.servers[p99Peer]?.median.p99]
    if (!result || !p99Peer || !own || !peer) return []
    return {
      what: `p99, ${result.title}`,
      against: serverTitles[p99Peer],
      target: 'at most 1.00 ×',
      measured: `${two(own / peer)} × (${own.toFixed(1)} ms to ${peer.toFixed(1)} ms)`,
      met: rounded(own / peer) <= 1,
    }
  })
}

/** The worst workload of each peer. */
function memoryRows({ workloads: results }: Results): TargetRow[] {
  const worst = new Map<ServerId, { ratio: number; own: number; other: number; result: WorkloadResult }>()
  for (const workload of workloads) {
    const result = results.find(({ id }) => id === workload.id)
    const peer = memoryPeer(workload)
    const [own, other] = [result?.servers.gateway?.peakMemoryMB, result?.servers[peer]?.peakMemoryMB]
    if (!result || !own || !other || own / other <= (worst.get(peer)?.ratio ?? 0)) continue
    worst.set(peer, { ratio: own / other, own, other, result })
  }
  return [...worst].map(([peer, { ratio, own, other, result }]) => ({
    what: `peak memory, largest ratio: ${result.title}`,
    against: serverTitles[peer],
    target: 'at most 1.00 ×',
    measured: `${two(ratio)} × (${Math.round(own)} MB to ${Math.round(other)} MB)`,
    met: rounded(ratio) <= 1,
  }))
}

const growthRows = ({ growth }: Results): TargetRow[] =>
  growth.map(({ title, from, to, slowdown, target }) => ({
    what: `time, ${title}, ${to.name}`,
    against: from.name,
    target: `at most ${two(target)} ×`,
    measured: spread(slowdown),
    met: rounded(slowdown.median) <= target,
  }))
