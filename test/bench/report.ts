import { mkdirSync, writeFileSync } from 'node:fs'
import { drawCharts } from './charts.js'
import { table, whole } from './markdown.js'
import type { Results, ServerResult, WorkloadResult } from './results.js'
import { type ServerId, serverTitles } from './servers.js'
import { compareWithTargets, type TargetRow } from './targets.js'

const FOLDER = 'docs/benchmarks'
export const RESULTS_FILE = `${FOLDER}/results.json`

/** Writes the figures, the plots and BENCHMARKS.md. */
export function writeReport(results: Results) {
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(RESULTS_FILE, `${JSON.stringify(results, null, 2)}\n`)
  for (const [name, svg] of Object.entries(drawCharts(results))) writeFileSync(`${FOLDER}/${name}`, svg)
  writeFileSync('BENCHMARKS.md', describe(results))
  console.log(`\nWritten: BENCHMARKS.md, ${RESULTS_FILE} and the plots.`)
}

const image = (name: string, alt: string) => `![${alt}](${FOLDER}/${name}.svg)`
const duration = ({ quick }: Results) => (quick ? 'npm run bench -- --quick' : 'npm run bench')

function describe(results: Results): string {
  const { date, commit, quick, machine, loader, rounds, seconds, pets, keys } = results
  const rows = compareWithTargets(results)
  return `# Benchmarks

How fast the gateway is, compared with what good engineers write by hand. \`npm run bench\` wrote this page, its tables
and its plots.
${quick ? '\n> **This is a quick run for development.** Its rounds are too short for conclusions.\n' : ''}
## Command and machine

\`\`\`sh
${duration(results)}
\`\`\`

It needs Linux, PostgreSQL and Redis (\`BENCH_DATABASE_URL\`, \`BENCH_REDIS_URL\`), and \`wrk\`
(\`apt-get install wrk\`). Without \`wrk\`, autocannon makes the load.

${table(
  ['', ''],
  [
    ['date', date.slice(0, 10)],
    ['commit', `\`${commit}\``],
    ['processor', `${machine.processor}, ${machine.cores} cores`],
    ['memory', `${machine.memoryGB} GB`],
    ['system', `${machine.system}, Node.js ${machine.node}`],
    ['stores', `PostgreSQL ${machine.postgres}, Redis ${machine.redis}, both on this machine`],
    ['load', `${loader}, one thread, ${rounds} rounds of ${seconds} s for each server`],
    ['data', `${whole(pets)} pets with stock and up to 4 orders each, ${keys} API keys`],
  ],
  2,
)}

## Targets

${table(
  ['measure', 'compared with', 'target', 'measured: median (range of the rounds)', 'met'],
  rows.map(({ what, against, target, measured, met }) => [what, against, target, measured, met ? 'yes' : '**no**']),
  5,
)}

${verdict(rows)}

${image('ratios', 'Requests per second of the gateway over those of each peer')}

## Workloads

Medians of the rounds. Latency is what the client sees under full load. Processor time and peak memory are the
server's own; the columns Redis and PostgreSQL show the processor time that a request costs there.

${results.workloads.map(workloadTable).join('\n\n')}

${image('throughput', 'Requests per second of each server')}

${image('processor-time', 'Processor time for each request')}

${image('latency', '99th percentile of latency')}

${image('memory', 'Peak resident memory')}

${growth(results)}
${method}`
}

function verdict(rows: TargetRow[]) {
  const missed = rows.filter(({ met }) => !met)
  if (missed.length === 0) return `All ${rows.length} targets are met.`
  const list = missed.map(
    ({ what, against, target, measured }) =>
      `- ${what}, compared with ${against}: ${measured}; the target is ${target}.`,
  )
  return `${rows.length - missed.length} of ${rows.length} targets are met. **${missed.length} are missed:**\n\n${list.join('\n')}`
}

function workloadTable({ title, connections, servers, ratios }: WorkloadResult) {
  const rows = (Object.entries(servers) as [ServerId, ServerResult][]).map(([id, { median, peakMemoryMB }]) => [
    serverTitles[id],
    whole(median.perSecond),
    median.p50.toFixed(1),
    median.p99.toFixed(1),
    whole(median.cpu),
    whole(median.redisCpu),
    median.postgresCpu === undefined ? '–' : whole(median.postgresCpu),
    whole(peakMemoryMB),
    ratios[id] ? `${ratios[id].median.toFixed(2)} ×` : '',
  ])
  const head = ['', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs', 'Redis µs', 'PostgreSQL µs', 'peak MB', 'gateway is']
  return `### ${title}${connections === 32 ? ', 32 connections' : ''}\n\n${table(head, rows)}`
}

