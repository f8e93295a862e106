import { assumptions, type Constants, carriedBy, constantsOf, type Sizing, sizeFor, type Work } from './capacity.js'
import { table, whole } from './markdown.js'
import { type KeysResult, type KeysSample, median, overFewKeys, type Results } from './results.js'

// docs/scaling.md, computed from what `npm run bench` has measured.

const RATES = [1_000, 100_000, 1_000_000]

const percent = (share: number) => `${Math.round(share * 100)} %`
const micro = (value: number) => (value < 10 ? value.toFixed(1) : whole(value))
const workCells = ({ gateway, redis, postgres, bytes }: Work) => [
  ...[gateway, redis, postgres].map(micro),
  whole(bytes),
]

/** The one that carries least of the mix. */
function firstToGiveOut({ mix, redisAlone }: Constants) {
  const carried = carriedBy({ ...mix, redis: Math.max(redisAlone, mix.redis) })
  const parts = [
    { name: 'a gateway process', rate: carried.gateway },
    { name: 'a Redis server', rate: carried.redis },
    { name: `a PostgreSQL server with ${assumptions.postgresCores} cores`, rate: carried.postgres },
  ]
  return parts.sort((a, b) => a.rate - b.rate)
}

/** Undefined where figures are missing. */
export function describeScaling(results: Results): string | undefined {
  const { date, commit, quick, machine } = results
  const constants = constantsOf(results)
  if (!constants) return
  const { measured, read, write, mix, writeShare, redisAlone } = constants
  const order = firstToGiveOut(constants)
  const sizes = RATES.map((rate) => sizeFor(rate, constants))
  return `# Scaling

What the gateway needs for a given load, computed from measured work per request. \`npm run bench\` wrote this page
(${date.slice(0, 10)}, commit \`${commit}\`, ${machine.processor}).
${quick ? '\n> **The figures come from a quick run for development.** Do not plan with them.\n' : ''}
## Measured: work per request

Microseconds of processor time for each request, and bytes of each response.

${table(
  ['', 'gateway µs', 'Redis µs', 'PostgreSQL µs', 'bytes'],
  [
    ...measured.map(({ title, work }) => [title, ...workCells(work)]),
    ['**reads of the mix**', ...workCells(read)],
    ['**writes of the mix**', ...workCells(write)],
    ['**the mix that is sized below**', ...workCells(mix)],
  ],
)}

Requests of one key that reach a gateway at the same moment share one decision in Redis. With very many keys they no
longer meet. A decision that shares nothing took Redis ${micro(redisAlone)} µs (one connection). The sizes below use that
figure.

## What one of each carries

${table(
  [
    'requests/s',
    'one gateway process',
    'one Redis server',
    `one PostgreSQL server, ${assumptions.postgresCores} cores`,
  ],
  [...measured, { title: '**the mix**', work: { ...mix, redis: Math.max(redisAlone, mix.redis) } }].map(
    ({ title, work }) => {
      const { gateway, redis, postgres } = carriedBy(work)
      return [title, whole(gateway), whole(redis), whole(postgres)]
    },
  ),
)}

**What gives out first:** ${order.map(({ name, rate }) => `${name} (${whole(rate)} requests/s)`).join(', then ')}.
A gateway process uses one core, and holds no state that others need, so the next step is always: start more gateways.
Redis and PostgreSQL follow in the order above.

One API key always lives on one shard of a Redis Cluster, because all its counters must change together. So one key
cannot use more than one Redis server carries: about ${whole(order.find(({ name }) => name.includes('Redis'))?.rate ?? 0)} decisions/s.

${keysInUse(results)}## What three loads need

The mix: ${percent(1 - writeShare)} reads, ${percent(writeShare)} writes, as in the workload “mix 90/10”.

${sizeTable(sizes)}

${advice(sizes)}

## Assumptions

${assumptionList()}

The script is \`test/lab/bench/scaling.ts\`; the assumptions are constants in \`test/lab/bench/capacity.ts\`. Change them, and run
\`npm run bench -- --report\`, which measures nothing.
`
}

