import { spawn } from 'node:child_process'
import { describe, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../../test/support/ports.js'
import { joinCluster, totals } from './index.js'

/** Starts the program of test/fixtures: two processes that share a port. Its log is read a second late. */
async function startBoth(flag = '') {
  const port = await freePort()
  const program = `node --import tsx test/fixtures/cluster.ts ${port} ${flag}`
  // A pipe of the shell: those that Node makes are sockets, which mix nothing.
  const child = spawn('bash', ['-c', `echo $$; ${program} 2> >(sleep 1; dd bs=5000 status=none >&2)`], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  onTestFinished(() => void process.kill(-(child.pid as number), 'SIGKILL'))
  let log = ''
  child.stderr.on('data', (data) => {
    log += data
  })
  for await (const data of child.stdout) if (String(data).includes('Both serve.')) break
  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).json()
  return { ask, log: () => log }
}

describe('two processes on one port', () => {
  test('take turns, and one of them answers for both', async () => {
    const { ask } = await startBoth()
    const [one, other] = [await ask('/'), await ask('/')]
    expect(one.pid).not.toBe(other.pid)
    expect(one.pids.toSorted()).toEqual([one.pid, other.pid].toSorted())
  })

  test('write whole lines to one pipe, however late it is read', async () => {
    const { ask, log } = await startBoth()
    await Promise.all([ask('/log'), ask('/log')])
    await expect.poll(() => log().split('\n').length).toBe(4_001)
    const lines = log()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
    for (const gateway of [1, 2]) expect(lines.filter((line) => line.gateway === gateway)).toHaveLength(2_000)
  })
})

test('a connection that a process dies with is closed, so no client waits forever', async () => {
  const { ask } = await startBoth()
  for (let kill = 0; kill < 2; kill++) {
    const { pid } = await ask('/')
    const sent = Array.from({ length: 30 }, () => ask('/').catch(() => 'broken'))
    process.kill(pid, 'SIGKILL')
    await Promise.all(sent)
    await expect.poll(() => ask('/').then(({ pids }) => pids.length)).toBe(2)
  }
})

test('a process that the system cannot start now is started later, and the log says why', async () => {
  const { ask, log } = await startBoth('deny-third')
  process.kill((await ask('/')).pid, 'SIGKILL')
  await expect.poll(log).toMatch(/"reason":"spawn ENOMEM","waitMs":2000,"msg":"a process has ended/)
  await expect.poll(() => ask('/').then(({ pids }) => pids.length)).toBe(2)
})

test('does what its README shows', async () => {
  const member = joinCluster()
  member.answer('pid', () => process.pid)
  const pids = await member.ask('pid') // [12, 13]; of a process alone: [12]

  expect(pids).toEqual([process.pid])
})

test('totals add counts, take the largest of what cannot be added, and pass over a process that has no metrics', async () => {
  const metric = (name: string, aggregator: string, value: number) => {
    return { name, help: name, type: 'gauge', aggregator, values: [{ value, labels: {} }] }
  }
  const processes = [
    [metric('requests', 'sum', 2), metric('lag', 'average', 1), metric('start', 'omit', 8)],
    undefined,
    [metric('requests', 'sum', 3), metric('lag', 'average', 7), metric('start', 'omit', 5)],
  ]
  const text = await totals(processes).metrics()
  expect(text.split('\n').filter((line) => !line.startsWith('#'))).toEqual(
    expect.arrayContaining(['requests 5', 'lag 7', 'start 8']),
  )
})
