import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Gateway, openGateway } from './support/gateway.js'
import { asAdmin, databaseUrl, testDatabaseUrl } from './support/postgres.js'
import { dataFolder, freePort, runCommand, temporaryFolder } from './support/process.js'

// `npm run keys` in its own process, beside a gateway that uses the same database.

let gateway: Gateway
let env: Record<string, string>
beforeAll(async () => {
  gateway = await openGateway({ keyTtlMs: 50 })
  env = {
    ...gateway.database.env,
    ...(process.env.TEST_REDIS_URL ? { REDIS_URL: process.env.TEST_REDIS_URL } : {}),
  }
})
afterAll(() => gateway.close())

const keys = (...args: string[]) => runCommand(['admin/keys', ...args], env)

/** The JSON value that a command prints. */
async function json(...args: string[]) {
  const { code, stdout, stderr } = await keys(...args, '--json')
  expect([code, stderr.replace(/Without REDIS_URL.*\n/, '')]).toEqual([0, ''])
  return JSON.parse(stdout)
}

const status = async (key: string) => (await gateway.get('/pets', { key })).status

/** Waits: the gateway reads a changed key only after a while. */
const eventually = (ask: () => Promise<unknown>) => expect.poll(ask, { timeout: 60_000 })

describe('npm run keys', () => {
  test('create: the key works at once; --json prints one object', async () => {
    const created = await json('create', '--name', ' Ann ', '--plan', 'Pro')
    expect(created).toEqual({
      id: expect.any(Number),
      name: 'Ann',
      plan: 'Pro',
      prefix: expect.stringMatching(/^petstore_[0-9a-f]{8}$/),
      key: expect.stringMatching(/^petstore_[0-9a-f]{48}$/),
    })
    expect(created.key.startsWith(created.prefix)).toBe(true)
    const { headers } = await gateway.get('/pets', { key: created.key })
    expect(headers.get('x-ratelimit-limit')).toBe('300')
    expect(JSON.stringify(await json('list'))).not.toContain(created.key.slice(17))
  })

  test('ban, unban, plan, rotate and revoke take effect on a running gateway', async () => {
    const { id, prefix, key } = await json('create', '--name', 'Bob', '--plan', 'Free')
    expect(await status(key)).toBe(200)
    const before = Date.now()
    const banned = await json('ban', prefix, '--for', '3600')
    expect(Date.parse(banned.bannedUntil)).toBeGreaterThanOrEqual(before + 3_600_000)
    await eventually(async () => (await gateway.get('/pets', { key })).body.code).toBe('key_banned')
    await json('unban', String(id))
    await eventually(() => status(key)).toBe(200)

    await json('plan', String(id), 'Enterprise', '--minute-limit', '7', '--day-limit', '70')
    await eventually(async () => (await gateway.get('/quota', { key })).body.minute.limit).toBe(7)
    expect(await json('show', prefix)).toMatchObject({
      plan: 'Enterprise',
      minuteLimit: 7,
      dayLimit: 70,
      state: 'active',
    })

    const rotated = await json('rotate', prefix, '--grace', '3600')
    expect((await keys('rotate', prefix)).stderr).toMatch(/expires at .* Set when the new key expires: --expires/)
    expect(rotated).toMatchObject({ name: 'Bob', plan: 'Enterprise' })
    expect([await status(key), await status(rotated.key)]).toEqual([200, 200])
    await gateway.prisma.apiKey.update({ where: { id }, data: { expiresAt: new Date(before) } })
    await eventually(() => status(key)).toBe(401)
    expect(await status(rotated.key)).toBe(200)

    expect(await json('revoke', rotated.prefix)).toMatchObject({ state: 'revoked' })
    await eventually(() => status(rotated.key)).toBe(401)
    expect((await keys('rotate', rotated.prefix)).stderr).toMatch(/is revoked and cannot be rotated/)
  })

  test('usage prints every key with its plan, and with Redis its counters', async () => {
    const { stdout } = await keys('usage')
    expect(stdout).toMatch(/unlimited.*Enterprise/)
    if (process.env.TEST_REDIS_URL) expect(stdout).toMatch(/[█░]{10} \d+\/300/)
  })

  test.each([
    ['an Enterprise key without its limits', ['create', '--name', 'x', '--plan', 'Enterprise'], /needs both/],
    ['limits on another plan', ['create', '--name', 'x', '--plan', 'Free', '--day-limit', '5'], /for Enterprise only/],
    ['an unknown plan', ['create', '--name', 'x', '--plan', 'Gold'], /Free, Pro, Business, Enterprise/],
    ['a limit of 0', ['create', '--name', 'x', '--plan', 'Enterprise', '--minute-limit', '0'], /from 1 to 2147483647/],
    ['a name that is too long', ['create', '--name', 'x'.repeat(101), '--plan', 'Free'], /1 to 100 characters/],
    ['a control character in a name', ['create', '--name', 'a\u0007b', '--plan', 'Free'], /control character/],
    [
      'a date in the past',
      ['create', '--name', 'x', '--plan', 'Free', '--expires', '2020-01-01'],
      /a date in the future/,
    ],
    [
      'a date after the year 9999',
      ['create', '--name', 'x', '--plan', 'Free', '--expires', '9999-12-31T23:59:59-01:00'],
      /not after the year 9999/,
    ],
    ['no name', ['create', '--plan', 'Free'], /--name/],
    ['an id beyond all ids', ['show', '2147483648'], /no key with the id or prefix "2147483648"/],
    ['an unknown key', ['show', '999999'], /no key with the id or prefix "999999"/],
    ['an unknown command', ['destroy', '1'], /unknown command/],
  ])('rejects %s with one line on stderr and exit code 1, and writes nothing', async (_, args, message) => {
    const before = await gateway.prisma.apiKey.count()
    const { code, stdout, stderr } = await keys(...args)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(message)
    // Some errors show only in the database.
    expect(
      stderr
        .trimEnd()
        .replace(/^Database: .*\n/, '')
        .split('\n'),
    ).toHaveLength(1)
    expect(await gateway.prisma.apiKey.count()).toBe(before)
  })
})

