import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { chromiumPath } from '../support/chromium.js'
import { openTestDatabase, type TestDatabase } from '../support/database.js'
import { freePort } from '../support/ports.js'
import { scratchDatabase, testDatabaseUrl } from '../support/postgres.js'
import { dataFolder, runCommand, startStudio, temporaryFolder } from '../support/process.js'
import { keys, runKeys } from '../support/remote.js'
import { launch } from './browser.js'

// The processes behind `npm run keys` and `npm run studio`. What the commands do is in test/cli.test.ts.

let database: TestDatabase
beforeAll(async () => {
  database = await openTestDatabase()
})
afterAll(() => database.close())

test('npm run keys prints on both outputs, and exits with a code', async () => {
  const create = ['create', '--name', 'Own', '--plan', 'Free']
  const { code, stdout, stderr } = await runCommand(['admin/keys', ...create, '--json'], database.env)
  expect([code, stderr, JSON.parse(stdout)]).toEqual([0, '', expect.objectContaining({ name: 'Own', plan: 'Free' })])
  const refused = await runCommand(['admin/keys', 'ban'], database.env)
  expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^.*missing.*\n$/) })
})

describe('npm run keys, if its output cannot be written,', () => {
  const run = (rest: string, ...args: string[]) =>
    new Promise<{ code: unknown; stderr: string }>((resolve) => {
      const command = ['dist/src/admin/keys.js', ...args].map((arg) => `'${arg}'`).join(' ')
      const options = { env: { PATH: process.env.PATH, ...database.env } }
      const script = `set -o pipefail; '${process.execPath}' ${command} ${rest}`
      execFile('bash', ['--norc', '-c', script], options, (error, _, stderr) =>
        resolve({ code: error?.code ?? 0, stderr }),
      )
    })
  const created = (name: string) =>
    database.prisma.apiKey.findFirstOrThrow({ where: { name }, orderBy: { id: 'desc' } })

  test('ends as usual if a reader such as head has left, also with its help', async () => {
    expect(await run('| true', 'list')).toEqual({ code: 0, stderr: expect.stringMatching(/^Database: .*\n$/) })
    expect(await run('| true', '--help')).toEqual({ code: 0, stderr: '' })
  })

  test.skipIf(!existsSync('/dev/full'))('says so in one line, and exits with 1', async () => {
    const line = 'Standard output cannot be written: ENOSPC: no space left on device, write.\n'
    expect(await run('>/dev/full', 'list', '--json')).toEqual({ code: 1, stderr: line })
  })

  test('names a new key whose secret is lost, and how to get another', async () => {
    const lost = async () => {
      const { id, prefix } = await created('Lost')
      return `Standard output cannot be written: write EPIPE. Key ${id} (${prefix}) exists, and its secret is lost. For another secret: npm run keys -- rotate ${id}\n`
    }
    const create = await run('| true', 'create', '--name', 'Lost', '--plan', 'Free', '--json')
    expect(create).toEqual({ code: 1, stderr: await lost() })
    const { id } = await created('Lost')
    const rotate = await run('| true', 'rotate', String(id), '--json')
    expect(rotate).toEqual({ code: 1, stderr: await lost() })
    expect((await created('Lost')).originId).toBe(id)
  })
})

test.each([
  ['2090-01-31', '2090-01-31T00:00:00.000Z'],
  ['2090-01-31T12:00', '2090-01-31T12:00:00.000Z'],
  ['2090-01-31 12:00:01', '2090-01-31T12:00:01.000Z'],
  ['2090-01-31T12:00:00.5Z', '2090-01-31T12:00:00.500Z'],
  ['2090-01-31T12:00+05:45', '2090-01-31T06:15:00.000Z'],
  ['2090-01-31T12:00-0300', '2090-01-31T15:00:00.000Z'],
])('--expires %s is the same moment in each time zone', async (expires, moment) => {
  const { id } = await keys(database.env, 'create', '--name', 'Ends', '--plan', 'Free')
  const environment = { ...database.env, TZ: 'Australia/Lord_Howe' }
  const { stdout } = await runCommand(['admin/keys', 'update', String(id), '--expires', expires, '--json'], environment)
  expect(JSON.parse(stdout).expiresAt).toBe(moment)
})

test('without a running gateway, npm run keys opens and migrates the embedded database itself', async () => {
  const alone = { DATA_DIR: await dataFolder(), PORT: String(await freePort()) }
  const { code, stdout } = await runCommand(
    ['admin/keys', 'create', '--name', 'Eve', '--plan', 'Free', '--json'],
    alone,
  )
  expect([code, JSON.parse(stdout).name]).toEqual([0, 'Eve'])
  expect((await runKeys(alone, 'list')).stdout).toMatch(/Eve.*Free.*active.*60.*1000/)
})

describe('the database that a command works on', () => {
  test('is refused by all commands but create if no gateway has used it, and stays as it was', async () => {
    const DATA_DIR = join(await temporaryFolder(), 'typo')
    const stderr = `DATA_DIR ${DATA_DIR} has no database; set DATA_DIR or DATABASE_URL to the same value as for the service\n`
    const answers = [runKeys({ DATA_DIR }, 'list'), runKeys({ DATA_DIR }, 'revoke', '1')]
    for (const answer of [...answers, runCommand(['admin/studio'], { DATA_DIR })])
      expect(await answer).toEqual({ code: 1, stdout: '', stderr })
    const refused = await runKeys({ DATA_DIR }, 'create', '--name', 'x', '--plan', 'Enterprise')
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([1, '', expect.stringContaining('needs both')])
    expect(existsSync(DATA_DIR)).toBe(false)
  })

  test.runIf(testDatabaseUrl)('is refused on PostgreSQL too', async () => {
    const env = { DATABASE_URL: await scratchDatabase() }
    expect(await runKeys(env, 'list')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^DATABASE_URL: the database ".*" at .* cannot be used: it has no pet store/),
    })
    const created = await keys(env, 'create', '--name', 'First', '--plan', 'Free')
    expect(created).toMatchObject({ id: 1, name: 'First' })
  })
})

test('Prisma Studio gets the reason when the database refuses an edit, and opens on pets without the table of migrations', async () => {
  const { child: studio, port, ask } = await startStudio(database.env)
  const insert = () => ask(`INSERT INTO "Category" (name) VALUES ($1)`, [' x '])
  await expect
    .poll(insert, { interval: 200 })
    .toMatchObject([
      { message: expect.stringContaining('violates check constraint "name must not begin or end with white space"') },
    ])
  expect(studio.exitCode).toBeNull()

  if (!chromiumPath) return
  const browser = await launch(port)
  onTestFinished(() => browser.close())
  const page = await browser.newPage()
  await page.goto(`http://localhost:${port}`)
  // Its rows have a column that only pets have.
  await page.getByText('categoryId', { exact: true }).first().waitFor()
  const text = await page.locator('body').innerText()
  expect(text).toContain('InventoryItem')
  expect(text).not.toContain('_prisma_migrations')
})
