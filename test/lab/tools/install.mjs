// node test/lab/tools/install.mjs FOLDER…: installs what only some commands need, once, from the lock file in each folder.

import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'

for (const folder of process.argv.slice(2)) {
  const changed = (/** @type {string} */ path) => statSync(`${folder}/${path}`, { throwIfNoEntry: false })?.mtimeMs ?? 0

  // npm writes the former at the end of an installation.
  if (changed('node_modules/.package-lock.json') < changed('package-lock.json'))
    execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_package_'))),
    })
}
