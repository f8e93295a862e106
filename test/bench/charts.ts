import { colours, drawBars, type Group } from './plots.js'
import type { Results, Sample, ServerResult } from './results.js'
import { type ServerId, shortTitles } from './servers.js'
import { workloads } from './workloads.js'

type Entry = [ServerId, ServerResult]

const targetsOf = (id: string) => workloads.find((workload) => workload.id === id)?.targets ?? {}

/** The plots of a run, by file name. */
export function drawCharts({ workloads: results }: Results): Record<string, string> {
  const main = results.filter(({ connections }) => connections === 32)
  const perServer = (read: (result: ServerResult) => number, write: (value: number) => string, of = main): Group[] =>
    of.map(({ title, servers }) => ({
      label: title,
      bars: (Object.entries(servers) as Entry[]).map(([id, result]) => ({
        label: shortTitles[id],
        colour: colours[id],
        value: read(result),
        text: write(read(result)),
      })),
    }))
  const typical = (field: 'perSecond' | 'cpu' | 'p99') => (result: ServerResult) => (result.median as Sample)[field]
  const whole = (value: number) => Math.round(value).toLocaleString('en-US')

  const compared = main.map(({ id, title, ratios }) => ({
    label: title,
    bars: (Object.entries(ratios) as [ServerId, { median: number }][]).map(([peer, { median }]) => {
      const target = targetsOf(id)[peer]
      const text = `${median.toFixed(2)} ×${target ? `, target ${target.toFixed(2)}` : ''}`
      return { label: shortTitles[peer], colour: colours[peer], value: median, text, target }
    }),
  }))
  const full = Math.max(...compared.flatMap(({ bars }) => bars.map(({ value, target = 0 }) => Math.max(value, target))))

  return {
    'ratios.svg': drawBars({
      title: 'Requests per second: the gateway over each peer',
      description: 'Dashed: equal. Solid mark: target. More is better.',
      groups: compared.map((group) => ({ ...group, full })),
      baseline: 1,
    }),
    'throughput.svg': drawBars({
      title: 'Requests per second',
      description: '32 connections; each workload has its own scale. More is better.',
      groups: perServer(typical('perSecond'), whole),
    }),
    'processor-time.svg': drawBars({
      title: 'Processor time of the server for each request',
      description: 'Microseconds; each workload has its own scale. Less is better.',
      groups: perServer(typical('cpu'), (value) => `${whole(value)} µs`),
    }),
    'memory.svg': drawBars({
      title: 'Peak resident memory of the server',
      description: 'MB, from its start to the end of the workload. Less is better.',
      groups: perServer(
        ({ peakMemoryMB }) => peakMemoryMB,
        (value) => `${whole(value)} MB`,
      ),
    }),
    'latency.svg': drawBars({
      title: '99th percentile of latency',
      description: 'Milliseconds under full load; each workload has its own scale. Less is better.',
      groups: perServer(typical('p99'), (value) => `${value.toFixed(1)} ms`, results),
    }),
  }
}
