import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { StartupError } from '../settings.js'
import { acquireLock, type Lock } from './lock.js'

export interface EmbeddedOptions {
  /** The folder that holds the database and the lock of the process that owns it. */
  dataDir: string
  /** 0 takes any free one. */
  port: number
  /** Nothing is kept; no folder and no lock are needed. */
  inMemory?: boolean
  /** For commands: where a process serves the database already, connect to that one. */
  join?: boolean
  /** The database ended although nobody closed it. */
  onLost?: (error: Error) => void
}

export interface Embedded {
  readonly url: string
  readonly port: number
  close(): Promise<void>
}

/** How long a command waits for another command, or for a start that is under way. */
const PATIENCE = 30_000

const urlOf = (port: number) => `postgresql://postgres:postgres@127.0.0.1:${port}/postgres`

/**
 * Opens the database in a data directory, and makes it when there is none.
 *
 * The owner of the folder tells the port, so that commands can connect. A command that owns the folder itself tells none:
 * the next command waits, because a connection would break when the first one ends.
 *
 * @throws StartupError in one line; nothing is damaged and no lock is left
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  if (options.inMemory) return start('memory://', options)
  const folder = resolve(options.dataDir)
  await unlessUnusable(folder, () => mkdirSync(folder, { recursive: true, mode: 0o700 }))
  for (const end = Date.now() + PATIENCE; ; await sleep(100)) {
    const lock = await unlessUnusable(folder, () => acquireLock(folder))
    if ('release' in lock) return openLocked(folder, lock, options)
    const { pid, port } = lock.owner
    if (options.join && port) return { url: urlOf(port), port, close: async () => {} }
    if (options.join && Date.now() < end) continue
    const who = pid ? `process ${pid}` : 'a process that does not answer'
    const where = port ? `, which serves it on port ${port}` : ''
    throw new StartupError(
      `DATA_DIR ${folder} is in use by ${who}${where}; stop that process, or set DATA_DIR to another folder`,
    )
  }
}

async function openLocked(folder: string, lock: Lock, options: EmbeddedOptions): Promise<Embedded> {
  try {
    const finish = await unlessUnusable(folder, () => prepare(folder))
    const database = await start(join(folder, 'db'), options)
    finish()
    if (!options.join) lock.owner.port = database.port
    return { ...database, close: () => database.close().finally(lock.release) }
  } catch (error) {
    lock.release()
    throw error
  }
}

/**
 * Makes the folder of the database. The mark beside it says that it is not complete yet, until the function that is
 * returned is called: a first start that was killed has acknowledged nothing, and is simply begun again.
 */
function prepare(folder: string): () => void {
  const directory = join(folder, 'db')
  const mark = join(folder, 'db.incomplete')
  if (existsSync(mark)) rmSync(directory, { recursive: true, force: true })
  if (existsSync(directory) && readdirSync(directory).length > 0) {
    if (!existsSync(join(directory, 'PG_VERSION')))
      throw new StartupError(`DATA_DIR: ${directory} holds something that is no database; move it away`)
  } else {
    writeFileSync(mark, '')
    mkdirSync(directory, { recursive: true })
  }
  chmodSync(directory, 0o700)
  return () => rmSync(mark, { force: true })
}

async function unlessUnusable<T>(folder: string, action: () => T | Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    if (!(error instanceof Error) || error instanceof StartupError) throw error
    const { code } = error as NodeJS.ErrnoException
    const reason = code === 'EEXIST' || code === 'ENOTDIR' ? 'it, or what it lies in, is a file' : error.message
    throw new StartupError(`DATA_DIR ${folder} cannot be used: ${reason}; set DATA_DIR to a folder that can be written`)
  }
}

async function start(directory: string, { port, onLost }: EmbeddedOptions): Promise<Embedded> {
  const worker = new Worker(new URL('./embedded-worker.mjs', import.meta.url), {
    workerData: { directory, port },
    execArgv: [],
    stdout: true,
    stderr: true,
  })
  // What PostgreSQL says meanwhile is no output of ours; its last words explain a failure.
  let words = ''
  worker.stdout.resume()
  worker.stderr.on('data', (data) => {
    words = (words + data).slice(-2000)
  })
  const ended = new Promise<Error>((done) => {
    worker.once('error', done).once('exit', (code) => done(new Error(`it ended with code ${code}`)))
  })
  const answer = await Promise.race([once(worker, 'message').then(([taken]) => taken as number), ended])
  if (answer instanceof Error) {
    await worker.terminate()
    if ((answer as NodeJS.ErrnoException).code === 'EADDRINUSE')
      throw new StartupError(`EMBEDDED_DB_PORT ${port} is in use; set EMBEDDED_DB_PORT to a free port, or to 0 for any`)
    const reason = words.match(/(?:PANIC|FATAL): +(.*)/)?.[1] ?? answer.message.split('\n')[0]
    throw new StartupError(
      `DATA_DIR: the database in ${directory} cannot be opened (${reason}); put a backup in its place, or move it away`,
    )
  }
  let closing: Promise<unknown> | undefined
  ended.then((error) => closing ?? onLost?.(new Error(`the embedded database has ended: ${error.message}`)))
  return {
    url: urlOf(answer),
    port: answer,
    async close() {
      if (!closing) {
        worker.postMessage('close')
        closing = ended
      }
      await closing
    },
  }
}
