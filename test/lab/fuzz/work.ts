import { readFileSync } from 'node:fs'
import type { OutgoingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { parse, validate } from 'graphql'
import inject from 'light-my-request'
import { schema } from '../../../schema/index.js'
import type { Gateway } from '../../support/gateway.js'
import type { FuzzRequest } from './fuzz.js'

// What a request makes this process do.

export interface Work {
  status: number
  /** Of the quota; 1 for a free request. */
  units: number
  /** Processor time, in ms: without the embedded database, which has a thread of its own. */
  time: number
  /** The longest time that nothing else could run, in ms. */
  blocked: number
  /** The most memory above the start, in bytes. */
  memory: number
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as (options?: { type: 'minor' }) => void

/**
 * What is collected before a request: young objects (`minor`), which makes room, or all (`major`), which makes memory exact.
 * After `major`, the next request takes up to twice the processor time, because V8 empties caches of its own with it.
 */
export type Collection = 'minor' | 'major'

/** Of this process so far, in ms. */
export const processorTime = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** The same of this thread alone, where the system tells (Linux). */
function threadTime(): number {
  try {
    // Otherwise the file is as old as the last interrupt.
    process.cpuUsage()
    return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e6
  } catch {
    return processorTime()
  }
}

// As the gateway's own work: strings, objects, and memory that others use, too; and arithmetic. The times are of this thread.
const sample = JSON.stringify(
  Array.from({ length: 1_000 }, (_, id) => ({ id, name: `Pet ${id}`, tags: [id, { text: 'x'.repeat(20) }] })),
)
/** Pieces of a response of 4 MB, as long keys make it. */
const pieces = Array.from({ length: 200 }, (_, i) => String(i).padEnd(20_000, 'x'))
const fields = `{ ${Array.from({ length: 500 }, (_, i) => `f${i}: pets(limit: $limit) { id }`).join(' ')} }`
const samples: [ms: number, work: () => void][] = [
  [
    6,
    () => {
      for (let i = 0; i < 8; i++) JSON.stringify(JSON.parse(sample))
    },
  ],
  [
    5,
    () => {
      for (let i = 0, hash = 0; i < 4_000_000; i++) hash = Math.imul(hash ^ i, 0x9e3779b1)
    },
  ],
  // Small objects of many kinds, and much code: a busy machine slows it more than the others.
  [10, () => validate(schema, parse(fields))],
  // Fresh memory, which some virtual machines are slow to give (14 ms). No quiet machine has been measured: 6 is more than one
  // should take, because a copy into memory that is there takes less than 1 ms.
  [6, () => pieces.join()],
]

/** How often the samples still run before they are timed: V8 has compiled them then. */
let warmUps = 15

/** How much longer this machine takes now than the quiet one that the times of the samples are from. */
export function slowness(): number {
  for (; warmUps > 0; warmUps--) for (const [, work] of samples) work()
  const ratios = samples.map(([ms, work]) => {
    const times = [0, 1, 2].map(() => {
      const before = threadTime()
      work()
      return threadTime() - before
    })
    return Math.min(...times) / ms
  })
  return Math.max(1, ...ratios)
}

const held = () => {
  const { used_heap_size: heap, external_memory: external } = getHeapStatistics()
  return heap + external
}

const TICK_MS = 5

/**
 * Sends a request and watches it. While another program has the processor, the clock goes on: the event loop is blocked for
 * no longer than the processor worked.
 */
export async function watch(
  gateway: Gateway,
  { method, target, headers, body }: FuzzRequest,
  collection?: Collection,
): Promise<Work & { headers: OutgoingHttpHeaders; payload: string }> {
  if (collection === 'minor') collectGarbage({ type: 'minor' })
  // Without options: V8 of Node.js 20 takes any other type for `minor`.
  if (collection === 'major') collectGarbage()
  const start = held()
  let [blocked, most] = [0, start]
  let last = { clock: performance.now(), time: processorTime() }
  const tick = () => {
    const now = { clock: performance.now(), time: processorTime() }
    blocked = Math.max(blocked, Math.min(now.clock - last.clock, now.time - last.time) - TICK_MS)
    most = Math.max(most, held())
    last = now
  }
  const timer = setInterval(tick, TICK_MS)
  const began = threadTime()
  let handled: Promise<void> | undefined
  const answer = await inject(
    (req, res) => {
      // The library would normalize it.
      req.url = target
      handled = gateway.app.handle(req, res)
    },
    {
      method: method as 'GET',
      url: '/',
      headers,
      payload: body as string,
      // To put the payload together is not the gateway's work.
      payloadAsStream: true,
    },
  )
  await handled
  const time = threadTime() - began
  clearInterval(timer)
  tick()
  return {
    status: answer.statusCode,
    headers: answer.headers,
    units: Math.max(1, Number(answer.headers['x-ratelimit-cost'] ?? 0)),
    time,
    blocked: Math.max(0, blocked),
    memory: most - start,
    payload: await text(answer.stream()),
  }
}
