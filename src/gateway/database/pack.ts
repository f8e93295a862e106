// Part of npm run build: makes the database that a first start begins with, unless that of an earlier build is still right.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { attempt } from '../../../schema/kit/attempt.js'
import { packDatabase, readPacked } from '../../engines/embedded/index.js'
import { openDatabase } from './index.js'
import { newDatabase } from './new-database.js'

const wanted = newDatabase()
if (!attempt(() => readPacked(wanted))) {
  const dataDir = mkdtempSync(join(tmpdir(), 'petstore-new-'))
  try {
    await (await openDatabase({ DATA_DIR: dataDir, EMBEDDED_DB_PORT: 0 })).close()
    packDatabase(dataDir, wanted)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}
