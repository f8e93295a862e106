import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

// npm's scripts load this before what is built (node --import). It is JavaScript because it must run where nothing is.

const root = fileURLToPath(new URL('..', import.meta.url))
const sources = ['prisma/schema.prisma', 'prisma/seed.ts', 'tsconfig.json', 'schema', 'src']

/** When a file changed, or the newest file of a folder; 0 if there is none. @param {string} path @returns {number} */
const changed = (path) => {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat?.isDirectory()) return stat?.mtimeMs ?? 0
  return Math.max(...readdirSync(path).map((name) => changed(join(path, name))))
}

const built = changed(join(root, 'dist/src/main.js'))
if (!built) {
  console.error('There is no build. Run: npm run build')
  process.exit(1)
}
if (sources.some((path) => changed(join(root, path)) > built))
  console.error('The sources are newer than the build. Run: npm run build')

// The shell in which npm runs scripts may end at a signal without passing it on.
const parent = process.ppid
setInterval(() => process.ppid !== parent && process.kill(process.pid, 'SIGTERM'), 500).unref()
