import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './ports.js'

export const hasHaproxy = spawnSync('haproxy', ['-v']).status === 0

/** docs/haproxy.cfg for gateways on this machine: only the addresses are others. */
function configuration(port: number, gateways: string[]) {
  const servers = gateways.map((url, i) => `server gateway-${i} ${new URL(url).host}`)
  const changes: [string | RegExp, string][] = [
    ['bind :8080', `bind 127.0.0.1:${port}`],
    [/^resolvers docker\n(?: +.*\n)+/m, ''],
    [' init-addr none resolvers docker', ''],
    ['check port 9000', 'check'],
    [/server-template .*/, servers.join('\n  ')],
  ]
  return changes.reduce(
    (text, [from, to]) => {
      const changed = text.replace(from, to)
      if (changed === text) throw new Error(`docs/haproxy.cfg has no ${from}`)
      return changed
    },
    readFileSync('docs/haproxy.cfg', 'utf8'),
  )
}

export const isListening = async (port: number) => {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** HAProxy with docs/haproxy.cfg before gateways. */
export async function startHaproxy(gateways: string[]) {
  const [folder, port] = [mkdtempSync(join(tmpdir(), 'petstore-haproxy-')), await freePort()]
  const file = join(folder, 'haproxy.cfg')
  let close = async () => {}
  /** Starts it, or starts it again at the same address. */
  async function lead(to: string[]) {
    await close()
    writeFileSync(file, configuration(port, to))
    const child = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] })
    let log = ''
    child.stderr.on('data', (data) => {
      log += data
    })
    close = async () => {
      if (child.exitCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    while (!(await isListening(port))) {
      if (child.exitCode !== null) throw new Error(`haproxy did not start:\n${log}`)
      await sleep(20)
    }
  }
  await lead(gateways)
  return {
    url: `http://127.0.0.1:${port}`,
    lead,
    async close() {
      await close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
