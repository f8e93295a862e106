import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { freePort } from './ports.js'

export const redisBinary = spawnSync('redis-server', ['--version']).status === 0

/** A Redis server for a test, on a free port, without persistence. */
export class RedisServer {
  static readonly #running = new Set<ChildProcess>()
  #child: ChildProcess | undefined

  constructor(readonly port: number) {}

  /** Not yet started. */
  static async reserve() {
    return new RedisServer(await freePort())
  }

  /** Kills the servers that failed tests left running. */
  static killAll() {
    for (const child of RedisServer.#running) child.kill('SIGKILL')
  }

  get url() {
    return `redis://127.0.0.1:${this.port}`
  }

  async start() {
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
    const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#child = child
    RedisServer.#running.add(child.on('exit', () => RedisServer.#running.delete(child)))
    let output = ''
    for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
      output += chunk
      if (output.includes('Ready to accept connections')) return void child.stdout.resume()
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
