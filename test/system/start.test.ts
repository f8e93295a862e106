import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/ports.js'
import {
  dataFolder,
  refusedStart,
  runCommand,
  runNode,
  type Started,
  spawnScript,
  startGateway,
  temporaryFolder,
} from '../support/process.js'

const listPets = async (url: string, key: string) =>
  (await fetch(`${url}/pets?limit=100`, { headers: { 'x-api-key': key } })).json() as Promise<{ name: string }[]>

const refused = async (env: Record<string, string>) => (await refusedStart(env)).trimEnd().split('\n')

test.each([
  ['2031-02-03', '2031-02-03T00:00:00.000Z'],
  ['2031-02-03T04:05:06', '2031-02-03T04:05:06.000Z'],
  ['2031-02-03T04:05:06Z', '2031-02-03T04:05:06.000Z'],
  ['2031-02-03T04:05:06-03:30', '2031-02-03T07:35:06.000Z'],
])('PET_BY_ID_SUNSET=%s is the same moment in each time zone', async (value, moment) => {
  const script = `import { readSettings } from './src/settings.ts'
    console.log(readSettings({ PET_BY_ID_SUNSET: '${value}' }).PET_BY_ID_SUNSET.toISOString())`
  const args = ['--import', 'tsx', '--input-type=module', '--eval', script]
  expect((await runNode(args, undefined, { TZ: 'Australia/Lord_Howe' })).stdout).toBe(`${moment}\n`)
})

describe('the first start without any setting', () => {
  // One data directory for all tests, because starting is slow.
  let DATA_DIR: string
  let first: Started
  let second: Started
  beforeAll(async () => {
    DATA_DIR = await mkdtemp(join(tmpdir(), 'petstore-'))
    first = await startGateway({ DATA_DIR, DATABSE_URL: 'postgresql://elsewhere/pets' }, () => {})
  })
  afterAll(async () => {
    for (const { child } of [first, second]) child?.kill('SIGKILL')
    await rm(DATA_DIR, { recursive: true, force: true })
  })

  test('prints the URLs, and a curl command that lists pets', async () => {
    const { output, url } = first
    expect(output).toContain('/docs')
    expect(output).toContain('/graphql')
    expect(output).toMatch(/counters +in memory/)
    expect(output).toMatch(new RegExp(`^Pet Store ${JSON.parse(readFileSync('package.json', 'utf8')).version} at `))
    expect(output).toContain(`embedded, in ${DATA_DIR}\n`)
    const line = output.split('\n').find((text) => text.startsWith('curl ')) as string
    // localhost may resolve to ::1, but HOST is 0.0.0.0.
    const { stdout } = await promisify(execFile)('bash', [
      '-c',
      `${line.replace(/http:\/\/localhost:\d+/, url)} --silent`,
    ])
    expect(JSON.parse(stdout)).toHaveLength(3)
  })

  test('warns of a setting that looks misspelt', async () => {
    expect(first.errors()).toMatch(/DATABSE_URL is not a setting and has no effect; did you mean DATABASE_URL\?/)
  })

  test('locks its data directory: another start fails and names the owner, which keeps running', async () => {
    const lines = await refused({ DATA_DIR, PORT: String(await freePort()) })
    expect(lines).toEqual([expect.stringContaining(`in use by process ${first.child.pid}`)])
    expect((await fetch(`${first.url}/readyz`)).status).toBe(200)
  })

  test('keeps data and demo keys after kill -9; only the owner can read the key file', async () => {
    const key = first.demoKey
    const pets = await listPets(first.url, key)
    await fetch(`${first.url}/pets`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Stays', categoryId: 1 }),
    })
    await first.stop('SIGKILL')
    second = await startGateway({ DATA_DIR, DRAIN_SECONDS: '600' }, () => {})
    expect(second.demoKey).toBe(key)
    const found = await listPets(second.url, key)
    expect(found.map(({ name }) => name)).toEqual([...pets.map(({ name }) => name), 'Stays'])
    expect((await stat(join(DATA_DIR, 'demo-keys.json'))).mode & 0o777).toBe(0o600)
  })

  test('drains for DRAIN_SECONDS after a signal: /readyz returns 503, and other requests still work', async () => {
    const { url, child } = second
    child.kill('SIGINT')
    const ready = async () => {
      const response = await fetch(`${url}/readyz`)
      return [response.status, await response.json()]
    }
    await expect.poll(ready).toEqual([503, expect.objectContaining({ status: 'draining' })])
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
  })
})

