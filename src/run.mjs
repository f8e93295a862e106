import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { acquireLock } from './database/lock.mjs'

// node src/run.mjs ENTRY [ARGUMENT]… runs dist/src/ENTRY.js in this very process, so that signals reach it, and
// first builds dist when it is not what the sources say.

const root = fileURLToPath(new URL('..', import.meta.url))
const sources = ['prisma/schema.prisma', 'prisma/seed.ts', 'schema', 'src', 'tsconfig.json', 'package.json']
const stamp = join(root, 'dist/.sources')
const tools = ['node_modules/prisma/build/index.js', 'node_modules/typescript/bin/tsc']

// Generators are found by their name, which npm would see to.
const path = `${join(root, 'node_modules/.bin')}${delimiter}${process.env.PATH}`

/** A digest of the names and contents of all sources: unlike times, it survives copies and notices what was deleted. */
function digest() {
  const hash = createHash('sha256')
  /** @param {string} path */
  const add = (path) => {
    const stat = statSync(join(root, path), { throwIfNoEntry: false })
    if (stat?.isDirectory()) for (const name of readdirSync(join(root, path)).sort()) add(join(path, name))
    else if (stat) hash.update(`${path}\0${stat.size}\0`).update(readFileSync(join(root, path)))
  }
  for (const path of [...sources, 'package-lock.json']) add(path)
  return hash.digest('hex')
}

const isFresh = () => existsSync(stamp) && readFileSync(stamp, 'utf8') === digest()

/**
 * Runs a tool, silent unless it fails. A signal ends it with us.
 *
 * @param {string[]} command
 */
async function run(...command) {
  const child = spawn(process.execPath, command, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      PATH: path,
      NPM_CONFIG_LOGLEVEL: 'silent',
      CHECKPOINT_DISABLE: '1',
      PRISMA_HIDE_UPDATE_MESSAGE: '1',
    },
  })
  /** @type {Buffer[]} */
  const output = []
  child.stdout.on('data', (data) => output.push(data))
  child.stderr.on('data', (data) => output.push(data))
  /** @param {NodeJS.Signals} signal */
  const stop = (signal) => child.kill(signal)
  process.on('SIGINT', stop).on('SIGTERM', stop)
  const [code, signal] = await new Promise((done, fail) => child.on('error', fail).on('close', (...end) => done(end)))
  process.off('SIGINT', stop).off('SIGTERM', stop)
  if (code === 0) return
  if (!signal) process.stderr.write(Buffer.concat(output))
  throw new Error(`the build ${signal ? `was stopped by ${signal}` : 'failed'}`)
}

async function build() {
  const [prisma = '', tsc = ''] = tools
  const before = digest()
  console.error('building …')
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  await run(prisma, 'generate')
  await run(tsc, '-p', 'tsconfig.json')
  // Last, and of the sources as they were: neither half a build nor one of older sources ever counts as fresh.
  writeFileSync(stamp, before)
}

/** Builds when needed. Of several starts at once one builds, and the others wait for it. */
async function ensureBuild() {
  for (let waiting = false; !isFresh(); ) {
    const { lock, holder } = acquireLock(join(root, 'node_modules/.build.lock'))
    if (lock) {
      try {
        if (!isFresh()) await build()
        return
      } finally {
        lock.release()
      }
    }
    if (!waiting) console.error(`waiting for the build of process ${holder.pid} …`)
    waiting = true
    await sleep(200)
  }
}

const [, , entry = 'main', ...args] = process.argv
const target = join(root, 'dist/src', `${entry}.js`)
try {
  if (tools.every((tool) => existsSync(join(root, tool)))) await ensureBuild()
  // A production image has the build, but neither the compiler nor a need for it.
  if (!existsSync(target)) throw new Error(`there is no ${target}; install with: npm ci`)
} catch (error) {
  console.error(/** @type {Error} */ (error).message)
  process.exit(1)
}
// npm runs this in a shell that does not hand on the signals that npm gets. When it is gone, so is who wanted us.
if (process.env.npm_lifecycle_event && entry === 'main') {
  const parent = process.ppid
  setInterval(() => process.ppid !== parent && process.kill(process.pid, 'SIGTERM'), 500).unref()
}
process.argv = [process.execPath, target, ...args]
await import(pathToFileURL(target).href)
