import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { Client } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/ports.js'
import { scratchDatabase, testDatabaseUrl } from '../support/postgres.js'
import { dataFolder, spawnGateway, startGateway } from '../support/process.js'
import { keys } from '../support/remote.js'

describe('SIGTERM', () => {
  test('finishes requests in flight, refuses new connections, loses nothing of what keys have used, and exits with 0; a second signal changes nothing', async () => {
    const env = { DATA_DIR: await dataFolder() }
    const { url, demoKey, child, stop } = await startGateway(env)
    for (let i = 0; i < 7; i++) await fetch(`${url}/pets`, { headers: { 'x-api-key': demoKey } })
    const slow = request(`${url}/pets`, {
      method: 'POST',
      headers: {
        'x-api-key': demoKey,
        'content-type': 'application/json',
        'content-length': '31',
        expect: '100-continue',
      },
    })
    slow.flushHeaders()
    await once(slow, 'continue')
    slow.write('{"name":"Slow",')
    const exit = stop('SIGTERM')
    const refused = () =>
      fetch(url).then(
        () => false,
        () => true,
      )
    await expect.poll(refused).toBe(true)
    child.kill('SIGTERM')
    slow.end('"categoryId": 1}')
    const [response] = await once(slow, 'response')
    expect(response.statusCode).toBe(201)
    response.resume()
    expect(await exit).toBe(0)
    const used = { name: 'Demo Free', requests: 8, refusals: 0, cost: 8 }
    expect(await keys(env, 'usage', '--days', '2')).toMatchObject([used])
  })
})

const FULL = '/dev/full'

test.skipIf(!existsSync(FULL))(
  'a service serves and stops while neither its log nor its banner can be written',
  async () => {
    const [port, full] = [await freePort(), openSync(FULL, 'w')]
    onTestFinished(() => closeSync(full))
    const env = { PATH: process.env.PATH, DATA_DIR: await dataFolder(), PORT: String(port), EMBEDDED_DB_PORT: '0' }
    const child = spawn(process.execPath, ['dist/src/main.js'], { env, stdio: ['ignore', full, full] })
    onTestFinished(() => void child.kill('SIGKILL'))
    const status = () =>
      fetch(`http://127.0.0.1:${port}/nowhere`).then(
        (response) => response.status,
        () => undefined,
      )
    await expect.poll(status, { timeout: 60_000 }).toBe(401)
    // Each is a line. A client without a key may send 60.
    for (let i = 0; i < 100; i++) await status()
    expect([await status(), child.exitCode]).toEqual([429, null])
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  },
)

/** Sends SIGTERM twice. The process exits with 0 and says nothing on the way. */
async function expectStop({ child, ended, output }: ReturnType<typeof spawnGateway>) {
  child.kill('SIGTERM')
  child.kill('SIGTERM')
  expect([await ended, output.stderr]).toEqual([0, ''])
}

describe('SIGTERM at any moment of the first start ends it with 0, and the next start is complete:', () => {
  /** Says when the program begins to listen to signals: until then, they end any Node process. */
  const NODE_OPTIONS = `--import=data:text/javascript,process.on('newListener',(name)=>name=='SIGTERM'&&console.log(name))`

  test('immediately, while the database is created in place of one whose creation was killed, migrated, and filled', async () => {
    const DATA_DIR = await dataFolder()
    rmSync(join(DATA_DIR, 'db/global'), { recursive: true })
    writeFileSync(join(DATA_DIR, 'db.incomplete'), '')
    let start = 0
    /** Whether this start, and not the one before it, has written a file. */
    const wrote = (name: string) => (statSync(join(DATA_DIR, name), { throwIfNoEntry: false })?.mtimeMs ?? 0) > start
    const moments: ((stdout: string) => boolean)[] = [
      (stdout) => stdout.includes('SIGTERM'),
      () => wrote('db.incomplete'),
      () => wrote('db/PG_VERSION') && !existsSync(join(DATA_DIR, 'db.incomplete')),
      () => wrote('demo-keys.json.new') || wrote('demo-keys.json'),
    ]
    for (const moment of moments) {
      start = Date.now()
      const gateway = spawnGateway({ DATA_DIR, PORT: String(await freePort()), LOG_LEVEL: 'error', NODE_OPTIONS })
      await expect.poll(() => moment(gateway.output.stdout), { interval: 2 }).toBe(true)
      await expectStop(gateway)
    }
    const { url, demoKey, stop } = await startGateway({ DATA_DIR })
    const headers = { 'x-api-key': demoKey }
    expect(await (await fetch(`${url}/pets?limit=100`, { headers })).json()).toHaveLength(12)
    expect(
      readdirSync(DATA_DIR)
        .filter((name) => !name.startsWith('lock-'))
        .sort(),
    ).toEqual(['db', 'demo-keys.json'])
    expect(await stop()).toBe(0)
  })
})

