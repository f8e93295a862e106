import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createLog } from '../src/engines/observe/log.js'
import { createReads } from '../src/engines/postgres/reads.js'
import { ApiKeyCache, createSecret } from '../src/gateway/keys/index.js'
import { times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'
import { openWatchedDatabase } from './support/statements.js'

const TTL = 150
const database = await openWatchedDatabase()
const { statements } = database
const gateway = await sharedGateway({ database, keyTtlMs: TTL })

const ask = (headers: Record<string, string>, path = '/quota') => gateway.get(path, { key: null, headers })
const bearer = (key: string) => ask({ authorization: `Bearer ${key}` })
const status = async (key: string) => (await bearer(key)).status
const set = (id: number, data: object) => gateway.prisma.apiKey.update({ where: { id }, data })
const past = new Date(Date.now() - 1000)

describe('a key', () => {
  test('is read from Authorization (in any case of Bearer) and from X-API-Key', async () => {
    const { key } = await gateway.createKey()
    for (const [name, value] of [
      ['authorization', `Bearer ${key}`],
      ['authorization', `bearer  ${key}`],
      ['x-api-key', key],
    ] as const)
      expect((await ask({ [name]: value })).status).toBe(200)
  })

  test('can be in both headers, but two different keys return 400', async () => {
    const [one, two] = [(await gateway.createKey()).key, (await gateway.createKey()).key]
    expect((await ask({ authorization: `Bearer ${one}`, 'x-api-key': one })).status).toBe(200)
    const { status, body } = await ask({ authorization: `Bearer ${one}`, 'x-api-key': two })
    expect([status, body.code]).toEqual([400, 'invalid_request'])
    expect(body.message).not.toContain('petstore_')
  })

  test('can be repeated in a header, but not together with a different key', async () => {
    const [one, two] = [(await gateway.createKey()).key, (await gateway.createKey()).key]
    const { port } = await gateway.listen()
    const twice = (name: string, values: string[]) =>
      new Promise<number | undefined>((resolve, reject) => {
        const sent = request({ port, host: '127.0.0.1', path: '/quota' }, (response) =>
          resolve(response.resume().statusCode),
        )
        sent.on('error', reject).setHeader(name, values).end()
      })
    expect(await twice('x-api-key', [one, one])).toBe(200)
    expect(await twice('x-api-key', [one, two])).toBe(400)
    expect(await twice('authorization', [`Bearer ${one}`, `Bearer ${one}`])).toBe(200)
    expect(await twice('authorization', [`Bearer ${one}`, `Bearer ${two}`])).toBe(400)
  })

  test('is not read from headers whose names are as long', async () => {
    const { key: stranger } = await gateway.createKey()
    for (const name of ['x-user-id', 'cache-control']) {
      expect((await gateway.get('/pets', { headers: { [name]: stranger } })).status, name).toBe(200)
      expect((await gateway.get('/pets', { key: null, headers: { [name]: stranger } })).status, name).toBe(401)
    }
  })

  test('is never read from the query string', async () => {
    for (const name of ['key', 'api_key', 'apiKey', 'access_token', 'X-API-Key'])
      expect((await ask({}, `/quota?${name}=${gateway.key}`)).status).toBe(401)
  })

  test('is not read from another authorization scheme', async () => {
    for (const scheme of ['Basic', 'Token', 'Bearer,', '']) {
      const { status, headers } = await ask({ authorization: `${scheme} ${gateway.key}` })
      expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    }
  })

  test.each([
    ['unknown', () => createSecret().key],
    ['mistyped', () => gateway.key.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))],
    ['too long', () => `${gateway.key}0`],
    ['far too long', () => `petstore_${'0'.repeat(10_000)}`],
    ['in capitals', () => gateway.key.toUpperCase()],
    ['only a prefix', () => gateway.key.slice(0, 17)],
    ['empty', () => ''],
    ['the hash of one', () => createHash('sha256').update(gateway.key).digest('hex')],
  ])('that is %s returns 401', async (_, key) => {
    const other = await gateway.openBeside({ keyTtlMs: TTL })
    const { status, body } = await other.get('/quota', { key: null, headers: { 'x-api-key': key() } })
    expect([status, body.code]).toEqual([401, 'unauthorized'])
  })

  test('that is revoked or expired returns 401', async () => {
    const other = await gateway.openBeside({ keyTtlMs: TTL })
    for (const data of [{ revokedAt: past }, { expiresAt: past }]) {
      const { key } = await gateway.createKey(data)
      expect((await other.get('/quota', { key })).status).toBe(401)
    }
    const future = new Date(Date.now() + 60_000)
    for (const data of [{ revokedAt: future }, { expiresAt: future }]) {
      const { key } = await gateway.createKey(data)
      expect((await other.get('/quota', { key })).status).toBe(200)
    }
  })

  test('that expires while it is cached returns 401 from that moment on', async () => {
    const other = await gateway.openBeside({ keyTtlMs: 60_000 })
    const { key } = await gateway.createKey({ expiresAt: new Date(Date.now() + 500) })
    expect((await other.get('/quota', { key })).status).toBe(200)
    await sleep(600)
    expect((await other.get('/quota', { key })).status).toBe(401)
  })
})

