import { hash } from 'node:crypto'
import type { PackedDatabase } from '../../engines/embedded/index.js'
import { readMigrations } from '../../engines/postgres/index.js'
import { projectPath } from '../../project.js'

/** A database with all migrations and no rows, which the build makes (pack.ts) so that a first start need not. */
export const newDatabase = (): PackedDatabase => ({
  file: projectPath('prisma/generated/database.gz'),
  contents: hash('sha256', JSON.stringify(readMigrations())),
})
