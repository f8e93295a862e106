import { spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import { Refusal, runProgram } from '../bench/lifecycle.js'
import { buildGateway } from '../bench/servers.js'
import { faults } from './faults.js'
import { countFound, type Sample, startLoad } from './load.js'
import { startOrders } from './orders.js'
import { createWorld, type World } from './world.js'

// `npm run test:faults`: every fault under a steady load, and whether the gateways keep their promises.

/** The promises, on a machine that does not stand still: what the load itself stood still comes on top, beyond the usual. */
const SLOWEST_MS = 3_500
const RECOVERY_MS = 2_000
const USUAL_STALL_MS = 50

const CALM_MS = 500
/** Longer than a request may wait for the database. */
const HOLD_MS = 4_500
/** How long the load goes on after the repair: longer than a recovery may take, to see that it lasts. */
const AFTER_MS = RECOVERY_MS + 1_500
const QUICK_AFTER_MS = RECOVERY_MS + 500

const usage = `npm run test:faults -- [options]
  --quick        a part of the faults, about two minutes
  --only NAME    faults whose name contains NAME; may be repeated
Faults: ${faults.map(({ name }) => name).join(', ')}`

function selectFaults() {
  const options = { quick: { type: 'boolean' }, only: { type: 'string', multiple: true } } as const
  const { quick, only } = parseArgs({ options }).values
  const selected = faults.filter(
    (fault) => (!quick || fault.quick) && (!only || only.some((name) => fault.name.includes(name))),
  )
  if (selected.length === 0) throw new Refusal(`No fault has such a name.\n${usage}`)
  return selected.map((fault) => ({
    ...fault,
    holdMs: (quick && typeof fault.quick === 'number' ? fault.quick : fault.holdMs) ?? HOLD_MS,
    afterMs: quick ? QUICK_AFTER_MS : AFTER_MS,
  }))
}

interface Row {
  answered: number
  refused: number
  failed: number
  cut: number
  slowest: number
  recovery: number
  /** The longest stall of the event loop of the load: while it lasts, most likely nothing on this machine runs. */
  stall: number
  acknowledged: number
  found: number
  /** Repeated until they were acknowledged. */
  orders: number
  doubled: number
  /** Promises that were broken. */
  broken: string[]
}

async function measure(fault: ReturnType<typeof selectFaults>[number], world: World): Promise<Row> {
  await world.introduceKeys()
  await fault.before?.(world)
  const load = startLoad(world)
  const repeated = await startOrders(world)
  await sleep(CALM_MS)
  const began = performance.now()
  const repair = await fault.start(world)
  await sleep(fault.holdMs)
  const repairing = performance.now()
  await repair()
  const repaired = performance.now()
  await sleep(fault.afterMs)
  await load.stop()
  const { orders, lost, doubled, unsold, wrong } = await repeated.stop()
  const ended = await world.replaceEnded()

  const samples = load.samples.filter(({ at, ms }) => at + ms >= began)
  const count = (outcome: Sample['outcome']) => samples.filter((sample) => sample.outcome === outcome).length
  const writes = load.samples.flatMap(({ write }) => write ?? [])
  const lastBad = Math.max(0, ...samples.filter(({ outcome }) => outcome !== 'answered').map(({ at }) => at))
  const during = load.readiness.filter(({ at }) => at >= began && at < repairing)
  const row = {
    answered: count('answered'),
    refused: count('refused'),
    failed: count('failed'),
    cut: count('cut'),
    slowest: Math.max(0, ...samples.map(({ ms }) => ms)),
    recovery: Math.max(0, lastBad - repaired),
    stall: load.stallMs,
    acknowledged: writes.length,
    found: await countFound(world, writes),
    orders,
    doubled,
    broken: [] as string[],
  }
  const promise = (kept: boolean, text: string) => kept || row.broken.push(text)
  const firstOf = (test: (sample: Sample) => boolean) => {
    const first = samples.find(test)
    return first && `${first.kind.name}: ${first.detail} after ${Math.round(first.ms)} ms`
  }
  const serves = fault.serves ?? (({ needs }: Sample['kind']) => needs === undefined)
  const slowestMs = fault.slowestMs ?? SLOWEST_MS
  const failed = ({ outcome }: Sample) => outcome === 'failed'
  // Without a proxy, a process that is killed takes the connections of its clients with it.
  const refusals = world.entrance ? ['refused', 'cut'] : ['refused']
  const wronged = ({ kind, outcome }: Sample) => refusals.includes(outcome) && serves(kind)
  const statuses = [...new Set(during.map(({ status }) => status))]
  promise(row.failed === 0, `${row.failed} requests failed; the first: ${firstOf(failed)}`)
  promise(
    !samples.some(wronged),
    `${samples.filter(wronged).length} requests were refused that it does not touch; the first: ${firstOf(wronged)}`,
  )
  const inTime = (ms: number, usually: number, text: string) => {
    const most = usually + Math.max(0, row.stall - USUAL_STALL_MS)
    promise(ms <= most, `${text}, not within ${Math.round(most)} ms`)
  }
  inTime(row.slowest, slowestMs, `slowest: ${firstOf(({ ms }) => ms === row.slowest)}`)
  inTime(row.recovery, RECOVERY_MS, `recovered after ${Math.round(row.recovery)} ms`)
  promise(row.found === row.acknowledged, `${row.acknowledged - row.found} acknowledged writes are lost`)
  promise(lost === 0 && doubled === 0, `of the orders with a key ${lost} are lost and ${doubled} are there twice`)
  promise(unsold === 0, `the stock has ${unsold} more than was sold of it`)
  promise(wrong === undefined, `an order with a key: ${wrong}`)
  promise(row.answered > 0, 'nothing was answered')
  const [seen] = world.broken.splice(0)
  promise(seen === undefined, `${seen}`)
  promise(ended === 0, `${ended} gateways ended on their own`)
  const told = fault.readyz === 503 ? statuses.includes(503) : statuses.every((status) => status === fault.readyz)
  promise(told || fault.readyz === undefined, `/readyz returned ${statuses.join(' and ')}, not ${fault.readyz}`)
  return row
}

function show(rows: [string, Row][]) {
  const columns = [
    'answered',
    'refused',
    'failed',
    'cut',
    'slowest',
    'recovery',
    'stall',
    'acknowledged',
    'found',
    'orders',
    'doubled',
  ] as const
  const table = new Table({ head: ['fault', ...columns, ''], style: { head: [], border: [] } })
  for (const [name, row] of rows)
    table.push([name, ...columns.map((column) => Math.round(row[column])), row.broken.length ? 'BROKEN' : 'kept'])
  console.log(table.toString())
  console.log('slowest, recovery and stall in milliseconds; cut: connections that a killed process took with it;')
  console.log(
    `stall: how long the load itself stood still; what is more than ${USUAL_STALL_MS}, clients may wait longer;`,
  )
  console.log('orders: sent again with their key until they were acknowledged')
  for (const [name, { broken }] of rows) for (const text of broken) console.log(`${name}: ${text}`)
}

await runProgram(async () => {
  const selected = selectFaults()
  // It prints a warning if the build is missing or old.
  const { output } = spawnSync(process.execPath, ['--import', './src/built.mjs', '--eval', ''], { encoding: 'utf8' })
  if (output.join('') !== '') await buildGateway()
  const rows: [string, Row][] = []
  const worlds = new Set(selected.map(({ world }) => JSON.stringify(world ?? {})))
  for (const options of worlds) {
    const group = selected.filter(({ world }) => JSON.stringify(world ?? {}) === options)
    const world = await createWorld(JSON.parse(options))
    for (const fault of group) {
      console.log(`${fault.name} …`)
      rows.push([fault.name, await measure(fault, world)])
      for (const figure of world.figures.splice(0)) console.log(`  ${figure}`)
    }
    await world.stop()
  }
  show(rows)
  if (rows.some(([, { broken }]) => broken.length > 0)) process.exitCode = 1
})
