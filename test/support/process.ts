import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject, onTestFinished } from 'vitest'

// Whole processes, as people start them. Global setup has built them.

/** The built file of an entry, such as main or admin/keys. */
const built = (entry: string) => `dist/src/${entry}.js`

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'petstore-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A data directory with an empty database in it, which saves its start the making of one. */
export async function dataFolder(): Promise<string> {
  const folder = await temporaryFolder()
  await cp(inject('folder'), folder, { recursive: true })
  return folder
}

type Environment = Record<string, string>

/** What a process inherits here: nothing of the settings of whoever runs the tests. */
function clean(env: Environment): Environment {
  const { PATH = '', HOME = '' } = process.env
  return { PATH, HOME, LOG_LEVEL: 'warn', EMBEDDED_DB_PORT: '0', ...env }
}

/** A command that ends: an entry and its arguments. */
export const runCommand = ([entry = '', ...args]: string[], env: Environment) =>
  runNode([built(entry), ...args], undefined, env)

/** A program that ends. */
export function runNode(args: string[], cwd?: string, env: Environment = {}) {
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, args, { cwd, env: clean(env) }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr })
    })
  })
}

/** A script of package.json, with what it has printed so far. */
export function spawnScript(name: string, env: Environment) {
  const child = spawn('npm', ['run', name], { env: clean(env), stdio: ['ignore', 'pipe', 'ignore'] })
  let output = ''
  child.stdout.on('data', (data) => {
    output += data
  })
  onTestFinished(() => void child.kill())
  return { child, output: () => output }
}

export interface Started {
  child: ChildProcess
  url: string
  /** Standard output up to and with the line that begins with curl, or up to the address where there is none. */
  said: string
  /** Sends a signal and waits for the end: the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/**
 * A gateway on a free port, up to the moment when it says where it is.
 *
 * @param atLast is told how to end it: by default with the test
 * @param cwd the project's folder
 */
export async function startGateway(
  env: Environment,
  atLast: (end: () => Promise<void>) => void = onTestFinished,
  cwd?: string,
): Promise<Started> {
  const port = env.PORT ?? String(await freePort())
  const child = spawn(process.execPath, [built('main')], {
    cwd,
    env: clean({ ...env, PORT: port }),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'exit').then(([code]) => code as number | null)
  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal)
    return ended
  }
  atLast(async () => {
    if (child.exitCode === null && child.signalCode === null) await stop('SIGKILL')
  })
  let said = ''
  let complained = ''
  child.stderr?.on('data', (data) => {
    complained += data
  })
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (data) => {
      said += data
      if (/^curl .*\n/m.test(said) || (env.DATABASE_URL && /GraphiQL.*\n/.test(said))) resolve()
    })
    ended.then((code) => reject(new Error(`it ended with ${code}: ${complained}`)))
  })
  return { child, url: `http://127.0.0.1:${port}`, said, stop }
}
