import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Client } from 'pg'
import { createSecret } from '../../src/auth/index.js'
import { migrate } from '../../src/database/migrations.js'

// What the benches have in common: a database of their own with many pets, servers started one after the other.

export const PETS = 100_000
export const redisUrl = process.env.TEST_REDIS_URL ?? 'redis://127.0.0.1:6379'
const adminUrl = process.env.TEST_DATABASE_URL ?? 'postgresql://postgres@127.0.0.1:5432/postgres'

async function sql(url: string, ...statements: string[]) {
  const client = new Client({ connectionString: url })
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
}

const children: ChildProcess[] = []
const killAll = () => children.map((child) => child.kill('SIGKILL'))
process.on('exit', killAll)

/** A process that does not outlive the bench. */
function start(command: string, args: string[], env: NodeJS.ProcessEnv = process.env) {
  const child = spawn(command, args, { env, stdio: ['ignore', 'ignore', 'inherit'] })
  children.push(child)
  return child
}

/** A database with 100,000 pets, a key that no limit stops and a fresh one of the plan Business. It is dropped at the end. */
export async function benchDatabase() {
  const name = `petstore_bench_${process.pid}`
  const url = Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href
  await sql(adminUrl, `CREATE DATABASE ${name}`)
  await migrate(url)
  const drop = () => {
    killAll()
    return sql(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => drop().finally(() => process.exit(1)))
  const { key, prefix, hash } = createSecret()
  const business = createSecret()
  await sql(
    url,
    `INSERT INTO "Category" ("name") SELECT 'Category ' || i FROM generate_series(1, 20) AS i`,
    `INSERT INTO "Pet" ("name", "categoryId") SELECT 'Pet ' || i, 1 + i % 20 FROM generate_series(1, ${PETS}) AS i`,
    `INSERT INTO "ApiKey" ("name", "plan", "prefix", "hash", "minuteLimit", "dayLimit")
     VALUES ('bench', 'Enterprise', '${prefix}', '${hash}', 2000000000, 2000000000)`,
    `INSERT INTO "ApiKey" ("name", "plan", "prefix", "hash")
     VALUES ('fresh', 'Business', '${business.prefix}', '${business.hash}')`,
    'ANALYZE',
  )
  return { url, key, business: business.key, drop }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

/** Starts a server in a process of its own and waits until its port answers. */
export async function startServer(args: string[], env: Record<string, string>) {
  const port = await freePort()
  const defaults = { NODE_ENV: 'production', LOG_LEVEL: 'warn', HOST: '127.0.0.1', PORT: String(port) }
  const child = start(process.execPath, args, { ...process.env, ...defaults, ...env })
  const url = `http://127.0.0.1:${port}`
  for (let waited = 0; ; waited += 100) {
    if (child.exitCode !== null) throw new Error(`${args.join(' ')} ended with ${child.exitCode}`)
    if (waited > 30_000) throw new Error(`${args.join(' ')} does not answer`)
    if (await fetch(url).catch(() => undefined)) break
    await sleep(100)
  }
  return {
    url,
    pid: child.pid,
    /** Resident memory in MB, now. */
    memory: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024,
    /** Processor time so far, in seconds (the kernel counts hundredths). */
    cpu: () => {
      const [, fields = ''] = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')
      const [user, system] = fields.split(' ').slice(11, 13)
      return (Number(user) + Number(system)) / 100
    },
    stop: async () => {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}

/** A Redis of our own, empty and in memory. */
export async function startRedis() {
  const port = await freePort()
  const child = start('redis-server', [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--loglevel',
    'warning',
  ])
  const url = `redis://127.0.0.1:${port}`
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: null })
  redis.on('error', () => {})
  for (
    let waited = 0;
    !(await redis.connect().then(
      () => true,
      () => false,
    ));
    waited += 100
  ) {
    if (waited > 5_000) throw new Error('redis-server does not answer')
    await sleep(100)
  }
  redis.disconnect()
  return { url, kill: (signal: NodeJS.Signals) => child.kill(signal) }
}
