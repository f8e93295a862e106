import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect, createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/ports.js'
import { scratchDatabase, testDatabaseUrl } from '../support/postgres.js'
import { refusedStart, spawnGateway, startGateway } from '../support/process.js'
import { TcpProxy } from '../support/proxy.js'
import { RedisServer, redisBinary } from '../support/redis.js'
import { createKey, keys, readiness } from '../support/remote.js'

// GATEWAYS: several processes on one port, as clients and operators see them.

let redis: RedisServer
beforeAll(async () => {
  redis = await RedisServer.reserve()
  if (redisBinary) await redis.start()
})
afterAll(() => redis.kill())

const isAlive = (pid: number) => {
  try {
    // A process that has ended and that nothing has waited for is a zombie.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
const childrenOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)

/** Starts a gateway of several processes. */
async function startGateways(count: number, env: Record<string, string> = {}) {
  const settings = { DATABASE_URL: await scratchDatabase(), REDIS_URL: redis.url, ...env }
  const started = await startGateway({ ...settings, GATEWAYS: String(count) })
  const pid = started.child.pid as number
  const lines = () =>
    started
      .errors()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  return { ...started, settings, lines, pid, processes: () => childrenOf(pid) }
}

/** A request on a connection of its own, so that the processes take turns. Undefined if the connection breaks. */
const get = async (url: string, key?: string): Promise<number | undefined> => {
  const headers = { ...(key && { 'x-api-key': key }), connection: 'close' }
  return fetch(url, { headers }).then(
    async (response) => {
      await response.arrayBuffer()
      return response.status
    },
    () => undefined,
  )
}

const many = async (count: number, send: () => Promise<number | undefined>) => {
  const statuses: (number | undefined)[] = []
  while (statuses.length < count)
    statuses.push(...(await Promise.all(Array.from({ length: Math.min(25, count - statuses.length) }, send))))
  return statuses
}
const countOf = (statuses: (number | undefined)[], status: number) => statuses.filter((one) => one === status).length

/** The value of a metric, all of its series together. */
async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const samples = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  return samples.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

describe('GATEWAYS=2 is refused in one line', () => {
  test('with the embedded database, and without Redis', async () => {
    const line = (without: string) => `GATEWAYS is "2"; it must be 1 without ${without}\n`
    expect(await refusedStart({ GATEWAYS: '2' })).toBe(line('DATABASE_URL and REDIS_URL'))
    const DATABASE_URL = 'postgresql://localhost/none'
    expect(await refusedStart({ GATEWAYS: '2', DATABASE_URL })).toBe(line('REDIS_URL'))
  })
})

describe.runIf(testDatabaseUrl && redisBinary)('several processes on one port', () => {
  test('start with the lines of one, share requests, and log and count as one', async () => {
    const { url, output, lines, settings, processes } = await startGateways(2, { LOG_LEVEL: 'info' })
    expect(output.match(/Pet Store/g)).toHaveLength(1)
    expect(output).toMatch(/^ {2}processes {2}2$/m)
    expect(processes()).toHaveLength(2)
    const key = await createKey(settings)
    expect(new Set(await many(40, () => get(`${url}/pets`, key)))).toEqual(new Set([200]))
    // What is asked within a second is one answer.
    await expect.poll(() => metric(url, 'petstore_requests_total')).toBe(40)
    expect(await metric(url, 'petstore_processes')).toBe(2)
    expect(await metric(url, 'petstore_build_info')).toBe(1)
    expect(await metric(url, 'process_start_time_seconds')).toBeGreaterThan(1.7e9)
    expect(await readiness(url)).toEqual([200, { status: 'ok', database: 'ok', limits: 'redis' }])
    await expect.poll(() => lines().filter(({ msg }) => msg === 'request').length).toBe(40)
    const gateways = lines().map(({ gateway }) => gateway)
    expect(new Set(gateways)).toEqual(new Set([1, 2]))
  })

  test('admit exactly the plan, also while processes are killed', async () => {
    const { url, settings, processes } = await startGateways(2, { BAN_AFTER: '1000000' })
    const create = [
      'create',
      '--name',
      'limited',
      '--plan',
      'Enterprise',
      '--minute-limit',
      '150',
      '--day-limit',
      '1000',
    ]
    const { key } = await keys(settings, ...create)
    const sending = many(600, () => get(`${url}/pets`, key))
    for (let kill = 0; kill < 2; kill++) {
      await expect.poll(() => processes().length).toBe(2)
      process.kill(processes()[0] as number, 'SIGKILL')
    }
    const statuses = await sending
    const [admitted, lost] = [countOf(statuses, 200), countOf(statuses, undefined as never)]
    expect(admitted + countOf(statuses, 429) + lost).toBe(600)
    expect(admitted).toBeLessThanOrEqual(150)
    // What a process had at work when it was killed may have been charged.
    expect(admitted).toBeGreaterThanOrEqual(150 - lost)
  })

  test('one that ends is replaced, with a line; nothing that was counted is lost', async () => {
    const { url, settings, lines, processes } = await startGateways(2)
    const key = await createKey(settings)
    await many(30, () => get(`${url}/pets`, key))
    await expect.poll(() => metric(url, 'petstore_requests_total')).toBe(30)
    const [first, second] = processes() as [number, number]
    process.kill(first, 'SIGKILL')
    await expect.poll(() => metric(url, 'petstore_processes')).toBe(1)
    expect(await metric(url, 'petstore_requests_total')).toBe(30)
    await expect.poll(() => metric(url, 'petstore_processes')).toBe(2)
    expect(await metric(url, 'petstore_requests_total')).toBe(30)
    expect(processes()).toHaveLength(2)
    expect(processes()).toContain(second)
    expect(lines()).toMatchObject([
      {
        level: 50,
        pid: first,
        signal: 'SIGKILL',
        waitMs: 1000,
        msg: expect.stringContaining('ended'),
      },
    ])
    expect(new Set(await many(20, () => get(`${url}/pets`, key)))).toEqual(new Set([200]))
    await expect.poll(() => metric(url, 'petstore_requests_total')).toBe(50)
  })

  test('one that cannot start is tried again, later each time, and says why; the others go on', async () => {
    const proxy = await TcpProxy.open(await scratchDatabase())
    onTestFinished(() => proxy.cut())
    const { url, lines, processes } = await startGateways(2, { DATABASE_URL: proxy.url })
    await proxy.cut()
    process.kill(processes()[0] as number, 'SIGKILL')
    const waits = () => lines().flatMap(({ waitMs, reason }) => (waitMs ? [[waitMs, reason]] : []))
    await expect.poll(waits).toHaveLength(3)
    const refused = expect.stringMatching(
      /^DATABASE_URL: .* cannot be used: connection refused; is the server running\?$/,
    )
    expect(waits()).toEqual([
      [1_000, undefined],
      [2_000, refused],
      [4_000, refused],
    ])
    expect(await get(`${url}/healthz`)).toBe(200)
    await proxy.restore()
    await expect.poll(() => metric(url, 'petstore_processes')).toBe(2)
  })

  test('/healthz and /readyz are those of all: one that hangs is 503, until it is killed and replaced', async () => {
    const { url, lines, processes } = await startGateways(2)
    const [hanging] = processes() as [number]
    process.kill(hanging, 'SIGSTOP')
    // A connection that the hanging process gets is not answered.
    const ask = async (path: string) => {
      const response = await fetch(url + path, { headers: { connection: 'close' }, signal: AbortSignal.timeout(6_000) })
      return [response.status, await response.json()]
    }
    const answer = (path: string) => ask(path).catch(() => ask(path).catch(() => []))
    await expect.poll(() => answer('/healthz')).toEqual([503, { status: 'unavailable' }])
    await expect
      .poll(() => answer('/readyz'))
      .toEqual([503, { status: 'unavailable', database: 'ok', limits: 'redis' }])
    expect(await metric(url, 'petstore_processes')).toBe(1)
    expect(await metric(url, 'petstore_processes_wanted')).toBe(2)
    await expect.poll(() => isAlive(hanging)).toBe(false)
    await expect.poll(() => answer('/readyz')).toEqual([200, { status: 'ok', database: 'ok', limits: 'redis' }])
    await expect.poll(() => metric(url, 'petstore_processes')).toBe(2)
    expect(lines()).toMatchObject([
      { level: 50, pid: hanging, msg: 'a process does not answer' },
      { level: 50, pid: hanging, signal: 'SIGKILL', waitMs: 1_000 },
    ])
  })

  test('SIGTERM ends all with 0 although one hangs, and the log says which', async () => {
    const { processes, lines, stop } = await startGateways(2)
    const [hanging, other] = processes() as [number, number]
    process.kill(hanging, 'SIGSTOP')
    expect(await stop()).toBe(0)
    expect([hanging, other].filter(isAlive)).toEqual([])
    expect(lines().at(-1)).toMatchObject({ level: 50, pid: hanging, signal: 'SIGKILL' })
  })

  test('ADMIN_PORT is shared, too; a connection that a process dies with is closed, on either port', async () => {
    const ADMIN_PORT = String(await freePort())
    const { url, processes } = await startGateways(2, { ADMIN_PORT })
    expect(await get(`${url}/healthz`)).toBe(401)
    expect(await metric(`http://127.0.0.1:${ADMIN_PORT}`, 'petstore_processes')).toBe(2)
    const pids = processes()
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    const closed = [new URL(url).port, ADMIN_PORT].flatMap((port) =>
      [1, 2].map(() =>
        once(
          connect(Number(port), '127.0.0.1').on('error', () => {}),
          'close',
        ),
      ),
    )
    await new Promise((resolve) => setTimeout(resolve, 500))
    for (const pid of pids) process.kill(pid, 'SIGKILL')
    // Otherwise the test would end with its time.
    await Promise.all(closed)
  })

  test('SIGTERM finishes what each of them has in flight, and ends all with 0', async () => {
    const { url, settings, processes, child, stop } = await startGateways(3, { DRAIN_SECONDS: '1' })
    const key = await createKey(settings)
    const body = '{"name":"Slow"}'
    const slow = Array.from({ length: 6 }, (_, i) => {
      const headers = { 'x-api-key': key, 'content-type': 'application/json', 'content-length': String(body.length) }
      const sent = request(`${url}/categories`, {
        method: 'POST',
        agent: new Agent(),
        headers: { ...headers, 'idempotency-key': `slow-${i}`, expect: '100-continue' },
      })
      sent.flushHeaders()
      return sent
    })
    await Promise.all(slow.map((sent) => once(sent, 'continue')))
    const pids = processes()
    const exit = stop('SIGTERM')
    // Ctrl+C in a terminal reaches each of them, too.
    for (const pid of pids) process.kill(pid, 'SIGINT')
    child.kill('SIGTERM')
    const ended = slow.map(async (sent) => {
      sent.end(body)
      const [response] = await once(sent, 'response')
      response.resume()
      return response.statusCode
    })
    expect(await Promise.all(ended)).toEqual(slow.map(() => 201))
    expect(await exit).toBe(0)
    expect(pids.filter(isAlive)).toEqual([])
  })

  test('end if the first process is killed, and the next start finds the port free', async () => {
    const PORT = String(await freePort())
    const { settings, processes, stop } = await startGateways(2, { PORT })
    const pids = processes()
    await stop('SIGKILL')
    await expect.poll(() => pids.filter(isAlive)).toEqual([])
    const next = await startGateway({ ...settings, PORT, GATEWAYS: '2' })
    expect(await next.stop()).toBe(0)
  })
})

describe.runIf(testDatabaseUrl && redisBinary)('a start of several processes', () => {
  const env = async () => ({ DATABASE_URL: await scratchDatabase(), REDIS_URL: redis.url, GATEWAYS: '3' })

  test('that fails says once why, and leaves no process', async () => {
    const blocker = createServer().listen(0)
    await once(blocker, 'listening')
    onTestFinished(() => void blocker.close())
    const PORT = String((blocker.address() as { port: number }).port)
    expect(await refusedStart({ ...(await env()), PORT })).toBe(
      `Cannot listen on 0.0.0.0:${PORT}: port ${PORT} is already in use; set PORT to another\n`,
    )
  })

  test('is ready when all serve, not before', async () => {
    const PORT = String(await freePort())
    spawnGateway({ ...(await env()), PORT })
    const url = `http://127.0.0.1:${PORT}`
    const asked: (number | undefined)[] = []
    while (asked.at(-1) !== 200) asked.push(await get(`${url}/readyz`))
    expect(await metric(url, 'petstore_processes')).toBe(3)
    expect(asked.filter((status) => status !== undefined && status !== 200 && status !== 503)).toEqual([])
  })

  test('says once what is misspelt', async () => {
    const { errors, stop } = await startGateway({ ...(await env()), GATEWAY: '2' })
    expect(errors().match(/GATEWAY is not a setting.*did you mean GATEWAYS/g)).toHaveLength(1)
    expect(await stop()).toBe(0)
  })

  test('ends with 0 at SIGTERM, whenever it comes', async () => {
    // Says when the program begins to listen to signals: until then, they end any Node process.
    const NODE_OPTIONS = `--import=data:text/javascript,process.on('newListener',(name)=>name=='SIGTERM'&&console.log(name))`
    const settings = { ...(await env()), PORT: String(await freePort()), NODE_OPTIONS }
    for (const waitMs of [0, 500, 1_000, 2_000]) {
      const { child, ended, output } = spawnGateway(settings)
      await expect.poll(() => output.stdout, { interval: 2 }).toContain('SIGTERM')
      await new Promise((resolve) => setTimeout(resolve, waitMs))
      child.kill('SIGTERM')
      expect(await ended).toBe(0)
    }
  })
})
