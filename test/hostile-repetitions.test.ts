import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Gateway } from './support/gateway.js'
import { assertServed, fragments, kinds, openTarget } from './support/repetitions.js'

let gateway: Gateway
let before: number

/** Bytes in memory after all garbage is collected. */
async function held(): Promise<number> {
  setFlagsFromString('--expose-gc')
  for (let i = 0; i < 2; i++) {
    runInNewContext('gc')()
    // Buffers are freed a turn later.
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

beforeAll(async () => {
  gateway = await openTarget()
  for (const kind of kinds) await assertServed(gateway, kind, { fragment: 'a' })
  before = await held()
})
afterAll(() => gateway.close())

// `npm run fuzz` sends every fragment in every kind of input, and measures what it takes.
const EACH = 4
describe('the largest input, whatever is repeated in it, gets an answer of the API, and logs no error', () => {
  test.each(kinds.map((kind, i) => ({ ...kind, i })))('$name', async ({ i, ...kind }) => {
    for (const fragment of fragments.filter((_, n) => n % EACH === i % EACH))
      await assertServed(gateway, kind, { fragment })
  })
})

test('nothing that was refused stays in memory', async () => {
  // A hundred megabytes were sent. Some documents were valid and are kept, in a cache with a limit of its own.
  expect((await held()) - before).toBeLessThan(30_000_000)
})
