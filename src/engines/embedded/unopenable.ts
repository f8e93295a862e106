import { accessSync, constants, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** The major version of PostgreSQL that PGlite is. */
const POSTGRES = '18'
const START_EMPTY = 'restore a backup, or move the folder to start with an empty database'

/** What PostgreSQL needs to open a database. */
const LEAST_BYTES = 1_000_000

/** Why PGlite, which does not say, cannot open a database, and what to do. */
export function whyUnopenable(directory: string, reason: string): string {
  let path = join(directory, 'PG_VERSION')
  try {
    const { bavail, bsize } = statfsSync(directory)
    if (bavail * bsize < LEAST_BYTES) return 'the disk is full; free some of it'
    const version = readFileSync(path, 'utf8').trim()
    if (version !== POSTGRES)
      return `it is of PostgreSQL ${version}, and this version of the service has ${POSTGRES}; make a backup with the version that wrote it, and restore that`
    for (const name of readdirSync(directory, { recursive: true }) as string[]) {
      path = join(directory, name)
      accessSync(path, constants.R_OK | constants.W_OK)
    }
    return `${reason}; ${START_EMPTY}`
  } catch (error) {
    const { code, path: failed = path } = error as NodeJS.ErrnoException
    const owner = statSync(failed, { throwIfNoEntry: false })?.uid
    return code === 'EACCES' || code === 'EPERM'
      ? `${failed} belongs to the user with the id ${owner}, and this runs as ${process.getuid?.()}; give all of it to one user: sudo chown -R ${process.getuid?.()} ${directory}`
      : `${failed}: ${code}; ${START_EMPTY}`
  }
}

/** What has ended the worker, as an error. PGlite throws failures of its file system as plain objects. */
export const errorOf = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(JSON.stringify(thrown))
