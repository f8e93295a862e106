import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync, gzipSync } from 'node:zlib'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { restore } from '../../src/database/embedded/backup.js'
import { openEmbedded } from '../../src/database/embedded/open.js'
import { openDatabase } from '../../src/database/index.js'
import { StartupError } from '../../src/startup-error.js'
import { useGateway } from '../support/gateway.js'
import { asAdmin, databaseUrl, testDatabaseUrl } from '../support/postgres.js'
import { runCommand, type Started, startGateway, temporaryFolder } from '../support/process.js'
import { createKey, keys } from '../support/remote.js'
import { askPrisma } from '../support/schema-engine.js'

// `npm run backup` and `npm run restore` on a store with data, keys and gaps in its ids.

const runBackup = (file: string, env: Record<string, string>) => runCommand(['admin/backup', 'create', file], env)
const runRestore = (file: string, env: Record<string, string>) => runCommand(['admin/backup', 'restore', file], env)

/** Everything in the database of a folder that no process uses: each row and each sequence. */
async function contents(dataDir: string) {
  const { url, close } = await openEmbedded({ dataDir, port: 0 })
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const all: Record<string, unknown> = {}
  for (const table of [
    'Category',
    'Pet',
    'InventoryItem',
    'Order',
    'ApiKey',
    'ApiKeyEvent',
    'ApiKeyUsage',
    '_prisma_migrations',
  ])
    all[table] = (await client.query(`SELECT t::text AS row FROM "${table}" t ORDER BY t::text`)).rows
  for (const table of ['Category', 'Pet', 'Order', 'ApiKey', 'ApiKeyEvent'])
    all[`${table}_id_seq`] = (await client.query(`SELECT last_value, is_called FROM "${table}_id_seq"`)).rows
  await client.end()
  await close()
  return all
}

const call = async ({ url }: Started, key: string, path: string, body?: object) => {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const response = await fetch(`${url}${path}`, { headers, method: body ? 'POST' : 'GET', body: JSON.stringify(body) })
  return { status: response.status, body: await response.json() }
}

