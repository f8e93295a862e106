import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  cpSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { seed } from '../../prisma/seed.js'
import { type DemoKeys, demoKeys } from '../../src/admin/demo-keys.js'
import { acquireLock, type Lock } from '../../src/engines/embedded/lock.js'
import { openEmbedded } from '../../src/engines/embedded/open.js'
import { migrate, readMigrations, withSession } from '../../src/engines/postgres/index.js'
import { type Database, type DatabaseOptions, openDatabase } from '../../src/gateway/database/index.js'
import { newDatabase } from '../../src/gateway/database/new-database.js'
import { createSecret, storedSecret } from '../../src/gateway/keys/index.js'
import { refusal } from '../support/database.js'

const scratch = mkdtempSync(join(tmpdir(), 'petstore-database-'))
let folders = 0
const emptyFolder = () => join(scratch, `data-${folders++}`)

function dataFolder(): string {
  const folder = emptyFolder()
  cpSync(inject('folder'), folder, { recursive: true })
  return folder
}

/** A statement may take longer on a busy machine; that is not what these tests are about. */
const patient = { timeoutMs: 30_000 }

async function open(DATA_DIR: string, options: DatabaseOptions & { port?: number } = {}) {
  const database = await openDatabase({ DATA_DIR, EMBEDDED_DB_PORT: options.port ?? 0 }, { ...patient, ...options })
  onTestFinished(() => database.close())
  return database
}

function child(fixture: string, ...args: string[]): ChildProcess {
  const process_ = spawn(process.execPath, ['--import', 'tsx', join('test/fixtures', fixture), ...args])
  onTestFinished(() => void process_.kill('SIGKILL'))
  return process_
}

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

describe('the embedded database', () => {
  test('keeps its data across restarts in a folder that only its owner can read; a command joins its owner, or owns it if no process does', async () => {
    const folder = dataFolder()
    const owner = await open(folder)
    const { id } = await owner.prisma.category.create({ data: { name: 'Kept' } })
    expect(await acquireLock(folder)).toEqual({ owner: { pid: process.pid, port: Number(new URL(owner.url).port) } })
    expect(await refusal(open(folder))).toContain(
      `is in use by process ${process.pid} (port ${new URL(owner.url).port})`,
    )
    const joined = await open(folder, { join: true })
    expect(joined.url).toBe(owner.url)
    expect(await joined.prisma.category.findMany()).toMatchObject([{ id, name: 'Kept' }])
    await joined.close()
    await owner.ping()
    await owner.close()
    expect(readdirSync(folder)).toEqual(['db'])
    expect(statSync(join(folder, 'db')).mode & 0o777).toBe(0o700)

    const command = await open(folder, { join: true })
    const another = open(folder, { join: true })
    expect(await command.prisma.category.findMany()).toMatchObject([{ id, name: 'Kept' }])
    await command.close()
    await (await another).close()
  })

  test('a start waits for a command that has the folder open, and fails in one line if that does not end', async () => {
    const folder = dataFolder()
    const command = await open(folder, { join: true })
    const lines: string[] = []
    const starting = open(folder, { onNotice: (line) => void lines.push(line) })
    await expect
      .poll(() => lines, { timeout: 10_000 })
      .toEqual([`waiting for process ${process.pid}, which uses DATA_DIR ${folder}`])
    await command.close()
    const gateway = await starting
    await gateway.ping()
    await gateway.close()

    await open(folder, { join: true })
    vi.useFakeTimers({ toFake: ['Date'] })
    const clock = setInterval(() => vi.setSystemTime(Date.now() + 5_000), 20)
    onTestFinished(() => {
      clearInterval(clock)
      vi.useRealTimers()
    })
    expect(await refusal(open(folder))).toBe(
      `DATA_DIR ${folder} is in use by process ${process.pid}, such as a command or Prisma Studio; end that process or set DATA_DIR to another folder`,
    )
  })

  test('loses no acknowledged write on kill -9, and a dead owner does not block the next one', async () => {
    const folder = dataFolder()
    const writer = child('write.ts', folder)
    const acknowledged: string[] = []
    // biome-ignore lint/style/noNonNullAssertion: spawned with pipes
    for await (const line of createInterface(writer.stdout!)) {
      acknowledged.push(line)
      if (acknowledged.length === 100) writer.kill('SIGKILL')
    }
    expect(acknowledged.length).toBeGreaterThanOrEqual(100)
    const { prisma } = await open(folder)
    const ids = (await prisma.category.findMany()).map(({ id }) => String(id))
    expect(ids).toEqual(expect.arrayContaining(acknowledged))
  })

  test('names the setting if its port is in use, and releases the lock', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const folder = dataFolder()
    expect(await refusal(open(folder, { port }))).toContain(`EMBEDDED_DB_PORT ${port} is in use`)
    expect(readdirSync(folder)).toEqual(['db'])
  })

  test('names the problem of an unusable data directory, and changes nothing in it', async () => {
    const file = join(scratch, 'file')
    writeFileSync(file, 'precious')
    expect(await refusal(open(file))).toContain(`DATA_DIR ${file} cannot be used: it or its parent is a file`)
    expect(await refusal(open(join(file, 'data')))).toContain('is a file')
    expect(await refusal(open('/sys/nothing/here'))).toContain('set DATA_DIR to a writable folder')

    const garbage = emptyFolder()
    mkdirSync(join(garbage, 'db'), { recursive: true })
    writeFileSync(join(garbage, 'db/photo.jpg'), 'precious')
    expect(await refusal(open(garbage))).toContain('is not empty and is not a database')
    expect(readdirSync(garbage, { recursive: true })).toEqual(['db', 'db/photo.jpg'])

    const corrupted = dataFolder()
    writeFileSync(join(corrupted, 'db/global/pg_control'), 'nonsense')
    expect(await refusal(open(corrupted))).toContain(`the database in ${join(corrupted, 'db')} cannot be opened`)
    expect(readdirSync(corrupted)).toEqual(['db'])
  })
})

