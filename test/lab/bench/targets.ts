import { find, overFewKeys, overOurs, overPeer, type Ratio, type Results, type WorkloadResult } from './results.js'
import { type ServerId, serverTitles } from './servers.js'
import { BATCH, getInThree } from './templates.js'
import { mainPeer, workloads } from './workloads.js'

type ByConnections = Partial<Record<number, number>>

const nested = { mercurius: { 1: 1.8, 4: 2.4, 32: 3.8 }, postgraphile: { 1: 1.3, 4: 1.4, 32: 2 } }

/** What the peer's processor time is over the gateway's; in company, at 32, the gateway's requests/s over the peer's. */
const ratios: Record<string, Partial<Record<ServerId, ByConnections>>> = {
  'get-one': { 'fastify-prisma': { 1: 1.3, 4: 1.4, 8: 1.4, 32: 1.8 }, 'fastify-pg': { 32: 0.92 } },
  'get-20': { 'fastify-prisma': { 1: 1.15, 4: 1.25, 8: 1.4, 32: 2 }, 'fastify-pg': { 32: 0.82 } },
  mix: { 'fastify-prisma': { 1: 1.15, 4: 1.15, 8: 1.25, 32: 1.3 } },
  // Two processes are no worse than one.
  'get-one-two': { 'fastify-prisma': { 32: 1.8 } },
  'get-20-two': { 'fastify-prisma': { 32: 2 } },
  'mix-two': { 'fastify-prisma': { 32: 1.3 } },
  'graphql-one': { mercurius: { 1: 1.4, 4: 1.4, 8: 1.4, 32: 1.4 } },
  'graphql-three-levels': { mercurius: { 32: 1.4 } },
  'nested-shop-same': nested,
  'nested-deep-same': nested,
  'nested-wide-same': nested,
  'post-order': { 'fastify-prisma': { 32: 1.4 } },
  'patch-stock': { 'fastify-prisma': { 32: 1.5 } },
}
const MEMORY = 1.25
const IDEMPOTENCY_KEY = 1.75
const BATCH_SHARE = { cpu: 0.1, postgresCpu: 0.15 }
const TAKING = 1.5
const EXPANDING = 1.6
const INSTEAD_OF_THREE = 0.5
const MANY_KEYS = 1.15
/** Of PostgreSQL, which writes the usage of each. */
const VERY_MANY_KEYS = 1.5
const QUESTION_MS = 100
const MAIN_QUESTION_MS = 5

export interface TargetRow {
  what: string
  against: string
  target: string
  measured: string
  met: boolean
}

const two = (value: number) => value.toFixed(2)
/** As shown: a measured 1.50 meets a target of 1.50. */
const rounded = (value: number) => Math.round(value * 100) / 100
const spread = ({ median, min, max }: Ratio) => `${two(median)} × (${two(min)} to ${two(max)})`
const connections = (count: number) => (count === 1 ? '1 connection' : `${count} connections`)

const atLeast = (what: string, against: string, target: number, measured: Ratio): TargetRow => ({
  what,
  against,
  target: `at least ${two(target)} ×`,
  measured: spread(measured),
  met: rounded(measured.median) >= target,
})
const atMost = (what: string, against: string, target: number, measured: Ratio): TargetRow => ({
  ...atLeast(what, against, target, measured),
  target: `at most ${two(target)} ×`,
  met: rounded(measured.median) <= target,
})

export const targetOf = ({ id, connections }: WorkloadResult, peer: ServerId) => ratios[id]?.[peer]?.[connections]

/** Nested questions take much of their time in PostgreSQL, which requests/s would compare, too. */
const isByProcessor = ({ id, connections }: WorkloadResult) => connections < 32 || id.startsWith('nested-')

/** What targets are about: processor time where the machine has time left, requests/s where it has none. */
export const comparedBy = (result: WorkloadResult, peer: ServerId) =>
  isByProcessor(result) ? overOurs(result, peer, 'cpu') : overPeer(result, peer, 'perSecond')

/** Every target beside what was measured. */
export function compareWithTargets(results: Results): TargetRow[] {
  return [
    ...results.workloads.flatMap(ratioRows),
    ...latencyRows(results),
    ...memoryRows(results),
    ...keyRows(results),
    ...batchRows(results),
    ...stockRows(results),
    ...expandRows(results),
    ...results.growth.map(({ title, from, to, slowdown, target }) =>
      atMost(`time, ${title}, ${to.name}`, from.name, target, slowdown),
    ),
    ...keysInUseRows(results),
    ...questionRows(results),
  ]
}

function ratioRows(result: WorkloadResult): TargetRow[] {
  const what = isByProcessor(result) ? "the peer's processor time over ours" : "our requests/s over the peer's"
  return (Object.keys(result.servers) as ServerId[]).flatMap((peer) => {
    const [target, measured] = [targetOf(result, peer), comparedBy(result, peer)]
    const title = `${result.title}, ${connections(result.connections)}: ${what}`
    return target && measured ? atLeast(title, serverTitles[peer], target, measured) : []
  })
}

