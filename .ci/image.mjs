// Runs the steps of the Dockerfile without a container engine, each stage in an empty folder. Then checks that the result
// holds no tools of development, starts it, sends it a request, and stops it. Fails on an unknown instruction.
import { execFileSync, execSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const all = mkdtempSync(join(tmpdir(), 'image-'))
process.on('exit', () => rmSync(all, { recursive: true, force: true }))

const lines = readFileSync('Dockerfile', 'utf8')
  .split('\n')
  .filter((line) => /^[A-Z]/.test(line))
const last = lines.findLastIndex((line) => line.startsWith('FROM'))
const env = { ...process.env }
const commands = {}
let stage = ''
/** The working directory of each stage: a stage starts with that of its base. */
const workdirs = {}
let folder = ''

const steps = {
  FROM(text) {
    const [base, , name = 'final'] = text.split(' ')
    stage = join(all, name)
    // Instead of a base image, use this machine and its Node.
    if (base.includes(':')) mkdirSync(stage)
    else execSync(`cp -a ${join(all, base)} ${stage}`)
    steps.WORKDIR(workdirs[join(all, base)] ?? '/')
  },
  WORKDIR(path) {
    workdirs[stage] = path
    folder = join(stage, path)
    mkdirSync(folder, { recursive: true })
  },
  COPY(text) {
    const paths = text.split(' ').slice(0, -1)
    const from = paths[0].split('--from=')[1]
    if (from)
      return execSync(`cp -a ${join(all, from, paths[1])}/. ${folder} && du -sh ${folder}`, { stdio: 'inherit' })
    // .dockerignore lists the same files as .gitignore, and tests.
    const files = execFileSync('git', ['ls-files', '--', ...paths, ':!*.test.ts'], { encoding: 'utf8' })
    for (const file of files.trim().split('\n')) cpSync(file, join(folder, file))
  },
  ARG() {},
  RUN(text, line) {
    // Skipped in the last stage, which creates folders outside of its own.
    if (line < last) execSync(text, { cwd: folder, stdio: 'inherit' })
  },
  ENV(text) {
    for (const pair of text.split(' ')) Object.assign(env, Object.fromEntries([pair.split('=')]))
  },
  HEALTHCHECK: (text) => Object.assign(commands, { health: JSON.parse(text.slice(text.indexOf('['))) }),
  CMD: (text) => Object.assign(commands, { start: JSON.parse(text) }),
  USER() {},
  VOLUME() {},
  EXPOSE() {},
}
for (const [number, line] of lines.entries()) {
  const [instruction, ...words] = line.split(' ')
  console.log(line)
  steps[instruction](words.join(' '), number)
}

// The compiler, and Prisma's command line with what only it needs: its engines and Prisma Studio.
const unwanted = ['typescript', 'prisma', '@prisma/engines', '@prisma/studio-core', '.bin/tsc', '.bin/prisma'].filter(
  (name) => existsSync(join(folder, 'node_modules', name)),
)
if (unwanted.length > 0) throw new Error(`The image holds ${unwanted.join(', ')}`)

Object.assign(env, { DATA_DIR: join(all, 'data'), PORT: process.env.PORT ?? '3000', EMBEDDED_DB_PORT: '0' })
const [program, ...args] = commands.start
const service = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
const ended = once(service, 'exit')
let output = ''
for await (const text of service.stdout) {
  output += text
  if (/^curl .*\n/m.test(output)) break
}
console.log(output)
if (output.includes('"level":40')) throw new Error('The start warns')
execSync(`${/^curl .*/m.exec(output)} --silent --show-error --fail`, { stdio: 'inherit' })
const health = spawnSync(commands.health[0], commands.health.slice(1), { env })
service.kill('SIGTERM')
const [code] = await ended
if (health.status !== 0 || code !== 0) throw new Error(`health check: ${health.status}, end: ${code}`)
