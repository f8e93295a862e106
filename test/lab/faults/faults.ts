import { setTimeout as sleep } from 'node:timers/promises'
import { ask, drip, hogConnections, hold } from './clients.js'
import { killMaster } from './limits.js'
import type { Sample } from './load.js'
import { useAsMany } from './pooler.js'
import type { World, WorldOptions } from './world.js'

// Every fault: what breaks, what repairs it, and what the gateways guarantee until then.

export interface Fault {
  name: string
  /** Part of the shortened run, or how long it lasts there in milliseconds. */
  quick?: true | number
  /** How long it lasts, where the usual time does not do. */
  holdMs?: number
  /** What /readyz says while it lasts: 503 some time, or always 200. Undefined: it may have a connection or not. */
  readyz?: 200 | 503
  /** The kinds of requests that it must not touch; default: those that need no database. */
  serves?: (kind: Sample['kind']) => boolean
  /** The slowest response in milliseconds, where the usual promise does not hold. */
  slowestMs?: number
  /** What it needs beside one server of each kind. */
  world?: WorldOptions
  /** What is measured before the load begins. */
  before?: (world: World) => Promise<void>
  /** Breaks something. */
  start: (world: World) => Promise<() => unknown>
}

// A world takes seconds to start, so each has more than one thing beside the usual.
const withPooler: WorldOptions = { redis: 'cluster', pooler: true }
const withProxy: WorldOptions = { redis: 'sentinel', proxy: true }

const everything = () => true
const needsNot = (table: string) => (kind: Sample['kind']) => kind.needs !== table

/** A transaction of somebody else that keeps a table to itself. */
const lock = (table: string) => async (world: World) => {
  const client = await world.postgres.connect()
  await client.query(`BEGIN; LOCK TABLE "${table}" IN ACCESS EXCLUSIVE MODE`)
  return async () => {
    await client.query('COMMIT')
    await client.end()
  }
}

/** Something that happens again and again. */
const repeat = (everyMs: number, act: (world: World) => Promise<unknown>) => async (world: World) => {
  let stopped = false
  const acting = (async () => {
    for (; !stopped; await sleep(everyMs)) await act(world).catch(() => {})
  })()
  return async () => {
    stopped = true
    await acting
    await world.postgres.answers()
  }
}

const head = (line: string, { hostileKey }: Pick<World, 'hostileKey'>) =>
  `${line}\r\nHost: localhost\r\nX-API-Key: ${hostileKey}\r\n`
const post = (world: World) => `${head('POST /categories HTTP/1.1', world)}Content-Type: application/json\r\n`

/** Clients that hold connections, while all others are served. */
const clients = (count: number, use: (world: World) => Parameters<typeof hold>[2]) => async (world: World) => {
  const held = await hold(world, count, use(world))
  return held.close
}

