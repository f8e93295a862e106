import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { openEmbedded } from './index.js'

test('the embedded database does not start what waits for a client that gave up while a long statement ran', async () => {
  const { url, close } = await openEmbedded({ dataDir: '', port: 0, inMemory: true })
  onTestFinished(close)
  const connect = async () => {
    const client = new pg.Client({ connectionString: url, pipeline: true } as pg.ClientConfig)
    client.on('error', () => {})
    await client.connect()
    return client
  }
  const [owner, impatient, patient] = [await connect(), await connect(), await connect()]
  await owner.query('CREATE TABLE "Written" ("by" text)')
  // While a transaction is open, the others wait.
  await owner.query('BEGIN')
  const given = impatient.query(`INSERT INTO "Written" VALUES ('impatient')`)
  const kept = patient.query(`INSERT INTO "Written" VALUES ('patient')`)
  given.catch(() => {})
  await sleep(200)
  const work = Promise.all([owner.query('SELECT count(*) FROM generate_series(1, 3000000)'), owner.query('COMMIT')])
  await sleep(100)
  ;(impatient.connection.stream as Socket).resetAndDestroy()
  await Promise.all([work, kept])
  await expect(given).rejects.toThrow()
  expect((await owner.query('SELECT * FROM "Written"')).rows).toEqual([{ by: 'patient' }])
  await Promise.all([owner.end(), patient.end()])
})

test('does what its README shows', async () => {
  const database = await openEmbedded({ dataDir: '', port: 0, inMemory: true })
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  const { rows } = await client.query('SELECT 6 * 7 AS answer') // [{ answer: 42 }]
  await client.end()
  await database.close()

  expect(rows).toEqual([{ answer: 42 }])
})
