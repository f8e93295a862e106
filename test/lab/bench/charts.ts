import { colours, drawBars, type Group } from './plots.js'
import type { Results, Sample, ServerResult, WorkloadResult } from './results.js'
import { type ServerId, shortTitles } from './servers.js'
import { comparedBy, targetOf } from './targets.js'

const whole = (value: number) => Math.round(value).toLocaleString('en-US')

/** A bar for each server of each workload. */
const perServer = (results: WorkloadResult[], field: keyof Sample, write: (value: number) => string): Group[] =>
  results.map(({ title, connections, servers }) => ({
    label: `${title} (${connections})`,
    bars: (Object.entries(servers) as [ServerId, ServerResult][]).map(([id, { median }]) => {
      const value = median[field] as number
      return { label: shortTitles[id], colour: colours[id], value, text: write(value) }
    }),
  }))

/** What is compared with targets, and the other peers. */
function ratios(results: WorkloadResult[]): Group[] {
  const groups = results
    .filter(({ connections }) => connections <= 32)
    .map((result) => ({
      label: `${result.title} (${result.connections})`,
      bars: (Object.keys(result.servers) as ServerId[]).flatMap((peer) => {
        const [ratio, target] = [comparedBy(result, peer), targetOf(result, peer)]
        if (peer === 'gateway' || !ratio) return []
        const text = `${ratio.median.toFixed(2)} ×${target ? `, target ${target.toFixed(2)}` : ''}`
        return [{ label: shortTitles[peer], colour: colours[peer], value: ratio.median, text, target }]
      }),
    }))
    .filter(({ bars }) => bars.length > 0)
  const full = Math.max(...groups.flatMap(({ bars }) => bars.map(({ value, target = 0 }) => Math.max(value, target))))
  return groups.map((group) => ({ ...group, full }))
}

/** The plots of a run, by file name. */
export function drawCharts({ workloads: results }: Results): Record<string, string> {
  const at = (...counts: number[]) => results.filter(({ connections }) => counts.includes(connections))
  return {
    'ratios.svg': drawBars({
      title: 'The gateway compared with each peer',
      description:
        "(Connections.) Below 32, and nested: the peer's processor time over ours. Others at 32: our requests/s over the peer's. Mark: target.",
      groups: ratios(results),
      baseline: 1,
    }),
    'throughput.svg': drawBars({
      title: 'Requests per second',
      description: '32 connections; each workload has its own scale. More is better.',
      groups: perServer(at(32), 'perSecond', whole),
    }),
    'processor-time.svg': drawBars({
      title: 'Processor time of the server for each request',
      description: '(Connections.) Microseconds; each workload has its own scale. Less is better.',
      groups: perServer(at(1, 32), 'cpu', (value) => `${whole(value)} µs`),
    }),
    'memory.svg': drawBars({
      title: 'Resident memory of the server',
      description: '(Connections.) MB, after the rounds. Less is better.',
      groups: perServer(at(1, 32), 'memoryMB', (value) => `${whole(value)} MB`),
    }),
    'latency.svg': drawBars({
      title: 'Latency',
      description:
        '(Connections.) Milliseconds: the median at 1 connection, the 99th percentile at 32 and 256. Less is better.',
      groups: [
        ...perServer(at(1), 'p50', (value) => `${value.toFixed(2)} ms`),
        ...perServer(at(32, 256), 'p99', (value) => `${value.toFixed(1)} ms`),
      ],
    }),
  }
}