const NOBODY = 65_534
const isRoot = process.getuid?.() === 0

/** Starts a gateway, or runs another program, as another user. */
const startAsNobody = (DATA_DIR: string, program = ['main.js']) =>
  spawnSync(process.execPath, ['--liftoff-only', `dist/src/${program[0]}`, ...program.slice(1)], {
    encoding: 'utf8',
    uid: NOBODY,
    timeout: 60_000,
    env: { PATH: process.env.PATH, DATA_DIR, EMBEDDED_DB_PORT: '0' },
  }).stderr
const mayRead = isRoot && spawnSync('ls', [join(process.cwd(), 'dist/src')], { uid: NOBODY }).status === 0

const mount = (folder: string) => spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'none', folder])
const trial = mkdtempSync(join(scratch, 'mount-'))
const canMount = isRoot && mount(trial).status === 0 && spawnSync('umount', [trial]).status === 0

describe('a data directory that cannot be opened is refused with one line that names the reason', () => {
  /** A data directory that others may look into. */
  async function givenAway() {
    const folder = mkdtempSync(join(tmpdir(), 'petstore-nobody-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    cpSync(inject('folder'), folder, { recursive: true })
    const files = () =>
      ['.', ...(readdirSync(folder, { recursive: true }) as string[])].map((name) => join(folder, name))
    for (const file of files()) chownSync(file, NOBODY, NOBODY)
    return { folder, files }
  }

  test.runIf(canMount)('a full disk, on which it opens again as it was once there is room', async () => {
    const disk = mkdtempSync(join(scratch, 'disk-'))
    mount(disk)
    onTestFinished(() => void spawnSync('umount', ['--lazy', disk]))
    const folder = join(disk, 'data')
    cpSync(inject('folder'), folder, { recursive: true })
    const filling = join(disk, 'filling')
    // Until no byte is left.
    spawnSync('dd', ['if=/dev/zero', `of=${filling}`, 'bs=4k'])
    expect(await refusal(open(folder))).toBe(
      `DATA_DIR: the database in ${join(folder, 'db')} cannot be opened: the disk is full; free some of it`,
    )
    rmSync(filling)
    const database = await open(folder)
    expect(await database.prisma.pet.count()).toBe(0)
    await database.close()
  })

  test.runIf(isRoot)('root, for files of another user, before root has written any as another user', async () => {
    const { folder, files } = await givenAway()
    const line = `DATA_DIR ${folder} belongs to the user with the id ${NOBODY}, who could not open what root writes into it; run this as that user: sudo -u '#${NOBODY}' …`
    expect(await refusal(open(folder))).toBe(line)
    expect(await refusal(open(folder, { join: true }))).toBe(line)
    expect(files().filter((file) => statSync(file).uid !== NOBODY)).toEqual([])
  })

  test.runIf(mayRead)('a file that root has written, for a service that runs as another user', async () => {
    const { folder } = await givenAway()
    const file = join(folder, 'db/pg_logical/replorigin_checkpoint')
    writeFileSync(file, 'x', { mode: 0o600 })
    chownSync(file, 0, 0)
    expect(startAsNobody(folder)).toBe(
      `DATA_DIR: the database in ${folder}/db cannot be opened: ${file} belongs to the user with the id 0, and this runs as ${NOBODY}; give all of it to one user: sudo chown -R ${NOBODY} ${folder}/db\n`,
    )
  })

  test.runIf(mayRead)('a folder that its owner alone may read, for commands of another user', () => {
    const folder = dataFolder()
    chmodSync(folder, 0o700)
    chmodSync(scratch, 0o755)
    const line = `DATA_DIR ${folder} cannot be read: this runs as the user with the id ${NOBODY}; run it as the user of the service\n`
    expect(startAsNobody(folder, ['admin/keys.js', 'list'])).toBe(line)
    expect(startAsNobody(folder, ['admin/backup.js', 'create', '/dev/null/backup'])).toBe(line)
  })

  test('a database of another version of PostgreSQL', async () => {
    const folder = dataFolder()
    const file = join(folder, 'db/PG_VERSION')
    const version = readFileSync(file, 'utf8').trim()
    writeFileSync(file, '16\n')
    expect(await refusal(open(folder))).toBe(
      `DATA_DIR: the database in ${folder}/db cannot be opened: it is of PostgreSQL 16, and this version of the service has ${version}; make a backup with the version that wrote it, and restore that`,
    )
  })

  test('a file that is gone', async () => {
    const folder = dataFolder()
    rmSync(join(folder, 'db/global/pg_control'))
    expect(await refusal(open(folder))).toMatch(/ cannot be opened: .*; restore a backup, or move the folder to start/)
  })
})

describe('the clients of the embedded database', () => {
  let embedded: Database
  beforeAll(async () => {
    embedded = await openDatabase({ DATA_DIR: dataFolder(), EMBEDDED_DB_PORT: 0 }, patient)
  })
  afterAll(() => embedded.close())

  async function client(): Promise<pg.Client> {
    const made = new pg.Client({ connectionString: embedded.url })
    made.on('error', () => {})
    await made.connect()
    onTestFinished(() => void made.end().catch(() => {}))
    return made
  }

  test('have isolated transactions', async () => {
    const { prisma } = embedded
    const { id } = await prisma.category.create({ data: { name: '0' } })
    const increment = () =>
      prisma.$transaction(async (tx) => {
        const { name } = await tx.category.findUniqueOrThrow({ where: { id } })
        await new Promise(setImmediate)
        await tx.category.update({ where: { id }, data: { name: String(Number(name) + 1) } })
      })
    // As many concurrently as there are connections, so that none waits for a connection until it times out.
    for (let round = 0; round < 5; round++) await Promise.all(Array.from({ length: 10 }, increment))
    expect(await prisma.category.findUnique({ where: { id } })).toMatchObject({ name: '50' })
    const failing = prisma.$transaction(async (tx) => {
      await tx.category.update({ where: { id }, data: { name: 'undone' } })
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await prisma.category.findUnique({ where: { id } })).toMatchObject({ name: '50' })
  })

  test('never mix their statements, however large these are', async () => {
    const clients = await Promise.all(Array.from({ length: 6 }, client))
    const large = 'x'.repeat(300_000)
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        clients.map(async (one, index) => {
          const value = index === 0 ? large : `${index}`
          const { rows } = await one.query('SELECT $1::text AS value', [value])
          expect(rows[0].value === value).toBe(true)
        }),
      )
    }
  })

  test('can disconnect at any point of a transaction, which is then rolled back', async () => {
    const witness = await client()
    for (let round = 0; round < 40; round++) {
      const leaving = await client()
      const steps = ['BEGIN', `INSERT INTO "Category" ("name") VALUES ('left')`, 'nonsense'].slice(0, 1 + (round % 3))
      const sent = leaving.query(steps.join(';')).catch(() => {})
      await (round % 2 ? sent : new Promise((resolve) => setTimeout(resolve, round / 8)))
      // Like a process that dies, without a Terminate message.
      leaving.connection.stream.destroy()
      const { rows } = await witness.query(`SELECT count(*)::int AS left FROM "Category" WHERE "name" = 'left'`)
      expect(rows).toEqual([{ left: 0 }])
    }
  })

  test('cause onLost if the database crashes', async () => {
    const lost = new Promise<Error>((onLost) => {
      void openEmbedded({ dataDir: dataFolder(), port: 0, onLost }).then(async ({ url, close }) => {
        const killer = new pg.Client({ connectionString: url })
        killer.on('error', () => {})
        await killer.connect()
        await killer.query(`COPY (SELECT 1) TO PROGRAM 'date'`).catch(() => {})
        await close()
      })
    })
    expect((await lost).message).toContain('the embedded database ended')
  })
})

describe('the lock of a folder', () => {
  const emptyLocked = () => mkdtempSync(join(scratch, 'lock-'))

  async function take(folder: string): Promise<Lock> {
    const lock = await acquireLock(folder)
    if (!('release' in lock)) return expect.fail(`process ${lock.owner.pid} owns it`)
    onTestFinished(lock.release)
    return lock
  }

  /** A file as kill -9 leaves it: a socket on which no process listens. */
  async function leaveBehind(path: string) {
    const server = createServer().listen(`${path}.listening`)
    await once(server, 'listening')
    linkSync(`${path}.listening`, path)
    server.close()
    await once(server, 'close')
  }

  test('has one owner at a time, even if several processes compete and some are killed', async () => {
    const folder = emptyLocked()
    const log = join(scratch, 'tenures')
    writeFileSync(log, '')
    const rivals = new Set<ChildProcess>()
    const add = () => rivals.add(child('contend.ts', folder, log))
    const kill = async (rival: ChildProcess) => {
      rivals.delete(rival)
      rival.kill('SIGKILL')
      await once(rival, 'exit')
    }
    const lines = () => readFileSync(log, 'utf8').trim().split('\n')
    for (let count = 0; count < 4; count++) add()
    for (let kills = 0; kills < 5; kills++) {
      const seen = lines().length
      await expect.poll(() => lines().length).toBeGreaterThan(seen + 30)
      const owner = [...rivals].find(({ pid }) => lines().at(-1)?.startsWith(`${pid}-`))
      await kill(owner ?? ([...rivals][0] as ChildProcess))
      add()
    }
    await Promise.all([...rivals].map(kill))
    const tenures = lines().filter((line, index, all) => line !== all[index - 1])
    expect(tenures).toEqual([...new Set(tenures)])
    await take(folder)
    expect(readdirSync(folder)).toHaveLength(1)
  })

  test('goes to one of several concurrent processes, which answers the others', async () => {
    const folder = emptyLocked()
    await leaveBehind(join(folder, 'lock-dead'))
    await leaveBehind(join(folder, 'lock-dead.new'))
    const answers = await Promise.all(Array.from({ length: 8 }, () => acquireLock(folder)))
    const locks = answers.filter((answer) => 'release' in answer)
    expect(locks).toHaveLength(1)
    for (const { owner } of answers) expect(owner).toEqual({ pid: process.pid })
    for (const lock of locks) lock.release()
    expect(readdirSync(folder)).toEqual([])
  })

  test('stays with a process that is too busy to respond', async () => {
    const folder = emptyLocked()
    const sockets: Socket[] = []
    const silent = createServer((socket) => sockets.push(socket)).listen(join(folder, 'lock-silent'))
    await once(silent, 'listening')
    const waiting = acquireLock(folder)
    const early = await Promise.race([waiting, new Promise((resolve) => setTimeout(resolve, 500))])
    expect(early).toBe(undefined)
    silent.close()
    for (const socket of sockets) socket.destroy()
    expect('release' in (await waiting)).toBe(true)
  })

  test.runIf(spawnSync('unshare', ['--pid', '--net', '--fork', 'true']).status === 0)(
    'is visible in another container (in other PID and network namespaces)',
    async () => {
      const folder = emptyLocked()
      await take(folder)
      const source = `import('${pathToFileURL('src/engines/embedded/lock.ts')}')
        .then(({ acquireLock }) => acquireLock('${folder}')).then(({ owner }) => console.log(JSON.stringify(owner)))`
      const args = ['--pid', '--net', '--fork', process.execPath, '--import', 'tsx', '--eval', source]
      const { stdout } = await promisify(execFile)('unshare', args)
      expect(JSON.parse(stdout)).toEqual({ pid: process.pid })
    },
  )

  test('fails if the path of its socket would be truncated', async () => {
    const folder = join(scratch, 'x'.repeat(100))
    expect(await refusal(open(folder))).toMatch(/DATA_DIR \S+ is too long: .* \d+ bytes, and at most 103/)
  })
})

describe('a start with an unreachable DATABASE_URL', () => {
  const start = (DATABASE_URL: string) => refusal(openDatabase({ DATABASE_URL, DATA_DIR: '', EMBEDDED_DB_PORT: 0 }))

  test('fails with one line that names host and database but not the password', async () => {
    expect(await start('postgresql://me:secret@127.0.0.1:1/shop')).toBe(
      'DATABASE_URL: the database "shop" at 127.0.0.1:1 cannot be used: connection refused; is the server running?',
    )
    expect(await start('postgresql://me:secret@localhost:1/shop')).toContain(
      'localhost:1 cannot be used: connection refused',
    )
    expect(await start('postgresql://me:secret@no.such.host.invalid/shop')).toMatch(/host name/)
  })

  test('fails within seconds if the server never responds', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    expect(await start(`postgresql://me:secret@127.0.0.1:${port}/shop`)).toContain('the server does not respond')
  })

  test.runIf(process.env.TEST_DATABASE_URL)('fails if the user or the database does not exist', async () => {
    const url = new URL(process.env.TEST_DATABASE_URL ?? '')
    url.pathname = '/no_such_database'
    expect(await start(url.href)).toContain('"no_such_database" does not exist')
    Object.assign(url, { username: 'nobody_here', password: 'secret' })
    expect(await start(url.href)).not.toContain('secret')
  })
})

