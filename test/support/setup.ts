import { execFileSync, execSync, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { openDatabase } from '../../src/database/index.js'
import { asAdmin, databaseUrl } from './postgres.js'

declare module 'vitest' {
  export interface ProvidedContext {
    /** A data directory with all migrations, which tests copy. */
    folder: string
    /** The same as a database on TEST_DATABASE_URL, if it is set. */
    template: string
  }
}

interface Made {
  folder: string
  template?: string
  remove(): Promise<void>
}

// Shared by both vitest projects: the first creates it, the last removes it.
const shared = globalThis as { petstoreSetup?: { made: Promise<Made>; users: number } }

/** Created once per run: the build that process tests start, and the template of all databases. */
export default async function setup({ provide }: TestProject) {
  shared.petstoreSetup ??= { made: make(), users: 0 }
  const { petstoreSetup } = shared
  petstoreSetup.users++
  const { folder, template, remove } = await petstoreSetup.made
  provide('folder', folder)
  if (template) provide('template', template)
  return async () => {
    if (--petstoreSetup.users === 0) await remove()
  }
}

async function make(): Promise<Made> {
  // It prints a warning if the build is missing or old.
  const { output } = spawnSync(process.execPath, ['--import', './src/built.mjs', '--eval', ''], { encoding: 'utf8' })
  if (output.join('') !== '') execSync('npm run build', { stdio: ['ignore', 'ignore', 'inherit'] })
  execFileSync(process.execPath, ['test/tools/install.mjs', 'test/generators'], { stdio: 'inherit' })
  const all = await mkdtemp(join(tmpdir(), 'petstore-tests-'))
  const folder = join(all, 'template')
  await (await openDatabase({ DATA_DIR: folder, EMBEDDED_DB_PORT: 0 })).close()
  const removeFolders = () => rm(all, { recursive: true, force: true, maxRetries: 3 })
  if (!process.env.TEST_DATABASE_URL) return { folder, remove: removeFolders }
  const template = `petstore_template_${process.pid}`
  await asAdmin(`CREATE DATABASE ${template}`)
  await (await openDatabase({ DATABASE_URL: databaseUrl(template), DATA_DIR: '', EMBEDDED_DB_PORT: 0 })).close()
  return {
    folder,
    template,
    async remove() {
      // Not those of another run whose process id starts with the same digits.
      const made = await asAdmin(`SELECT datname FROM pg_database WHERE starts_with(datname, '${template}_')`)
      for (const { datname } of [...made.rows, { datname: template }])
        await asAdmin(`DROP DATABASE ${datname} WITH (FORCE)`)
      await removeFolders()
    },
  }
}
