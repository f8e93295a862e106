import { expect, onTestFinished } from 'vitest'
import { runKeys as runCommand } from '../../src/admin/command-line.js'
import { createLog } from '../../src/engines/observe/log.js'
import { openDatabase } from '../../src/gateway/database/index.js'
import { readSettings } from '../../src/settings.js'
import type { Call } from './every-operation.js'
import { openGateway } from './gateway.js'
import { startGateway } from './process.js'

// Gateways on databases that settings name, as clients and operators see them.

/** Runs `npm run keys` in this process, because to start one takes longer than most tests. */
export async function runKeys(environment: Record<string, string>, ...args: string[]) {
  const written = { stdout: '', stderr: '' }
  const code = await runCommand(args, {
    environment,
    async out(text) {
      written.stdout += text
    },
    err(text) {
      written.stderr += text
    },
  })
  return { code, ...written }
}

/** What `npm run keys` prints as JSON. */
export async function keys(environment: Record<string, string>, ...args: string[]) {
  const { code, stdout, stderr } = await runKeys(environment, ...args, '--json')
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

/** A key that has no limits worth mentioning. */
export async function createKey(environment: Record<string, string>, name = 'test'): Promise<string> {
  const limits = ['--minute-limit', '2000000', '--day-limit', '2000000']
  return (await keys(environment, 'create', '--name', name, '--plan', 'Enterprise', ...limits)).key
}

/** What /readyz says. */
export async function readiness(url: string): Promise<[number, Record<string, string>]> {
  const response = await fetch(`${url}/readyz`)
  return [response.status, (await response.json()) as Record<string, string>]
}

/** Starts a gateway with a key that has no limits worth mentioning, unless one is given. */
export async function openRemote(env: Record<string, string>, given?: string) {
  const gateway = await startGateway({ ...env, LOG_LEVEL: 'warn' })
  const key = given ?? (await createKey(env))
  const call: Call = async (method, path, body, headers = {}) => {
    const response = await fetch(gateway.url + path, {
      method,
      headers: { 'x-api-key': key, 'content-type': 'application/json', ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text ? JSON.parse(text) : undefined }
  }
  return { ...gateway, call, key }
}

/** The same in this process, and without sockets: for what a server does, not a start. `stop` also happens after the test. */
export async function openLocal(env: Record<string, string>) {
  const lines: string[] = []
  const log = createLog('warn', { write: (line) => void lines.push(line) })
  const database = await openDatabase(readSettings(env), { log, onNotice: (message) => log.warn(message) })
  const gateway = await openGateway({ database: { ...database, env }, redisUrl: '' })
  const stop = () => gateway.close()
  onTestFinished(stop)
  const key = await createKey(env)
  const call: Call = (method, path, body, headers) => gateway.call(method, path, { key, body, headers })
  return {
    call,
    stop,
    async readiness() {
      const { status, body } = await gateway.get('/readyz')
      return [status, body]
    },
    errors: () => [...lines, ...gateway.logged.filter((line) => /"level":[4-6]0/.test(line))].join(''),
  }
}