/** Nobody waits longer for the gateway: typically where they are few, in the worst case where they are many. */
const latencyRows = ({ workloads: results }: Results): TargetRow[] =>
  withMainPeer(results).flatMap(({ result, peer }) => {
    const field = result.connections < 32 ? 'p50' : result.connections > 32 ? 'p99' : undefined
    const measured = field && overPeer(result, peer, field)
    const title = `${result.title}, ${connections(result.connections)}: ${field}`
    return measured ? atMost(title, serverTitles[peer], 1, measured) : []
  })

/** The worst workload for each peer. */
function memoryRows({ workloads: results }: Results): TargetRow[] {
  const worst = new Map<string, { title: string; against: string; measured: Ratio }>()
  for (const { result, peer } of withMainPeer(results)) {
    if (result.connections !== 1 && result.connections !== 32) continue
    const measured = overPeer(result, peer, 'memoryMB')
    const key = `${peer} ${result.connections}`
    if (!measured || measured.median <= (worst.get(key)?.measured.median ?? 0)) continue
    const title = `resident memory, ${connections(result.connections)}, largest ratio: ${result.title}`
    worst.set(key, { title, against: serverTitles[peer], measured })
  }
  return [...worst.values()].map(({ title, against, measured }) => atMost(title, against, MEMORY, measured))
}

const withMainPeer = (results: WorkloadResult[]) =>
  results.flatMap((result) => {
    const workload = workloads.find(({ id }) => id === result.id)
    return workload ? [{ result, peer: mainPeer(workload) }] : []
  })

function keyRows(results: Results): TargetRow[] {
  const result = find(results, 'post-order-key', 32)
  const times = result && overOurs(result, 'gateway-no-key', 'perSecond')
  return times ? [atMost('POST order with Idempotency-Key: time', 'POST order', IDEMPOTENCY_KEY, times)] : []
}

const divided = ({ median, min, max }: Ratio, by: number): Ratio => ({
  median: median / by,
  min: min / by,
  max: max / by,
})

/** What one of many costs, over what it costs alone. */
function batchRows(results: Results): TargetRow[] {
  const batches = results.workloads.filter(({ id }) => id === 'post-pets')
  return batches.flatMap((result) =>
    (['cpu', 'postgresCpu'] as const).flatMap((field) => {
      const measured = overPeer(result, 'gateway-single', field)
      if (!measured || Number.isNaN(measured.median)) return []
      const where = field === 'cpu' ? '' : ' of PostgreSQL'
      const what = `a pet in a batch of ${BATCH}, ${connections(result.connections)}: processor time${where}`
      return [atMost(what, 'POST of one pet', BATCH_SHARE[field], divided(measured, BATCH))]
    }),
  )
}

/** A page with what belongs to its items, over the page alone, and over the requests that it replaces. */
function expandRows(results: Results): TargetRow[] {
  const result = find(results, 'get-expanded', 32)
  const plain = result && overPeer(result, 'gateway-plain', 'cpu')
  const third = result && overPeer(result, 'gateway-three', 'cpu')
  return [
    ...(plain ? [atMost('GET 20 with category and stock: processor time', 'GET 20', EXPANDING, plain)] : []),
    ...(third
      ? [
          atMost(
            'GET 20 with category and stock: processor time',
            'the three requests that it replaces',
            INSTEAD_OF_THREE,
            divided(third, getInThree.length),
          ),
        ]
      : []),
  ]
}

function stockRows(results: Results): TargetRow[] {
  const result = find(results, 'post-order-stock', 32)
  return (['cpu', 'postgresCpu'] as const).flatMap((field) => {
    const inverse = result && overPeer(result, 'gateway-no-stock', field)
    if (!inverse || Number.isNaN(inverse.median)) return []
    const where = field === 'cpu' ? '' : ' of PostgreSQL'
    return [atMost(`POST order with takeStock: processor time${where}`, 'POST order', TAKING, inverse)]
  })
}

/** With many keys in use, over ten keys with as many gateways. */
function keysInUseRows({ inUse = [] }: Results): TargetRow[] {
  return inUse.flatMap((result) => {
    const compared = [
      ['of the gateway', 'cpu'],
      ['of Redis', 'redisCpu'],
      ['of PostgreSQL', 'postgresCpu'],
    ] as const
    return compared.flatMap(([whose, field]) => {
      const target = result.keys > 10_000 && field === 'postgresCpu' ? VERY_MANY_KEYS : MANY_KEYS
      const measured = overFewKeys(inUse, result, field)
      if (result.keys <= 10 || Number.isNaN(measured.median)) return []
      return atMost(`GET one, ${result.title}: processor time ${whose}`, 'ten keys', target, measured)
    })
  })
}

function questionRows({ questions }: Results): TargetRow[] {
  const [dearest] = questions?.dearest ?? []
  if (!questions || !dearest) return []
  const row = (what: string, ms: number, target: number) => ({
    what,
    against: `${questions.rows.toLocaleString('en-US')} rows`,
    target: `at most ${target} ms`,
    measured: `${ms.toFixed(1)} ms`,
    met: ms <= target,
  })
  return [
    row('the dearest statement of an accepted question', dearest.maxMs, QUESTION_MS),
    row('low stock among the available pets', questions.lowStock.maxMs, MAIN_QUESTION_MS),
    ...(questions.inStock
      ? [row('available pets of a category in stock, by name', questions.inStock.maxMs, MAIN_QUESTION_MS)]
      : []),
  ]
}
