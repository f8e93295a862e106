import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openTestDatabase } from '../support/database.js'
import { freePort } from '../support/ports.js'
import { asAdmin, scratchDatabase, testDatabaseUrl } from '../support/postgres.js'
import { dataFolder, refusedStart, startGateway, temporaryFolder } from '../support/process.js'
import { createKey } from '../support/remote.js'
import { parseSamples } from '../support/samples.js'

// What an operator sees of a process.

/** A database on a server if there is one: a gateway starts twice as fast on it. */
async function store() {
  const database = await openTestDatabase()
  onTestFinished(() => database.close())
  return database.embedded ? { DATA_DIR: await dataFolder() } : database.env
}
const start = async (env: Record<string, string> = {}) => startGateway({ ...(await store()), ...env })

test('/metrics names the commit that was built', async () => {
  const { url } = await start()
  const [built] = parseSamples(await (await fetch(`${url}/metrics`)).text(), 'petstore_build_info')
  expect(built?.commit).toMatch(/^([\da-f]{40})?$/)
})

describe('ADMIN_PORT', () => {
  test('answers a process’s probes for as long as it serves requests', async () => {
    const ADMIN_PORT = String(await freePort())
    const { url, stop } = await start({ ADMIN_PORT, DRAIN_SECONDS: '1' })
    const ready = () => fetch(`http://127.0.0.1:${ADMIN_PORT}/readyz`).then(({ status }) => status)
    expect(await ready()).toBe(200)
    expect((await fetch(`${url}/readyz`)).status).toBe(401)
    const ended = stop()
    await expect.poll(ready, { interval: 20 }).toBe(503)
    expect((await fetch(`${url}/docs`)).status).toBe(200)
    expect(await ended).toBe(0)
  })

  test('that is PORT, or in use, stops the start with a message that names it', async () => {
    expect(await refusedStart({ PORT: '3999', ADMIN_PORT: '3999' })).toBe(
      'ADMIN_PORT is "3999"; it must be a whole number from 1 to 65535 other than PORT\n',
    )
    const server = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const env = { ...(await store()), PORT: String(await freePort()), HOST: '127.0.0.1' }
    expect(await refusedStart({ ...env, ADMIN_PORT: String(port) })).toBe(
      `Cannot listen on 127.0.0.1:${port}: port ${port} is already in use; set ADMIN_PORT to another\n`,
    )
  })
})

describe('the log of a process', () => {
  test('is JSON, and is complete when the process has ended', async () => {
    const { url, child, stop } = await start({ LOG_LEVEL: 'info' })
    let written = ''
    child.stderr?.on('data', (data) => {
      written += data
    })
    const ask = () => fetch(url, { redirect: 'manual' })
    expect(new Set((await Promise.all(Array.from({ length: 500 }, ask))).map(({ status }) => status))).toEqual(
      new Set([302]),
    )
    const closed = once(child, 'close')
    expect(await stop()).toBe(0)
    // What the process has written may arrive after its exit.
    await closed
    const parsed = written
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(parsed.filter(({ msg }) => msg === 'request')).toHaveLength(500)
    // The line of the last request may come after it.
    expect(parsed).toContainEqual(expect.objectContaining({ msg: 'stopping', reason: 'SIGTERM' }))
  })

  test('is in order, although a line still waits for a thread when the process ends', async () => {
    const fifo = join(await temporaryFolder(), 'fifo')
    execFileSync('mkfifo', [fifo])
    // From the signal on, the one thread that writes waits until a shell opens the fifo: half a second after the drain.
    const source = `import { exec } from 'node:child_process'
      import { open } from 'node:fs'
      process.on('SIGTERM', () => exec('sleep 2.5; : > ${fifo}') && open('${fifo}', () => {}))`
    const { url, child, stop } = await start({
      LOG_LEVEL: 'info',
      DRAIN_SECONDS: '2',
      UV_THREADPOOL_SIZE: '1',
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(source)}`,
    })
    let written = ''
    child.stderr?.on('data', (data) => {
      written += data
    })
    const closed = once(child, 'close')
    const ended = stop()
    await expect.poll(async () => (await fetch(`${url}/readyz`)).status, { interval: 20 }).toBe(503)
    // Later than a line waits for others.
    await sleep(200)
    await fetch(url, { redirect: 'manual' })
    expect(await ended).toBe(0)
    await closed
    const messages = written.trimEnd().split('\n')
    expect(messages.slice(-2).map((line) => JSON.parse(line).msg)).toEqual(['stopping', 'request'])
  })

  test('if nothing reads it, stops neither requests nor the end of the process', async () => {
    const { url, child, stop } = await start({ LOG_LEVEL: 'info' })
    child.stderr?.pause()
    // Longer lines, so that few of them fill the pipe.
    const headers = { 'x-request-id': 'x'.repeat(128) }
    for (let i = 0; i < 15; i++) {
      const answers = Array.from({ length: 100 }, () => fetch(url, { redirect: 'manual', headers }))
      for (const { status } of await Promise.all(answers)) expect(status).toBe(302)
    }
    expect(await stop()).toBe(0)
  })
})

const canLimit = spawnSync('prlimit', ['--version']).status === 0

test.runIf(testDatabaseUrl && canLimit)(
  'a process without a file descriptor for a connection to PostgreSQL returns 503, and serves once it has one',
  async () => {
    const env = { DATABASE_URL: await scratchDatabase() }
    const { url, child } = await start(env)
    const headers = { 'x-api-key': await createKey(env) }
    // One connection for all requests: it needs no other descriptor.
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const ask = async () => {
      const [response] = await once(get(`${url}/pets`, { agent, headers }), 'response')
      return [response.statusCode, JSON.parse((await response.toArray()).join('')).code]
    }
    const limit = (count: number) => execFileSync('prlimit', [`--pid=${child.pid}`, `--nofile=${count}:`])
    expect(await ask()).toEqual([200, undefined])
    limit(3)
    const name = new URL(env.DATABASE_URL).pathname.slice(1)
    await asAdmin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`)
    expect(await ask()).toEqual([503, 'unavailable'])
    limit(1_024)
    await expect.poll(ask).toEqual([200, undefined])
  },
)
