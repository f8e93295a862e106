import { randomBytes } from 'node:crypto'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'
import { type Database, openDatabase } from '../../src/database.js'
import { asAdmin, databaseUrl, testDatabaseUrl } from './postgres.js'

export interface TestDatabase extends Database {
  /** The settings by which another process finds it. */
  env: Record<string, string>
}

// Opening one costs more than many a test, so that what one file leaves the next file of the same thread takes.
const idle: TestDatabase[] = []

/** A real database of its own, migrated and empty: on TEST_DATABASE_URL where that is set, else an embedded one. */
export async function openTestDatabase(): Promise<TestDatabase> {
  const database = idle.pop() ?? (await makeTestDatabase())
  const close = async () => {
    await database.prisma.$executeRaw`TRUNCATE "Order", "InventoryItem", "Pet", "Category", "ApiKey" RESTART IDENTITY`
    idle.push(database)
  }
  return { ...database, close }
}

async function makeTestDatabase(): Promise<TestDatabase> {
  if (testDatabaseUrl) {
    const name = `petstore_test_${process.pid}_${randomBytes(4).toString('hex')}`
    await asAdmin(`CREATE DATABASE ${name} TEMPLATE ${inject('template')}`)
    const database = await openDatabase({ DATABASE_URL: databaseUrl(name), DATA_DIR: '', EMBEDDED_DB_PORT: 0 })
    return {
      ...database,
      env: { DATABASE_URL: databaseUrl(name) },
      close: () => database.close().then(() => asAdmin(`DROP DATABASE ${name} WITH (FORCE)`).then(() => {})),
    }
  }
  const folder = await mkdtemp(join(tmpdir(), 'petstore-test-'))
  await cp(inject('folder'), folder, { recursive: true })
  const database = await openDatabase({ DATA_DIR: folder, EMBEDDED_DB_PORT: 0 })
  return {
    ...database,
    env: { DATA_DIR: folder },
    close: () => database.close().then(() => rm(folder, { recursive: true, force: true })),
  }
}