function growth({ growth: results, memory }: Results) {
  const rows = results.map(({ title, from, to, slowdown }) => [
    title,
    from.name,
    whole(from.perSecond),
    to.name,
    whole(to.perSecond),
    `${slowdown.median.toFixed(2)} ×`,
  ])
  const remembered = memory
    ? `One process, GET one, 32 connections: ${whole(memory.few.memoryMB)} MB resident after ${whole(memory.few.requests)} requests, ` +
      `${whole(memory.many.memoryMB)} MB after ${whole(memory.many.requests)} (${(memory.many.memoryMB / memory.few.memoryMB).toFixed(2)} ×).`
    : ''
  return `## Growth

More data, deeper pages and more requests served must not slow the gateway down. Time is the inverse of requests per
second, 32 connections.

${table(['', 'from', 'requests/s', 'to', 'requests/s', 'time'], rows, 2)}

${remembered}
`
}

const method = `## How it is measured

- The benchmark starts every server itself, in a fresh process for each workload, with \`NODE_ENV=production\` and the
  default log level \`info\`, at which each of them writes one line for every request. The gateway runs as \`npm start\`
  runs it.
- All servers of a workload run at the same time, and are loaded one after the other, in rounds that change direction.
  A ratio compares two servers within a round; the table shows the median over the rounds. Rates drift on a shared or
  virtual machine; these ratios drift less.
- The load comes from another process, over connections that stay open. It sends random ids and a random one of the
  API keys with each request. All servers of a round get the same requests.
- Before the rounds, all servers must return the same responses to the same requests. One failed request ends the run.
- The run fails when Redis was unreachable, because counting in memory is cheaper. After each workload, the quota that
  the gateway has counted must equal the requests that were sent.
- The tables that a workload writes to are restored before each round, and autovacuum is off for them.
- Processor time and memory come from \`/proc\` (user and system time of all threads, \`VmHWM\`), Redis' from
  \`INFO cpu\`, PostgreSQL's from its processes.
- Other programs that use Redis or PostgreSQL during the run distort the figures. Run the benchmark alone.
- The benchmark creates databases of its own and claims an empty logical database of Redis. It refuses all others, and
  removes both at the end, also after an error or Ctrl-C.

## The peers

Their code is in \`test/bench/peers\`. All have a pool of 10 connections and prepared statements.

- **Fastify + Prisma, keys and limits:** JSON schemas for inputs and responses, a key cache, two windows of
  rate-limiter-flexible in Redis, consumed in parallel, \`X-RateLimit-*\` headers, keyset pages with \`Link\`.
- **Fastify + pg, bare:** the same routes and schemas on \`pg\` alone. No keys, no limits.
- **Mercurius + Prisma, keys and limits:** compiled queries, a loader for each relation, the same keys and limits.
- **Yoga + SOFA + Pothos + Prisma, naive:** the gateway's own libraries, put together as their documentation shows.

## What these figures do not say

- The peers do less than the gateway: no bans, no quota over two surfaces, no \`ETag\`, no deprecation headers, no CORS,
  no metrics, no cost of a GraphQL document.
- The load generator, PostgreSQL and Redis share the machine's cores with the server. On a small machine their work
  bounds the rates; processor time for each request compares the servers more directly.
- The load is closed: a connection sends its next request when it has the last answer. So latency at full load includes
  queueing, and short stalls are underrepresented in p99.
- Loopback has no network latency and no TLS. Both would bring the ratios closer to 1.
`
