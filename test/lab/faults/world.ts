import { once } from 'node:events'
import { Agent } from 'node:http'
import { createSecret } from '../../../src/gateway/keys/index.js'
import { hasHaproxy, startHaproxy } from '../../support/haproxy.js'
import { hasPgbouncer, startPgbouncer } from '../../support/pgbouncer.js'
import { RedisServer } from '../../support/redis.js'
import { startCluster, startSentinels } from '../../support/redis-groups.js'
import { atEnd, Refusal } from '../bench/lifecycle.js'
import { startServer } from '../bench/processes.js'
import { Postgres, startSwitch } from './postgres.js'

// What a fault happens to: PostgreSQL, Redis and two gateways, each a process of its own.

export const PETS = 500
/** Only orders that are repeated until they are acknowledged are for this one. */
export const KEYED_PET = PETS + 1
/** Of the polite clients. Hostile ones have a key of their own. */
const KEYS = 5
/** How long a gateway that stops still accepts connections. The load looks at /readyz more often. */
const DRAIN_SECONDS = 3

export type GatewayProcess = Awaited<ReturnType<typeof startGateway>>

async function startGateway(env: Record<string, string>) {
  const server = await startServer(['dist/src/main.js'], {
    LOG_LEVEL: 'warn',
    DRAIN_SECONDS: String(DRAIN_SECONDS),
    ...env,
  })
  const agent = new Agent({ keepAlive: true })
  const state = {
    ...server,
    agent,
    /** What /readyz said last; the load avoids gateways that drain or do not answer. */
    accepts: true,
    /** The signal that the fault sent. A killed process takes its connections with it. */
    signalled: undefined as 'SIGTERM' | 'SIGKILL' | undefined,
    async signal(name: 'SIGTERM' | 'SIGKILL') {
      state.signalled = name
      const exit = once(server.child, 'exit')
      server.child.kill(name)
      const [code] = await exit
      return code as number | null
    },
  }
  return state
}

/** By kind: where the gateways find it, and the server that faults may break. */
const redisOf = {
  async server() {
    const server = await RedisServer.reserve()
    await server.start()
    return { url: server.url, server, replicas: [], close: () => server.kill() }
  },
  async cluster() {
    const { nodes, urls, mastersFor, close } = await startCluster({ replicas: 1, nodeTimeoutMs: 1_500 })
    const { own } = await mastersFor('petstore:{probe}')
    const roles = await Promise.all(nodes.map((node) => node.cli('role')))
    return {
      url: urls.join(),
      server: own.node,
      replicas: nodes.filter((_, i) => roles[i]?.startsWith('slave')),
      close,
    }
  },
  async sentinel() {
    const { hosts, master, replica, close } = await startSentinels()
    return { url: `redis+sentinel://${hosts}/pets`, server: master, replicas: [replica], close }
  },
}

export type World = Awaited<ReturnType<typeof createWorld>>

/** What a world has beside, or instead of, one server of each kind. */
export interface WorldOptions {
  redis?: keyof typeof redisOf
  /** A synchronous standby, and an address of PostgreSQL that it can take over. */
  standby?: boolean
  /** PgBouncer in transaction mode. */
  pooler?: boolean
  /** HAProxy with docs/haproxy.cfg, which the clients use. */
  proxy?: boolean
}

const TRANSACTIONS = ['default_pool_size = 15']

export async function createWorld(options: WorldOptions) {
  if (options.pooler && !hasPgbouncer) throw new Refusal('pgbouncer is not installed.')
  if (options.proxy && !hasHaproxy) throw new Refusal('haproxy is not installed.')
  const [postgres, redis] = await Promise.all([Postgres.create(), redisOf[options.redis ?? 'server']()])
  const address = options.standby ? await startSwitch(postgres.port) : undefined
  const pooler = options.pooler ? await startPgbouncer('transaction', postgres.url(), TRANSACTIONS, atEnd) : undefined
  const direct = address ? `postgresql://petstore@127.0.0.1:${address.port}/petstore` : postgres.url()
  const env = {
    DATABASE_URL: pooler?.('petstore', '?pgbouncer=true') ?? direct,
    REDIS_URL: redis.url,
    ...(options.proxy && { TRUST_PROXY: '1' }),
  }
  const gateways = [await startGateway(env)]
  const createKeys = async (count: number, limit = 2_000_000_000) => {
    const secrets = Array.from({ length: count }, createSecret)
    const rows = secrets.map(
      ({ prefix, hash }) => `('faults', 'Enterprise', '${prefix}', '${hash}', ${limit}, 2000000000)`,
    )
    await world.postgres.admin(
      `INSERT INTO "ApiKey" (name, plan, prefix, hash, "minuteLimit", "dayLimit") VALUES ${rows}`,
    )
    return secrets.map(({ key }) => key)
  }
  await postgres.admin(`
    INSERT INTO "Category" (name) VALUES ('Dogs');
    INSERT INTO "Pet" (name, "categoryId") SELECT 'Pet ' || i, 1 FROM generate_series(1, ${KEYED_PET}) AS i`)
  gateways.push(await startGateway(env))
  const proxy = options.proxy ? await startHaproxy(gateways.map(({ url }) => url)) : undefined
  const agent = new Agent({ keepAlive: true })
  const world = {
    /** The server that holds the data: after a failover another one. */
    postgres,
    redis: redis.server,
    /** Of which one becomes a master when the server is killed. */
    replicas: redis.replicas as RedisServer[],
    gateways,
    keys: [] as string[],
    hostileKey: '',
    createKeys,
    pooler,
    /** What clients use instead of a gateway. */
    entrance: proxy && {
      url: proxy.url,
      agent,
      accepts: true,
      get signalled() {
        return gateways.find(({ signalled }) => signalled)?.signalled
      },
    },
    /** Starts another gateway on a database of this name. */
    startOn: (database: string) =>
      startGateway({
        ...env,
        DATABASE_URL: pooler?.(database, '?pgbouncer=true') ?? postgres.url('petstore', database),
      }),
    /** What a fault has measured. */
    figures: [] as string[],
    /** Promises that a fault itself has seen broken. */
    broken: [] as string[],
    address,
    standby: options.standby ? await postgres.createStandby() : undefined,
    /** Only a key that a gateway knows is served while the database is unreachable. */
    async introduceKeys() {
      for (const { url } of gateways)
        for (const key of world.keys)
          await fetch(`${url}/quota`, { headers: { 'x-api-key': key } }).then((response) => response.text())
    },
    /** Starts gateways in place of those that have ended, and returns how many ended on their own. */
    async replaceEnded() {
      let byThemselves = 0
      for (const [i, { child, signalled }] of gateways.entries()) {
        if (child.exitCode === null && child.signalCode === null) continue
        if (!signalled) byThemselves++
        gateways[i] = await startGateway(env)
        await proxy?.lead(gateways.map(({ url }) => url))
      }
      return byThemselves
    },
    async stop() {
      agent.destroy()
      await proxy?.close()
      for (const gateway of gateways) {
        gateway.agent.destroy()
        gateway.child.kill('SIGKILL')
      }
      await pooler?.kill()
      await redis.close()
    },
  }
  world.keys = await createKeys(KEYS)
  world.hostileKey = (await createKeys(1))[0] as string
  return world
}