export const faults: Fault[] = [
  {
    name: 'PostgreSQL stops (fast)',
    quick: true,
    readyz: 503,
    async start({ postgres }) {
      await postgres.stop('SIGINT')
      return () => postgres.start()
    },
  },
  {
    name: 'PostgreSQL stops (immediate)',
    readyz: 503,
    async start({ postgres }) {
      await postgres.stop('SIGQUIT')
      return () => postgres.start()
    },
  },
  {
    name: 'PostgreSQL hangs',
    quick: true,
    readyz: 503,
    async start({ postgres }) {
      postgres.hang()
      return () => postgres.resume()
    },
  },
  { name: 'orders are locked', quick: true, readyz: 200, serves: needsNot('Order'), start: lock('Order') },
  { name: 'stock is locked', readyz: 200, serves: needsNot('InventoryItem'), start: lock('InventoryItem') },
  { name: 'keys are locked', holdMs: 12_000, readyz: 200, serves: everything, start: lock('ApiKey') },
  {
    name: 'no connections left',
    quick: true,
    async start(world) {
      const hog = await hogConnections(world)
      return hog.close
    },
  },
  {
    name: 'all connections ended, every second',
    readyz: 200,
    start: repeat(1_000, ({ postgres }) => postgres.terminateBackends()),
  },
  {
    name: 'a backend crashes, every second',
    readyz: 503,
    start: repeat(1_000, ({ postgres }) => postgres.crashBackend()),
  },
  {
    name: 'the only synchronous standby dies',
    world: { standby: true },
    quick: 8_000,
    holdMs: 60_000,
    readyz: 200,
    // Each COMMIT waits for the standby.
    serves: ({ promises }) => promises === undefined,
    async start(world) {
      await world.standby?.kill()
      let most = 0
      const connections = async () => {
        const rows = await world.postgres.admin(
          `SELECT application_name, count(*)::int FROM pg_stat_activity WHERE usename = 'petstore' GROUP BY 1`,
        )
        // Those of a process: of its pool and of its probe.
        for (const row of rows) most = Math.max(most, row.count)
      }
      const watching = setInterval(() => void connections().catch(() => {}), 1_000)
      return async () => {
        clearInterval(watching)
        if (most > 22) world.broken.push(`a gateway has ${most} connections`)
        world.figures.push(`a gateway had ${most} connections at most`)
        await world.standby?.start('hot_standby=on')
      }
    },
  },
  {
    name: 'PostgreSQL is killed and fails over',
    quick: true,
    world: { standby: true },
    readyz: 503,
    async start(world) {
      const { postgres, standby, address } = world
      await postgres.kill()
      return async () => {
        if (!standby || !address) return
        await standby.admin('SELECT pg_promote()')
        address.switchTo(standby.port)
        world.postgres = standby
      }
    },
  },
  {
    name: 'Redis stops',
    readyz: 200,
    serves: everything,
    async start({ redis }) {
      await redis.kill()
      return () => redis.start()
    },
  },
  {
    name: 'Redis hangs',
    quick: 3_000,
    readyz: 200,
    serves: everything,
    async start({ redis }) {
      redis.signal('SIGSTOP')
      return () => redis.signal('SIGCONT')
    },
  },
  {
    name: 'Redis restarts empty',
    holdMs: 2_000,
    readyz: 200,
    serves: everything,
    async start({ redis }) {
      await redis.kill()
      await redis.start()
      return () => {}
    },
  },
  ...[withPooler, withProxy].map(
    (world): Fault => ({
      name: `a master is killed (${world.redis})`,
      quick: true,
      world,
      holdMs: 6_000,
      readyz: 200,
      serves: everything,
      start: killMaster,
    }),
  ),
  {
    name: 'a gateway stops (SIGTERM)',
    quick: 2_000,
    readyz: 200,
    serves: everything,
    async start({ gateways, broken }) {
      const code = await gateways[0]?.signal('SIGTERM')
      if (code !== 0) broken.push(`the gateway exited with ${code}`)
      return () => {}
    },
  },
  {
    name: 'a gateway is killed (SIGKILL)',
    quick: 2_000,
    readyz: 200,
    serves: everything,
    async start({ gateways }) {
      await gateways[0]?.signal('SIGKILL')
      return () => {}
    },
  },
  {
    name: 'a gateway is killed behind HAProxy',
    quick: 2_000,
    world: withProxy,
    readyz: 200,
    // All reads by GET; POST may have changed something.
    serves: ({ method }) => method === 'GET',
    async start({ gateways }) {
      await gateways[0]?.signal('SIGKILL')
      return () => {}
    },
  },
  {
    name: 'a gateway stops behind HAProxy (SIGTERM)',
    world: withProxy,
    readyz: 200,
    serves: everything,
    async start({ gateways }) {
      await gateways[0]?.signal('SIGTERM')
      return () => {}
    },
  },
  {
    name: 'PgBouncer is killed',
    quick: true,
    world: withPooler,
    readyz: 503,
    before: useAsMany,
    async start({ pooler }) {
      await pooler?.kill()
      return () => pooler?.start()
    },
  },
  {
    name: '400 clients with slow heads',
    readyz: 200,
    serves: everything,
    start: clients(400, (world) => (socket) => {
      socket.write(head('GET /pets HTTP/1.1', world))
      void drip(socket, 'X-Slow: x\r\n', 500)
    }),
  },
  {
    name: '400 clients with slow bodies',
    readyz: 200,
    serves: everything,
    start: clients(400, (world) => (socket) => {
      socket.write(`${post(world)}Content-Length: 100000\r\n\r\n`)
      void drip(socket, ' ', 500)
    }),
  },
  {
    name: '20 clients with bodies that never end',
    readyz: 200,
    serves: everything,
    start: clients(20, (world) => (socket) => {
      socket.write(`${post(world)}Transfer-Encoding: chunked\r\n\r\n`)
      void drip(socket, `400\r\n${' '.repeat(1024)}\r\n`, 1)
    }),
  },
  { name: '2,000 idle connections', readyz: 200, serves: everything, start: clients(2_000, () => () => {}) },
  {
    name: '30 readers that never read',
    quick: 2_000,
    readyz: 200,
    serves: everything,
    start: clients(30, (world) => (socket) => {
      socket.pause()
      socket.write(`${head('GET /pets?limit=100 HTTP/1.1', world)}\r\n`.repeat(200))
    }),
  },
  {
    name: '1,500 connections that ask for more than can be answered',
    readyz: 200,
    slowestMs: 5_000,
    serves: () => false,
    start: clients(1_500, (world) => {
      let n = 0
      return (socket) => {
        const hostileKey = world.keys[n++ % world.keys.length] as string
        ask(socket, `${head('GET /pets?limit=100 HTTP/1.1', { hostileKey })}\r\n`, (text) =>
          world.broken.push(`a client got ${text}`),
        )
      }
    }),
  },
]
