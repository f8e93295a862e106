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
export async function scratchDatabase(): Promise<string> {
  const name = `petstore_scratch_${randomUUID().slice(0, 8)}`
  await asAdmin(`CREATE DATABASE ${name}`)
  onTestFinished(async () => void (await asAdmin(`DROP DATABASE ${name} WITH (FORCE)`)))
  return databaseUrl(name)
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