/** What a request costs with many keys in use. */
export function keysTable(inUse: KeysResult[]): string {
  const rows = inUse.map((result) => {
    const of = (field: keyof KeysSample) => median(result.rounds.map((round) => round[field] ?? Number.NaN))
    const cell = (field: keyof KeysSample) =>
      Number.isNaN(of(field))
        ? '–'
        : `${of(field).toFixed(1)} (${overFewKeys(inUse, result, field).median.toFixed(2)} ×)`
    return [result.title, cell('cpu'), cell('redisCpu'), cell('postgresCpu'), whole(of('memoryMB'))]
  })
  return table(['', 'gateway µs', 'Redis µs', 'PostgreSQL µs', 'MB of a gateway'], rows)
}

function keysInUse({ inUse }: Results) {
  if (!inUse) return ''
  return `## Keys in use

What a request costs depends little on how many keys are in use: a key's row is read when it has changed, and its usage
is gathered. GET one, with the keys at random; in parentheses, over ten keys on as many gateways:

${keysTable(inUse)}

`
}

function sizeTable(sizes: Sizing[]) {
  const row = (name: string, read: (size: Sizing) => string | number) => [name, ...sizes.map(read)]
  return table(
    ['requests/s', ...RATES.map(whole)],
    [
      row('gateway processes (one core each)', ({ gateways }) => whole(gateways)),
      row('memory of all gateways', ({ memoryGB }) => `${memoryGB.toFixed(1)} GB`),
      row('shards of a Redis Cluster', ({ shards }) => whole(shards)),
      row('PostgreSQL primaries', ({ primaries }) => whole(primaries)),
      row('PostgreSQL read replicas', ({ replicas }) => whole(replicas)),
      row(
        'database connections of the gateways',
        ({ connections, pooler }) => whole(connections) + (pooler ? ' (pooler)' : ''),
      ),
      row('response traffic', ({ gigabitsPerSecond }) => `${gigabitsPerSecond.toFixed(2)} Gbit/s`),
    ],
  )
}

/** What the numbers ask for that the gateway does not have. */
function advice(sizes: Sizing[]) {
  const first = (test: (size: Sizing) => boolean) => {
    const size = sizes.find(test)
    return size && `${whole(size.perSecond)} requests/s`
  }
  const [shards, replicas, primaries, pooler] = [
    first((size) => size.shards > 1),
    first((size) => size.replicas > 0),
    first((size) => size.primaries > 1),
    first((size) => size.pooler),
  ]
  return [
    '- **Gateways** scale by number, behind any HTTP load balancer. Nothing has to be sticky. Two are the minimum, so that one may fail.',
    shards &&
      `- **Redis Cluster** (from ${shards}): \`REDIS_URL\` takes one or several of its nodes. Each shard needs a replica of its own for failover, which the table does not count.`,
    replicas &&
      `- **Read replicas** (from ${replicas}): the gateway has one \`DATABASE_URL\` and does not send reads to replicas itself. A proxy that splits reads, or a second URL, is work to be done. A replica lags behind: a client might not see its own last write, which today it always does.`,
    primaries &&
      `- **More than one primary** (from ${primaries}): PostgreSQL does not split writes on its own. The data must be sharded, for example by pet, or the writes must be queued. Neither is built.`,
    pooler &&
      `- **A connection pooler** (from ${pooler}): above about ${assumptions.postgresConnections} connections, PostgreSQL needs a pooler in front (\`?pgbouncer=true\`), or fewer connections for each gateway.`,
  ]
    .filter(Boolean)
    .join('\n')
}

const assumptionList = () => {
  const { gatewayUse, redisUse, postgresUse, postgresCores, replay, poolSize } = assumptions
  return [
    `A gateway process uses at most ${percent(gatewayUse)} of its core, a Redis server ${percent(redisUse)} of its thread, a PostgreSQL server ${percent(postgresUse)} of its ${postgresCores} cores. The rest is for peaks and background work.`,
    'A core in production does what a core of the measured machine does, and PostgreSQL scales with its cores.',
    'Every read reaches PostgreSQL: no response is cached, and no client revalidates with `If-None-Match`.',
    'The working set fits into the memory of PostgreSQL. When it does not, disks decide, not processors.',
    'The disks of a primary keep up with the writes. One commit waits for one flush, which commits at the same time share.',
    `A replica spends ${percent(replay)} of the primary's work on each write that it replays.`,
    `Each gateway opens ${poolSize} database connections, and up to 22 while some of them get no answer.`,
    'TLS ends before the gateway. Loopback was measured: a real network costs more kernel time, on all sides.',
    'Load is even over gateways and keys. Failover needs spare servers on top of these numbers.',
  ]
    .map((line) => `- ${line}`)
    .join('\n')
}
