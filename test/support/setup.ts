import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { openDatabase } from '../../src/database.js'
import { asAdmin, databaseUrl } from './postgres.js'

declare module 'vitest' {
  export interface ProvidedContext {
    /** A data directory that has all migrations: tests begin with a copy. */
    folder: string
    /** Likewise a database on TEST_DATABASE_URL, where that is set. */
    template: string
  }
}

/** Made once for the whole run: the build that tests of whole processes start, and the template of all databases. */
export default async function setup({ provide }: TestProject) {
  execFileSync(process.execPath, ['src/run.mjs', 'cli', '--help'], { stdio: ['ignore', 'ignore', 'inherit'] })
  const folder = await mkdtemp(join(tmpdir(), 'petstore-template-'))
  await (await openDatabase({ DATA_DIR: folder, EMBEDDED_DB_PORT: 0 })).close()
  provide('folder', folder)
  if (process.env.TEST_DATABASE_URL) {
    const name = `petstore_template_${process.pid}`
    await asAdmin(`CREATE DATABASE ${name}`)
    await (await openDatabase({ DATABASE_URL: databaseUrl(name), DATA_DIR: '', EMBEDDED_DB_PORT: 0 })).close()
    provide('template', name)
    return async () => {
      await asAdmin(`DROP DATABASE ${name} WITH (FORCE)`)
      await rm(folder, { recursive: true, force: true })
    }
  }
  return () => rm(folder, { recursive: true, force: true })
}
