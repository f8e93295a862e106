import { once } from 'node:events'
import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { asAdmin, databaseUrl, testDatabaseUrl } from './support/postgres.js'
import { dataFolder, startGateway } from './support/process.js'

const demoKey = (output: string) => /petstore_[0-9a-f]{48}/.exec(output)?.[0] as string

describe('SIGTERM', () => {
  test('finishes requests in flight, refuses new connections, and exits with 0; a second signal changes nothing', async () => {
    const { url, output, child, stop } = await startGateway({ DATA_DIR: await dataFolder() })
    const slow = request(`${url}/pets`, {
      method: 'POST',
      headers: {
        'x-api-key': demoKey(output),
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
    await expect.poll(refused, { timeout: 60_000 }).toBe(true)
    child.kill('SIGTERM')
    slow.end('"categoryId": 1}')
    const [response] = await once(slow, 'response')
    expect(response.statusCode).toBe(201)
    response.resume()
    expect(await exit).toBe(0)
  })
})

describe.runIf(testDatabaseUrl)('on one PostgreSQL', () => {
  test('four gateways can start at the same time on an empty database', async () => {
    const name = `petstore_start_${process.pid}`
    await asAdmin(`CREATE DATABASE ${name}`)
    try {
      const started = await Promise.all(
        Array.from({ length: 4 }, () => startGateway({ DATABASE_URL: databaseUrl(name), DRAIN_SECONDS: '1' })),
      )
      for (const { url } of started) expect((await fetch(`${url}/readyz`)).status).toBe(200)
      expect(started[0]?.output).not.toContain('curl')
      const codes = await Promise.all(started.map(({ stop }) => stop()))
      expect(codes).toEqual([0, 0, 0, 0])
    } finally {
      await asAdmin(`DROP DATABASE ${name} WITH (FORCE)`)
    }
  })
})