describe('the first data', () => {
  const folder = dataFolder()
  let database: Database
  let prisma: Database['prisma']
  beforeAll(async () => {
    database = await openDatabase({ DATA_DIR: folder, EMBEDDED_DB_PORT: 0 }, patient)
    prisma = database.prisma
    return database.close
  })

  test('what the build packs has all migrations and not one row, so that installations share no key and no id', async () => {
    const options = { dataDir: emptyFolder(), port: 0, packed: newDatabase, onNotice: expect.fail }
    const { url, close } = await openEmbedded(options)
    onTestFinished(close)
    await withSession({ connectionString: url }, async (client) => {
      expect(await migrate(url, { isEmbedded: true })).toEqual([])
      const tables = await client.query(`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`)
      const counts = tables.rows.map(({ name }) => `SELECT '${name}' AS name, count(*)::int FROM "${name}"`)
      expect(counts.length).toBeGreaterThan(8)
      const filled = await client.query(`SELECT * FROM (${counts.join(' UNION ALL ')}) AS counts WHERE count > 0`)
      expect(filled.rows).toEqual([{ name: '_prisma_migrations', count: readMigrations().length }])
      const { rows: used } = await client.query('SELECT FROM pg_sequences WHERE last_value IS NOT NULL')
      expect(used).toEqual([])
    })
  })

  test('the sample data is inserted once, with ids starting at 1', async () => {
    expect(await seed(prisma)).toBe(true)
    expect(await seed(prisma)).toBe(false)
    expect(await prisma.pet.findMany({ select: { id: true }, orderBy: { id: 'asc' } })).toHaveLength(12)
    expect(await prisma.pet.findFirst({ orderBy: { id: 'asc' } })).toMatchObject({ id: 1n, name: 'Rex' })
    expect(await prisma.inventoryItem.count({ where: { quantity: { gt: 0 } } })).toBe(10)
    expect(await prisma.order.count()).toBe(5)
    await prisma.$executeRaw`TRUNCATE "Category" CASCADE`
    expect(await seed(prisma)).toBe(false)
  })

  test('the demo keys are made once, also if the start that makes them is interrupted', async () => {
    // A key of an admin's own, from before the first start, changes nothing.
    const { id } = await prisma.apiKey.create({
      data: { name: 'Own', plan: 'Free', ...storedSecret(createSecret().key) },
    })
    await prisma.apiKey.delete({ where: { id } })
    const keys = await demoKeys(database, folder)
    expect(await demoKeys(database, folder)).toEqual(keys)
    // Interrupted after the rows were written, before their file got its name.
    renameSync(join(folder, 'demo-keys.json'), join(folder, 'demo-keys.json.new'))
    expect(await demoKeys(database, folder)).toEqual(keys)
    expect(await prisma.apiKey.count()).toBe(4)
    // Interrupted while the file was written.
    await prisma.apiKey.deleteMany()
    renameSync(join(folder, 'demo-keys.json'), join(folder, 'demo-keys.json.new'))
    truncateSync(join(folder, 'demo-keys.json.new'), 10)
    const others = (await demoKeys(database, folder)) as DemoKeys
    expect(await prisma.apiKey.count({ where: { hash: storedSecret(others.Free).hash } })).toBe(1)
  })

  test('demo keys that are revoked, deleted, or without their file do not come back, and are not offered', async () => {
    const file = join(folder, 'demo-keys.json')
    const keys = (await demoKeys(database, folder)) as DemoKeys
    const { hash } = storedSecret(keys.Free)
    for (const end of ['revokedAt', 'expiresAt']) {
      await prisma.apiKey.update({ where: { hash }, data: { [end]: new Date() } })
      expect(await demoKeys(database, folder), end).toBeUndefined()
      await prisma.apiKey.update({ where: { hash }, data: { [end]: null } })
      expect(await demoKeys(database, folder), end).toEqual(keys)
    }
    rmSync(file)
    expect(await demoKeys(database, folder)).toBeUndefined()
    expect(await prisma.apiKey.count()).toBe(4)
    writeFileSync(file, JSON.stringify(keys))
    await prisma.apiKey.deleteMany()
    expect(await demoKeys(database, folder)).toBeUndefined()
    expect(await prisma.apiKey.count()).toBe(0)
    await prisma.apiKey.create({ data: { name: 'Own', plan: 'Free', ...storedSecret(createSecret().key) } })
    await prisma.apiKeyEvent.deleteMany()
    expect(await demoKeys(database, folder)).toBeUndefined()
    expect(await prisma.apiKey.count()).toBe(1)
  })

  test('a file of demo keys that is not valid is refused, and not overwritten', async () => {
    writeFileSync(join(folder, 'demo-keys.json'), 'garbage')
    expect(await refusal(demoKeys(database, folder))).toContain('demo-keys.json is not a valid file of demo keys')
    expect(readFileSync(join(folder, 'demo-keys.json'), 'utf8')).toBe('garbage')
  })
})