test('without a running gateway, npm run keys opens and migrates the embedded database itself', async () => {
  const alone = { DATA_DIR: await dataFolder(), PORT: String(await freePort()) }
  const { code, stdout } = await runCommand(
    ['admin/keys', 'create', '--name', 'Eve', '--plan', 'Free', '--json'],
    alone,
  )
  expect([code, JSON.parse(stdout).name]).toEqual([0, 'Eve'])
  expect((await runCommand(['admin/keys', 'list'], alone)).stdout).toMatch(/Eve.*Free.*active.*60.*1000/)
})

describe('the database that a command works on', () => {
  test('is said before anything is done, but to programs', async () => {
    const name = env.DATABASE_URL ? /^Database: "\w+" at [\w.]+:\d+\n/ : /^Database: embedded, in \/.*\n/
    expect((await keys('list')).stderr).toMatch(name)
    expect((await keys('list')).stderr).not.toContain('://')
    expect((await keys('list', '--json')).stderr).not.toMatch(/Database/)
  })

  test('is refused by all commands but create if no gateway has used it, and stays as it was', async () => {
    const DATA_DIR = join(await temporaryFolder(), 'typo')
    for (const command of [['admin/keys', 'list'], ['admin/keys', 'revoke', '1'], ['admin/studio']]) {
      const { code, stdout, stderr } = await runCommand(command, { DATA_DIR })
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toBe(
        `DATA_DIR ${DATA_DIR} has no database; set DATA_DIR, or DATABASE_URL, to that of the service\n`,
      )
    }
    expect(existsSync(DATA_DIR)).toBe(false)
  })

  test.runIf(testDatabaseUrl)('is refused on PostgreSQL too', async () => {
    const name = `petstore_wrong_${process.pid}`
    await asAdmin(`CREATE DATABASE ${name}`)
    try {
      const DATABASE_URL = databaseUrl(name)
      const { code, stderr } = await runCommand(['admin/keys', 'list'], { DATABASE_URL })
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/^DATABASE_URL: the database ".*" at .* cannot be used: it has no pet store/),
      ])
      const { stdout } = await runCommand(['admin/keys', 'create', '--name', 'First', '--plan', 'Free', '--json'], {
        DATABASE_URL,
      })
      expect(JSON.parse(stdout)).toMatchObject({ id: 1, name: 'First' })
    } finally {
      await asAdmin(`DROP DATABASE ${name} WITH (FORCE)`)
    }
  })
})
