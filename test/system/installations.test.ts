import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { asAdmin, queryOnce, scratchDatabase, testDatabaseUrl } from '../support/postgres.js'
import {
  dataFolder,
  refusedStart,
  runCommand,
  type Started,
  startGateway,
  temporaryFolder,
} from '../support/process.js'
import { RedisServer, redisBinary } from '../support/redis.js'
import { keys } from '../support/remote.js'

// Gateways of several installations on one Redis. Keys of different databases have the same ids.

type Env = Record<string, string>

const newDatabase = () => scratchDatabase(`TEMPLATE ${inject('template')}`)
const createKey = async (env: Env): Promise<string> => (await keys(env, 'create', '--name', 'x', '--plan', 'Free')).key

/** The status of a request, and what its key has left of the day. */
async function ask({ url }: Started, key: string) {
  const { status, headers } = await fetch(`${url}/categories`, { headers: { 'x-api-key': key } })
  return [status, Number(/"day";r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1])]
}

describe.runIf(redisBinary)('on one Redis', () => {
  let redis: RedisServer
  let REDIS_URL: string
  beforeAll(async () => {
    redis = await RedisServer.reserve()
    await redis.start()
    REDIS_URL = redis.url
  })
  afterAll(() => redis.kill())
  const idOf = (url: string) => queryOnce(url, 'SELECT id FROM "Installation"').then(([row]) => row?.id)

  describe.runIf(testDatabaseUrl)('two databases', () => {
    async function open() {
      const env = { DATABASE_URL: await newDatabase(), REDIS_URL }
      return { env, key: await createKey(env), gateway: await startGateway({ ...env, BAN_AFTER: '1' }) }
    }

    test('share neither quotas nor bans, and commands see those of their own', async () => {
      const [production, staging] = [await open(), await open()]
      for (let i = 1; i <= 60; i++) expect(await ask(production.gateway, production.key)).toEqual([200, 1000 - i])
      const refuse = async () => (await ask(production.gateway, production.key))[0]
      await expect.poll(refuse, { interval: 300 }).toBe(429)
      await expect
        .poll(async () => refuse().then(() => keys(production.env, 'list')), { interval: 300 })
        .toMatchObject([{ state: 'banned' }])
      expect(await ask(staging.gateway, staging.key)).toEqual([200, 999])
      expect(await keys(production.env, 'usage')).toMatchObject([{ minute: { used: 60 } }])
      expect(await keys(staging.env, 'usage')).toMatchObject([{ minute: { used: 1 } }])
      expect(await keys(staging.env, 'list')).toMatchObject([{ state: 'active' }])
    })

    test('share them with the same INSTALLATION_ID, and with another one start again', async () => {
      const [production, staging] = [await open(), await open()]
      expect(await ask(production.gateway, production.key)).toEqual([200, 999])
      const INSTALLATION_ID = await idOf(production.env.DATABASE_URL)
      const same = await startGateway({ ...staging.env, INSTALLATION_ID })
      expect(await ask(same, staging.key)).toEqual([200, 998])
      const other = await startGateway({ ...production.env, INSTALLATION_ID: `other_-${'X'.repeat(57)}` })
      expect(await ask(other, production.key)).toEqual([200, 999])
    })
  })

  test.runIf(testDatabaseUrl)('gateways of one database that start first, at the same time, share quotas', async () => {
    const env = { DATABASE_URL: await newDatabase(), REDIS_URL }
    const key = await createKey(env)
    // Commands that need no Redis make none.
    expect(await idOf(env.DATABASE_URL)).toBe(undefined)
    const gateways = await Promise.all([startGateway(env), startGateway(env), startGateway(env)])
    for (const [i, gateway] of gateways.entries()) {
      expect(await ask(gateway, key)).toEqual([200, 999 - i])
      expect(gateway.output).toContain(`, as petstore:${await idOf(env.DATABASE_URL)}:…`)
    }
    expect(await redis.cli('exists', `petstore:${await idOf(env.DATABASE_URL)}:{key:1}`)).toBe('1')
  })

  const REFUSAL =
    'a role needs SELECT and INSERT on "Installation", a standby a gateway on its primary first; or set INSTALLATION_ID\n'

  test.runIf(testDatabaseUrl)('a database that has no id and cannot be written is refused with one line', async () => {
    const DATABASE_URL = await newDatabase()
    await asAdmin(`ALTER DATABASE ${new URL(DATABASE_URL).pathname.slice(1)} SET default_transaction_read_only = on`)
    expect(await refusedStart({ DATABASE_URL, REDIS_URL })).toBe(
      `the id of this installation can neither be read nor made: cannot execute INSERT in a read-only transaction; ${REFUSAL}`,
    )
    const gateway = await startGateway({ DATABASE_URL, REDIS_URL, INSTALLATION_ID: 'x' })
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200)
  })

  test.runIf(testDatabaseUrl)('a role that may not read the id is refused with one line', async () => {
    const DATABASE_URL = await newDatabase()
    const role = `gateway_${randomUUID().slice(0, 8)}`
    await queryOnce(
      DATABASE_URL,
      `CREATE ROLE ${role} LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role};
       REVOKE ALL ON "Installation" FROM ${role}`,
    )
    onTestFinished(() => queryOnce(DATABASE_URL, `DROP OWNED BY ${role}; DROP ROLE ${role}`) as Promise<never>)
    const url = new URL(DATABASE_URL)
    url.username = role
    expect(await refusedStart({ DATABASE_URL: url.href, REDIS_URL })).toBe(
      `the id of this installation can neither be read nor made: permission denied for table Installation; ${REFUSAL}`,
    )
  })

  test('a restored database is a new installation; with --same-installation it goes on', async () => {
    const DATA_DIR = await dataFolder()
    const gateway = await startGateway({ DATA_DIR, REDIS_URL })
    expect(await ask(gateway, gateway.demoKey)).toEqual([200, 999])
    const file = join(await temporaryFolder(), 'backup.gz')
    await runCommand(['admin/backup', 'create', file], { DATA_DIR })
    for (const [options, left] of [
      [[], 999],
      [['--same-installation'], 998],
    ] as const) {
      const folder = await temporaryFolder()
      const { code, stderr } = await runCommand(['admin/backup', 'restore', ...options, file], { DATA_DIR: folder })
      expect([code, stderr]).toEqual([0, ''])
      const restored = await startGateway({ DATA_DIR: folder, REDIS_URL })
      onTestFinished(() => void restored.stop())
      expect(await ask(restored, gateway.demoKey)).toEqual([200, left])
    }
  })
})
