import { setTimeout as sleep } from 'node:timers/promises'
import { expect, vi } from 'vitest'
import { createLog } from '../../src/engines/observe/log.js'
import { openRateLimiter, type Subject } from '../../src/engines/rate-limit/index.js'

/**
 * Two gateways under load while the Redis that holds the counters of `subject` is killed. The time is far from what an
 * election takes: a gateway that stays with the dead server never comes back.
 */
export async function failOver({
  redisUrl,
  subject,
  kill,
}: {
  redisUrl: string
  subject: Subject
  kill: () => Promise<unknown>
}) {
  const options = { redisUrl, banAfter: 1_000_000, banSeconds: 1, log: createLog('silent'), redisTimeoutMs: 500 }
  const gateways = await Promise.all([openRateLimiter(options), openRateLimiter(options)])
  const states = () => gateways.map(({ state }) => state)
  await vi.waitFor(() => expect(states()).toEqual(['redis', 'redis']), 60_000)
  const limit = subject.windows[0]?.limit ?? 0
  let admitted = 0
  let running = true
  const clients = [...gateways, ...gateways].map(async (gateway) => {
    while (running) {
      if ((await gateway.consume(subject, 1)).outcome === 'allowed') admitted++
      await sleep(20)
    }
  })
  await sleep(500)
  await kill()
  await vi.waitFor(() => expect(states()).toEqual(['degraded', 'degraded']), { timeout: 60_000, interval: 20 })
  await vi.waitFor(() => expect(states()).toEqual(['redis', 'redis']), { timeout: 60_000, interval: 20 })
  const left = async () => (await gateways[0]?.consume(subject, 0))?.windows[0]?.remaining
  await vi.waitFor(async () => expect(await left()).toBe(0), 60_000)
  running = false
  await Promise.all(clients)
  expect(admitted).toBeGreaterThanOrEqual(limit)
  expect(admitted).toBeLessThanOrEqual(2 * limit)
  expect(states()).toEqual(['redis', 'redis'])
  for (const gateway of gateways) await gateway.close()
}
