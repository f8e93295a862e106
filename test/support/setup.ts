import { statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { TestProject } from 'vitest/node'
import { asAdmin, databaseUrl } from './postgres.js'

declare module 'vitest' {
  export interface ProvidedContext {
    /** A data directory with all migrations, which tests copy. */
    folder: string
    /** The same as a database on TEST_DATABASE_URL, if it is set. */
    template: string
  }
}

type Cleanup = () => Promise<unknown>

/** Ends the run with one line for people, without a stack. */
export function refuse(line: string): never {
  console.error(line)
  process.exit(1)
}

const changed = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

/** Tests run the sources, but not without the Prisma client and the bundle of GraphiQL. */
function requireBuild() {
  const client = changed('prisma/generated/client/client.ts')
  if (!client || !changed('dist/graphiql/graphiql.js')) refuse('There is no build. Run: npm run build')
  if (changed('prisma/schema.prisma') > client)
    refuse('prisma/schema.prisma is newer than its client. Run: npm run build')
}

export async function requireServers() {
  const unreachable = (name: string, url: string, { message, code = message }: NodeJS.ErrnoException) => {
    const { hostname, port, pathname } = URL.canParse(url) ? new URL(url) : { hostname: url, port: '', pathname: '' }
    refuse(`${name} ${hostname}${port && `:${port}`}${pathname} cannot be used: ${message || code}`)
  }
  const { TEST_DATABASE_URL, TEST_REDIS_URL } = process.env
  if (TEST_DATABASE_URL)
    await asAdmin('SELECT 1').catch((error) => unreachable('TEST_DATABASE_URL', TEST_DATABASE_URL, error))
  if (!TEST_REDIS_URL) return
  const redis = new Redis(TEST_REDIS_URL, { lazyConnect: true, connectTimeout: 5_000, retryStrategy: () => null })
  let reason = new Error('no answer')
  redis.on('error', (error) => {
    reason = error
  })
  await redis.connect().catch(() => unreachable('TEST_REDIS_URL', TEST_REDIS_URL, reason))
  redis.disconnect()
}

/** A data directory with all migrations. */
export async function makeFolder({ provide }: TestProject): Promise<Cleanup> {
  const { openDatabase } = await import('../../src/gateway/database/index.js')
  const all = await mkdtemp(join(tmpdir(), 'petstore-tests-'))
  const folder = join(all, 'template')
  await (await openDatabase({ DATA_DIR: folder, EMBEDDED_DB_PORT: 0 })).close()
  provide('folder', folder)
  return () => rm(all, { recursive: true, force: true, maxRetries: 3 })
}

/** The same as a database on TEST_DATABASE_URL. */
export async function makeTemplate({ provide }: TestProject): Promise<Cleanup> {
  const { openDatabase } = await import('../../src/gateway/database/index.js')
  const template = `petstore_template_${process.pid}`
  await asAdmin(`CREATE DATABASE ${template}`)
  await (await openDatabase({ DATABASE_URL: databaseUrl(template), DATA_DIR: '', EMBEDDED_DB_PORT: 0 })).close()
  provide('template', template)
  return async () => {
    // Not those of another run whose process id starts with the same digits.
    const made = await asAdmin(`SELECT datname FROM pg_database WHERE starts_with(datname, '${template}_')`)
    for (const { datname } of [...made.rows, { datname: template }])
      await asAdmin(`DROP DATABASE ${datname} WITH (FORCE)`)
  }
}

/** Checks what tests need before the first one starts, and makes the template of all databases. */
export default async function setup(project: TestProject): Promise<Cleanup> {
  requireBuild()
  await requireServers()
  return process.env.TEST_DATABASE_URL ? makeTemplate(project) : makeFolder(project)
}
