import { randomBytes } from 'node:crypto'
import { cp, mkdtemp } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, inject } from 'vitest'
import { readServerUrl } from '../../src/engines/postgres/server-url.js'
import { connect, type Database, openDatabase } from '../../src/gateway/database/index.js'
import { StartupError } from '../../src/startup-error.js'
import { deleteAll, tables } from '../resources/index.js'
import { asAdmin, databaseUrl, testDatabaseUrl } from './postgres.js'
import { TcpProxy } from './proxy.js'

export interface TestDatabase extends Database {
  /** The settings with which another process connects to it. */
  env: Record<string, string>
}

/** Deletes all rows. TRUNCATE takes 50 ms, which pays only for large tables. */
const EMPTY = `DO $$ BEGIN
  IF pg_total_relation_size('"Pet"') + pg_total_relation_size('"Order"') + pg_total_relation_size('"ApiKey"') < 1000000 THEN
    ${deleteAll}
    DELETE FROM "ApiKey"; DELETE FROM "ApiKeyEvent"; DELETE FROM "ApiKeyUsage"; DELETE FROM "ApiKeyUsageHour"; DELETE FROM "IdempotentAnswer";
    PERFORM setval(format('"%s_id_seq"', name), 1, false) FROM unnest(ARRAY['ApiKey', 'ApiKeyEvent']) name;
  ELSE
    TRUNCATE ${tables.map((table) => `"${table}"`)}, "ApiKey", "ApiKeyEvent", "ApiKeyUsage", "ApiKeyUsageHour", "IdempotentAnswer"
      RESTART IDENTITY CASCADE;
  END IF;
END $$`

// Opening a database is slow, so the next file of the same thread reuses it. The folders are beside the template, and are
// deleted with it.
const idle: TestDatabase[] = []

/** A migrated, empty database: on TEST_DATABASE_URL if it is set, otherwise embedded. */
export async function openTestDatabase(): Promise<TestDatabase> {
  const database = idle.pop() ?? (await makeTestDatabase())
  let open = true
  const close = async () => {
    if (!open) return
    open = false
    await database.prisma.$executeRawUnsafe(EMPTY)
    idle.push(database)
  }
  return { ...database, close }
}

// On a busy machine a connection takes its time; that is not what these tests are about.
const patient = { timeoutMs: 30_000 }

/** The database at a URL, which may be unreachable. */
export const databaseAt = (url: string) =>
  // The one session of the embedded database is shared, as those of a pooler are.
  connect({ connectionString: url, name: url, schema: 'public', isPooled: !testDatabaseUrl }, patient)

/** A test database and the same behind a proxy. To close the one behind it closes all. */
export async function openProxiedDatabase(options: Parameters<typeof connect>[1] = {}) {
  const database = await openTestDatabase()
  const proxy = await TcpProxy.open(database.url)
  const embedded = database.embedded ? { url: database.url, port: 0, close: async () => {} } : undefined
  const connected = connect({ ...readServerUrl('DATABASE_URL', proxy.url), embedded }, options)
  const close = async () => {
    await connected.close()
    await proxy.cut()
    await database.close()
  }
  return { database, proxy, behind: { ...database, ...connected, close } }
}

async function makeTestDatabase(): Promise<TestDatabase> {
  if (testDatabaseUrl) {
    const name = `${inject('template')}_${randomBytes(4).toString('hex')}`
    await asAdmin(`CREATE DATABASE ${name} TEMPLATE ${inject('template')}`)
    const database = await openDatabase({ DATABASE_URL: databaseUrl(name), DATA_DIR: '', EMBEDDED_DB_PORT: 0 }, patient)
    // A URL for clients of tests, without what the service sets in its sessions.
    return { ...database, url: databaseUrl(name), env: { DATABASE_URL: databaseUrl(name) } }
  }
  const template = inject('folder')
  const folder = await mkdtemp(join(dirname(template), 'database-'))
  await cp(template, folder, { recursive: true })
  const database = await openDatabase({ DATA_DIR: folder, EMBEDDED_DB_PORT: 0 }, patient)
  return { ...database, env: { DATA_DIR: folder } }
}

/** The one-line message of a failed start. */
export async function refusal(start: Promise<unknown>): Promise<string> {
  const error = await start.then(
    () => expect.fail('it was not refused'),
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(StartupError)
  expect(error.message).not.toContain('\n')
  return error.message
}
