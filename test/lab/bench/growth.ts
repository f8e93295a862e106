import type { Bench, Database } from './measure.js'
import { sample } from './measure.js'
import type { RunningServer } from './processes.js'
import { type GrowthResult, type MemoryPoint, median, type Results, ratio } from './results.js'
import { startById } from './servers.js'
import { get, getFiltered, getOne, getTwenty, type Template } from './templates.js'
import { watched } from './watch.js'

// What grows must not make the gateway slow: ten times the pets, a page deep in a list, a million requests.

const CONNECTIONS = 32
const PAGE = 20
const DEEP_PAGE = 10_000

interface Case {
  name: string
  server: RunningServer
  database: Database
  template: Template
}

const count = (value: number) => value.toLocaleString('en-US')
const start = (bench: Bench, { url }: Database) =>
  startById('gateway', { DATABASE_URL: url, REDIS_URL: bench.redisUrl })

/** Requests per second of two cases in alternating rounds. */
async function compare(bench: Bench, title: string, cases: [Case, Case], target: number): Promise<GrowthResult> {
  const { rounds, seconds, warmUpSeconds } = bench.options
  const rates: [number[], number[]] = [[], []]
  await watched(bench.redis, [cases[0].server, cases[1].server], async () => {
    for (let round = 0; round <= rounds; round++) {
      for (const i of round % 2 ? ([0, 1] as const) : ([1, 0] as const)) {
        const { name, server, database, template } = cases[i]
        const load = { name, server, database, templates: [template], connections: CONNECTIONS }
        const { round: measured } = await sample(bench, load, round ? seconds : warmUpSeconds, round)
        if (round) rates[i].push(measured.perSecond)
      }
    }
  })
  const side = (i: 0 | 1) => ({ name: cases[i].name, perSecond: median(rates[i]) })
  const slowdown = ratio(rates[0], rates[1])
  console.log(`  ${title}: ${cases[1].name} takes ${slowdown.median.toFixed(2)} × the time of ${cases[0].name}`)
  return { title, from: side(0), to: side(1), slowdown, target }
}

export async function measureGrowth(bench: Bench, large: Database): Promise<GrowthResult[]> {
  console.log('\nGrowth')
  const [few, many] = [bench.database, large]
  const [fewServer, manyServer] = [await start(bench, few), await start(bench, many)]
  const results: GrowthResult[] = []
  for (const [title, template] of [
    ['GET one', getOne],
    ['GET 20', getTwenty],
    ['GET 20, filtered', getFiltered],
  ] as const) {
    const small = { name: `${count(few.maxima.pet)} pets`, server: fewServer, database: few, template }
    const big = { name: `${count(many.maxima.pet)} pets`, server: manyServer, database: many, template }
    results.push(await compare(bench, title, [small, big], 1.1))
  }
  const page = (number: number, path: string) => ({
    name: `page ${count(number)}`,
    server: manyServer,
    database: many,
    template: get(path),
  })
  const first = page(1, `/pets?limit=${PAGE}`)
  const deep = page(DEEP_PAGE, `/pets?limit=${PAGE}&after=${(DEEP_PAGE - 1) * PAGE}`)
  results.push(await compare(bench, `GET ${PAGE}`, [first, deep], 1.2))
  await fewServer.stop()
  await manyServer.stop()
  return results
}

/** Resident memory of one process under load, after few and after many requests, or when time is up. */
export async function measureMemory(bench: Bench): Promise<Results['memory']> {
  const { database, options } = bench
  const server = await start(bench, database)
  const target = { name: 'memory', server, database, templates: [getOne], connections: CONNECTIONS }
  const deadline = performance.now() + options.memorySeconds * 1000
  let requests = 0
  const reach = async (mark: number): Promise<MemoryPoint> => {
    let readings: number[] = []
    while (readings.length === 0 || (requests < mark && performance.now() < deadline)) {
      readings = []
      const timer = setInterval(() => readings.push(server.memoryMB()), 100)
      requests += (await sample(bench, target, options.seconds, requests)).requests
      clearInterval(timer)
    }
    // The heap swings between collections: the median of the last seconds.
    return { requests, memoryMB: median(readings) }
  }
  const [few, many] = await watched(bench.redis, [server], async () => {
    const first = await reach(options.memoryMarks[0])
    return [first, await reach(options.memoryMarks[1])] as const
  })
  await server.stop()
  const shown = [few, many].map((point) => `${Math.round(point.memoryMB)} MB after ${count(point.requests)} requests`)
  console.log(`\nMemory\n  ${shown.join(', ')}`)
  return { few, many }
}
