import { getIntrospectionQuery } from 'graphql'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Gateway } from '../../support/gateway.js'
import { documents, openTarget, requestOf } from '../../support/hostile-documents.js'

// Each document is measured per unit of the quota that it costs, against the standard introspection query, which costs one
// unit too: processor time, by turns, the least of many tries, so that a busy machine slows both.

/** As many as a busy machine needs to let one of them run undisturbed. */
const ROUNDS = 30
/** The standard query takes 5 to 8 ms of processor time, and a unit may take 20. The embedded database takes its part. */
const MOST = 6

let gateway: Gateway
beforeAll(async () => {
  gateway = await openTarget()
})
afterAll(() => gateway.close())

describe('a unit of the quota buys no more work than others get for it', () => {
  const standard = getIntrospectionQuery({ descriptions: true, inputValueDeprecation: true })
  let count = 0
  /** Milliseconds of processor time per unit. */
  async function measure(query: string, variables?: object) {
    const before = process.cpuUsage()
    const { status, headers } = await gateway.post('/graphql', requestOf(query, count++, variables))
    const { user, system } = process.cpuUsage(before)
    // A busy machine may take longer than an execution or a statement may: that is no try.
    if (status === 503) return Number.POSITIVE_INFINITY
    expect([200, 400]).toContain(status)
    return (user + system) / 1000 / Math.max(1, Number(headers.get('x-ratelimit-cost')))
  }

  test.each(documents)('%s', async (_, query, variables) => {
    let [attack, calm] = [Infinity, Infinity]
    for (let round = 0; round < ROUNDS && !(attack < MOST * calm); round++) {
      attack = Math.min(attack, await measure(query, variables))
      calm = Math.min(calm, await measure(standard))
    }
    expect(attack).toBeLessThan(MOST * calm)
  })
})
