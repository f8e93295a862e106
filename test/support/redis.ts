import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { freePort } from './ports.js'

export const redisBinary = spawnSync('redis-server', ['--version']).status === 0

export const run = promisify(execFile)

/** A Redis server for a test, on a free port, without persistence. */
export class RedisServer {
  static readonly #running = new Set<ChildProcess>()
  #child: ChildProcess | undefined

  constructor(
    readonly port: number,
    readonly flags: string[] = [],
  ) {}

  /** Not yet started. */
  static async reserve(...flags: string[]) {
    return new RedisServer(await freePort(), flags)
  }

  /** Kills the servers that failed tests left running. */
  static killAll() {
    for (const child of RedisServer.#running) child.kill('SIGKILL')
  }

  get url() {
    return `redis://127.0.0.1:${this.port}`
  }

  /** What redis-cli prints. */
  async cli(...args: (string | number)[]) {
    return (await run('redis-cli', ['-p', String(this.port), ...args.map(String)])).stdout.trim()
  }

  async start() {
    // The first can be the file of a Sentinel.
    const args = [...this.flags, '--port', String(this.port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
    const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#child = child
    RedisServer.#running.add(child.on('exit', () => RedisServer.#running.delete(child)))
    let output = ''
    for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
      output += chunk
      if (/Ready to accept connections|Sentinel ID is/.test(output)) return void child.stdout.resume()
    }
    throw new Error(`redis-server did not start:\n${output}`)
  }

  signal(name: NodeJS.Signals) {
    this.#child?.kill(name)
  }

  async kill() {
    if (!this.#child || this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
  }
}

process.once('exit', RedisServer.killAll)