describe('SIGTERM ends the process with 0 although the database hangs:', () => {
  /** Accepts connections, and passes them on to the test server until it hangs. */
  async function hangingServer() {
    let hanging = testDatabaseUrl === undefined
    const { hostname, port } = new URL(testDatabaseUrl ?? 'postgresql://127.0.0.1:5432')
    const server = createServer((client) => {
      client.on('error', () => {})
      if (hanging) return
      const target = connect(Number(port || 5432), hostname).on('error', () => client.destroy())
      const pass = (from: typeof client, to: typeof client) =>
        from.on('data', (data) => hanging || to.write(data)).on('close', () => hanging || to.destroy())
      pass(client, target)
      pass(target, client)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const url = new URL(testDatabaseUrl ?? 'postgresql://postgres@127.0.0.1/postgres')
    url.hostname = '127.0.0.1'
    url.port = String((server.address() as AddressInfo).port)
    return {
      server,
      url,
      hang: () => {
        hanging = true
      },
    }
  }

  test('during the start', async () => {
    const { server, url, hang } = await hangingServer()
    hang()
    const gateway = spawnGateway({ DATABASE_URL: url.href, PORT: String(await freePort()) })
    await once(server, 'connection')
    await expectStop(gateway)
  })

  test.runIf(testDatabaseUrl)('while it serves: the request in flight is answered', async () => {
    const { pathname } = new URL(await scratchDatabase())
    const { url, hang } = await hangingServer()
    url.pathname = pathname
    const started = await startGateway({ DATABASE_URL: url.href, LOG_LEVEL: 'silent' })
    hang()
    const pending = fetch(`${started.url}/readyz`)
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(await started.stop()).toBe(0)
    expect((await pending).status).toBe(503)
  })
})

describe.runIf(testDatabaseUrl)('on one PostgreSQL', () => {
  test('a start that waits for the migrations of another gateway says so, and SIGTERM ends it with 0', async () => {
    const DATABASE_URL = await scratchDatabase()
    const holder = new Client({ connectionString: DATABASE_URL })
    await holder.connect()
    onTestFinished(() => holder.end())
    await holder.query('SELECT pg_advisory_lock(72707369)')
    const gateway = spawnGateway({ DATABASE_URL, PORT: String(await freePort()) })
    await expect.poll(() => gateway.output.stderr).toMatch(/waiting up to 60 seconds for the migration/)
    gateway.output.stderr = ''
    await expectStop(gateway)
    const tables = await holder.query(`SELECT FROM pg_tables WHERE schemaname = 'public'`)
    expect(tables.rowCount).toBe(0)
  })

  test('four gateways can start at the same time on an empty database', async () => {
    const DATABASE_URL = await scratchDatabase()
    const env = { DATABASE_URL, DRAIN_SECONDS: '1' }
    const started = await Promise.all(Array.from({ length: 4 }, () => startGateway(env)))
    for (const { url } of started) expect((await fetch(`${url}/readyz`)).status).toBe(200)
    expect(started[0]?.output).not.toContain('curl')
    const codes = await Promise.all(started.map(({ stop }) => stop()))
    expect(codes).toEqual([0, 0, 0, 0])
  })
})
