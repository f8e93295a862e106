import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLog } from '../../src/engines/observe/log.js'
import { openRateLimiter } from '../../src/engines/rate-limit/index.js'
import { admitted, subjectOf } from '../support/limits.js'
import { RedisServer, redisBinary } from '../support/redis.js'

/** The rights that docs/operators.md names. */
const RIGHTS = /^ACL SETUSER gateway (.*)$/m.exec(readFileSync('docs/operators.md', 'utf8'))?.[1] ?? ''

describe.runIf(redisBinary)('a Redis user', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await RedisServer.reserve()
    await redis.start()
  })
  afterAll(() => redis.kill())

  let users = 0
  /** Two gateways that are this user, and the lines that they have logged. */
  async function open(rights: string) {
    const user = `user${users++}`
    await redis.cli('ACL', 'SETUSER', user, ...rights.replace(/>\S+/, '>secret').split(' '))
    const lines: string[] = []
    const log = createLog('info', { write: (line) => void lines.push(line) })
    const redisUrl = `redis://${user}:secret@127.0.0.1:${redis.port}`
    const keyPrefix = `petstore:${user}`
    const options = { redisUrl, keyPrefix, log, banAfter: 1, banSeconds: 60, redisTimeoutMs: 2_000 }
    const gateways = await Promise.all([openRateLimiter(options), openRateLimiter(options)])
    return { gateways, lines, close: () => Promise.all(gateways.map((gateway) => gateway.close())) }
  }

  test('with the rights that operators.md names is enough: gateways share quotas and bans', async () => {
    const { gateways, lines, close } = await open(RIGHTS)
    const subject = subjectOf(50)
    const ask = (n: number) => Promise.all(Array.from({ length: n }, (_, i) => gateways[i % 2]?.consume(subject, 1)))
    expect(admitted((await ask(100)) as never)).toBe(50)
    await wait(1_200)
    await ask(1)
    for (const gateway of gateways) expect((await gateway.consume(subject, 1)).outcome).toBe('banned')
    await wait(1_200)
    expect(gateways.map(({ state }) => state)).toEqual(['redis', 'redis'])
    expect(lines).toEqual([])
    await close()
  })

  const without = (...names: string[]) => names.reduce((rights, name) => rights.replace(` +${name}`, ''), RIGHTS)
  test.each([
    ['run scripts', without('eval', 'evalsha'), /NOPERM .*'eval/],
    ['ask the time', without('time'), /can't run this command/],
    ['write a ban', without('incrby'), /can't run this command/],
    ['use the names', RIGHTS.replace('~petstore:*', '~other:*'), /NOPERM/],
  ])(
    'who may not %s: each gateway counts alone, says why in one line, and does not change its mind',
    async (_, rights, reason) => {
      const { gateways, lines, close } = await open(rights)
      const states = new Set<string>()
      for (let i = 0; i < 20; i++) {
        for (const { state } of gateways) states.add(state)
        for (const gateway of gateways) await gateway.consume(subjectOf(), 1)
        await wait(100)
      }
      expect([...states]).toEqual(['degraded'])
      expect(lines.map((line) => JSON.parse(line).err.message)).toEqual([
        expect.stringMatching(reason),
        expect.stringMatching(reason),
      ])
      expect(lines[0]).toContain('see “Rights of the Redis user” in docs/operators.md')
      expect(lines[0]).not.toContain('secret')
      await close()
    },
  )
})
