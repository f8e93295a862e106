// Part of npm run build: makes the database that a first start begins with, unless that of an earlier build is still right.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { attempt } from '../../../schema/kit/attempt.js'
import { packDatabase, readPacked } from '../../engines/embedded/index.js'
import { reasonOf } from '../../engines/observe/index.js'
import { openDatabase } from './index.js'
import { newDatabase } from './new-database.js'

async function pack(): Promise<void> {
  const wanted = newDatabase()
  if (attempt(() => readPacked(wanted))) return
  const dataDir = mkdtempSync(join(tmpdir(), 'petstore-new-'))
  process.once('exit', () => rmSync(dataDir, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
  await (await openDatabase({ DATA_DIR: dataDir, EMBEDDED_DB_PORT: 0 })).close()
  packDatabase(dataDir, wanted)
}

// The service works without it.
await pack().catch((error) => {
  console.error(`No database was packed, so first starts take longer: ${reasonOf(error)}`)
})
