import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject, onTestFinished } from 'vitest'
import { freePort } from './ports.js'

// Starts whole processes from the build that the global setup has made.

/**
 * Node's arguments for an entry point, such as main or admin/keys. Optimizing the WebAssembly of the embedded database
 * takes half of a start, and does not pay off in a process that lives for seconds.
 */
const built = (entry: string) => ['--liftoff-only', `dist/src/${entry}.js`]

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'petstore-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A data directory with an empty database, because creating one is slow. */
export async function dataFolder(): Promise<string> {
  const folder = await temporaryFolder()
  await cp(inject('folder'), folder, { recursive: true })
  return folder
}

type Environment = Record<string, string>

/** The environment of a process, without the settings of the shell that runs the tests. */
function clean(env: Environment): Environment {
  const { PATH = '', HOME = '' } = process.env
  return { PATH, HOME, LOG_LEVEL: 'warn', EMBEDDED_DB_PORT: '0', ...env }
}

/** Runs an entry point with arguments until it exits. */
export const runCommand = ([entry = '', ...args]: string[], env: Environment) =>
  runNode([...built(entry), ...args], undefined, env)

/** What a start that fails says: it prints nothing else, shows no stack trace, and exits with 1. */
export async function refusedStart(env: Environment): Promise<string> {
  const { code, stdout, stderr } = await runCommand(['main'], env)
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).not.toMatch(/^\s+at /m)
  return stderr
}

/** Runs a program until it exits. */
export function runNode(args: string[], cwd?: string, env: Environment = {}) {
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, args, { cwd, env: clean(env) }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr })
    })
  })
}

/** Prisma Studio, until the test ends, and what asks it as its page does: it answers with an error and rows. */
export async function startStudio(env: Environment) {
  const port = await freePort()
  const args = ['dist/src/admin/studio.js', '--port', String(port), '--browser', 'none']
  const child = spawn(process.execPath, args, { env: clean(env), stdio: 'ignore' })
  onTestFinished(() => void child.kill())
  const ask = (sql: string, parameters: unknown[] = []) =>
    fetch(`http://localhost:${port}/bff`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ procedure: 'query', query: { sql, parameters } }),
    }).then(
      (response) => response.json(),
      () => 'not started',
    )
  return { child, port, ask }
}

/** Starts a script of package.json. `output` returns what it has printed so far. */
export function spawnScript(name: string, env: Environment) {
  const child = spawn('npm', ['run', name], { env: clean(env), stdio: ['ignore', 'pipe', 'ignore'] })
  let output = ''
  child.stdout.on('data', (data) => {
    output += data
  })
  onTestFinished(() => void child.kill())
  return { child, output: () => output }
}

/** Starts a gateway and does not wait for anything. */
export function spawnGateway(env: Environment, cwd?: string) {
  const child = spawn(process.execPath, built('main'), { cwd, env: clean(env), stdio: ['ignore', 'pipe', 'pipe'] })
  // Not at its exit: what it has written may arrive later.
  const ended = once(child, 'close').then(([code]) => code as number | null)
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (data) => {
      output[name] += data
    })
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, ended, output }
}

export interface Started {
  child: ChildProcess
  url: string
  /** The demo key of the plan Free, if there is sample data. */
  demoKey: string
  /** Standard output up to the line that starts with curl or, without one, up to the URLs. */
  output: string
  /** Standard error so far. */
  errors(): string
  /** Sends a signal, waits for the exit, and returns the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/**
 * Starts a gateway on a free port and waits until it prints its URLs.
 *
 * @param onCleanup gets the function that ends the process; default: it ends with the test
 * @param cwd the folder of the project
 */
export async function startGateway(
  env: Environment,
  onCleanup: (end: () => Promise<void>) => void = onTestFinished,
  cwd?: string,
): Promise<Started> {
  const port = env.PORT ?? String(await freePort())
  const child = spawn(process.execPath, built('main'), {
    cwd,
    env: clean({ ...env, PORT: port }),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'exit').then(([code]) => code as number | null)
  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal)
    return ended
  }
  onCleanup(async () => {
    if (child.exitCode === null && child.signalCode === null) await stop('SIGKILL')
  })
  let output = ''
  let errors = ''
  child.stderr?.on('data', (data) => {
    errors += data
  })
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (data) => {
      output += data
      if (/^curl .*\n/m.test(output) || (env.DATABASE_URL && /GraphiQL.*\n/.test(output))) resolve()
    })
    ended.then((code) => reject(new Error(`the gateway exited with ${code}: ${errors}`)))
  })
  const demoKey = /petstore_[0-9a-f]{48}/.exec(output)?.[0] ?? ''
  return { child, url: `http://127.0.0.1:${port}`, demoKey, output, errors: () => errors, stop }
}