describe('npm start', () => {
  test('ends when npm ends, and unlocks its data directory', async () => {
    const DATA_DIR = await dataFolder()
    const npm = spawnScript('start', { DATA_DIR, PORT: String(await freePort()), DRAIN_SECONDS: '1' })
    await expect.poll(() => npm.output()).toMatch(/^curl /m)
    expect(readdirSync(DATA_DIR)).toContainEqual(expect.stringMatching(/^lock-/))
    npm.child.kill('SIGTERM')
    await expect.poll(() => readdirSync(DATA_DIR)).not.toContainEqual(expect.stringMatching(/^lock-/))
  })

  test('lives on when a shell or a script of npm has started it in the background and ends', async () => {
    const npm = { npm_lifecycle_event: 'serve', npm_lifecycle_script: 'nohup node --import ./src/built.mjs &' }
    await Promise.all([livesOn({}), livesOn(npm)])
  })

  async function livesOn(env: Record<string, string>) {
    const root = await temporaryFolder()
    await mkdir(join(root, 'dist/src'), { recursive: true })
    await writeFile(
      join(root, 'dist/src/main.js'),
      "setTimeout(() => require('node:fs').writeFileSync('alive', ''), 3_000)",
    )
    await mkdir(join(root, 'src'))
    await cp('src/built.mjs', join(root, 'src/built.mjs'))
    const command = '"$0" --import ./src/built.mjs dist/src/main.js >/dev/null 2>&1 & sleep 1'
    await promisify(execFile)('sh', ['-c', command, process.execPath], {
      cwd: root,
      env: { PATH: process.env.PATH, ...env },
    })
    await expect.poll(() => readdirSync(root)).toContain('alive')
  }

  test('says what to do if there is no build, or if a source is newer', async () => {
    const root = await temporaryFolder()
    const start = () => runNode(['--import', './src/built.mjs', 'dist/src/main.js'], root)
    const write = async (path: string, time: number) => {
      await mkdir(dirname(join(root, path)), { recursive: true })
      await writeFile(join(root, path), '')
      await utimes(join(root, path), time, time)
    }
    await mkdir(join(root, 'src'))
    await cp('src/built.mjs', join(root, 'src/built.mjs'), { preserveTimestamps: true })
    expect(await start()).toEqual({ code: 1, stdout: '', stderr: 'There is no build. Run: npm run build\n' })
    const now = Date.now() / 1000
    await write('schema/pet.ts', now)
    await write('dist/src/main.js', now + 1)
    expect(await start()).toEqual({ code: 0, stdout: '', stderr: '' })
    await write('schema/kit/lists/pages.ts', now + 2)
    expect(await start()).toMatchObject({
      code: 0,
      stderr: 'The sources are newer than the build. Run: npm run build\n',
    })
  })
})

describe('a failed start prints one line per problem, without a stack trace, and exits with 1', () => {
  test('names every invalid setting, its value and the allowed values', async () => {
    const lines = await refused({ PORT: 'http', DATABASE_URL: 'mysql://x', LOG_LEVEL: 'loud', BAN_AFTER: '0' })
    expect(lines).toHaveLength(4)
    expect(lines).toContain('PORT is "http"; it must be a whole number from 1 to 65535')
    expect(lines.join()).toMatch(/DATABASE_URL is "mysql:.*LOG_LEVEL is "loud".*BAN_AFTER is "0"/)
  })

  test('if the port is in use, and unlocks the data directory', async () => {
    const server = createServer().listen(0, '0.0.0.0')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const DATA_DIR = await dataFolder()
    const lines = await refused({ DATA_DIR, PORT: String(port) })
    expect(lines).toEqual([expect.stringContaining(`port ${port} is already in use`)])
    server.close()
    expect(readdirSync(DATA_DIR).sort()).toEqual(['db', 'demo-keys.json'])
  })

  test('unless nobody could have expected it: then its stack trace names the lines of the sources', async () => {
    const NODE_OPTIONS = '--import=data:text/javascript,process.stdout.write=()=>{throw(Error(`lost`))}'
    const { code, stderr } = await runCommand(['main'], { DATA_DIR: await dataFolder(), NODE_OPTIONS })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^Error: lost\n/)
    expect(stderr).toContain(`(${resolve('src/engines/cluster/member.ts')}:`)
  })

  test('if the database is unreachable, without the password in DATABASE_URL', async () => {
    const lines = await refused({ DATABASE_URL: `postgresql://ann:secret@127.0.0.1:${await freePort()}/pets` })
    expect(lines).toEqual([expect.stringMatching(/DATABASE_URL.*127\.0\.0\.1/)])
    expect(lines.join()).not.toContain('secret')
  })
})
