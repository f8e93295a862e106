import { send } from './load.js'
import { PETS, type World } from './world.js'

// What a pooler in transaction mode must carry.

const STARTS = 3
const TOGETHER = 200

/** Gateways that start at the same moment on a database that no gateway has used. */
async function firstStarts({ postgres, startOn, broken, figures }: World) {
  const name = `first_starts_${Date.now()}`
  await postgres.admin(`CREATE DATABASE ${name} OWNER petstore`, 'postgres')
  const began = performance.now()
  const started = await Promise.all(Array.from({ length: STARTS }, () => startOn(name)))
  const ms = Math.round(performance.now() - began)
  const [row] = await postgres.admin(
    `SELECT count(*)::int AS applied, count(DISTINCT migration_name)::int AS migrations,
     (SELECT count(*)::int FROM pg_locks JOIN pg_database ON oid = database
      WHERE locktype = 'advisory' AND datname = current_database()) AS locks FROM _prisma_migrations`,
    name,
  )
  if (row.applied !== row.migrations || row.locks > 0) broken.push(`first starts: ${JSON.stringify(row)}`)
  await Promise.all(started.map((gateway) => gateway.signal('SIGKILL')))
  figures.push(`${STARTS} first starts at once took ${ms} ms and applied ${row.applied} migrations once`)
}

async function manyTogether({ gateways, keys, broken, figures }: World) {
  const began = performance.now()
  const statuses = await Promise.all(
    Array.from({ length: TOGETHER }, async (_, n) => {
      const to = gateways[n % gateways.length] as World['gateways'][number]
      const key = keys[n % keys.length] as string
      const body = { petId: 1 + (n % PETS) }
      const headers = n % 2 ? { 'idempotency-key': `together ${n}` } : undefined
      return n % 5
        ? send(to, { method: 'GET', path: `/pets/${body.petId}`, key })
        : send(to, { method: 'POST', path: '/store/orders', key, body, headers })
    }),
  )
  const ms = Math.round(performance.now() - began)
  const [failed] = statuses.filter(({ status }) => status > 201)
  if (failed) broken.push(`one of ${TOGETHER} requests at once: ${failed.status} ${failed.text}`)
  figures.push(`${TOGETHER} requests at once took ${ms} ms`)
}

export async function useAsMany(world: World) {
  await firstStarts(world)
  await manyTogether(world)
}
