import { execSync, spawnSync } from 'node:child_process'
import type { TestProject } from 'vitest/node'
import setup, { makeFolder } from './setup.js'

/** For tests that start processes: the build, and templates for both kinds of databases. */
export default async function setupProcesses(project: TestProject) {
  // It prints a line if the build is missing or old.
  const { output } = spawnSync(process.execPath, ['--import', './src/built.mjs', '--eval', ''], { encoding: 'utf8' })
  if (output.join('') !== '') execSync('npm run build', { stdio: ['ignore', 'ignore', 'inherit'] })
  const remove = await setup(project)
  const removeFolder = process.env.TEST_DATABASE_URL ? await makeFolder(project) : async () => {}
  return async () => {
    await remove()
    await removeFolder()
  }
}
