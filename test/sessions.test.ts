import { describe, inject, test } from 'vitest'
import { hasPgbouncer, startPgbouncer } from './support/pgbouncer.js'
import { asAdmin, scratchDatabase, testDatabaseUrl } from './support/postgres.js'
import { expectMomentsToHold } from './support/sessions.js'

// A server has the time zone of the machine on which it was made, and a database or a role may have others.

const ZONES = ['America/New_York', 'Europe/Berlin', 'Asia/Kathmandu', 'Pacific/Kiritimati', 'Australia/Lord_Howe']

/** A migrated database whose sessions begin with a setting. */
async function databaseWith(name: string, value: string) {
  const url = new URL(await scratchDatabase(`TEMPLATE ${inject('template')}`))
  await asAdmin(`ALTER DATABASE ${url.pathname.slice(1)} SET ${name} = '${value}'`)
  return { database: url.pathname.slice(1), url: url.href }
}

describe.runIf(testDatabaseUrl).each(ZONES)('in a database with the time zone %s', (zone) => {
  test('keys, bans, dates and usage are what they are in UTC', async () => {
    const { url } = await databaseWith('timezone', zone)
    await expectMomentsToHold({ DATABASE_URL: url }, url)
  })

  test.runIf(hasPgbouncer)('so they are through PgBouncer in transaction mode', async () => {
    const { url, database } = await databaseWith('timezone', zone)
    const pooled = await startPgbouncer('transaction', testDatabaseUrl as string)
    await expectMomentsToHold({ DATABASE_URL: pooled(database, '?pgbouncer=true') }, url)
  })
})
