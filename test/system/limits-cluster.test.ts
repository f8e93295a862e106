import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createLog } from '../../src/engines/observe/log.js'
import { openRateLimiter, type RateLimiter, type Subject } from '../../src/engines/rate-limit/index.js'
import { failOver } from '../support/fail-over.js'
import { RedisServer, redisBinary } from '../support/redis.js'
import { startCluster } from '../support/redis-groups.js'

let id = 0
const key = (limit = 20): Subject => ({
  id: `key:${id++}`,
  windows: [
    { name: 'minute', limit, seconds: 60 },
    { name: 'day', limit: 10_000, seconds: 86_400 },
  ],
  bannable: true,
})

describe.runIf(redisBinary || process.env.TEST_REDIS_URL)('quotas in a Redis cluster', () => {
  afterAll(() => RedisServer.killAll())

  describe('of three', () => {
    let cluster: Awaited<ReturnType<typeof startCluster>>
    const opened: RateLimiter[] = []
    const errors: string[] = []
    beforeAll(async () => {
      cluster = await startCluster()
    })
    afterAll(async () => {
      for (const gateway of opened) await gateway.close()
      await cluster.close()
    })

    const open = async (urls = cluster.urls) => {
      const lines: string[] = []
      const write = (line: string) => {
        lines.push(JSON.parse(line).msg)
        errors.push(JSON.parse(line).err?.message)
      }
      const log = createLog('info', { write })
      const options = { redisUrl: urls.join(', '), banAfter: 10, banSeconds: 300, redisTimeoutMs: 1_000, log }
      const gateways = await Promise.all([openRateLimiter(options), openRateLimiter(options)])
      opened.push(...gateways)
      const admitted = async (subject: Subject, count: number) => {
        const all = Array.from({ length: count }, (_, i) => gateways[i % gateways.length]?.consume(subject, 1))
        return (await Promise.all(all)).filter((result) => result?.outcome === 'allowed').length
      }
      return { gateways, lines, admitted, states: () => gateways.map(({ state }) => state) }
    }

    it.each([1, 3])(
      'by %i URL: all gateways together admit exactly the limit of every subject, on any node',
      async (n) => {
        const { admitted, states, lines } = await open(cluster.urls.slice(0, n))
        expect(states()).toEqual(['redis', 'redis'])
        const counts = await Promise.all(Array.from({ length: 30 }, () => admitted(key(), 50)))
        expect(new Set(counts)).toEqual(new Set([20]))
        for (const node of cluster.nodes) expect(Number(await node.cli('dbsize'))).toBeGreaterThan(2)
        expect(states()).toEqual(['redis', 'redis'])
        expect(lines).toEqual([])
      },
    )

    it('a URL with the number of a database is told in one line, and counted alone', async () => {
      const { states, lines } = await open([`${cluster.urls[0]}/3`])
      await sleep(1_200)
      expect(states()).toEqual(['degraded', 'degraded'])
      const told = 'Redis is unreachable: this gateway counts alone'
      expect(lines).toEqual([told, told])
      expect(errors[0]).toMatch(/SELECT is not allowed in cluster mode; a cluster has only database 0$/)
    })

    it('a slot that is half moved delays and counts alone only its own keys, and the log has one line', async () => {
      const { gateways, admitted, states, lines } = await open()
      const [subject, other] = [key(), key()]
      for (let i = 0; i < 5; i++) await gateways[0]?.consume(subject, 1)
      const { slot, own, other: target } = await cluster.mastersFor(`petstore:{${subject.id}}`)
      await target.node.cli('cluster', 'setslot', slot, 'importing', own.id)
      await own.node.cli('cluster', 'setslot', slot, 'migrating', target.id)
      for (let i = 0; i < 20; i++) {
        expect((await gateways[0]?.consume(subject, 1))?.outcome).toBe(i < 15 ? 'allowed' : 'limited')
        expect((await gateways[0]?.consume(other, 1))?.outcome).toBe('allowed')
      }
      expect(states()).toEqual(['degraded', 'redis'])
      expect(lines).toEqual(['Redis moves a slot: this gateway counts the keys in it alone until it has moved'])
      const names = (await own.node.cli('cluster', 'getkeysinslot', slot, 10)).split('\n')
      await own.node.cli('migrate', '127.0.0.1', target.node.port, '', 0, 1000, 'keys', ...names)
      for (const { node } of [target, own]) await node.cli('cluster', 'setslot', slot, 'node', target.id)
      await vi.waitFor(() => expect(states()).toEqual(['redis', 'redis']), 60_000)
      await gateways[0]?.consume(subject, 0)
      expect(await admitted(subject, 10), 'what was counted alone stays counted').toBe(0)
      expect(await admitted(other, 10)).toBe(0)
      expect(lines).toHaveLength(1)
    })

    it('no request fails while a node hangs, and the gateway uses Redis again when the node responds', async () => {
      const { admitted, states } = await open()
      cluster.nodes[0]?.signal('SIGSTOP')
      // The node stays stopped until all requests have returned, however slow the machine is.
      const counts = await Promise.all(Array.from({ length: 30 }, () => admitted(key(), 50)))
      for (const count of counts) expect(count).toBeLessThanOrEqual(2 * 20)
      expect(states()).toEqual(['degraded', 'degraded'])
      cluster.nodes[0]?.signal('SIGCONT')
      // Nodes reject commands until they have seen that the cluster is complete again.
      await vi.waitFor(async () => expect(await admitted(key(), 50)).toBe(20), { timeout: 60_000, interval: 100 })
      expect(states()).toEqual(['redis', 'redis'])
    })
  })

  it.concurrent.each([1, 3])(
    'by %i URL: a killed master is replaced; at most twice the limit is admitted',
    async (n) => {
      const cluster = await startCluster({ replicas: 1, nodeTimeoutMs: 2_000 })
      const subject = key(300)
      const { own } = await cluster.mastersFor(`petstore:{${subject.id}}`)
      await failOver({ redisUrl: cluster.urls.slice(0, n).join(), subject, kill: () => own.node.kill() })
      await cluster.close()
    },
  )
})
