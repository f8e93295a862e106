import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type Ask, OrphanedBackends } from './orphans.js'

// In a container, PostgreSQL has the same few process ids after each restart. On a host they do not repeat for hours.

/** The backends that are followed on a server, and what answers the questions about them that have arrived: with these pids. */
function follow() {
  const asked: ((pids: number[]) => void)[] = []
  const ask: Ask = async <Row>() => {
    const pids = await new Promise<number[]>((resolve) => asked.push(resolve))
    return pids.map((pid) => ({ pid }) as Row)
  }
  const answer = async (...pids: number[]) => {
    await expect.poll(() => asked.length).toBe(1)
    asked.pop()?.(pids)
  }
  return { backends: new OrphanedBackends(ask, 'petstore', 60_000), answer }
}

const isOver = (promise: Promise<void> | undefined) =>
  Promise.race([Promise.resolve(promise).then(() => true), sleep(5).then(() => false)])

describe('backends whose connections are lost, one after the other, with the same process id', () => {
  test('have all ended when PostgreSQL has no such process', async () => {
    const { backends, answer } = follow()
    const [first, second] = [backends.ended(7, false), backends.ended(7, true)]
    await answer(7)
    await answer(7)
    expect([await isOver(first), await isOver(second), await isOver(backends.writing)]).toEqual([false, false, false])
    await answer()
    await Promise.all([first, second, backends.writing])
  })

  test('have ended when another connection has the id, which may live on', async () => {
    const { backends, answer } = follow()
    const [first, other] = [backends.ended(7, true), backends.ended(8, true)]
    backends.opened(7)
    expect([await isOver(first), await isOver(other), await isOver(backends.writing)]).toEqual([true, false, false])
    backends.opened(8)
    expect([await isOver(other), backends.writing]).toEqual([true, undefined])
    await answer(7)
  })

  test('have not ended by an answer that is older than the loss', async () => {
    const { backends, answer } = follow()
    const first = backends.ended(7, true)
    backends.opened(7)
    const second = backends.ended(7, true)
    await answer()
    await first
    expect([await isOver(second), await isOver(backends.writing)]).toEqual([false, false])
    await answer()
    await Promise.all([second, backends.writing])
  })
})
