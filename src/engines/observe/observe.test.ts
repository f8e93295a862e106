import { expect, test } from 'vitest'
import { createLog, inSpan } from './index.js'

test('does what its README shows', async () => {
  const lines: string[] = []
  const log = createLog('info', { write: (line) => lines.push(line) })
  log.warn({ table: 'Book' }, 'the table is locked')
  // {"level":40,"time":"2026-11-27T07:20:40.000Z","table":"Book","msg":"the table is locked"}

  const rows = await inSpan('read', async () => ['Emma']) // ['Emma']

  const { time, ...line } = JSON.parse(lines[0] ?? '')
  expect(line).toEqual({ level: 40, table: 'Book', msg: 'the table is locked' })
  expect(time).toBe(new Date(time).toISOString())
  expect(rows).toEqual(['Emma'])
})

test('a step throws what it throws, with or without a promise', async () => {
  const fail = () => {
    throw new RangeError('broken')
  }
  expect(() => inSpan('fail', fail)).toThrow(RangeError)
  await expect(inSpan('fail', async () => fail())).rejects.toThrow(RangeError)
})
