import { readFileSync } from 'node:fs'
import autocannon from 'autocannon'
import { benchDatabase, PETS, redisUrl, startServer } from './servers.js'

// `npm run bench`: GET one pet, random ids, 32 connections; this gateway and what people write by hand on the same ORM,
// with the same key check and the same two windows in Redis. Alternated, so that a noisy machine is noisy to both.

const CONNECTIONS = 32
const SECONDS = Number(process.env.BENCH_SECONDS ?? 8)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)

const database = await benchDatabase()
const env = { DATABASE_URL: database.url, REDIS_URL: redisUrl }
const servers = {
  // As `npm start` starts it.
  gateway: JSON.parse(readFileSync('package.json', 'utf8')).scripts.start.split(' ').slice(1) as string[],
  'Fastify + Prisma, by hand': ['--import', 'tsx', 'test/bench/peer.ts'],
}

async function load(url: string, duration: number) {
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    duration,
    headers: { authorization: `Bearer ${database.key}` },
    requests: [{ setupRequest: (request) => ({ ...request, path: `/pets/${1 + Math.floor(Math.random() * PETS)}` }) }],
  })
  if (result.non2xx || result.errors)
    throw new Error(`${result.non2xx} responses were not 2xx, ${result.errors} errors`)
  return { perSecond: result.requests.average, p99: result.latency.p99 }
}

try {
  const best = new Map<string, { perSecond: number; p99: number; memory: number }>()
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, args] of Object.entries(servers)) {
      const server = await startServer(args, env)
      await load(server.url, 2)
      const measured = { ...(await load(server.url, SECONDS)), memory: server.memory() }
      await server.stop()
      if (measured.perSecond > (best.get(name)?.perSecond ?? 0)) best.set(name, measured)
    }
  }
  console.log(
    `GET one pet, ${CONNECTIONS} connections, random ids of ${PETS}; best of ${ROUNDS} rounds of ${SECONDS} s`,
  )
  const peer = best.get('Fastify + Prisma, by hand')?.perSecond as number
  for (const [name, { perSecond, p99, memory }] of best)
    console.log(
      `${name.padEnd(28)} ${(perSecond / peer).toFixed(2).padStart(5)} ×   ${Math.round(perSecond)}/s   p99 ${p99} ms   ${Math.round(memory)} MB resident`,
    )
} finally {
  await database.drop()
}
