import { randomUUID } from 'node:crypto'
import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { uptime } from 'node:os'
import { resolve } from 'node:path'

/**
 * An exclusive lock by a file that says who holds it. The file appears with its whole content or not at all, and a
 * holder that died, however it died, stands in nobody's way.
 *
 * @typedef {{ pid: number, port?: number }} Holder
 * @typedef {{ update(facts: { port?: number }): void, release(): void }} Lock
 */

/** The locks of this process: a pid alone does not tell us from our predecessor where everybody is pid 1. */
const held = new Set()

/** When a process began, in ticks since boot, where the system tells: a pid may be used again. @param {number} pid */
function birth(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[19]
  } catch {
    return undefined
  }
}

/** @param {number} pid */
function runs(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM'
  }
}

/** What stands in the file; null when there is none, or nothing that a lock could be. @param {string} path */
function content(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    if (error instanceof SyntaxError) return null
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return null
    throw error
  }
}

/**
 * The live holder of a lock, or null.
 *
 * @param {string} path
 * @returns {Holder | null}
 */
export function readLock(path) {
  const holder = content(path)
  if (!Number.isSafeInteger(holder?.pid) || holder.pid <= 0) return null
  if (holder.pid === process.pid) return held.has(holder.token) ? holder : null
  if (!runs(holder.pid)) return null
  if (holder.birth && birth(holder.pid)) return holder.birth === birth(holder.pid) ? holder : null
  const made = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
  return made > Date.now() - uptime() * 1000 ? holder : null
}

/** @param {string} path @param {object} value @param {(from: string, to: string) => void} place */
function put(path, value, place) {
  const draft = `${path}.${randomUUID()}`
  try {
    writeFileSync(draft, JSON.stringify(value), { flag: 'wx', mode: 0o644 })
    place(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
}

/**
 * Takes the lock, or returns its live holder.
 *
 * A dead holder's file is removed under a lock of the same kind beside it, and only if it is still a dead holder's:
 * of two processes that find it at once, neither can remove what the other has just taken.
 *
 * @param {string} path
 * @param {{ port?: number }} [facts] stand in the file beside the pid
 * @returns {{ lock: Lock, holder?: undefined } | { lock?: undefined, holder: Holder }}
 */
export function acquireLock(path, facts) {
  path = resolve(path)
  const self = { pid: process.pid, birth: birth(process.pid), token: randomUUID() }
  for (;;) {
    try {
      held.add(self.token)
      put(path, { ...self, ...facts }, linkSync)
      return { lock: ours(path, self) }
    } catch (error) {
      held.delete(self.token)
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error
    }
    const holder = readLock(path)
    if (holder) return { holder }
    const { lock: guard } = acquireLock(`${path}.takeover`)
    try {
      if (guard && !readLock(path)) rmSync(path, { force: true })
    } finally {
      guard?.release()
    }
    // Somebody else is just removing it.
    if (!guard) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
  }
}

/**
 * @param {string} path
 * @param {{ token: string }} self
 * @returns {Lock}
 */
function ours(path, self) {
  const isOurs = () => content(path)?.token === self.token
  return {
    update(facts) {
      if (isOurs()) put(path, { ...self, ...facts }, renameSync)
    },
    release() {
      if (held.delete(self.token) && isOurs()) rmSync(path, { force: true })
    },
  }
}
