import { Redis } from 'ioredis'
import { Client } from 'pg'
import { isInstalled, Postgres } from '../faults/postgres.js'
import { atEnd, Refusal } from './lifecycle.js'

// The benchmark writes, empties and drops. So it touches only what it made itself: databases that carry its mark, and a
// logical database of Redis that was empty when it was claimed.

let adminUrl =
  process.env.BENCH_DATABASE_URL ?? process.env.TEST_DATABASE_URL ?? 'postgresql://postgres@127.0.0.1:5432/postgres'
const redisBaseUrl = process.env.BENCH_REDIS_URL ?? process.env.TEST_REDIS_URL ?? 'redis://127.0.0.1:6379'

const NAME = `petstore_bench_${process.pid}`
const MARK = `scratch database of the petstore benchmark, process ${process.pid}`
const OWNER_KEY = 'petstore-bench:owner'

async function connect(connectionString: string) {
  const client = new Client({ connectionString })
  await client.connect().catch((error) => {
    throw new Refusal(`PostgreSQL cannot be used: ${error.message}. Set BENCH_DATABASE_URL.`)
  })
  return client
}

async function asAdmin<Row>(sql: string, values: unknown[] = []) {
  const client = await connect(adminUrl)
  try {
    return (await client.query(sql, values)).rows as Row[]
  } finally {
    await client.end()
  }
}

const STATISTICS = 'pg_stat_statements'

/**
 * Whether statements will be timed: by the server that is given, or else by one of our own, if its programs are
 * installed. Only sessions that ask for it are timed, because it costs a little.
 */
export async function chooseTimingServer(): Promise<boolean> {
  const [row] = await asAdmin<{ libraries: string }>(`SELECT current_setting('shared_preload_libraries') AS libraries`)
  if (row?.libraries.includes(STATISTICS)) return true
  if (!isInstalled()) return false
  const settings = [`shared_preload_libraries=${STATISTICS}`, `${STATISTICS}.track=none`, 'max_connections=100']
  const server = await Postgres.create(...settings)
  adminUrl = server.url('postgres', 'postgres')
  return true
}

/** Creates a database that is dropped at the end. */
export async function createScratchDatabase(suffix = '') {
  const name = NAME + suffix
  await asAdmin(`CREATE DATABASE ${name}`).catch((error) => {
    if (error instanceof Refusal) throw error
    throw new Refusal(`The scratch database ${name} cannot be created: ${error.message}`)
  })
  await asAdmin(`COMMENT ON DATABASE ${name} IS '${MARK}'`)
  atEnd(async () => {
    await assertScratch(name)
    await asAdmin(`DROP DATABASE ${name} WITH (FORCE)`)
  })
  const url = Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href
  return { name, url }
}

/** Refuses every database but one that this very run made. */
async function assertScratch(name: string) {
  const [row] = await asAdmin<{ mark: string | null }>(
    `SELECT shobj_description(oid, 'pg_database') AS mark FROM pg_database WHERE datname = $1`,
    [name],
  )
  if (!name.startsWith(NAME) || row?.mark !== MARK)
    throw new Refusal(`${name} is not a scratch database of this run: it stays as it is.`)
}

/** A connection that may write and delete, because its database is a scratch one. It closes at the end. */
export async function connectScratch({ name, url }: { name: string; url: string }) {
  await assertScratch(name)
  const client = await connect(url)
  // The database is dropped while connections may still be open.
  client.on('error', () => {})
  atEnd(() => client.end())
  return client
}

/** Claims a logical database of Redis that is empty; it is emptied again at the end. */
export async function claimRedis() {
  for (let index = 15; index >= 1; index--) {
    const url = Object.assign(new URL(redisBaseUrl), { pathname: `/${index}` }).href
    const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null, enableOfflineQueue: false })
    redis.on('error', () => {})
    await redis.connect().catch((error) => {
      throw new Refusal(`Redis cannot be used: ${error.message}. Set BENCH_REDIS_URL.`)
    })
    const owner = String(process.pid)
    if ((await redis.dbsize()) === 0 && (await redis.set(OWNER_KEY, owner, 'NX'))) {
      atEnd(async () => {
        if ((await redis.get(OWNER_KEY)) === owner) await redis.flushdb()
        redis.disconnect()
      })
      return { redisUrl: url, redis }
    }
    redis.disconnect()
  }
  throw new Refusal('Redis has no empty logical database from 1 to 15.')
}
