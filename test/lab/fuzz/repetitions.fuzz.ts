import fc from 'fast-check'
import { afterAll, beforeAll, describe, test } from 'vitest'
import type { Gateway } from '../../support/gateway.js'
import { assertCheap, fragments, kinds, openTarget } from '../../support/repetitions.js'
import { fuzz } from './fuzz.js'

// Inputs of the largest size that repeat something that readers stumble over, or a mixture of it.

let gateway: Gateway
beforeAll(async () => {
  gateway = await openTarget()
})
afterAll(() => gateway.close())

const mixture = (least: number) =>
  fc.array(fc.constantFrom(...fragments), { minLength: least, maxLength: 4 }).map((parts) => parts.join(''))
const cases = fc.tuple(fc.constantFrom(...kinds), fc.record({ fragment: mixture(1), end: mixture(0) }))

fuzz('a unit of the quota buys little processor time', 0.1, cases, {
  show: ([kind, text]) => `${kind.name} with ${JSON.stringify(text)}`,
  run: ([kind, text]) => assertCheap(gateway, kind, text),
})

describe('a unit of the quota buys at most 20 ms of processor time with the largest input, whatever is repeated in', () => {
  test.each(kinds)('$name', async (kind) => {
    for (const fragment of fragments) await assertCheap(gateway, kind, { fragment })
  })
})
