import { spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import Table from 'cli-table3'
import { createSecret } from '../../../src/gateway/keys/index.js'
import { type Call, everyOperation } from '../../support/every-operation.js'
import { RedisServer } from '../../support/redis.js'
import { parseSamples } from '../../support/samples.js'
import { Refusal, runProgram } from '../bench/lifecycle.js'
import { type RunningServer, startServer } from '../bench/processes.js'
import { buildGateway, gatewayCommand } from '../bench/servers.js'
import { Postgres } from '../faults/postgres.js'
import { everyGraphqlOperation } from './graphql.js'

// `npm run soak`: two gateways under a steady load of every operation; nothing that they hold may keep growing.

const MINUTES = Number(process.env.SOAK_MINUTES ?? 20)
const KEYS = 50
const CLIENTS = 6
/** So that the load is steady: a full processor would be measured instead. */
const PAUSE_MS = 100
const SAMPLE_MS = 5_000
/** V8 leaves old objects for minutes where there is memory. Before each sample, this signal collects them. */
const COLLECT = 'SIGUSR2'
const COLLECT_MS = 500
const collecting = ['--expose-gc', '--import', `data:text/javascript,process.on('${COLLECT}', () => gc())`]
const TRIES = 5

/** What is watched, and by how much it may grow within the second half. */
const bounds = {
  'memory of a gateway, MB': 25,
  'old objects of a gateway, MB': 8,
  'handles of a gateway': 10,
  'open files of a gateway': 10,
  'connections in PostgreSQL': 6,
  'connections in Redis': 2,
  'statements that wait': 5,
}
type Watched = keyof typeof bounds
const series = new Map<Watched, { at: number; value: number }[]>()

function watch(name: Watched, at: number, value: number) {
  series.set(name, [...(series.get(name) ?? []), { at, value }])
}

/** Of both gateways the one with more, after a collection. */
async function sample(gateways: RunningServer[], postgres: Postgres, redis: RedisServer, at: number) {
  for (const { child } of gateways) child.kill(COLLECT)
  await sleep(COLLECT_MS)
  const texts = await Promise.all(gateways.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()))
  const most = (metric: string, label?: string) =>
    Math.max(
      ...texts.map((text) => {
        const all = parseSamples(text, metric)
        return (label ? all.find((each) => Object.values(each).includes(label)) : all[0])?.value ?? Number.NaN
      }),
    )
  watch('memory of a gateway, MB', at, most('process_resident_memory_bytes') / 1e6)
  watch('old objects of a gateway, MB', at, most('nodejs_heap_space_size_used_bytes', 'old') / 1e6)
  watch('handles of a gateway', at, most('nodejs_active_resources_total'))
  watch('open files of a gateway', at, most('process_open_fds'))
  watch('statements that wait', at, most('petstore_database_waiting'))
  const [row] = await postgres.admin(`SELECT count(*)::int FROM pg_stat_activity WHERE usename = 'petstore'`)
  watch('connections in PostgreSQL', at, row.count)
  const clients = /^connected_clients:(\d+)/m.exec(await redis.cli('info', 'clients'))?.[1]
  watch('connections in Redis', at, Number(clients))
}

/** By how much the values grow over their time, by a straight line through all of them. */
function growth(values: { at: number; value: number }[]) {
  const mean = (list: number[]) => list.reduce((sum, each) => sum + each, 0) / list.length
  const [at, value] = [mean(values.map((each) => each.at)), mean(values.map((each) => each.value))]
  const slope =
    mean(values.map((each) => (each.at - at) * (each.value - value))) / mean(values.map((each) => (each.at - at) ** 2))
  return slope * ((values.at(-1)?.at ?? 0) - (values[0]?.at ?? 0))
}

