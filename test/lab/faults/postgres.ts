import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { freePort } from '../../support/ports.js'
import { atEnd, Refusal } from '../bench/lifecycle.js'
import { runCommand, startProcess } from '../bench/processes.js'

// A PostgreSQL server of our own, which may be stopped, hung and replaced.

const START_TIMEOUT_MS = 30_000
/** Few, so that all of them can be taken. */
const MAX_CONNECTIONS = 60

/** Where packages put the programs that are not on PATH: the newest version first. */
const packageFolders = ['/usr/lib/postgresql', '/usr/local/opt', '/opt/homebrew/opt'].flatMap((folder) =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => /^(postgresql@)?\d+$/.test(name))
        .sort((a, b) => Number(b.replace(/\D/g, '')) - Number(a.replace(/\D/g, '')))
        .map((name) => join(folder, name, 'bin'))
    : [],
)

/** Whether this machine has what a server of our own needs. */
export const isInstalled = () => findFolder() !== undefined

function findFolder() {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...packageFolders]
  return folders.find((folder) =>
    ['initdb', 'postgres', 'pg_basebackup'].every((name) => existsSync(join(folder, name))),
  )
}

function findPrograms() {
  const found = findFolder()
  if (!found) throw new Refusal('PostgreSQL is not installed: initdb, postgres and pg_basebackup are not on PATH.')
  return (name: string) => join(found, name)
}

/** PostgreSQL refuses to run as root. */
function findOwner() {
  if (process.getuid?.() !== 0) return {}
  for (const name of ['postgres', 'nobody']) {
    const id = (flag: string) => Number(execFileSync('id', [flag, name], { stdio: ['ignore', 'pipe', 'ignore'] }))
    try {
      return { uid: id('-u'), gid: id('-g') }
    } catch {}
  }
  throw new Refusal('PostgreSQL refuses to run as root, and there is no user postgres or nobody.')
}

function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-postgres-'))
  const { uid, gid } = findOwner()
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid)
  return folder
}

export class Postgres {
  readonly #program = findPrograms()
  readonly #folder = makeFolder()
  #port = 0
  #server: ReturnType<typeof startProcess> | undefined

  /** A new cluster, with the database `petstore` of a role of that name that is no superuser. */
  static async create(...settings: string[]) {
    const postgres = new Postgres()
    await postgres.#run('initdb', '-U', 'postgres', '-A', 'trust', '-N', '--encoding=UTF8', '--locale=C')
    await postgres.start(...settings)
    await postgres.admin(`CREATE ROLE petstore LOGIN`, 'postgres')
    await postgres.admin(`CREATE DATABASE petstore OWNER petstore`, 'postgres')
    return postgres
  }

  private constructor() {
    atEnd(() => this.end())
  }

