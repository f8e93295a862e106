import { type ChildProcess, execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { asAdmin, testDatabaseUrl } from '../../support/postgres.js'
import { type Mutation, mutated, mutationsOf } from '../lint/mutations.js'

// npm run mutants [-- FILE… --share 0.1 --seed 1 --all] changes the code that guards promises, one small change at a time,
// and runs the tests of the changed file until one fails. It prints the changes that no test notices (--all: and the
// others), and ends with 1 if there are any. It works in a copy of the tree.

/** The tests of each file, the fastest first. */
const COVERED: Record<string, string[]> = {
  'src/gateway/idempotency/index.ts': ['idempotency', 'access'],
  'src/engines/postgres/pool/session.ts': ['sessions'],
  'src/engines/postgres/server-url.ts': ['server-url', 'sessions'],
  'src/gateway/database/purge.ts': ['idempotency', 'key-usage'],
  'src/engines/postgres/pool/pool.ts': ['src/engines/postgres/pool/pool', 'write-order', 'database-faults'],
  'src/engines/postgres/pool/lease.ts': ['src/engines/postgres/pool/pool', 'write-order', 'database-faults'],
  'src/engines/postgres/pool/bulkheads.ts': ['src/engines/postgres/pool/pool', 'write-order', 'database-faults'],
  'src/engines/postgres/pool/orphans.ts': [
    'src/engines/postgres/pool/orphans',
    'src/engines/postgres/pool/pool',
    'write-order',
    'database-faults',
  ],
  'src/engines/postgres/pool/shapes.ts': ['src/engines/postgres/pool/pool', 'write-order', 'database-faults'],
  'src/engines/postgres/pool/transaction.ts': ['idempotency', 'database-faults', 'etag'],
  'src/engines/postgres/pool/errors.ts': ['src/engines/postgres/pool/pool', 'idempotency', 'database-faults'],
  'src/engines/postgres/reads.ts': ['reads', 'gathered-reads'],
  'src/engines/postgres/read-statements.ts': ['reads', 'gathered-reads', 'etag'],
  'src/engines/postgres/writes.ts': ['batches', 'stock', 'src/engines/postgres/postgres'],
  'src/engines/postgres/write-statements.ts': ['batches', 'stock', 'locks'],
  'schema/stock.ts': ['stock'],
  'schema/kit/conditions.ts': ['etag'],
  'schema/kit/etag.ts': ['etag'],
  'src/gateway/admission/queue.ts': ['overload'],
  'src/gateway/http/body.ts': ['bodies', 'graphql-over-http', 'http'],
  'src/gateway/http/response.ts': ['bodies', 'http', 'overload'],
  'src/gateway/http/memory-budget.ts': ['bodies', 'overload'],
  'src/gateway/app.ts': ['overload', 'operators', 'http', 'quota', 'keys'],
  'src/gateway/keys/api-key.ts': ['keys', 'quota', 'limits'],
  'src/gateway/keys/api-key-cache.ts': ['keys', 'key-changes', 'quota', 'limits'],
  'src/gateway/keys/key-changes.ts': ['key-changes'],
  'src/gateway/keys/authenticate.ts': ['keys', 'access', 'headers'],
  'src/gateway/keys/throttle.ts': ['keys', 'database-faults'],
  'src/gateway/keys/quota.ts': ['quota'],
  'src/gateway/keys/usage.ts': ['key-usage'],
  'src/engines/rate-limit/bans.ts': ['limits'],
  'src/engines/rate-limit/decide.lua': ['limits'],
  'src/engines/rate-limit/failover.ts': ['limits', 'system/redis-unreachable', 'system/redis-away'],
  'src/engines/rate-limit/headers.ts': ['quota', 'headers', 'error-messages'],
  'src/engines/rate-limit/memory.ts': ['limits'],
  'src/engines/rate-limit/redis.ts': [
    'limits',
    'system/redis-unreachable',
    'system/redis-away',
    'system/limits-cluster',
  ],
  'src/engines/rate-limit/result.ts': ['limits', 'quota'],
  'src/gateway/graphql/cost.ts': ['documents'],
  'src/gateway/graphql/weight.ts': ['documents'],
  'src/gateway/graphql/limits.ts': ['documents'],
  'src/gateway/graphql/validate-document.ts': ['documents', 'hostile-documents'],
  'src/engines/executor/selections.ts': ['documents', 'hostile-documents', 'src/engines/executor/executor'],
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { share: { type: 'string' }, seed: { type: 'string' }, all: { type: 'boolean' } },
})
const share = Number(values.share ?? 1)
let seed = Number(values.seed ?? 1)