/** Prints what was watched, and returns what grew. */
function judge() {
  const table = new Table({
    head: ['', 'at the start', 'in the middle', 'at the end', 'growth in the second half', 'at most', ''],
    style: { head: [], border: [] },
  })
  const grown: string[] = []
  for (const [name, values] of series) {
    const half = Math.floor(values.length / 2)
    const grew = growth(values.slice(half))
    // What was never sampled is not level either.
    const isLevel = grew <= bounds[name]
    if (!isLevel) grown.push(name)
    const shown = [values[0], values[half], values.at(-1)].map((each) => Math.round(each?.value ?? 0))
    table.push([name, ...shown, grew.toFixed(1), bounds[name], isLevel ? 'level' : 'GROWS'])
  }
  console.log(table.toString())
  return grown
}

/** Calls a gateway with a key. What is refused because of overload is sent again. */
function client(gateways: RunningServer[], keys: string[], counts: { requests: number; refused: number }) {
  return (n: number): Call => {
    const [gateway, key] = [gateways[n % gateways.length] as RunningServer, keys[n % keys.length] as string]
    return async (method, path, body, headers = {}) => {
      for (let tries = 1; ; tries++) {
        counts.requests++
        const response = await fetch(gateway.url + path, {
          method,
          headers: { 'x-api-key': key, 'content-type': 'application/json', ...headers },
          body: body === undefined ? undefined : JSON.stringify(body),
        })
        const text = await response.text()
        if (response.status !== 503 || tries === TRIES)
          return { status: response.status, headers: response.headers, body: text ? JSON.parse(text) : undefined }
        counts.refused++
        await sleep(200 * tries)
      }
    }
  }
}

await runProgram(async () => {
  if (!(MINUTES >= 0.5)) throw new Refusal('SOAK_MINUTES must be a number of at least 0.5.')
  // It prints a warning if the build is missing or old.
  const { output } = spawnSync(process.execPath, ['--import', './src/built.mjs', '--eval', ''], { encoding: 'utf8' })
  if (output.join('') !== '') await buildGateway()
  const [postgres, redis] = await Promise.all([Postgres.create(), RedisServer.reserve()])
  await redis.start()
  const env = { DATABASE_URL: postgres.url(), REDIS_URL: redis.url }
  const start = () => startServer([...collecting, ...gatewayCommand], env)
  const gateways = [await start(), await start()]
  const secrets = Array.from({ length: KEYS }, createSecret)
  const rows = secrets.map(
    ({ prefix, hash }) => `('soak', 'Enterprise', '${prefix}', '${hash}', 2000000000, 2000000000)`,
  )
  await postgres.admin(`INSERT INTO "ApiKey" (name, plan, prefix, hash, "minuteLimit", "dayLimit") VALUES ${rows}`)

  const counts = { requests: 0, refused: 0 }
  const callAs = client(
    gateways,
    secrets.map(({ key }) => key),
    counts,
  )
  const wrong: string[] = []
  const began = performance.now()
  const elapsed = () => performance.now() - began
  const goesOn = () => elapsed() < MINUTES * 60_000
  let round = 0
  const clients = Array.from({ length: CLIENTS }, async () => {
    for (; goesOn(); await sleep(PAUSE_MS)) {
      const i = round++
      const every = i % 2 ? everyOperation : everyGraphqlOperation
      wrong.push(...(await every(callAs(i), i).catch((error) => [String(error)])))
    }
  })
  let minute = 0
  for (; goesOn(); await sleep(SAMPLE_MS)) {
    await sample(gateways, postgres, redis, elapsed())
    if (elapsed() < minute * 60_000) continue
    const memory = series.get('memory of a gateway, MB')?.at(-1)?.value ?? 0
    console.log(`minute ${minute++}: ${counts.requests} requests, ${Math.round(memory)} MB`)
  }
  await Promise.all(clients)
  console.log(`${counts.requests} requests in ${MINUTES} minutes, ${counts.refused} of them refused and sent again`)
  const grown = judge()
  const warnings = gateways.flatMap(({ warnings }) => warnings)
  for (const text of [...wrong.slice(0, 5), ...warnings.slice(0, 5)]) console.log(text)
  if (grown.length > 0 || wrong.length > 0) process.exitCode = 1
  await Promise.all(gateways.map((gateway) => gateway.stop()))
  await redis.kill()
})
