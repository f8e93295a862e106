import { expect } from 'vitest'
import type { Call } from './every-operation.js'
import { runCommand, startGateway } from './process.js'

// Gateways that are processes of their own, as clients and operators see them.

/** What `npm run keys` prints as JSON. */
export async function keys(env: Record<string, string>, ...args: string[]) {
  const { code, stdout, stderr } = await runCommand(['admin/keys', ...args, '--json'], env)
  expect(stderr).toBe('')
  expect(code).toBe(0)
  return JSON.parse(stdout)
}

/** What /readyz says. */
export async function readiness(url: string): Promise<[number, Record<string, string>]> {
  const response = await fetch(`${url}/readyz`)
  return [response.status, (await response.json()) as Record<string, string>]
}

/** Starts a gateway with a key that has no limits worth mentioning, unless one is given. */
export async function openRemote(env: Record<string, string>, given?: string) {
  const gateway = await startGateway({ ...env, LOG_LEVEL: 'warn' })
  const limits = ['--minute-limit', '2000000', '--day-limit', '2000000']
  const create = ['create', '--name', 'test', '--plan', 'Enterprise', ...limits]
  const key: string = given ?? (await keys(env, ...create)).key
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
