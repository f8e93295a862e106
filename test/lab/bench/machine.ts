import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import os from 'node:os'
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
    redis: /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? '',
  }
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