describe('a backup', () => {
  let folder: string
  let DATA_DIR: string
  let key: string
  let running: string
  let lastPet: number
  let cleanUp: () => Promise<void> = async () => {}
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'petstore-backup-'))
    DATA_DIR = join(folder, 'store')
    await cp(inject('folder'), DATA_DIR, { recursive: true })
    const gateway = await startGateway({ DATA_DIR }, (end) => {
      cleanUp = end
    })
    key = gateway.demoKey
    await call(gateway, key, '/categories', { name: 'Ünïcödé "quoted" \\ 🐕', description: 'Lines\nand\ttabs\u2028' })
    await call(gateway, key, '/store/orders', { petId: 1, quantity: 2147483647, shipDate: '9999-12-31T23:59:59.999Z' })
    lastPet = (await call(gateway, key, '/pets', { name: 'Last', categoryId: 1 })).body.id
    await fetch(`${gateway.url}/pets/${lastPet}`, { method: 'DELETE', headers: { 'x-api-key': key } })
    await createKey({ DATA_DIR }, 'Ann')
    running = join(folder, 'running.gz')
    expect(await runBackup(running, { DATA_DIR })).toMatchObject({ code: 0, stderr: '' })
    expect((await call(gateway, key, '/pets')).status).toBe(200)
    expect(await gateway.stop()).toBe(0)
  })
  afterAll(async () => {
    await cleanUp()
    await rm(folder, { recursive: true, force: true })
  })

  test('of a stopped service restores every row, sequence, key and migration into an empty folder', async () => {
    const before = await contents(DATA_DIR)
    const file = join(folder, 'stopped.gz')
    const written = await runBackup(file, { DATA_DIR })
    expect(written).toMatchObject({ code: 0, stderr: '' })
    expect(written.stdout).toContain('Category: 6, IdempotentAnswer: 0, InventoryItem: 12, Order: 6, Pet: 12')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await contents(DATA_DIR)).toEqual(before)
    const target = join(folder, 'from-stopped/new')
    const { code, stdout, stderr } = await runRestore(file, { DATA_DIR: target })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^Restored what was backed up at 2\S+ \(ApiKey: 5, ApiKeyEvent: 5, ApiKeyUsage: 1, Category: 6/,
    )
    expect(await contents(target)).toEqual(before)
    expect(readdirSync(target).sort()).toEqual(['db', 'demo-keys.json'])
    expect(readFileSync(join(target, 'demo-keys.json'), 'utf8')).toBe(
      readFileSync(join(DATA_DIR, 'demo-keys.json'), 'utf8'),
    )
    expect(statSync(join(target, 'demo-keys.json')).mode & 0o777).toBe(0o600)
  })

  test('of a running service restores into one that serves, also after a restore that was killed: keys are valid, and ids go on', async () => {
    const target = join(folder, 'from-running')
    await mkdir(target)
    const child = spawn(process.execPath, ['dist/src/admin/backup.js', 'restore', running], {
      env: { PATH: process.env.PATH, DATA_DIR: target },
      stdio: 'ignore',
    })
    await expect.poll(() => existsSync(join(target, 'db.incomplete')), { interval: 5 }).toBe(true)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(await runRestore(running, { DATA_DIR: target })).toMatchObject({ code: 0, stderr: '' })
    const gateway = await startGateway({ DATA_DIR: target })
    expect(gateway.demoKey).toBe(key)
    expect((await call(gateway, key, '/pets?limit=100')).body).toHaveLength(12)
    expect((await call(gateway, key, '/categories?limit=100')).body.at(-1)).toEqual({
      id: 6,
      name: 'Ünïcödé "quoted" \\ 🐕',
      description: 'Lines\nand\ttabs\u2028',
    })
    expect((await call(gateway, key, '/pets', { name: 'Next', categoryId: 6 })).body.id).toBe(lastPet + 1)
    expect(await keys({ DATA_DIR: target }, 'list')).toContainEqual(expect.objectContaining({ name: 'Ann' }))
    // A folder in use is no target.
    const { code, stderr } = await runRestore(running, { DATA_DIR: target })
    expect([code, stderr]).toEqual([1, expect.stringMatching(`in use by process ${gateway.child.pid}`)])
    expect((await call(gateway, key, '/pets')).status).toBe(200)
  })

  const lines = () => gunzipSync(readFileSync(running)).toString().split('\n')
  const edited = (edit: (lines: string[]) => string[]) => gzipSync(edit(lines()).join('\n'))

  test('passes through pipes: nothing else is on standard output, and the other end gets every row', async () => {
    const target = join(folder, 'from-pipe')
    const file = join(folder, 'piped.gz.gz')
    const env = { PATH: process.env.PATH, DATA_DIR, file, target }
    const bash = (script: string) => promisify(execFile)('bash', ['--norc', '-euo', 'pipefail', '-c', script], { env })
    const written = await bash('npm run --silent backup -- - | gzip > "$file"')
    expect(written.stderr).toMatch(/^Wrote a backup from .*store \(ApiKey: 5,.*\)\. Keep it as safe/m)
    const restored = await bash('gunzip < "$file" | DATA_DIR=$target npm run --silent restore -- -')
    expect(restored.stderr).toMatch(
      /^Restored what was backed up at 2\S+ \(ApiKey: 5,.*\)\. Start the service with DATA_DIR=.*from-pipe\.\n$/m,
    )
    expect([written.stdout, restored.stdout]).toEqual(['', ''])
    expect(await contents(target)).toEqual(await contents(DATA_DIR))
    // A reader that ends early.
    await expect(bash('npm run --silent backup -- - | head -c 10')).rejects.toThrow(
      /standard output cannot be written: write EPIPE/,
    )
    expect(existsSync('-')).toBe(false)
  })

  test('that does not arrive whole is refused, and the folder is as it was', async () => {
    const newer = edited(([header = '', ...rest]) => [
      header.replace('"migrations":[', '"migrations":["2099_new",'),
      ...rest,
    ])
    const inputs: [Buffer, RegExp][] = [
      [Buffer.alloc(0), /^standard input is not a backup, or is damaged: (it is incomplete|unexpected end of file)\n$/],
      [
        readFileSync(running).subarray(0, -20),
        /^standard input is not a backup, or is damaged: unexpected end of file\n$/,
      ],
      [newer, /^standard input is from a newer version, with the migrations 2099_new; restore it with that version\n$/],
    ]
    for (const [input, message] of inputs) {
      const place = await temporaryFolder()
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        ['--liftoff-only', 'dist/src/admin/backup.js', 'restore', '-'],
        { input, encoding: 'utf8', env: { PATH: process.env.PATH, DATA_DIR: join(place, 'new/store') } },
      )
      expect([status, stdout, stderr]).toEqual([1, '', expect.stringMatching(message)])
      expect(readdirSync(place)).toEqual([])
    }
  })

  test('is not restored into a folder that is not empty, which stays as it is', async () => {
    const list = () => readdirSync(DATA_DIR, { recursive: true }).sort()
    const before = list()
    const { code, stderr } = await runRestore(running, { DATA_DIR })
    expect([code, stderr]).toEqual([1, expect.stringMatching(/is not empty: it has db, demo-keys\.json; set DATA_DIR/)])
    expect(list()).toEqual(before)
    const other = await temporaryFolder()
    writeFileSync(join(other, 'photo.jpg'), 'precious')
    expect((await runRestore(running, { DATA_DIR: other })).stderr).toMatch(/is not empty: it has photo\.jpg/)
    // The header of a backup is judged first, before anything is made in a folder.
    const bad = join(folder, 'bad.gz')
    writeFileSync(bad, gzipSync('{}\n'))
    await expect(restore(bad, other)).rejects.toThrow(/bad\.gz is not a backup, or is damaged: it has no header/)
    expect(readdirSync(other)).toEqual(['photo.jpg'])
  })

  test.each([
    ['does not exist', () => undefined, /ENOENT/],
    ['is empty', () => Buffer.alloc(0), /not a backup, or is damaged: it is incomplete|unexpected end/],
    ['is no backup', () => Buffer.from('precious'), /not a backup, or is damaged: incorrect header check/],
    ['is another gzip file', () => gzipSync('precious\n'), /not a backup, or is damaged/],
    ['was cut off', () => readFileSync(running).subarray(0, -20), /unexpected end of file/],
    ['has a changed byte', () => flipped(readFileSync(running)), /not a backup, or is damaged/],
    [
      'lacks a row',
      () => edited((all) => all.filter((line) => !line.startsWith('["Pet",{"id":1,'))),
      /it is incomplete/,
    ],
    ['lacks its end', () => edited((all) => all.slice(0, 5).concat('')), /it is incomplete/],
    [
      'is of a newer version',
      () =>
        edited(([header = '', ...rest]) => [header.replace('"migrations":[', '"migrations":["2099_new",'), ...rest]),
      /is from a newer version, with the migrations 2099_new/,
    ],
    [
      'has a row that PostgreSQL refuses, after others that it took',
      () => edited((all) => all.map((line) => line.replace(/^\["Pet",\{"id":12,/, '["Pet",{"id":"twelve",'))),
      /invalid input syntax for type bigint/,
    ],
  ])('that %s is refused, and the folder is as it was', async (_, make, message) => {
    const place = await temporaryFolder()
    const file = join(place, 'backup.gz')
    const data = make()
    if (data) writeFileSync(file, data)
    const before = readdirSync(place)
    const refusal = restore(file, join(place, 'new/store'))
    await expect(refusal).rejects.toThrow(StartupError)
    await expect(refusal).rejects.toThrow(message)
    expect(readdirSync(place)).toEqual(before)
  })

  test('does not overwrite a file, needs a database, and names a table that no migration creates', async () => {
    const precious = join(folder, 'precious')
    writeFileSync(precious, 'precious')
    expect((await runBackup(precious, { DATA_DIR })).stderr).toMatch(/precious exists; choose another name/)
    expect(readFileSync(precious, 'utf8')).toBe('precious')

    const nothing = join(folder, 'nothing')
    const refused = await runBackup(join(folder, 'nothing.gz'), { DATA_DIR: nothing })
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/nothing holds no database/)])
    expect(existsSync(nothing)).toBe(false)

    expect((await runBackup(join(folder, 'no/folder.gz'), { DATA_DIR })).stderr).toMatch(/cannot be written: ENOENT/)
    expect((await runBackup('x', { DATA_DIR, DATABASE_URL: 'postgresql://127.0.0.1/x' })).stderr).toMatch(
      /DATABASE_URL is set.* use pg_dump/,
    )

    const own = join(folder, 'own')
    await cp(DATA_DIR, own, { recursive: true })
    const { url, close } = await openEmbedded({ dataDir: own, port: 0 })
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query('CREATE TABLE notes (text text)')
    await client.end()
    await close()
    const partial = await runBackup(join(folder, 'own.gz'), { DATA_DIR: own })
    expect(partial).toMatchObject({
      code: 0,
      stderr: 'the table "notes" is not in the backup, because no migration creates it\n',
    })
    expect(gunzipSync(readFileSync(join(folder, 'own.gz'))).toString()).not.toContain('notes')
  })
})

