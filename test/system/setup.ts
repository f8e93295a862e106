import { execFileSync, spawnSync } from 'node:child_process'
import type { TestProject } from 'vitest/node'
import { isInstalled, Postgres } from '../lab/faults/postgres.js'
import { chromiumPath } from '../support/chromium.js'
import { hasHaproxy } from '../support/haproxy.js'
import { hasPgbouncer } from '../support/pgbouncer.js'
import { canGeneratePython, has } from '../support/programs.js'
import { redisBinary } from '../support/redis.js'
import { refuse, requireServers } from '../support/setup.js'
import setupProcesses from '../support/setup-processes.js'
import { hasCaddy, hasNginx } from '../support/tls-proxies.js'

const runs = (program: string, ...args: string[]) => spawnSync(program, args).status === 0

/** Each with what is skipped without it. */
const needs: [name: string, isThere: boolean, skipped: string][] = [
  ['PostgreSQL (initdb, postgres, pg_basebackup)', isInstalled(), 'TLS, standbys, and all that needs a server'],
  ['pg_dump', runs('pg_dump', '--version'), 'the restore of a PostgreSQL database'],
  ['PgBouncer', hasPgbouncer, 'poolers'],
  ['redis-server', redisBinary, 'a Redis that fails, clusters and Sentinels'],
  ['HAProxy', hasHaproxy, 'docs/haproxy.cfg'],
  ['nginx', hasNginx, 'docs/one-machine'],
  ['Caddy', hasCaddy, 'docs/one-machine'],
  ['systemd-analyze', runs('systemd-analyze', '--version'), 'docs/one-machine/petstore.service'],
  ['logrotate', runs('logrotate', '--version'), 'docs/one-machine/logrotate'],
  ['prlimit', runs('prlimit', '--version'), 'a process without file descriptors'],
  ['promtool', runs('promtool', '--version'), 'docs/alerts.yml'],
  ['Chromium (CHROMIUM_PATH, or on PATH)', chromiumPath !== undefined, 'pages'],
  ['curl', has('Shell'), 'code samples in a shell'],
  ['Python with requests', has('Python'), 'code samples in Python'],
  ['Java, and Python with dateutil', canGeneratePython(), 'a client that openapi-generator writes in Python'],
  ['openssl', runs('openssl', 'version'), 'TLS'],
]

/** What is missing, clients to generate, and a PostgreSQL server of its own unless TEST_DATABASE_URL names one. */
export default async function setup(project: TestProject) {
  const missing = needs.filter(([, isThere]) => !isThere)
  for (const [name, , skipped] of missing) console.error(`Not installed: ${name}. Skipped: ${skipped}`)
  if (missing.length > 0 && process.env.CI) refuse('With CI set, nothing may be skipped.')
  const installed = ['test/system', 'test/lab/check', 'test/lab/generators', 'test/lab/panels']
  execFileSync(process.execPath, ['test/lab/tools/install.mjs', ...installed], { stdio: 'inherit' })
  if (process.env.TEST_DATABASE_URL || !isInstalled()) return setupProcesses(project)
  await requireServers()
  const postgres = await Postgres.create('max_connections=200', 'fsync=off')
  process.env.TEST_DATABASE_URL = postgres.url('postgres', 'postgres')
  const remove = await setupProcesses(project)
  return async () => {
    await remove()
    await postgres.end()
  }
}
