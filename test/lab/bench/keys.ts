import { whole } from './markdown.js'
import { type Bench, spend } from './measure.js'
import type { RunningServer } from './processes.js'
import type { KeysResult, KeysSample } from './results.js'
import { createKeys, seedUsage } from './seed.js'
import { startById } from './servers.js'
import { getOne } from './templates.js'
import { watched } from './watch.js'

// What a request costs when few or many keys are in use. The usage of many keys is gathered for up to 45 seconds, so a
// round is a multiple of that.

const CONNECTIONS = 32
const FEW = 10
const MANY = 10_000
/** How many keys a gateway meets in a second of warming up, at least. */
const MET_PER_SECOND = 2_500

interface Case {
  title: string
  keys: number
  gateways: number
  /** The first key is used most, the second half as often, the third a third as often. */
  isSkewed?: boolean
}

const cases: Case[] = [
  { title: 'ten keys', keys: FEW, gateways: 1 },
  { title: '1,000 keys', keys: 1_000, gateways: 1 },
  { title: '10,000 keys', keys: MANY, gateways: 1 },
  { title: '10,000 keys, few of them most of the time', keys: MANY, gateways: 1, isSkewed: true },
  { title: '100,000 keys', keys: 100_000, gateways: 1 },
  { title: 'ten keys, four gateways', keys: FEW, gateways: 4 },
  { title: '10,000 keys, four gateways', keys: MANY, gateways: 4 },
]

/** Each key as often as it is used, of about 200,000 uses. */
function skewed(keys: readonly string[]): string[] {
  const sum = keys.reduce((sum, _, i) => sum + 1 / (i + 1), 0)
  return keys.flatMap((key, i) => new Array<string>(Math.ceil(200_000 / sum / (i + 1))).fill(key))
}

export async function measureKeys(bench: Bench): Promise<KeysResult[]> {
  console.log('\nKeys in use')
  const { options, database } = bench
  const all = await createKeys(database.client, Math.max(...cases.map(({ keys }) => keys)))
  await seedUsage(database.client, { keys: MANY, days: options.usageDays })
  const rounds = new Map<Case, KeysSample[]>(cases.map((each) => [each, []]))
  for (let round = 1; round <= options.keyRounds; round++)
    for (const each of round % 2 ? cases : cases.toReversed())
      rounds.get(each)?.push(await measureCase(bench, each, all))
  return cases.map((each) => {
    const { title, keys, gateways } = each
    return { title, keys, gateways, rounds: rounds.get(each) as KeysSample[] }
  })
}

/** In fresh processes: no other gateway writes usage, and what they keep is that of these keys. */
async function measureCase(
  bench: Bench,
  { title, keys, gateways, isSkewed }: Case,
  all: string[],
): Promise<KeysSample> {
  const { redis, database, options } = bench
  const env = { DATABASE_URL: database.url, REDIS_URL: bench.redisUrl }
  const servers: RunningServer[] = []
  try {
    for (let i = 0; i < gateways; i++) servers.push(await startById('gateway', env))
    const inUse = all.slice(0, keys)
    const load = { templates: [getOne], keys: isSkewed ? skewed(inUse) : inUse, maxima: database.maxima }
    const run = (seconds: number, seed: number) => {
      const connections = CONNECTIONS / gateways
      const loads = servers.map(({ url }, i) => ({ ...load, url, seconds, seed: seed + i, connections }))
      return spend(bench, title, servers, loads)
    }
    const { spent } = await watched(redis, servers, async () => {
      await run(options.warmUpSeconds + Math.ceil((keys * gateways) / MET_PER_SECOND), 1)
      return run(options.keySeconds, 1_000)
    })
    console.log(
      `  ${title.padEnd(44)} CPU ${whole(spent.cpu)} µs   Redis ${spent.redisCpu.toFixed(1)} µs   ` +
        `PostgreSQL ${spent.postgresCpu?.toFixed(1)} µs   ${whole(spent.memoryMB)} MB`,
    )
    return spent
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
  }
}
