import { mkdirSync, writeFileSync } from 'node:fs'
import { drawCharts } from './charts.js'
import { table, whole } from './markdown.js'
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
    ['system', `${machine.system}, Node.js ${machine.node}`],
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

${image('ratios', 'The gateway compared with each peer')}

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

function verdict(rows: TargetRow[]) {
  const missed = rows.filter(({ met }) => !met).length
  if (missed === 0) return `All ${rows.length} targets are met.`
  return `${rows.length - missed} of ${rows.length} targets are met, **${missed} ${missed === 1 ? 'is' : 'are'} missed**.`
}

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

const method = `## How it is measured

- The benchmark starts every server itself, in a fresh process for each workload, with \`NODE_ENV=production\` and the
  default log level \`info\`, at which each of them writes one line for every request. The gateway runs as \`npm start\`
  runs it.
- All servers of a workload run at the same time. Each is warmed up at 8 connections, and then measured at 1, 4, 8, 32
  and 256: the servers are loaded one after the other, in rounds that change direction. A ratio compares two servers
  within a round; the tables show the median over the rounds. Rates drift on a shared or virtual machine; these ratios
  drift less.
- Where the machine has processor time left, the rate follows from latency, and processor time says what a request costs;
  at 32 connections the rate says what the machine can do. Nested questions are compared by processor time there, too,
  because much of their time is PostgreSQL's.
- The load comes from another process, over connections that stay open. It sends random ids and a random one of the
  API keys with each request. All servers of a round get the same requests.
- The gateway asks the database once for equal questions that arrive together. As a control, the ten different GETs and
  the ten different queries differ in tables, filters, selections and sizes.
- Before the rounds, all servers must return the same data to the same questions. One failed request ends the section.
- A section fails when Redis was unreachable, because counting in memory is cheaper. After each workload, the quota that
  the gateway has counted must equal what was sent.
- A row that is taken from is locked until its order is on the disk, so orders for one pet cannot be faster than the disk, whatever
  the number of gateways. The table of the machine has the time that the disk takes.
- The tables that a workload writes to are restored before each round, and autovacuum is off for them.
- Processor time and memory come from \`/proc\` (user and system time of all threads, \`VmRSS\` after each round), Redis' from
  \`INFO cpu\`, PostgreSQL's from its processes.
- Other programs that use Redis or PostgreSQL during the run distort the figures. Run the benchmark alone.
- The benchmark creates databases of its own and claims an empty logical database of Redis. It refuses all others, and
  removes both at the end, also after an error or Ctrl-C. Where the server of \`BENCH_DATABASE_URL\` has no
  \`pg_stat_statements\`, all databases are on a PostgreSQL server that the benchmark starts for itself.

## The peers

Their code is in \`test/lab/bench/peers\`. All have a pool of 10 connections and prepared statements.

- **Fastify + Prisma, keys and limits:** JSON schemas for inputs and responses, a key cache, two windows of
  rate-limiter-flexible in Redis, consumed in parallel, \`X-RateLimit-*\` headers, keyset pages with \`Link\`. Lists by
  name are SQL, and have indexes of their own.
- **Fastify + pg, bare:** the same routes and schemas on \`pg\` alone. No keys, no limits.
- **Mercurius + Prisma, keys and limits:** compiled queries, a loader for each relation, the same keys and limits.
- **PostGraphile 5, neither keys nor limits:** nobody here wrote it. It makes its schema from the same tables, and runs
  with the options that its documentation recommends for production, the simplified names and the filters. It is asked
  the same in its own words. It writes no line for a request.
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
