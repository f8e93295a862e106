import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { projectPath } from '../../project.js'
import { StartupError } from '../../startup-error.js'
import { acquireLock, type Lock } from './lock.js'
import { type PackedDatabase, unpackDatabase } from './packed.js'
import { errorOf, whyUnopenable } from './unopenable.js'

/**
 * V8 would optimize WebAssembly that runs for a few milliseconds, which took a third of a start. What runs longer is still
 * optimized: a function that has taken about 0.2 instead of 0.002 seconds.
 */
export const optimizeWasmLater = () => setFlagsFromString('--wasm-tiering-budget=180000000')

export interface EmbeddedOptions {
  /** The folder that holds the database and the lock of the process that owns it. */
  dataDir: string
  /** 0: any free port. */
  port: number
  /** Stores nothing on disk; needs no folder and no lock. */
  inMemory?: boolean
  /** For commands: if another process serves the database, connect to it. */
  join?: boolean
  /** Fills a new database. Until it has, the folder holds none; it must be empty, and is as it was if this fails. */
  fill?: (url: string) => Promise<void>
  /**
   * Returns what a new database on disk begins with; not together with `fill`. If that cannot be used, PostgreSQL makes an empty
   * database, and `onNotice` is called.
   */
  packed?: () => PackedDatabase
  /** Called with what an operator should know. */
  onNotice?: (message: string) => void
  /** Called if the database ends without `close`. */
  onLost?: (error: Error) => void
}

export interface Embedded {
  readonly url: string
  readonly port: number
  close(): Promise<void>
}

/** How long a start or a command waits for a command, or for a gateway that starts. */
const WAIT_MS = 30_000
/** Most have ended by then. */
const SILENT_MS = 1_000

const urlOf = (port: number) => `postgresql://postgres:postgres@127.0.0.1:${port}/postgres`

/** Whether a data directory has a database. @throws StartupError if that cannot be seen */
export function hasDatabase(dataDir: string): boolean {
  try {
    return statSync(join(dataDir, 'db'), { throwIfNoEntry: false }) !== undefined
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const who = `this runs as the user with the id ${process.getuid?.()}`
    const reason =
      code === 'EACCES'
        ? `${who}; run it as the user of the service`
        : `${code}; set DATA_DIR to the folder of the service`
    throw new StartupError(`DATA_DIR ${dataDir} cannot be read: ${reason}`)
  }
}

/**
 * Opens the database in a data directory, and creates it if it does not exist.
 *
 * The owner of the folder publishes the port, so that commands can connect. A command that owns the folder does not: its
 * database ends with it, so the next command, or a start, waits for its turn.
 *
 * @throws StartupError with one line; the data is unchanged and the lock is released
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  if (options.inMemory) return start('memory://', options)
  const folder = resolve(options.dataDir)
  const made = await unlessUnusable(folder, () => makeFolder(folder))
  const begun = Date.now()
  let isTold = false
  for (; ; await sleep(100)) {
    const lock = await unlessUnusable(folder, () => acquireLock(folder))
    if ('release' in lock) {
      return openLocked(folder, lock, options).catch((error) => {
        if (options.fill && made) rmSync(made, { recursive: true, force: true })
        throw error
      })
    }
    const { pid, port } = lock.owner
    if (options.join && port) return { url: urlOf(port), port, close: async () => {} }
    const who = pid ? `process ${pid}` : 'a process that does not respond'
    const waited = Date.now() - begun
    if (port || waited > WAIT_MS) {
      const what = port
        ? ` (port ${port}); stop that process or`
        : ', such as a command or Prisma Studio; end that process or'
      throw new StartupError(`DATA_DIR ${folder} is in use by ${who}${what} set DATA_DIR to another folder`)
    }
    if (waited < SILENT_MS || isTold) continue
    isTold = true
    options.onNotice?.(`waiting for ${who}, which uses DATA_DIR ${folder}`)
  }
}

/** Returns the first folder that it has made. Not `recursive`: in some file systems, Node 20 would never return. */
function makeFolder(folder: string): string | undefined {
  if (existsSync(folder)) return mkdirSync(folder, { recursive: true })
  const made = makeFolder(dirname(folder))
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Another process has made it.
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
  return made ?? folder
}

async function openLocked(folder: string, lock: Lock, options: EmbeddedOptions): Promise<Embedded> {
  try {
    const finish = await unlessUnusable(folder, () => prepare(folder, options))
    const database = await fillNew(folder, options)
    finish()
    if (!options.join) lock.owner.port = database.port
    return { ...database, close: () => database.close().finally(lock.release) }
  } catch (error) {
    lock.release()
    throw error
  }
}

