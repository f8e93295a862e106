import { Client } from 'pg'

export const testDatabaseUrl = process.env.TEST_DATABASE_URL

/** The URL of another database on the test server. */
export function databaseUrl(name: string): string {
  const url = new URL(testDatabaseUrl as string)
  url.pathname = `/${name}`
  return url.href
}

export async function asAdmin(sql: string) {
  const client = new Client({ connectionString: testDatabaseUrl })
  await client.connect()
  try {
    return await client.query(sql)
  } finally {
    await client.end()
  }
}
