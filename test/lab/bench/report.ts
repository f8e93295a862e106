import { mkdirSync, writeFileSync } from 'node:fs'
import { drawCharts } from './charts.js'
import { table, whole } from './markdown.js'
import { method } from './method.js'
import { whyMissed } from './reasons.js'
import { overOurs, overPeer, type Ratio, type Results, type ServerResult, type WorkloadResult } from './results.js'
import { describeScaling, keysTable } from './scaling.js'
import { type ServerId, serverTitles } from './servers.js'
import { compareWithTargets, type TargetRow } from './targets.js'

const FOLDER = 'docs/benchmarks'
export const RESULTS_FILE = `${FOLDER}/results.json`

/** After each section, so that nothing measured is lost. */
export function saveResults(results: Results) {
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(RESULTS_FILE, `${JSON.stringify(results, null, 2)}\n`)
}

/** Writes BENCHMARKS.md, the plots and docs/scaling.md. */
export function writeReports(results: Results) {
  const pages: Record<string, string | undefined> = {
    ...Object.fromEntries(Object.entries(drawCharts(results)).map(([name, svg]) => [`${FOLDER}/${name}`, svg])),
    'BENCHMARKS.md': describe(results),
    'docs/scaling.md': describeScaling(results),
  }
  for (const [file, content] of Object.entries(pages)) {
    if (content) writeFileSync(file, content)
    console.log(content ? `Written: ${file}` : `Not written: ${file}. Figures that it needs are missing.`)
  }
}

const image = (name: string, alt: string) => `![${alt}](${FOLDER}/${name}.svg)`
const duration = ({ quick }: Results) => (quick ? 'npm run bench -- --quick' : 'npm run bench')

function describe(results: Results): string {
  const { date, commit, quick, minutes, machine, loader, rounds, seconds, warmUpSeconds, pets, keys } = results
  const rows = compareWithTargets(results)
  return `# Benchmarks

How fast the gateway is, compared with what good engineers write by hand: alone, in company and where many clients meet.
\`npm run bench\` wrote this page, its tables and its plots.
${quick ? '\n> **This is a quick run for development.** Its rounds are too short for conclusions.\n' : ''}${failures(results)}
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
    ['system', `${machine.system}, ${nodes(results)}`],
    ['stores', `PostgreSQL ${machine.postgres}, Redis ${machine.redis}, both on this machine`],
    ...(machine.syncMs === undefined
      ? []
      : [['disk', `${machine.syncMs.toFixed(2)} ms to write 8 KiB for good (\`fdatasync\`)`]]),
    [
      'load',
      `${loader}, one thread; ${warmUpSeconds} s to warm up, then ${rounds} rounds of ${seconds} s for each server`,
    ],
    ['data', `${whole(pets)} pets with stock and up to 4 orders each, ${keys} API keys`],
    ['duration', `${minutes} minutes`],
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

${missed(rows)}${image('ratios', 'The gateway compared with each peer')}

## Workloads

Medians of the rounds, at 1 to 256 connections. Latency is what the client sees. Processor time (CPU) and resident memory
are the server's own; the columns Redis and PostgreSQL show the processor time that a request costs there. The last two
columns compare: the peer's processor time over ours, and our requests per second over the peer's. More is better for us.

${workloadTables(results)}

${image('throughput', 'Requests per second of each server')}

${image('processor-time', 'Processor time for each request')}

${image('latency', 'Latency')}

${image('memory', 'Resident memory')}

${growth(results)}
${keysInUse(results)}
${questions(results)}
${method}`
}

/** Of most servers, and of those that run on another one. */
function nodes({ machine, workloads }: Results) {
  const others = workloads.filter(({ node }) => node && node !== machine.node)
  const where = others.length ? `; ${others[0]?.node} where PostGraphile is compared, which needs it` : ''
  return `Node.js ${machine.node}${where}`
}

function verdict(rows: TargetRow[]) {
  const missed = rows.filter(({ met }) => !met).length
  if (missed === 0) return `All ${rows.length} targets are met.`
  return `${rows.length - missed} of ${rows.length} targets are met, **${missed} ${missed === 1 ? 'is' : 'are'} missed**.`
}

function missed(rows: TargetRow[]) {
  const groups = whyMissed(rows)
  if (groups.length === 0) return ''
  return `### Why targets are missed

