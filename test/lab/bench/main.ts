import { readFileSync } from 'node:fs'
import { measureGrowth, measureMemory } from './growth.js'
import { measureKeys } from './keys.js'
import { isStopping, Refusal, runProgram } from './lifecycle.js'
import { chooseLoader } from './load.js'
import { describeMachine, readCommit, requireProc } from './machine.js'
import { type Bench, type Database, measureWorkload } from './measure.js'
import { type Options, readOptions } from './options.js'
import type { RunningServer } from './processes.js'
import { measureQuestions } from './questions.js'
import { RESULTS_FILE, saveResults, writeReports } from './report.js'
import { headersFor, maximaFor } from './requests.js'
import type { Results } from './results.js'
import { chooseTimingServer, claimRedis, connectScratch, createScratchDatabase } from './scratch.js'
import { createTidy, KEYS, type SeedOptions, seed } from './seed.js'
import { buildGateway, compilePeers, startById } from './servers.js'
import { workloads } from './workloads.js'

type ScratchRedis = Awaited<ReturnType<typeof claimRedis>>

// `npm run bench`: the gateway and its peers, all started here, in alternating rounds of one run.

const PETS = 100_000

async function createDatabase(
  { redis, redisUrl }: ScratchRedis,
  { pets, data }: Pick<SeedOptions, 'pets' | 'data'>,
): Promise<Database> {
  const scratch = await createScratchDatabase(`_${data}`)
  // The gateway applies the migrations when it starts.
  const gateway = await startById('gateway', { DATABASE_URL: scratch.url, REDIS_URL: redisUrl })
  const client = await connectScratch(scratch)
  const keys = await seed(client, { pets, data, firstKeyId: { shop: 1, archive: 1_001, stocked: 2_001 }[data] })
  await assertCounted(gateway, keys[0] as string, redis)
  await gateway.stop()
  return { url: scratch.url, client, keys, maxima: maximaFor(pets), tidy: await createTidy(client) }
}

/** The gateway counts in the Redis that is watched, not in another one. */
async function assertCounted({ url }: RunningServer, key: string, redis: ScratchRedis['redis']) {
  const before = new Set(await redis.keys('*'))
  const response = await fetch(`${url}/pets/1`, { headers: headersFor(key, undefined) })
  if (!response.ok) throw new Refusal(`GET /pets/1 answered ${response.status}: ${await response.text()}`)
  // Others may expire meanwhile, so their number says nothing.
  if ((await redis.keys('*')).every((name) => before.has(name)))
    throw new Refusal('The gateway does not count in the Redis of the benchmark.')
}

/** Everything that is the same for all sections. */
async function prepare(options: Options) {
  requireProc()
  const loader = await chooseLoader()
  const isTimed = options.isSelected('questions') && (await chooseTimingServer())
  const { redisUrl, redis } = await claimRedis()
  await buildGateway()
  const database = await createDatabase({ redis, redisUrl }, { pets: PETS, data: 'shop' })
  await compilePeers()
  const bench: Bench = { options, loader, redis, redisUrl, database }
  return { bench, isTimed }
}

async function measure(options: Options) {
  const began = performance.now()
  const { bench, isTimed } = await prepare(options)
  const { loader, redis, database } = bench
  const { quick, rounds, seconds, warmUpSeconds, largePets } = options
  const results: Results = {
    date: new Date().toISOString(),
    commit: readCommit(),
    quick,
    minutes: 0,
    machine: await describeMachine(database.client, redis),
    loader: loader.name,
    rounds,
    seconds,
    warmUpSeconds,
    pets: PETS,
    keys: KEYS,
    workloads: [],
    growth: [],
    failures: [],
  }
  console.log(`Loaded by ${loader.name}, ${rounds} rounds of ${seconds} s, medians.`)

  /** A section that fails is named in the report; the others are measured all the same. */
  const section = async (id: string, run: () => Promise<void>) => {
    if (!options.isSelected(id)) return
    await run().catch((error: Error) => {
      if (isStopping()) throw error
      console.error(`\n${id} failed: ${error instanceof Refusal ? error.message : error.stack}`)
      results.failures.push({ section: id, message: error.message })
      process.exitCode = 1
    })
    results.minutes = Math.ceil((performance.now() - began) / 60_000)
    if (options.complete) saveResults(results)
  }
  for (const workload of workloads)
    await section(workload.id, async () => {
      results.workloads.push(...(await measureWorkload(bench, workload)))
    })
  let opened: Promise<Database> | undefined
  const large = () => {
    opened ??= createDatabase(bench, { pets: largePets, data: 'archive' })
    return opened
  }
  await section('growth', async () => {
    results.growth = await measureGrowth(bench, await large())
  })
  await section('questions', async () => {
    if (!isTimed)
      throw new Refusal(
        'PostgreSQL does not load pg_stat_statements (shared_preload_libraries), and no programs for a server of our own are installed.',
      )
    const stocked = await createDatabase(bench, { pets: largePets, data: 'stocked' })
    results.questions = await measureQuestions(bench, [await large(), stocked], largePets)
  })
  await section('memory', async () => {
    results.memory = await measureMemory(bench)
  })
  // The last one: it leaves many keys and a year of usage behind.
  await section('keys', async () => {
    results.inUse = await measureKeys(bench)
  })
  return results
}

await runProgram(async () => {
  const options = readOptions()
  if (options.reportOnly) return writeReports(JSON.parse(readFileSync(RESULTS_FILE, 'utf8')))
  const results = await measure(options)
  if (options.complete) writeReports(results)
  else console.log('\nThis run was filtered: the reports stay as they are.')
})
