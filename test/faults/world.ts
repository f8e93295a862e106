import { once } from 'node:events'
import { Agent } from 'node:http'
import { createSecret } from '../../src/auth/index.js'
import { startProcess, startServer } from '../bench/processes.js'
import { freePort } from '../support/ports.js'
import { Postgres, startSwitch } from './postgres.js'

// What a fault happens to: PostgreSQL, Redis and two gateways, each a process of its own.

export const PETS = 500
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

class RedisProcess {
  #child: ReturnType<typeof startProcess> | undefined
  constructor(readonly port: number) {}

  get url() {
    return `redis://127.0.0.1:${this.port}`
  }

  async start() {
    const child = startProcess('redis-server', [
      '--port',
      String(this.port),
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--appendonly',
      'no',
    ])
    this.#child = child
    for await (const line of child.stdout?.iterator({ destroyOnReturn: false }) ?? [])
      if (String(line).includes('Ready to accept connections')) break
    child.stdout?.resume()
  }

  signal(name: NodeJS.Signals) {
    this.#child?.kill(name)
  }

  async kill() {
    const exit = this.#child && once(this.#child, 'exit')
    this.#child?.kill('SIGKILL')
    await exit
  }
}

export type World = Awaited<ReturnType<typeof createWorld>>

/** @param failsOver the gateways reach PostgreSQL at an address that a standby can take over */
export async function createWorld({ failsOver = false } = {}) {
  const [postgres, port] = await Promise.all([Postgres.create(), freePort()])
  const redis = new RedisProcess(port)
  await redis.start()
  const address = failsOver ? await startSwitch(postgres.port) : undefined
  const env = {
    DATABASE_URL: address ? `postgresql://petstore@127.0.0.1:${address.port}/petstore` : postgres.url(),
    REDIS_URL: redis.url,
  }
  const gateways = [await startGateway(env)]
  const secrets = Array.from({ length: 1 + KEYS }, createSecret)
  const rows = secrets.map(
    ({ prefix, hash }) => `('faults', 'Enterprise', '${prefix}', '${hash}', 2000000000, 2000000000)`,
  )
  const [hostileKey = '', ...keys] = secrets.map(({ key }) => key)
  await postgres.admin(`
    INSERT INTO "ApiKey" (name, plan, prefix, hash, "minuteLimit", "dayLimit") VALUES ${rows};
    INSERT INTO "Category" (name) VALUES ('Dogs');
    INSERT INTO "Pet" (name, "categoryId") SELECT 'Pet ' || i, 1 FROM generate_series(1, ${PETS}) AS i;
    INSERT INTO "InventoryItem" ("petId") SELECT id FROM "Pet" ON CONFLICT DO NOTHING`)
  gateways.push(await startGateway(env))
  return {
    /** The server that holds the data: after a failover another one. */
    postgres,
    redis,
    gateways,
    keys,
    hostileKey,
    /** Promises that a fault itself has seen broken. */
    broken: [] as string[],
    address,
    standby: failsOver ? await postgres.createStandby() : undefined,
    /** Only a key that a gateway knows is served while the database is unreachable. */
    async introduceKeys() {
      for (const { url } of gateways)
        for (const key of keys)
          await fetch(`${url}/quota`, { headers: { 'x-api-key': key } }).then((response) => response.text())
    },
    /** Starts gateways in place of those that have ended, and returns how many ended on their own. */
    async replaceEnded() {
      let byThemselves = 0
      for (const [i, { child, signalled }] of gateways.entries()) {
        if (child.exitCode === null && child.signalCode === null) continue
        if (!signalled) byThemselves++
        gateways[i] = await startGateway(env)
      }
      return byThemselves
    },
    async stop() {
      for (const gateway of gateways) {
        gateway.agent.destroy()
        gateway.child.kill('SIGKILL')
      }
      await redis.kill()
    },
  }
}
