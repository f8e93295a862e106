import { AggregatorRegistry, type Registry } from 'prom-client'

/** The metrics of a process, as its registry returns them as JSON. */
type ProcessMetrics = { type: string; aggregator: string }[]

/** How prom-client would combine gauges that cannot be added. Here the largest counts, because a problem shows there. */
const NOT_ADDED = ['omit', 'average']

const isPresent = (metrics: unknown): metrics is ProcessMetrics => metrics !== undefined

/** The metrics of several processes as those of one. */
export const totals = (processes: unknown[]): Registry =>
  AggregatorRegistry.aggregate(
    processes
      .filter(isPresent)
      .map((metrics) =>
        metrics.map((metric) => (NOT_ADDED.includes(metric.aggregator) ? { ...metric, aggregator: 'max' } : metric)),
      ),
  )

/** What is left of processes that have ended: without their counts the totals would fall, as if all had started again. */
export const countsOf = (processes: unknown[]) =>
  totals(processes)
    .getMetricsAsArray()
    .filter(({ type }) => `${type}` !== 'gauge')
