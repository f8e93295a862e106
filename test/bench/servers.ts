import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { createSecret } from '../../src/keys.js'
import { migrate } from '../../src/migrations.js'

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

/** A database with 100,000 pets and one key that no limit stops. It is dropped at the end. */
export async function benchDatabase() {
  const name = `petstore_bench_${process.pid}`
  const url = Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href
  await sql(adminUrl, `CREATE DATABASE ${name}`)
  await migrate(url)
  const { key, prefix, hash } = createSecret()
  await sql(
    url,
    `INSERT INTO "Category" ("name") SELECT 'Category ' || i FROM generate_series(1, 20) AS i`,
    `INSERT INTO "Pet" ("name", "categoryId") SELECT 'Pet ' || i, 1 + i % 20 FROM generate_series(1, ${PETS}) AS i`,
    `INSERT INTO "ApiKey" ("name", "plan", "prefix", "hash", "minuteLimit", "dayLimit")
     VALUES ('bench', 'Enterprise', '${prefix}', '${hash}', 2000000000, 2000000000)`,
    'ANALYZE',
  )
  return { url, key, drop: () => sql(adminUrl, `DROP DATABASE ${name} WITH (FORCE)`) }
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
  const child: ChildProcess = spawn(process.execPath, args, {
    env: { ...process.env, NODE_ENV: 'production', LOG_LEVEL: 'warn', HOST: '127.0.0.1', PORT: String(port), ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
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
    stop: async () => {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}