/** The same numbers for the same seed. */
function random(): number {
  seed = (Math.imul(seed ^ (seed >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0
  return ((seed ^ (seed >>> 13)) >>> 0) / 2 ** 32
}

const root = resolve(import.meta.dirname, '../../..')
const scratch = mkdtempSync(join(tmpdir(), 'mutants-'))
mkdirSync(join(scratch, 'tmp'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))
process.once('SIGINT', () => process.exit(130))

function copyTree() {
  const listed = execFileSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
  const files = listed.split('\0').filter((file) => file && statSync(join(root, file), { throwIfNoEntry: false }))
  for (const path of [...files, 'dist', 'prisma/generated'])
    cpSync(join(root, path), join(scratch, path), { recursive: true, preserveTimestamps: true })
  symlinkSync(join(root, 'node_modules'), join(scratch, 'node_modules'))
}

/** The process that runs the tests. It is reused, because a start takes longer than most tests. */
let runner: ChildProcess | undefined

function startRunner(): ChildProcess {
  const env = { ...process.env, TMPDIR: join(scratch, 'tmp'), FORCE_COLOR: '0' }
  // In a group of its own, so that what its tests have started can be ended with it.
  const child = fork(join(import.meta.dirname, 'mutants-runner.ts'), [scratch], {
    cwd: scratch,
    env,
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  return child
}

async function stopRunner() {
  const { pid } = runner ?? {}
  if (!runner || !pid) return
  const ended = runner.exitCode === null && runner.signalCode === null ? once(runner, 'exit') : undefined
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {}
  await ended
  runner = undefined
  if (!testDatabaseUrl) return
  const made = await asAdmin(`SELECT datname FROM pg_database WHERE datname ~ '^petstore_template_${pid}(_|$)'`)
  for (const { datname } of made.rows) await asAdmin(`DROP DATABASE ${datname} WITH (FORCE)`)
}

/** Whether a test file passes. A file that takes too long, or ends the process, does not. */
async function passes(test: string, changed: string | undefined, timeoutMs: number): Promise<boolean> {
  runner ??= startRunner()
  const child = runner
  const answer = new Promise<boolean>((done) => {
    child.once('message', (message) => done(message === true)).once('exit', () => done(false))
    setTimeout(() => done(false), timeoutMs).unref()
    child.send({
      test: `${test.startsWith('src/') ? '' : 'test/'}${test}.test.ts`,
      changed: changed && join(scratch, changed),
    })
  })
  let answered = false
  child.once('message', () => {
    answered = true
  })
  const passed = await answer
  child.removeAllListeners('message').removeAllListeners('exit')
  if (!answered) await stopRunner()
  return passed
}

const START_MS = 120_000
const durations = new Map<string, number>()

/** Runs a test file without changes: it has to pass, and its duration bounds the runs with changes. */
async function measure(test: string) {
  if (durations.has(test)) return
  const startedAt = performance.now()
  if (!(await passes(test, undefined, 2 * START_MS))) throw new Error(`${test} fails without any change`)
  durations.set(test, performance.now() - startedAt)
}

async function isNoticed(file: string, source: string, mutation: Mutation): Promise<boolean> {
  const path = join(scratch, file)
  const { atime, mtime } = statSync(path)
  /** A source that is newer than the build would be built again. */
  const write = (text: string) => {
    writeFileSync(path, text)
    utimesSync(path, atime, mtime)
  }
  write(mutated(source, mutation))
  try {
    for (const test of COVERED[file] ?? []) {
      const timeoutMs = 3 * (durations.get(test) ?? 0) + START_MS / 4
      if (!(await passes(test, file, timeoutMs))) return true
    }
    return false
  } finally {
    write(source)
  }
}

function describe(file: string, source: string, { start, end, text }: Mutation): string {
  const line = source.slice(0, start).split('\n').length
  const brief = (code: string) => code.replaceAll(/\s+/g, ' ').slice(0, 100)
  return `${file}:${line}  ${brief(source.slice(start, end))}  →  ${brief(text) || 'nothing'}`
}

async function main() {
  const unknown = positionals.filter((file) => !COVERED[file])
  if (unknown.length > 0) throw new Error(`The table in test/lab/tools/mutants.ts has no ${unknown.join(', ')}.`)
  copyTree()
  let survived = 0
  for (const file of positionals.length > 0 ? positionals : Object.keys(COVERED)) {
    const source = readFileSync(join(root, file), 'utf8')
    const sample = mutationsOf(file, source).filter(() => random() < share)
    if (sample.length > 0) for (const test of COVERED[file] ?? []) await measure(test)
    let noticed = 0
    for (const mutation of sample) {
      const isKilled = await isNoticed(file, source, mutation)
      if (isKilled) noticed++
      if (!isKilled || values.all)
        console.log(`${isKilled ? 'fails   ' : 'survives'}  ${describe(file, source, mutation)}`)
    }
    survived += sample.length - noticed
    console.log(`${file}: a test notices ${noticed} of ${sample.length} changes`)
  }
  return survived > 0 ? 1 : 0
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 2
} finally {
  await stopRunner()
}
