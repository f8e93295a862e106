import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { createLog } from '../../src/engines/observe/log.js'
import type { RateLimiter, RateLimiterOptions, RateLimitResult, Subject } from '../../src/engines/rate-limit/index.js'
import { admitted, closeLimits, subjectOf as key, openLimits, remaining } from '../support/limits.js'
import { TcpProxy } from '../support/proxy.js'
import { RedisServer, redisBinary } from '../support/redis.js'

describe.runIf(redisBinary)('an unreachable Redis', () => {
  afterAll(async () => {
    await closeLimits()
    RedisServer.killAll()
  })

  const reserve = () => RedisServer.reserve()
  const serve = async () => {
    const server = await reserve()
    await server.start()
    return server
  }

  const watched = async ({ url }: { url: string }, options: Partial<RateLimiterOptions> = {}) => {
    const lines: string[] = []
    const log = createLog('info', { write: (line) => void lines.push(JSON.parse(line).msg) })
    const limits = await openLimits({ redisUrl: url, log, ...options })
    const become = (state: RateLimiter['state']) =>
      vi.waitFor(() => expect(limits.state).toBe(state), { timeout: 60_000, interval: 20 })
    const send = (subject: Subject, count: number) =>
      Promise.all(Array.from({ length: count }, () => limits.consume(subject, 1)))
    return { limits, lines, become, send }
  }

  it.concurrent('that hangs fails no request, gets no new commands, and is used again when it responds', async () => {
    const server = await serve()
    const redis = new Redis(server.port)
    // Before others send commands: ioredis takes those that arrive together with the reply to MONITOR for replies.
    const monitor = await redis.monitor()
    let decisions = 0
    monitor.on('monitor', (_time, [command, ...args]: string[]) => {
      if (command === 'evalsha' && !args.some((arg) => arg.includes(':probe:'))) decisions++
    })
    const { limits, lines, become, send } = await watched(server)
    const subject = key(60)
    expect(admitted(await send(subject, 40))).toBe(40)
    server.signal('SIGSTOP')
    // It stays stopped until all of these have returned, however slow the machine is.
    expect(admitted(await send(subject, 30)), 'continues from the last state of Redis').toBe(20)
    expect(limits.state).toBe('degraded')
    for (let i = 0; i < 3; i++) expect(admitted(await send(subject, 30))).toBe(0)
    expect(admitted(await send(key(60), 100))).toBe(60)
    server.signal('SIGCONT')
    await become('redis')
    expect([1, 2]).toContain(decisions)
    for (const client of [monitor, redis]) client.disconnect()
    expect(admitted(await send(subject, 5)), 'requests counted alone stay counted').toBe(0)
    expect(admitted(await send(key(60), 100))).toBe(60)
    expect(lines).toEqual(['Redis is unreachable: this gateway counts alone', 'Redis is back: counting in it again'])
  })

  it.concurrent('that restarts empty fails no request and resets no window', async () => {
    const server = await serve()
    const { limits, lines, become, send } = await watched(server)
    const subject = key(60)
    const resets = ([result]: RateLimitResult[]) => result?.windows.map(({ resetAt }) => resetAt)
    const before = await send(subject, 20)
    await server.kill()
    const alone = await send(subject, 30)
    expect(admitted(alone)).toBe(30)
    expect(resets(alone)).toEqual(resets(before))
    expect(limits.state).toBe('degraded')
    await server.start()
    await become('redis')
    const back = await send(subject, 30)
    expect(admitted(back)).toBe(10)
    expect(resets(back)).toEqual(resets(before))
    expect(lines).toHaveLength(2)
  })

  it.concurrent('does not end a ban early; the ban is carried no longer than before', async () => {
    const server = await serve()
    const { limits } = await watched(server, { banAfter: 1, banCarrySeconds: 5 })
    const subject = key(1)
    for (let i = 0; i < 2; i++) await limits.consume(subject, 1)
    await wait(1050)
    const { bannedUntil, at } = await limits.consume(subject, 1)
    expect(bannedUntil).toBe(at + 300_000)
    await server.kill()
    const alone = await limits.consume(subject, 1)
    expect(alone).toMatchObject({ outcome: 'banned', bannedUntil })
    expect(alone.banCarriedMs).toBeLessThanOrEqual(5_000)
    const limited = async () => expect((await limits.consume(subject, 1)).outcome).toBe('limited')
    await vi.waitFor(limited, { timeout: 60_000, interval: 200 })
  })

  it.concurrent('is noticed by an idle gateway too, and a read-only replica counts as unreachable', async () => {
    const server = await serve()
    const { become, send } = await watched(server)
    const redis = new Redis(server.port)
    redis.on('error', () => {})
    await redis.replicaof('127.0.0.1', '1')
    await become('degraded')
    expect(admitted(await send(key(60), 100))).toBe(60)
    await redis.replicaof('NO', 'ONE')
    await become('redis')
    redis.disconnect()
  })

  it.concurrent('whose name moves to a new master is left for that one, also if it still answers as a replica', async () => {
    const [old, promoted] = [await serve(), await serve()]
    const proxy = await TcpProxy.open(old.url)
    const keyPrefix = randomUUID()
    const { become, send } = await watched(proxy, { keyPrefix })
    const subject = key(60)
    expect(admitted(await send(subject, 20))).toBe(20)
    proxy.target = new URL(promoted.url)
    const redis = new Redis(old.port)
    redis.on('error', () => {})
    await redis.replicaof('127.0.0.1', '1')
    await become('degraded')
    await become('redis')
    redis.disconnect()
    expect(admitted(await send(subject, 60))).toBe(40)
    const fresh = await openLimits({ redisUrl: promoted.url, keyPrefix })
    expect(remaining(await fresh.consume(subject, 0))).toEqual([0, 940])
    await proxy.cut()
  })

  it.concurrent('at startup is used when it becomes reachable', async () => {
    const server = await reserve()
    const { limits, lines, become, send } = await watched(server)
    expect(limits.state).toBe('degraded')
    expect(admitted(await send(key(60), 100))).toBe(60)
    await server.start()
    await become('redis')
    expect(lines).toHaveLength(2)
  })

  it('leaves no open handle after close, and neither does a reachable one', async () => {
    const exits = async (port: number) => {
      const script = `
        const { openRateLimiter } = await import('./src/engines/rate-limit/index.ts')
        const log = { warn() {}, info() {} }
        const limits = await openRateLimiter({ redisUrl: 'redis://127.0.0.1:${port}', banAfter: 1, banSeconds: 1, log })
        await limits.consume({ id: 'x', windows: [{ name: 'day', limit: 1, seconds: 1 }], bannable: true }, 1)
        await limits.close()
        console.log((await limits.consume({ id: 'x', windows: [], bannable: true }, 1)).outcome)`
      const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
        timeout: 60_000,
      })
      let out = ''
      child.stdout.on('data', (data) => {
        out += data
      })
      expect(await once(child, 'exit')).toEqual([0, null])
      expect(out.trim()).toBe('allowed')
    }
    const [absent, present] = [await reserve(), await serve()]
    await Promise.all([exits(absent.port), exits(present.port)])
  })
})