/** What a restore writes. The marker is the last to go. */
const RESTORED = ['demo-keys.json', 'db', 'db.incomplete']

async function fillNew(folder: string, options: EmbeddedOptions): Promise<Embedded> {
  const { fill } = options
  if (!fill) return start(join(folder, 'db'), options)
  try {
    const database = await start(join(folder, 'db'), options)
    await fill(database.url).catch((error) => database.close().then(() => Promise.reject(error)))
    return database
  } catch (error) {
    for (const name of RESTORED) rmSync(join(folder, name), { recursive: true, force: true })
    throw error
  }
}

/**
 * Creates the folder of the database, and a marker file that the returned function deletes when the database is complete.
 * If the marker exists, the first start was killed before it acknowledged any write, so the folder is created again.
 */
function prepare(folder: string, { fill, packed, onNotice = () => {} }: EmbeddedOptions): () => void {
  const directory = join(folder, 'db')
  assertNotOfAnother(folder, join(directory, 'PG_VERSION'))
  const marker = join(folder, 'db.incomplete')
  if (existsSync(marker)) for (const name of RESTORED) rmSync(join(folder, name), { recursive: true, force: true })
  const names = readdirSync(folder).filter((name) => !name.startsWith('lock-'))
  if (fill && names.length > 0)
    throw new StartupError(
      `DATA_DIR ${folder} is not empty: it has ${names.join(', ')}; set DATA_DIR to an empty folder`,
    )
  if (existsSync(directory) && readdirSync(directory).length > 0) {
    if (!existsSync(join(directory, 'PG_VERSION')))
      throw new StartupError(
        `DATA_DIR: ${directory} is not empty and is not a database; move its contents or set DATA_DIR to another folder`,
      )
  } else {
    writeFileSync(marker, '')
    mkdirSync(directory, { recursive: true })
    if (packed) unpackDatabase(packed(), directory, onNotice)
  }
  chmodSync(directory, 0o700)
  return () => rmSync(marker, { force: true })
}

/** What root writes, the user to whom the database belongs could not open. */
function assertNotOfAnother(folder: string, file: string): void {
  const owner = statSync(file, { throwIfNoEntry: false })?.uid
  if (process.getuid?.() !== 0 || !owner) return
  throw new StartupError(
    `DATA_DIR ${folder} belongs to the user with the id ${owner}, who could not open what root writes into it; run this as that user: sudo -u '#${owner}' …`,
  )
}

async function unlessUnusable<T>(folder: string, action: () => T | Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    if (!(error instanceof Error) || error instanceof StartupError) throw error
    const { code } = error as NodeJS.ErrnoException
    const reason = code === 'EEXIST' || code === 'ENOTDIR' ? 'it or its parent is a file' : error.message
    throw new StartupError(`DATA_DIR ${folder} cannot be used: ${reason}; set DATA_DIR to a writable folder`)
  }
}

async function start(directory: string, { port, onLost }: EmbeddedOptions): Promise<Embedded> {
  const worker = new Worker(projectPath('src/engines/embedded/worker.mjs'), {
    workerData: { directory, port },
    execArgv: [],
    stdout: true,
    stderr: true,
  })
  // Not part of our output; the end of it explains a failure.
  let stderr = ''
  worker.stdout.resume()
  worker.stderr.on('data', (data) => {
    stderr = (stderr + data).slice(-2000)
  })
  const ended = new Promise<Error>((done) => {
    worker.once('error', (error) => done(errorOf(error))).once('exit', (code) => done(new Error(`exit code ${code}`)))
  })
  const started = await Promise.race([once(worker, 'message').then(([actual]) => actual as number), ended])
  if (started instanceof Error) {
    await worker.terminate()
    if ((started as NodeJS.ErrnoException).code === 'EADDRINUSE')
      throw new StartupError(
        `EMBEDDED_DB_PORT ${port} is in use; set EMBEDDED_DB_PORT to a free port, or to 0 for any free port`,
      )
    const reason = stderr.match(/(?:PANIC|FATAL): +(.*)/)?.[1] ?? started.message.replace(/\n.*/s, '')
    throw new StartupError(
      `DATA_DIR: the database in ${directory} cannot be opened: ${whyUnopenable(directory, reason)}`,
    )
  }
  let closing: Promise<unknown> | undefined
  ended.then((error) => closing ?? onLost?.(new Error(`the embedded database ended: ${error.message}`)))
  return {
    url: urlOf(started),
    port: started,
    async close() {
      if (!closing) {
        worker.postMessage('close')
        closing = ended
      }
      await closing
    },
  }
}
