import { describe, expect, onTestFinished, test } from 'vitest'
import { hasHaproxy, startHaproxy } from '../support/haproxy.js'
import { scratchDatabase, testDatabaseUrl } from '../support/postgres.js'
import { startGateway } from '../support/process.js'
import { openRemote } from '../support/remote.js'

describe.runIf(testDatabaseUrl && hasHaproxy)('two gateways behind docs/haproxy.cfg', () => {
  test('kill -9 of one fails no GET and no HEAD, and performs no write twice', async () => {
    const env = { DATABASE_URL: await scratchDatabase(), TRUST_PROXY: '1' }
    const { url, key, stop } = await openRemote(env)
    const second = await startGateway({ ...env, LOG_LEVEL: 'warn' })
    const proxy = await startHaproxy([url, second.url])
    onTestFinished(proxy.close)
    const send = async (method: string, path: string, body?: object) => {
      const headers = { 'x-api-key': key, 'content-type': 'application/json' }
      const sent = fetch(proxy.url + path, { method, headers, body: body && JSON.stringify(body) })
      // HAProxy may also close the connection, if the client has used it before.
      const response = await sent.catch(() => Response.json({ code: 'cut' }, { status: 502 }))
      return { status: response.status, text: await response.text(), retryAfter: response.headers.get('retry-after') }
    }
    expect((await send('POST', '/categories', { name: 'Dogs' })).status).toBe(201)

    let stopped = false
    const reads: number[] = []
    const writes: Awaited<ReturnType<typeof send>>[] = []
    onTestFinished(() => {
      stopped = true
    })
    const clients = Array.from({ length: 16 }, async (_, i) => {
      for (let n = 0; !stopped; n++)
        if (i < 12) reads.push((await send(i % 3 ? 'GET' : 'HEAD', ['/categories', '/quota'][n % 2] as string)).status)
        else writes.push(await send('POST', '/categories', { name: `Category ${i} ${n}` }))
    })
    await expect.poll(() => reads.length).toBeGreaterThan(100)
    await stop('SIGKILL')
    const before = reads.length
    await expect.poll(() => reads.length).toBeGreaterThan(before + 200)
    stopped = true
    await Promise.all(clients)
    expect(new Set(reads)).toEqual(new Set([200]))
    const failed = writes.filter(({ status }) => status !== 201)
    // As many as the killed gateway had at work, at most; an answer has the shape of the API.
    expect(failed.length).toBeLessThanOrEqual(4)
    for (const { status, text, retryAfter } of failed) {
      const { code } = JSON.parse(text)
      expect([status, code, retryAfter]).toEqual([502, code, code === 'unavailable' ? '1' : null])
    }
    const query = '{ categoriesConnection(first: 1) { totalCount } }'
    const { data } = JSON.parse((await send('POST', '/graphql', { query })).text)
    const more = data.categoriesConnection.totalCount - 1 - (writes.length - failed.length)
    expect(more).toBeGreaterThanOrEqual(0)
    expect(more).toBeLessThanOrEqual(failed.length)
  })
})