describe('the stored key', () => {
  test('is a SHA-256 hash, and a prefix that does not reveal the secret', async () => {
    const { key, row } = await gateway.createKey()
    expect(row.hash).toBe(createHash('sha256').update(key).digest('hex'))
    expect(key.startsWith(row.prefix)).toBe(true)
    expect(row.prefix).toHaveLength(17)
    expect(JSON.stringify(row)).not.toContain(key.slice(row.prefix.length))
  })

  test('a secret has 160 random bits and a checksum', () => {
    const keys = times(200, () => createSecret().key)
    expect(new Set(keys).size).toBe(200)
    for (const key of keys) expect(key).toMatch(/^petstore_[0-9a-f]{48}$/)
  })
})

describe('a change in the row takes effect within the TTL of the cache', () => {
  const limits = async (key: string) => {
    const { body } = await bearer(key)
    return [body.plan, body.minute?.limit, body.day?.limit]
  }

  test('to plan and limits', async () => {
    const { key, row } = await gateway.createKey()
    expect(await limits(key)).toEqual(['Free', 60, 1000])
    for (const [data, expected] of [
      [{ plan: 'Pro' }, ['Pro', 300, 10_000]],
      [{ plan: 'Business' }, ['Business', 1000, 100_000]],
      [{ plan: 'Enterprise', minuteLimit: 7, dayLimit: 70 }, ['Enterprise', 7, 70]],
      [{ minuteLimit: 9 }, ['Enterprise', 9, 70]],
    ] as const) {
      await set(row.id, data)
      await sleep(TTL)
      // A request waits a quarter of a second for the row, then uses the one that is known.
      await expect.poll(() => limits(key)).toEqual(expected)
    }
  })

  test('to revokedAt and expiresAt', async () => {
    const { key, row } = await gateway.createKey()
    expect(await status(key)).toBe(200)
    for (const [data, expected] of [
      [{ revokedAt: past }, 401],
      [{ revokedAt: null }, 200],
      [{ expiresAt: past }, 401],
    ] as const) {
      await set(row.id, data)
      await sleep(TTL)
      await expect.poll(() => status(key)).toBe(expected)
    }
  })

  test('that adds an unknown key', async () => {
    const { key, prefix, hash } = createSecret()
    expect(await status(key)).toBe(401)
    await gateway.prisma.apiKey.create({ data: { name: 'late', prefix, hash } })
    await sleep(TTL + 50)
    expect(await status(key)).toBe(200)
  })

  test('that deletes the row', async () => {
    const { key, row } = await gateway.createKey()
    expect(await status(key)).toBe(200)
    await gateway.prisma.apiKey.delete({ where: { id: row.id } })
    await sleep(TTL)
    await expect.poll(() => status(key)).toBe(401)
  })
})

describe('database reads', () => {
  /** A cache with a TTL of a minute, and the statements that it sends. */
  const open = () => {
    const { database } = gateway
    return new ApiKeyCache({
      ...database,
      reads: createReads(database.tables)(database.query),
      log: createLog('silent'),
      ttlMs: 60_000,
    })
  }
  const counted = async (work: () => Promise<unknown>) => {
    const before = statements.length
    await work()
    // The other gateways of this file write usage.
    return statements.slice(before).filter((sql) => /^SELECT .*"ApiKey"/s.test(sql)).length
  }

  test('a key is read once, however many requests arrive at the same time', async () => {
    const [cache, { key }] = [open(), await gateway.createKey()]
    expect(await counted(() => Promise.all(times(50, () => cache.find(key))))).toBe(1)
    expect(await counted(() => Promise.all(times(50, () => cache.find(key))))).toBe(0)
  })

  test('what only admins see of a key is not kept, also when a gateway has banned it', async () => {
    const [cache, { key }] = [open(), await gateway.createKey({ owner: 'Ann', email: 'ann@example.com', note: 'x' })]
    const row = await cache.find(key)
    await cache.ban(row as never, Date.now() + 60_000)
    expect(await cache.find(key)).toMatchObject({ owner: 'Ann', bannedUntil: expect.any(Date) })
    for (const column of ['email', 'note']) expect(await cache.find(key)).not.toHaveProperty(column)
  })

  test('invented keys are read at most once each, mistyped keys never, and real keys stay in the cache', async () => {
    const [cache, { key }] = [open(), await gateway.createKey()]
    await cache.find(key)
    const invented = times(100, () => createSecret().key)
    const flood = async () => {
      for (const found of await Promise.all(invented.map((secret) => cache.find(secret)))) expect(found).toBeUndefined()
    }
    expect(await counted(flood)).toBeLessThanOrEqual(100)
    expect(await counted(flood)).toBe(0)
    const mistyped = invented.map((secret) => secret.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')))
    expect(await counted(() => Promise.all(mistyped.map((secret) => cache.find(secret))))).toBe(0)
    expect(await counted(async () => cache.find(key))).toBe(0)
  })
})
