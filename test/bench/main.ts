import { measureGrowth, measureMemory } from './growth.js'
import { Refusal, runProgram } from './lifecycle.js'
import { chooseLoader } from './load.js'
import { describeMachine, readCommit, requireProc } from './machine.js'
import { type Bench, type Database, measureWorkload } from './measure.js'
import { type Options, readOptions } from './options.js'
import type { RunningServer } from './processes.js'
import { writeReport } from './report.js'
import { headersFor, maximaFor } from './requests.js'
import type { Results } from './results.js'
import { claimRedis, connectScratch, createScratchDatabase } from './scratch.js'
import { createTidy, KEYS, seed } from './seed.js'
import { buildGateway, compilePeers, startById } from './servers.js'
import { workloads } from './workloads.js'

type ScratchRedis = Awaited<ReturnType<typeof claimRedis>>

// `npm run bench`: the gateway and its peers, all started here, in alternating rounds of one run.

const PETS = 100_000

async function createDatabase({ redis, redisUrl }: ScratchRedis, pets: number, suffix = ''): Promise<Database> {
  const scratch = await createScratchDatabase(suffix)
  // The gateway applies the migrations when it starts.
  const gateway = await startById('gateway', { DATABASE_URL: scratch.url, REDIS_URL: redisUrl })
  const client = await connectScratch(scratch)
  const keys = await seed(client, suffix ? { pets, orders: false, firstKeyId: 1_001 } : { pets, orders: true })
  await assertCounted(gateway, keys[0] as string, redis)
  await gateway.stop()
  return { url: scratch.url, client, keys, maxima: maximaFor(pets), tidy: await createTidy(client) }
}

/** The gateway counts in the Redis that is watched, not in another one. */
async function assertCounted({ url }: RunningServer, key: string, redis: ScratchRedis['redis']) {
  const before = await redis.dbsize()
  const response = await fetch(`${url}/pets/1`, { headers: headersFor(key, undefined) })
  if (!response.ok) throw new Refusal(`GET /pets/1 answered ${response.status}: ${await response.text()}`)
  if ((await redis.dbsize()) <= before) throw new Refusal('The gateway does not count in the Redis of the benchmark.')
}

async function prepare(options: Options): Promise<Bench> {
  requireProc()
  const loader = await chooseLoader()
  const { redisUrl, redis } = await claimRedis()
  await buildGateway()
  const database = await createDatabase({ redis, redisUrl }, PETS)
  await compilePeers()
  return { options, loader, redis, redisUrl, database }
}

await runProgram(async () => {
  const options = readOptions()
  const bench = await prepare(options)
  const results: Results = {
    date: new Date().toISOString(),
    commit: readCommit(),
    quick: options.quick,
    machine: await describeMachine(bench.database.client, bench.redis),
    loader: bench.loader.name,
    rounds: options.rounds,
    seconds: options.seconds,
    pets: PETS,
    keys: KEYS,
    workloads: [],
    growth: [],
  }
  console.log(`Loaded by ${results.loader}, ${options.rounds} rounds of ${options.seconds} s, medians.`)
  for (const workload of workloads)
    if (options.isSelected(workload.id)) results.workloads.push(await measureWorkload(bench, workload))
  if (options.isSelected('growth'))
    results.growth = await measureGrowth(bench, await createDatabase(bench, options.largePets, '_large'))
  if (options.isSelected('memory')) results.memory = await measureMemory(bench)
  if (options.complete) writeReport(results)
  else console.log('\nThis run was filtered: the reports stay as they are.')
})
