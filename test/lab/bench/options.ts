import { parseArgs } from 'node:util'
import { Refusal } from './lifecycle.js'
import { peerIds, type ServerId } from './servers.js'
import { sections, workloads } from './workloads.js'

export interface Options {
  quick: boolean
  /** No filter was given: the reports are written. */
  complete: boolean
  /** Nothing is measured: the reports are written again. */
  reportOnly: boolean
  rounds: number
  seconds: number
  warmUpSeconds: number
  /** Pets, and orders, of the large database. */
  largePets: number
  /** Requests after which memory is read. */
  memoryMarks: [few: number, many: number]
  /** Time for the larger number. */
  memorySeconds: number
  /** Rounds, and the seconds of each, in which keys are compared. */
  keyRounds: number
  keySeconds: number
  /** Days of usage of 10,000 keys that the tables have. */
  usageDays: number
  isSelected(section: string): boolean
  hasServer(id: ServerId): boolean
  hasLevel(connections: number): boolean
}

const usage = `npm run bench -- [options]
  --quick           about 5 minutes: short rounds, fewer connections and rows, no naive peer. For development.
  --only SECTION    only this workload or section; may be repeated: ${[...workloads.map(({ id }) => id), ...sections].join(', ')}
  --peer PEER       only this peer; may be repeated: ${peerIds.join(', ')}
  --report          measures nothing: writes the reports again, from docs/benchmarks/results.json
Reports are written only without --only and --peer.`

const QUICK_LEVELS = [1, 8, 32]

export function readOptions(): Options {
  const known = new Set([...workloads.map(({ id }) => id), ...sections])
  const { quick = false, only = [], peer = [], report = false } = parse()
  for (const name of only) if (!known.has(name)) throw new Refusal(`Unknown section ${name}.\n${usage}`)
  for (const name of peer) if (!peerIds.includes(name as ServerId)) throw new Refusal(`Unknown peer ${name}.\n${usage}`)
  return {
    quick,
    complete: only.length + peer.length === 0,
    reportOnly: report,
    // Short rounds alternate often: the pace of a shared machine changes within seconds.
    rounds: quick ? 2 : 7,
    seconds: 1,
    warmUpSeconds: quick ? 1 : 10,
    largePets: quick ? 300_000 : 1_000_000,
    memoryMarks: quick ? [10_000, 50_000] : [100_000, 1_000_000],
    memorySeconds: quick ? 10 : 150,
    keyRounds: quick ? 1 : 2,
    keySeconds: 45,
    usageDays: quick ? 30 : 365,
    isSelected: (section) => only.length === 0 || only.includes(section),
    hasServer: (id) => id.startsWith('gateway') || (peer.length === 0 ? !quick || id !== 'naive' : peer.includes(id)),
    hasLevel: (connections) => !quick || QUICK_LEVELS.includes(connections),
  }
}

function parse() {
  const options = {
    quick: { type: 'boolean' },
    only: { type: 'string', multiple: true },
    peer: { type: 'string', multiple: true },
    report: { type: 'boolean' },
    help: { type: 'boolean' },
  } as const
  try {
    const { values } = parseArgs({ options })
    if (values.help) throw new Refusal(usage)
    return values
  } catch (error) {
    throw error instanceof Refusal ? error : new Refusal(`${(error as Error).message}\n${usage}`)
  }
}