  async end() {
    await this.stop('SIGQUIT')
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** Starts again with TLS, without which only the superuser is served. */
  async requireTls(certificate: string, key: string) {
    await this.stop('SIGQUIT')
    const { uid, gid } = findOwner()
    for (const [from, name] of [
      [certificate, 'server.crt'],
      [key, 'server.key'],
    ] as const) {
      const file = join(this.#folder, name)
      copyFileSync(from, file)
      chmodSync(file, 0o600)
      if (uid !== undefined && gid !== undefined) chownSync(file, uid, gid)
    }
    this.#admit('hostssl all petstore 127.0.0.1/32 trust')
    await this.start('ssl=on')
  }

  /** From now on the role petstore needs a password. */
  async requirePassword(password: string) {
    await this.admin(`ALTER ROLE petstore PASSWORD '${password}'`)
    this.#admit('host all petstore 127.0.0.1/32 scram-sha-256')
    await this.admin('SELECT pg_reload_conf()')
  }

  /** The superuser, and what a rule admits. */
  #admit(rule: string) {
    writeFileSync(join(this.#folder, 'pg_hba.conf'), `host all postgres 127.0.0.1/32 trust\n${rule}\n`)
  }

  get port() {
    return this.#port
  }

  url(role = 'petstore', database = 'petstore') {
    return `postgresql://${role}@127.0.0.1:${this.#port}/${database}`
  }

  #run(name: string, ...args: string[]) {
    return runCommand(this.#program(name), ['-D', this.#folder, ...args], findOwner())
  }

  /** Starts the server and waits until it answers. */
  async start(...settings: string[]) {
    this.#port ||= await freePort()
    const options = ['listen_addresses=127.0.0.1', `max_connections=${MAX_CONNECTIONS}`, ...settings]
    const args = [
      '-D',
      this.#folder,
      '-k',
      this.#folder,
      '-p',
      String(this.#port),
      ...options.flatMap((option) => ['-c', option]),
    ]
    this.#server = startProcess(this.#program('postgres'), args, {}, findOwner())
    this.#server.stdout?.resume()
    this.#server.stderr?.resume()
    await this.answers()
  }

  async answers() {
    for (const began = performance.now(); ; await sleep(20)) {
      const answer = await this.admin('SELECT 1', 'postgres').catch((error: Error) => error)
      if (!(answer instanceof Error)) return
      if (performance.now() - began > START_TIMEOUT_MS)
        throw new Refusal(`PostgreSQL does not answer: ${answer.message}`)
    }
  }

  /** SIGINT is PostgreSQL's fast shutdown, SIGQUIT its immediate one. */
  async stop(signal: 'SIGINT' | 'SIGQUIT') {
    const server = this.#server
    this.#server = undefined
    if (!server || server.exitCode !== null) return
    const exit = once(server, 'exit')
    this.#signal(server.pid, 'SIGCONT')
    server.kill(signal)
    await exit
  }

  /** Every process of the server is gone at once. */
  async kill() {
    const server = this.#server
    this.#server = undefined
    if (!server) return
    const exit = once(server, 'exit')
    this.#signal(server.pid, 'SIGKILL')
    await exit
  }

  /** Every process of the server stops as it is: connections stay open, and new ones are accepted by the system alone. */
  hang() {
    this.#signal(this.#server?.pid, 'SIGSTOP')
  }

  async resume() {
    this.#signal(this.#server?.pid, 'SIGCONT')
    await this.answers()
  }

  #signal(server: number | undefined, signal: NodeJS.Signals) {
    if (!server) return
    const processes = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
    const children = processes
      .map((line) => line.trim().split(/\s+/).map(Number))
      .filter(([, parent]) => parent === server)
    for (const pid of [server, ...children.map(([pid]) => pid as number)]) {
      try {
        process.kill(pid, signal)
      } catch {}
    }
  }

  /** Runs SQL as the superuser, on a connection of its own. */
  async admin(sql: string, database = 'petstore') {
    const client = await this.connect('postgres', database)
    try {
      return (await client.query(sql)).rows
    } finally {
      await client.end()
    }
  }

  async connect(role = 'petstore', database = 'petstore') {
    const client = new Client({
      connectionString: this.url(role, database),
      application_name: 'faults',
      connectionTimeoutMillis: 2_000,
    })
    // A query on a broken connection rejects; idle connections may break at any time here.
    client.on('error', () => {})
    await client.connect()
    return client
  }

  /** Ends all connections of the gateways. */
  terminateBackends() {
    return this.admin(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'petstore' AND application_name <> 'faults'`,
      'postgres',
    )
  }

  /** One backend dies without a word: PostgreSQL then ends all of them and recovers. */
  async crashBackend() {
    const [row] = await this.admin(`SELECT pid FROM pg_stat_activity WHERE usename = 'petstore' LIMIT 1`, 'postgres')
    if (row) process.kill(row.pid, 'SIGKILL')
  }

  /** A copy that follows this server; from now on a write is acknowledged only when both have it. */
  async createStandby() {
    const standby = new Postgres()
    await standby.#run('pg_basebackup', '-d', this.url('postgres', 'postgres'), '-R', '-X', 'stream', '-c', 'fast')
    await standby.start('hot_standby=on')
    await this.admin(`ALTER SYSTEM SET synchronous_standby_names = '*'`)
    await this.admin('SELECT pg_reload_conf()')
    while ((await this.admin(`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)).length === 0)
      await sleep(20)
    return standby
  }
}

/** Passes connections on to a port that can change, as the address of a database that fails over does. */
export async function startSwitch(target: number) {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(socket)
          other.destroy()
        })
    }
    client.pipe(upstream).pipe(client)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return {
    port: (server.address() as { port: number }).port,
    switchTo(port: number) {
      target = port
      for (const socket of sockets) socket.destroy()
    },
  }
}
