import cluster from 'node:cluster'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

// npm scripts load this file before the build (node --import). It is JavaScript so that it can run without a build.

const root = fileURLToPath(new URL('..', import.meta.url))
const sources = ['package-lock.json', 'prisma/schema.prisma', 'prisma/seed.ts', 'tsconfig.json', 'schema', 'src']

/** The modification time of a file, or of the newest file in a folder; 0 if it is not there, or not part of the build. @param {string} path @returns {number} */
const changed = (path) => {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat?.isDirectory()) return /[.](test[.]ts|md)$/.test(path) ? 0 : (stat?.mtimeMs ?? 0)
  return Math.max(...readdirSync(path).map((name) => changed(join(path, name))))
}

// A process that another one has started (GATEWAYS) need not look again.
if (cluster.isPrimary) {
  const built = changed(join(root, 'dist/src/main.js'))
  if (!built) {
    console.error('There is no build. Run: npm run build')
    process.exit(1)
  }
  if (sources.some((path) => changed(join(root, path)) > built))
    console.error('The sources are newer than the build. Run: npm run build')

  // The shell in which npm runs a script may exit on a signal without passing it on. Only then is the end of the parent a
  // signal: a program that starts the service in the background may end before it.
  const parent = process.ppid
  if (/^node [^&|;]*built\.mjs[^&|;]*$/.test(process.env.npm_lifecycle_script ?? ''))
    setInterval(() => process.ppid !== parent && process.kill(process.pid, 'SIGTERM'), 500).unref()
}
