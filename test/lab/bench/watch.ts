import type { Redis } from 'ioredis'
import { Refusal } from './lifecycle.js'
import type { RunningServer } from './processes.js'

const EVERY_MS = 250
const PING_TIMEOUT_MS = 2_000

/**
 * Watches Redis through a run. A gateway that has lost Redis counts in memory, and is faster: such a run measures
 * something else, so it fails. Redis is asked directly, and each gateway is asked what it says of Redis.
 */
export async function watched<Result>(
  redis: Redis,
  gateways: RunningServer[],
  run: () => Promise<Result>,
): Promise<Result> {
  let trouble: string | undefined
  const closed = () => {
    trouble ??= 'the connection broke'
  }
  redis.once('close', closed)
  const look = async () => {
    await inTime(redis.ping()).catch((error) => {
      trouble ??= error.message
    })
    for (const { url } of gateways) {
      const ready = await fetch(`${url}/readyz`).then(
        (response) => response.text(),
        () => '',
      )
      if (/degraded|"memory"/.test(ready)) trouble ??= `/readyz of the gateway says ${ready}`
    }
  }
  await look()
  let looking = Promise.resolve()
  const timer = setInterval(() => {
    looking = looking.then(look)
  }, EVERY_MS)
  const outcome = await run().then(
    (result) => ({ result }),
    (error: unknown) => ({ error }),
  )
  clearInterval(timer)
  await looking
  await look()
  redis.off('close', closed)
  for (const { warnings } of gateways) trouble ??= warnings.find((line) => /redis/i.test(line))
  if (trouble) throw new Refusal(`Redis was unreachable during the run, so the run does not count: ${trouble}`)
  if ('error' in outcome) throw outcome.error
  return outcome.result
}

function inTime<Value>(promise: Promise<Value>): Promise<Value> {
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`no answer within ${PING_TIMEOUT_MS} ms`)), PING_TIMEOUT_MS).unref()
  })
  return Promise.race([promise, late])
}

interface Window {
  limit: number
  remaining: number
}

/** What the gateway has counted for all keys today, as `GET /quota` says it. */
export async function countedRequests({ url }: RunningServer, keys: string[]) {
  let counted = 0
  for (const key of keys) {
    const response = await fetch(`${url}/quota`, { headers: { authorization: `Bearer ${key}` } })
    const { day } = (await response.json()) as { day: Window }
    counted += day.limit - day.remaining
  }
  return counted
}
