import { setTimeout as sleep } from 'node:timers/promises'
import { send } from './load.js'
import type { World } from './world.js'

// What is admitted while the master that holds the counters is replaced.

const LIMIT = 300
/** Within this time all gateways must find a new master, in milliseconds. */
const FOUND_MS = 3_000
/** Redis needs two seconds for an election, and repeats one that fails: a cluster after four seconds, Sentinels after ten. */
const REPLACED_MS = 20_000

const ask = async ({ gateways }: World, key: string, n: number) => {
  const gateway = gateways[n % gateways.length] as World['gateways'][number]
  return (await send(gateway, { method: 'GET', path: '/categories?limit=1', key })).status
}

/** Sends requests with a key, so many at a time, while `goOn` says so; returns how many were admitted. */
async function admitted(world: World, key: string, together: number, goOn: (n: number) => boolean, pauseMs = 0) {
  let [n, count] = [0, 0]
  const clients = Array.from({ length: together }, async () => {
    while (goOn(n)) {
      if ((await ask(world, key, n++)) === 200) count++
      if (pauseMs) await sleep(pauseMs)
    }
  })
  await Promise.all(clients)
  return count
}

/** Kills the master; afterwards says what was admitted, and for how long gateways counted alone. */
export async function killMaster(world: World) {
  const { gateways, broken, figures, redis, replicas } = world
  const [key = '', ...others] = await world.createKeys(8, LIMIT)
  let before = 0
  for (const exact of others) {
    const warned = gateways.flatMap(({ warnings }) => warnings).length
    before = await admitted(world, exact, 20, (n) => n < 1.5 * LIMIT)
    // On a busy machine Redis may be late, and a gateway counts alone.
    if (gateways.flatMap(({ warnings }) => warnings).length === warned) break
  }
  if (before !== LIMIT) broken.push(`${before} of ${LIMIT} requests were admitted before`)
  let over = false
  const during = admitted(world, key, 4, () => !over, 20)
  await sleep(500)
  const killedAt = performance.now()
  let [replacedAt, aloneAt] = [Number.POSITIVE_INFINITY, 0]
  const alone = new Set<string>()
  const watching = gateways.map(async ({ url }) => {
    for (; !over; await sleep(50)) {
      const { limits } = (await (await fetch(`${url}/readyz`)).json()) as { limits: string }
      if (limits === 'redis') alone.delete(url)
      else {
        alone.add(url)
        aloneAt = performance.now()
      }
    }
  })
  // Sentinel ends all connections to the replica that becomes the master, so a command may fail in that moment.
  const isMaster = async (replica: World['redis']) => (await replica.cli('role').catch(() => '')).startsWith('master')
  const awaitMaster = async () => {
    while (!over && !(await Promise.all(replicas.map(isMaster))).includes(true)) await sleep(50)
    if (!over) replacedAt = performance.now()
  }
  await redis.kill()
  const replaced = awaitMaster()
  return async () => {
    const endsAt = () => Math.min(killedAt + REPLACED_MS, replacedAt) + FOUND_MS
    while (alone.size > 0 && performance.now() < endsAt()) await sleep(50)
    over = true
    await Promise.all([...watching, replaced])
    const count = await during
    const [masterMs, foundMs] = [replacedAt - killedAt, aloneAt - replacedAt].map(Math.round) as [number, number]
    if (count > gateways.length * LIMIT) broken.push(`${count} of ${LIMIT} requests were admitted`)
    if (aloneAt === 0) broken.push('no gateway counted alone')
    if (masterMs > REPLACED_MS) broken.push('Redis had no new master')
    if (foundMs > FOUND_MS) broken.push(`gateways counted alone until ${foundMs} ms after there was a new master`)
    figures.push(
      `exactly ${before} of ${LIMIT} requests admitted before, ${count} while the master was replaced; new master after ${masterMs} ms, found within ${Math.max(0, foundMs)} ms`,
    )
    await redis.start()
  }
}
