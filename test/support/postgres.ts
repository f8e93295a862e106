import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { onTestFinished } from 'vitest'

export const testDatabaseUrl = process.env.TEST_DATABASE_URL

/** The URL of another database on the test server. */
export function databaseUrl(name: string): string {
  const url = new URL(process.env.TEST_DATABASE_URL as string)
  url.pathname = `/${name}`
  return url.href
}

export async function asAdmin(sql: string) {
  // Not the constant: a setup may have started a server since.
  const client = new Client({ connectionString: process.env.TEST_DATABASE_URL, connectionTimeoutMillis: 10_000 })
  await client.connect()
  try {
    return await client.query(sql)
  } finally {
    await client.end()
  }
}

/** The URL of a new database without tables, which ends with the test. */
export async function scratchDatabase(options = ''): Promise<string> {
  const name = `petstore_scratch_${randomUUID().slice(0, 8)}`
  await asAdmin(`CREATE DATABASE ${name} ${options}`)
  onTestFinished(async () => void (await asAdmin(`DROP DATABASE ${name} WITH (FORCE)`)))
  return databaseUrl(name)
}

/** A connection that ends with the test. */
export async function useClient(connectionString: string): Promise<Client> {
  const client = new Client({ connectionString })
  client.on('error', () => {})
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

/** The number of backends of this database that wait for a lock. */
export async function waitingForLocks(client: Client) {
  // A transaction sees the same statistics until its end.
  await client.query('SELECT pg_stat_clear_snapshot()')
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  return (await client.query(waiting)).rowCount
}

/** Rows of a query, on a connection of its own. */
export async function queryOnce(connectionString: string, text: string) {
  const client = new Client({ connectionString })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}
