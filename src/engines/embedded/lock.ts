import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, renameSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join, relative, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { StartupError } from '../../startup-error.js'

/** What the owner of a folder publishes. Empty if it does not respond. */
export interface Owner {
  pid?: number
  port?: number
}

export interface Lock {
  readonly owner: Owner
  release(): void
}

/** The limit of macOS (Linux: 107 bytes). Node truncates a longer path silently. */
const MAX_PATH = 103
/** How long a live process may take to respond, and how long processes that start concurrently may compete. */
const ANSWER_MS = 5_000
const COMPETE_MS = 30_000

/**
 * Makes this process the only owner of a folder, or returns the owner.
 *
 * A process creates a listening socket in the folder, then looks for others. It owns the folder if it finds none, and
 * withdraws otherwise. Of two processes, the one that creates its socket later sees the other, so two never own the
 * folder.
 *
 * No lock is ever taken over. The kernel closes a socket when its process dies for any reason, and every container that
 * shares the folder sees that. A socket gets its visible name only when it listens, and no name is used twice, so a socket
 * that refuses connections is dead forever and any process may delete it.
 */
export async function acquireLock(folder: string): Promise<Lock | { owner: Owner }> {
  const deadline = Date.now() + COMPETE_MS
  for (let round = 1; ; round++) {
    let answers = await askOthers(folder)
    if (answers.length === 0) {
      const candidate = await announce(folder)
      answers = candidate ? await askOthers(folder, candidate.name) : ['']
      if (answers.length === 0) return candidate?.own() as Lock
      candidate?.withdraw()
    }
    const owner = answers.find((answer) => answer !== '')
    if (owner) return { owner: JSON.parse(owner) }
    if (Date.now() > deadline) return { owner: {} }
    await sleep(Math.random() * 20 * round)
  }
}

/** Creates a socket that others can see. Undefined if another process deleted it as dead before it listened. */
async function announce(folder: string) {
  const name = `lock-${randomBytes(4).toString('hex')}`
  const path = socketPath(folder, name)
  const draft = socketPath(folder, `${name}.new`)
  const owner: Owner = { pid: process.pid }
  let owns = false
  const server = createServer((socket) => {
    socket.on('error', () => {}).end(owns ? JSON.stringify(owner) : '')
  }).unref()
  await once(server.listen(draft), 'listening')
  const withdraw = () => {
    rmSync(path, { force: true })
    server.close()
  }
  try {
    renameSync(draft, path)
  } catch {
    return withdraw()
  }
  const own = (): Lock => {
    owns = true
    return { owner, release: withdraw }
  }
  return { name, own, withdraw }
}

/** The answers of all other live processes. Deletes the sockets of dead ones. */
async function askOthers(folder: string, self?: string): Promise<string[]> {
  const names = readdirSync(folder).filter((name) => name.startsWith('lock-') && name !== self)
  const answers = await Promise.all(names.map((name) => ask(socketPath(folder, name))))
  return answers.filter((answer) => answer !== undefined)
}

/** The answer of a process: empty unless it owns the folder; undefined if the process is dead. */
function ask(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    let answer = ''
    let dead = false
    const socket = connect(path)
      .setEncoding('utf8')
      .setTimeout(ANSWER_MS, () => socket.destroy())
      .on('data', (text) => {
        answer += text
      })
      .on('error', ({ code }: NodeJS.ErrnoException) => {
        if (code === 'ECONNREFUSED') rmSync(path, { force: true })
        // After any other error, the process may be alive.
        dead = code === 'ECONNREFUSED' || code === 'ENOENT'
      })
      .on('close', () => resolve(dead ? undefined : answer))
  })
}

function socketPath(folder: string, name: string): string {
  const paths = [join(resolve(folder), name), relative('', join(folder, name))]
  const [path = ''] = paths.sort((a, b) => a.length - b.length)
  const length = Buffer.byteLength(path)
  if (length <= MAX_PATH) return path
  throw new StartupError(
    `DATA_DIR ${folder} is too long: the path of its lock socket has ${length} bytes, and at most ${MAX_PATH} are allowed; set DATA_DIR to a shorter path`,
  )
}
