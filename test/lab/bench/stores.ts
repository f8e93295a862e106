import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'
import type { Client } from 'pg'

// Processor time of the two stores, in seconds so far.

/** User and system time of the whole Redis server. */
export async function redisCpuSeconds(redis: Redis) {
  const info = await redis.info('cpu')
  const read = (field: string) => Number(new RegExp(`^${field}:([\\d.]+)`, 'm').exec(info)?.[1])
  return read('used_cpu_sys') + read('used_cpu_user')
}

/**
 * Processor time of each PostgreSQL process that works for this database: its backends, and the writers that all
 * databases share. Empty where PostgreSQL runs on another machine.
 */
export async function postgresCpu(client: Client): Promise<Map<number, number>> {
  const { rows } = await client.query<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND (datname = current_database() OR datname IS NULL)`,
  )
  return new Map(rows.flatMap(({ pid }) => (isPostgres(pid) ? [[pid, nanosecondsOf(pid) / 1e9] as const] : [])))
}

/** Seconds between two readings; undefined where there is nothing to read. */
export function postgresSeconds(before: Map<number, number>, after: Map<number, number>) {
  if (after.size === 0) return undefined
  let seconds = 0
  for (const [pid, now] of after) seconds += now - (before.get(pid) ?? 0)
  return seconds
}

function isPostgres(pid: number) {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('postgres')
  } catch {
    return false
  }
}

/** Processes of PostgreSQL have one thread, for which the kernel counts nanoseconds. */
const nanosecondsOf = (pid: number) => Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0])
