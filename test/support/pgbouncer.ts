import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { onTestFinished } from 'vitest'
import { freePort } from './ports.js'

export const hasPgbouncer = spawnSync('pgbouncer', ['--version']).status === 0

/**
 * A PgBouncer before a server, with the defaults of its package, until the test ends. Returns the URL of a database.
 *
 * @param onCleanup gets the function that ends it; default: it ends with the test
 */
export async function startPgbouncer(
  mode: 'session' | 'transaction',
  target: string,
  more: string[] = [],
  onCleanup: (end: () => Promise<void>) => void = onTestFinished,
) {
  const { hostname, port: targetPort, username } = new URL(target)
  const [folder, port] = await Promise.all([mkdtemp(join(tmpdir(), 'petstore-pgbouncer-')), freePort()])
  await writeFile(join(folder, 'users'), `"${username}" ""\n`)
  const settings = [
    '[databases]',
    `* = host=${hostname} port=${targetPort || 5432}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = trust',
    `auth_file = ${join(folder, 'users')}`,
    `pool_mode = ${mode}`,
    'max_client_conn = 500',
    ...more,
  ]
  await writeFile(join(folder, 'ini'), settings.join('\n'))
  await chmod(folder, 0o755)
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? ['--user=postgres'] : []
  let kill = async () => {}
  async function start() {
    const child = spawn('pgbouncer', [...user, join(folder, 'ini')], { stdio: ['ignore', 'ignore', 'pipe'] })
    const ended = once(child, 'exit')
    kill = async () => {
      child.kill('SIGKILL')
      await ended
    }
    await isUp(child)
  }
  onCleanup(async () => {
    await kill()
    await rm(folder, { recursive: true, force: true })
  })
  await start()
  const urlOf = (database: string, parameters = '') =>
    `postgresql://${username}@127.0.0.1:${port}/${database}${parameters}`
  return Object.assign(urlOf, { start, kill: () => kill() })
}

async function isUp(child: ChildProcessByStdio<null, null, Readable>) {
  let log = ''
  const started = (async () => {
    for await (const chunk of child.stderr.iterator({ destroyOnReturn: false })) {
      log += chunk
      if (log.includes('process up')) return void child.stderr.resume()
    }
  })()
  await Promise.race([
    started,
    once(child, 'exit').then(() => Promise.reject(new Error(`pgbouncer did not start:\n${log}`))),
  ])
}
