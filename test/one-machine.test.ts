import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { readSettings } from '../src/settings.js'

// The examples in docs/one-machine and docker-compose.yml, compared with each other and with the settings.

const example = (name: string) => readFileSync(`docs/one-machine/${name}`, 'utf8')
const environment = parseEnv(example('petstore.env'))
const settings = readSettings(environment)

test('docs/one-machine/petstore.env has settings that exist, and commented ones that work too', () => {
  expect(settings).toMatchObject({ TRUST_PROXY: 1, BASE_URL: expect.stringMatching(/^https:/), HOST: '127.0.0.1' })
  const all = parseEnv(example('petstore.env').replaceAll(/^#(?=[A-Z_]+=)/gm, ''))
  expect(Object.keys(all)).toHaveLength(Object.keys(environment).length + 2)
  expect(Object.keys(readSettings(all))).toEqual(
    expect.arrayContaining(Object.keys(all).filter((name) => name !== 'NODE_ENV')),
  )
})

test('the files in docs/one-machine agree about host, port, folders and times', () => {
  const { PORT, BASE_URL, DATA_DIR, DRAIN_SECONDS } = settings
  const { host } = new URL(String(BASE_URL))
  for (const name of ['nginx.conf', 'Caddyfile']) {
    expect(example(name)).toContain(host)
    expect(example(name)).toContain(`127.0.0.1:${PORT}`)
  }
  const unit = Object.fromEntries(
    [...example('petstore.service').matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
  )
  expect(DATA_DIR).toBe(`/var/lib/${unit.StateDirectory}`)
  const [, folder] = /^append:(.+)\/\w+\.log$/.exec(unit.StandardError ?? '') ?? []
  expect(example('logrotate')).toContain(`${folder}/*.log {`)
  // systemd opens the log before it would create its folder.
  expect(readFileSync('docs/one-machine.md', 'utf8')).toContain(`install --directory --mode 750 ${folder}\n`)
  expect(Number(unit.TimeoutStopSec)).toBeGreaterThan(DRAIN_SECONDS + 12)
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'))
  expect(scripts.start.replace(' --import ./src/built.mjs', '')).toBe(unit.ExecStart?.replace('/usr/bin/', ''))
})

test('every service of docker-compose.yml has a log that is bounded', () => {
  const { services } = parse(readFileSync('docker-compose.yml', 'utf8'), { merge: true })
  expect(Object.keys(services)).toContain('gateway')
  for (const [name, { logging }] of Object.entries<{ logging: unknown }>(services))
    expect(logging, name).toEqual({
      driver: 'json-file',
      options: { 'max-size': expect.stringMatching(/^\d+m$/), 'max-file': expect.stringMatching(/^\d+$/) },
    })
})