test.runIf(testDatabaseUrl && spawnSync('pg_dump', ['--version']).status === 0)(
  'the commands for PostgreSQL in docs/operators.md restore a database that serves, with every row and constraint',
  async () => {
    const gateway = await useGateway()
    const { body: category } = await gateway.post('/categories', { name: 'Dogs' })
    const { body: pet } = await gateway.post('/pets', { name: 'Rex', categoryId: category.id })
    await gateway.patch(`/inventory/${pet.id}`, { quantity: 7 })
    await gateway.post('/store/orders', { petId: pet.id })

    const page = readFileSync('docs/operators.md', 'utf8')
    const name = `petstore_restored_${process.pid}`
    const commands = page
      .split('### PostgreSQL')[1]
      ?.split('```sh')[1]
      ?.split('```')[0]
      ?.replaceAll('petstore_restored', name)
    onTestFinished(async () => void (await asAdmin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)))
    const env = { PATH: process.env.PATH, DATABASE_URL: gateway.database.url }
    await promisify(execFile)('bash', ['-euc', commands ?? ''], { cwd: await temporaryFolder(), env })

    const database = await openDatabase({ DATABASE_URL: databaseUrl(name), DATA_DIR: '', EMBEDDED_DB_PORT: 0 })
    const restored = await useGateway({ database: { ...database, env: {} } })
    for (const path of ['/categories', '/pets', '/inventory', '/store/orders'])
      expect((await restored.get(path, { key: gateway.key })).body).toEqual((await gateway.get(path)).body)
    expect((await restored.post('/pets', { name: 'Next', categoryId: category.id })).body.id).toBe(pet.id + 1)
    await expect(database.prisma.$executeRaw`DELETE FROM "InventoryItem"`).rejects.toThrow(/needs its inventory entry/)
    await expect(database.prisma.$executeRaw`UPDATE "Pet" SET "name" = ' '`).rejects.toThrow(
      /name must not begin or end/,
    )
    const { history, drift } = await askPrisma(databaseUrl(name))
    expect([history.editedMigrationNames, drift.exitCode]).toEqual([[], 0])
  },
)

const flipped = (data: Buffer) => {
  const changed = Buffer.from(data)
  const middle = changed.length >> 1
  changed[middle] = (changed[middle] ?? 0) ^ 0xff
  return changed
}