${groups.map(({ why, rows }) => `- **${[...new Set(rows.map(shortName))].join('; ')}.** ${why}`).join('\n')}

`
}

const shortName = ({ what, against }: TargetRow) => `${what.replace(/:.*/, '')} (${against.replace(/, .*/, '')})`

const times = (ratio: Ratio | undefined) => (ratio ? `${ratio.median.toFixed(2)} ×` : '')

function workloadTables({ workloads: results }: Results) {
  const titles = [...new Set(results.map(({ title }) => title))]
  return titles
    .map((title) =>
      workloadTable(
        title,
        results.filter((result) => result.title === title),
      ),
    )
    .join('\n\n')
}

function workloadTable(title: string, results: WorkloadResult[]) {
  const rows = results.flatMap((result) =>
    (Object.entries(result.servers) as [ServerId, ServerResult][]).map(([id, { median }]) => [
      String(result.connections),
      serverTitles[id],
      whole(median.perSecond),
      median.p50.toFixed(2),
      median.p99.toFixed(1),
      whole(median.cpu),
      whole(median.redisCpu),
      median.postgresCpu === undefined ? '–' : whole(median.postgresCpu),
      whole(median.memoryMB),
      ...(id === 'gateway' ? ['', ''] : [times(overOurs(result, id, 'cpu')), times(overPeer(result, id, 'perSecond'))]),
    ]),
  )
  const head = ['connections', '', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs', 'Redis µs', 'PostgreSQL µs', 'MB']
  return `### ${title}\n\n${table([...head, 'CPU ratio', 'rate ratio'], rows, 2)}`
}

const failures = ({ failures }: Results) =>
  failures.length === 0
    ? ''
    : `\n> **Sections without figures:**\n>\n${failures.map(({ section, message }) => `> - ${section}: ${message.replaceAll('\n', ' ')}`).join('\n')}\n`

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

function keysInUse({ inUse }: Results) {
  if (!inUse) return ''
  return `## Keys in use

GET one, 32 connections in all, each request with one of the keys at random; in parentheses, over ten keys on as many
gateways. Usage is gathered for up to 45 seconds and then written, so this is the mean of 45 seconds.

${keysTable(inUse)}

Of many keys, few requests share a decision in Redis. The memory of a gateway includes what the collector has not freed yet.
`
}

function questions({ questions: results }: Results) {
  if (!results) return ''
  const { rows, asked, dearest, lowStock, inStock } = results
  const row = (request: string, { maxMs, meanMs }: { maxMs: number; meanMs: number }) => [
    request,
    maxMs.toFixed(1),
    meanMs.toFixed(1),
  ]
  return `## Questions that lists answer

Every accepted combination of filters, order and direction ([docs/lists.md](docs/lists.md)), with values that many rows
have and values that few have: the first page with its total, and pages in the middle, also below a row. There are
${whole(rows)} pets, of which nine in ten are sold and half are in one category, and ${whole(rows)} orders, of which nine in
ten are for one pet${inStock ? '; in a second database, most pets are in stock instead of few' : ''}. The gateway was sent ${whole(asked)} different requests; PostgreSQL timed its statements
(\`pg_stat_statements\`), with their pages in memory. The dearest statements, and
what staff and shoppers ask most:

${table(
  ['request', 'longest ms', 'mean ms'],
  [
    ...dearest.map((result) => row(`\`${result.request}\``, result)),
    row(`**low stock:** \`${lowStock.request}\``, lowStock),
    ...(inStock ? [row(`**in stock:** \`${inStock.request}\``, inStock)] : []),
  ],
)}
`
}
