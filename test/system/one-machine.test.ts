import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { request as plainRequest } from 'node:http'
import { Agent, type RequestOptions, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { parseEnv } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { restore } from '../../src/gateway/database/backup.js'
import { freePort } from '../support/ports.js'
import { dataFolder, type Started, startGateway, temporaryFolder } from '../support/process.js'
import { TcpProxy } from '../support/proxy.js'
import { keys } from '../support/remote.js'
import { HOST, hasCaddy, hasNginx, makeCertificate, startTlsProxy, type TlsProxy } from '../support/tls-proxies.js'

// The examples in docs/one-machine, as far as one can run them without installing them.

describe.runIf(hasNginx && hasCaddy)('TLS in front of a gateway with docs/one-machine/petstore.env', () => {
  const certificate = makeCertificate()
  let DATA_DIR: string
  let gateway: Started
  let network: TcpProxy
  const proxies = new Map<string, TlsProxy>()
  const ends: (() => unknown)[] = []
  beforeAll(async () => {
    DATA_DIR = await mkdtemp(join(tmpdir(), 'petstore-one-machine-'))
    await cp(inject('folder'), DATA_DIR, { recursive: true })
    const {
      PORT: _,
      ADMIN_PORT,
      ...env
    } = parseEnv(readFileSync('docs/one-machine/petstore.env', 'utf8')) as Record<string, string>
    expect(ADMIN_PORT).toBeDefined()
    gateway = await startGateway({ ...env, DATA_DIR, ADMIN_PORT: String(await freePort()) }, (end) => ends.push(end))
    network = await TcpProxy.open(gateway.url)
    ends.push(() => network.cut())
    for (const name of ['nginx', 'caddy'] as const) {
      const proxy = await startTlsProxy(name, certificate, new URL(network.url).host)
      proxies.set(name, proxy)
      ends.push(proxy.close)
    }
  })
  afterAll(async () => {
    for (const end of ends.reverse()) await end()
    certificate.remove()
    await rm(DATA_DIR, { recursive: true, force: true })
  })

  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  /** Sends a request to a proxy, which must show the certificate of HOST. */
  async function send(
    name: string,
    path: string,
    { headers, body, ...options }: RequestOptions & { body?: string } = {},
  ) {
    const sent = request({
      host: '127.0.0.1',
      port: proxies.get(name)?.port,
      path,
      servername: HOST,
      ca: certificate.ca,
      agent,
      method: body ? 'POST' : 'GET',
      headers: { host: HOST, 'content-type': 'application/json', ...headers },
      ...options,
    })
    sent.end(body)
    const [response] = await once(sent, 'response')
    return { status: response.statusCode, headers: response.headers, text: await text(response), sent }
  }
  const withKey = (key = gateway.demoKey) => ({ 'x-api-key': key })

  describe.each([
    ['nginx', '127.0.0.2'],
    ['caddy', '127.0.0.3'],
  ])('by %s', (name, otherAddress) => {
    test('passes requests and answers as they are, with public links, and keeps health and metrics inside', async () => {
      const created = await send(name, '/categories', { headers: withKey(), body: `{"name": "Behind ${name}"}` })
      expect([created.status, JSON.parse(created.text).name]).toEqual([201, `Behind ${name}`])
      const list = await send(name, '/pets?limit=1', { headers: withKey() })
      expect(list.headers.link).toBe(`<https://${HOST}/pets?limit=1&after=1>; rel="next"`)
      const document = await send(name, '/openapi.json')
      expect(document.text).toBe(await (await fetch(`${gateway.url}/openapi.json`)).text())
      expect(JSON.parse(document.text).servers[0].url).toBe(`https://${HOST}`)
      for (const path of ['/metrics', '/readyz'])
        expect((await send(name, path, { headers: withKey() })).status).toBe(404)
    })

    test('uses connections again, those of clients and those to the gateway', async () => {
      await send(name, '/quota', { headers: withKey() })
      const before = network.accepted
      for (let n = 0; n < 20; n++) {
        const { status, sent } = await send(name, '/quota', { headers: withKey() })
        expect([status, sent.reusedSocket]).toEqual([200, true])
      }
      expect(network.accepted - before).toBeLessThanOrEqual(1)
    })

    test('passes a 429 with Retry-After and what is left', async () => {
      const limits = ['--plan', 'Enterprise', '--minute-limit', '2', '--day-limit', '2']
      const { key } = await keys({ DATA_DIR }, 'create', '--name', name, ...limits)
      const answers = []
      for (let n = 0; n < 3; n++) answers.push(await send(name, '/pets', { headers: withKey(key) }))
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
      expect(answers[2]?.headers).toMatchObject({
        'retry-after': expect.stringMatching(/^\d+$/),
        'x-ratelimit-limit': '2',
        'x-ratelimit-remaining': '0',
      })
    })

    test.each([200_000, 2_000_000])('answers a body of %i bytes with the error of the API', async (length) => {
      const body = JSON.stringify({ name: 'x'.repeat(length) })
      const { status, text } = await send(name, '/categories', { headers: withKey(), body, agent: false })
      expect([status, JSON.parse(text)]).toMatchObject([413, { code: 'payload_too_large', status: 413 }])
    })

    test('tells the gateway the address of the client, which a client cannot choose', async () => {
      const statuses: number[] = []
      const forged = (n: number) => ({ 'x-api-key': `petstore_${'0'.repeat(48)}`, 'x-forwarded-for': `10.0.0.${n}` })
      // Wrong keys are counted by address: 60 a minute. Twice as many do not fit into two minutes either.
      for (let n = 0; n < 121; n++)
        statuses.push(
          (await send(name, '/pets', { headers: forged(n), localAddress: otherAddress, agent: other })).status,
        )
      expect(statuses[0]).toBe(401)
      expect(statuses).toContain(429)
      expect((await send(name, '/pets', { headers: forged(1), localAddress: '127.0.0.9', agent: false })).status).toBe(
        401,
      )
    })
    const other = new Agent({ keepAlive: true, maxSockets: 1 })
  })

  test('nginx redirects plain HTTP', async () => {
    const port = proxies.get('nginx')?.plainPort
    const [response] = await once(
      plainRequest({ host: '127.0.0.1', port, path: '/pets?limit=1', headers: { host: HOST } }).end(),
      'response',
    )
    response.resume()
    expect([response.statusCode, response.headers.location]).toEqual([308, `https://${HOST}/pets?limit=1`])
  })

  test('while the gateway is stopped, clients get an error of the API that says when to retry', async () => {
    expect(await gateway.stop()).toBe(0)
    for (const name of proxies.keys()) {
      const { status, headers, text } = await send(name, '/pets', { headers: withKey() })
      expect([status, headers['retry-after'], headers['content-type']], name).toEqual([503, '5', 'application/json'])
      expect(JSON.parse(text)).toEqual({ code: 'unavailable', message: expect.any(String), status: 503 })
    }
  })
})

test('the commands of docs/one-machine.md have the settings of the service', async () => {
  const [, commands = ''] = /(petstore\(\) \{\n[\s\S]*?)```/.exec(readFileSync('docs/one-machine.md', 'utf8')) ?? []
  const folder = await dataFolder()
  const env = readFileSync('docs/one-machine/petstore.env', 'utf8').replace('/var/lib/petstore', folder)
  writeFileSync(`${folder}.env`, env)
  onTestFinished(() => rm(`${folder}.env`))
  const here = commands
    .replace('sudo -u petstore ', '')
    .replace('/etc/petstore.env', `${folder}.env`)
    .replace('/opt/petstore/current', process.cwd())
  const { PATH } = process.env
  const run = spawnSync('bash', ['--norc', '-euc', here], { cwd: folder, env: { PATH }, encoding: 'utf8' })
  expect([run.status, run.stdout]).toEqual([0, expect.stringContaining('There are no keys.')])
  expect(run.stderr).toContain(`Database: embedded, in ${folder}`)
  const [name = ''] = readdirSync(folder).filter((name) => name.startsWith('petstore-'))
  expect((await restore(join(folder, name), join(folder, 'restored'))).rows).toMatchObject({ Pet: 0 })
})

test.runIf(spawnSync('systemd-analyze', ['--version']).status === 0)(
  'systemd finds nothing wrong with docs/one-machine/petstore.service',
  async () => {
    const file = join(await temporaryFolder(), 'petstore.service')
    const unit = readFileSync('docs/one-machine/petstore.service', 'utf8')
    writeFileSync(file, unit.replace('/usr/bin/node', process.execPath))
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' })
    expect([status, stdout, stderr]).toEqual([0, '', ''])
  },
)

test.runIf(spawnSync('logrotate', ['--version']).status === 0)(
  'docs/one-machine/logrotate rotates a file that is open, and loses no line',
  async () => {
    const folder = await temporaryFolder()
    const log = join(folder, 'petstore.log')
    const file = join(folder, 'logrotate.conf')
    const example = readFileSync('docs/one-machine/logrotate', 'utf8')
    expect(example).toContain('/var/log/petstore/*.log')
    writeFileSync(file, example.replace('/var/log/petstore', folder))
    // As systemd opens it for the service.
    const open = openSync(log, 'a')
    const rotate = () =>
      execFileSync('logrotate', ['--force', '--state', join(folder, 'state'), file], {
        stdio: ['ignore', 'pipe', 'pipe'],
      })
    writeSync(open, 'first\n')
    rotate()
    writeSync(open, 'second\n')
    rotate()
    writeSync(open, 'third\n')
    closeSync(open)
    expect(readFileSync(log, 'utf8')).toBe('third\n')
    expect(readFileSync(`${log}.1`, 'utf8')).toBe('second\n')
    expect(execFileSync('gunzip', ['--stdout', `${log}.2.gz`], { encoding: 'utf8' })).toBe('first\n')
  },
)
