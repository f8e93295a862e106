import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createLog } from '../src/log.js'
import { openRateLimiter, type RateLimiter, type Subject } from '../src/rate-limit/index.js'
import { freePort } from './support/ports.js'

const run = promisify(execFile)
const installed = ['redis-server', 'redis-cli'].every((name) => spawnSync(name, ['--version']).status === 0)

const key = (id: number): Subject => ({
  id: `key:${id}`,
  windows: [
    { name: 'minute', limit: 20, seconds: 60 },
    { name: 'day', limit: 1000, seconds: 86_400 },
  ],
  bannable: true,
})

describe.runIf(installed || process.env.TEST_REDIS_URL)('quotas in a Redis cluster of three', () => {
  const nodes: ChildProcess[] = []
  const gateways: RateLimiter[] = []
  let ports: number[] = []
  let home = ''

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'limits-cluster-'))
    ports = await Promise.all([freePort(), freePort(), freePort()])
    for (const port of ports) {
      const dir = await mkdtemp(join(home, 'node-'))
      const flags = `--port ${port} --bind 127.0.0.1 --dir ${dir} --appendonly no --cluster-enabled yes --cluster-node-timeout 500`
      const node = spawn('redis-server', [...flags.split(' '), '--save', ''], { stdio: ['ignore', 'pipe', 'inherit'] })
      nodes.push(node)
      for await (const line of node.stdout.iterator({ destroyOnReturn: false })) {
        if (String(line).includes('Ready to accept connections')) break
      }
      node.stdout.resume()
    }
    const addresses = ports.map((port) => `127.0.0.1:${port}`)
    await run('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-yes'])
    const agreed = async () =>
      expect((await run('redis-cli', ['-p', `${ports[2]}`, 'cluster', 'info'])).stdout).toMatch(/:ok/)
    await vi.waitFor(agreed, { timeout: 30_000 })
    const redisUrl = addresses.map((address) => `redis://${address}`).join(', ')
    const options = { redisUrl, banAfter: 10, banSeconds: 300, redisTimeoutMs: 1_000, log: createLog('silent') }
    gateways.push(...(await Promise.all([openRateLimiter(options), openRateLimiter(options)])))
  }, 60_000)

  afterAll(async () => {
    for (const gateway of gateways) await gateway.close()
    for (const node of nodes) node.kill('SIGKILL')
    await rm(home, { recursive: true, force: true })
  })

  const admitted = async (subject: Subject, count: number) => {
    const all = Array.from({ length: count }, (_, i) => gateways[i % gateways.length]?.consume(subject, 1))
    return (await Promise.all(all)).filter((result) => result?.outcome === 'allowed').length
  }

  it('all gateways together admit exactly the limit of every subject, on any node', async () => {
    expect(gateways.map(({ state }) => state)).toEqual(['redis', 'redis'])
    const counts = await Promise.all(Array.from({ length: 30 }, (_, id) => admitted(key(id), 50)))
    expect(new Set(counts)).toEqual(new Set([20]))
    const held = ports.map((port) => run('redis-cli', ['-p', `${port}`, 'dbsize']))
    for (const { stdout } of await Promise.all(held)) expect(Number(stdout)).toBeGreaterThan(2)
    expect(gateways.map(({ state }) => state)).toEqual(['redis', 'redis'])
  })

  it('no request fails while a node hangs, and the gateway uses Redis again when the node responds', async () => {
    nodes[0]?.kill('SIGSTOP')
    // The node stays stopped until all requests have returned, however slow the machine is.
    const counts = await Promise.all(Array.from({ length: 30 }, (_, id) => admitted(key(100 + id), 50)))
    for (const count of counts) expect(count).toBeLessThanOrEqual(2 * 20)
    expect(gateways.map(({ state }) => state)).toEqual(['degraded', 'degraded'])
    nodes[0]?.kill('SIGCONT')
    // Nodes reject commands until they have seen that the cluster is complete again.
    let id = 1000
    await vi.waitFor(async () => expect(await admitted(key(id++), 50)).toBe(20), { timeout: 20_000, interval: 100 })
    expect(gateways.map(({ state }) => state)).toEqual(['redis', 'redis'])
  }, 60_000)
})
