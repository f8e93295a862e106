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

/**
 * When a process began, in ticks since boot, where the system tells: a pid may be used again. A zombie has ended,
 * although its pid can still be signalled.
 *
 * @param {number} pid
 */
function birth(pid) {
  try {
    const [state, ...fields] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
    return state === 'Z' ? 'ended' : fields[18]
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

/** @param {string} path */
function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return undefined
    throw error
  }
}

/** What a lock says, or nothing where the disk lost it. @param {string | undefined} text */
function parse(text) {
  try {
    return JSON.parse(text ?? 'null')
  } catch {
    return null
  }
}

/**
 * The live holder of a lock, or null.
 *
 * @param {string} path
 * @param {string} [text]
 * @returns {Holder | null}
 */
export function readLock(path, text = read(path)) {
  const holder = parse(text)
  if (!Number.isSafeInteger(holder?.pid) || holder.pid <= 0 || !runs(holder.pid)) return null
  const now = birth(holder.pid)
  if (now === 'ended') return null
  if (holder.birth && now) return holder.birth === now ? holder : null
  if (holder.pid === process.pid) return held.has(holder.token) ? holder : null
  const made = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
  return made > Date.now() - uptime() * 1000 ? holder : null
}

/**
 * Whether a dead holder's lock stands there. It is read again after the holder was found dead: one that was alive when
 * it was read may have released it since, for somebody else to take.
 *
 * @param {string} path
 */
function isDead(path) {
  const text = read(path)
  return text !== undefined && !readLock(path, text) && read(path) === text
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
 * A dead holder's file is removed under a lock of the same kind beside it, and only if a dead holder's still stands
 * there: of two processes that find it at once, neither can remove what the other has just taken.
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
    if (!isDead(path)) continue
    const { lock: guard } = acquireLock(`${path}.takeover`)
    try {
      if (guard && isDead(path)) rmSync(path, { force: true })
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
  const isOurs = () => parse(read(path))?.token === self.token
  return {
    update(facts) {
      if (isOurs()) put(path, { ...self, ...facts }, renameSync)
    },
    release() {
      if (held.delete(self.token) && isOurs()) rmSync(path, { force: true })
    },
  }
}
