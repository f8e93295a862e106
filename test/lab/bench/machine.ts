import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import os from 'node:os'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import type { Client } from 'pg'
import { Refusal } from './lifecycle.js'

export interface Machine {
  processor: string
  cores: number
  memoryGB: number
  system: string
  node: string
  postgres: string
  redis: string
  /** What it takes to write a page to the disk for good, in milliseconds. */
  syncMs?: number
}

export function requireProc() {
  if (!existsSync('/proc/self/stat'))
    throw new Refusal('The benchmark reads processor time and memory from /proc: it needs Linux.')
}

export async function describeMachine(client: Client, redis: Redis): Promise<Machine> {
  const { rows } = await client.query('SHOW server_version')
  return {
    processor: os.cpus()[0]?.model.trim() || os.arch(),
    cores: os.availableParallelism(),
    memoryGB: Math.round(os.totalmem() / 2 ** 30),
    system: `${os.type()} ${os.release()}`,
    node: process.version,
    postgres: rows[0].server_version,
    syncMs: measureSync(),
    redis: /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? '',
  }
}

/** The median of many: what a transaction of its own waits for at its end, on a disk like that of the temporary folder. */
function measureSync() {
  const folder = mkdtempSync(join(os.tmpdir(), 'petstore-sync-'))
  const file = openSync(join(folder, 'page'), 'w')
  const page = Buffer.alloc(8_192, 1)
  const times = Array.from({ length: 200 }, () => {
    const began = performance.now()
    writeSync(file, page)
    fdatasyncSync(file)
    return performance.now() - began
  })
  closeSync(file)
  rmSync(folder, { recursive: true })
  return times.sort((a, b) => a - b)[100] as number
}

/** The commit that is measured, with a plus sign where files differ from it. */
export function readCommit() {
  try {
    const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8', stdio: 'pipe' }).trim()
    const changed = git('status', '--porcelain', '--', 'src', 'schema', 'prisma', 'package.json')
    return git('rev-parse', '--short', 'HEAD') + (changed ? '+' : '')
  } catch {
    return 'unknown'
  }
}
