import { parseArgs } from 'node:util'
import { Refusal } from './lifecycle.js'
import { peerIds, type ServerId } from './servers.js'
import { sections, workloads } from './workloads.js'

export interface Options {
  quick: boolean
  /** No filter was given: the reports are written. */
  complete: boolean
  rounds: number
  seconds: number
  warmUpSeconds: number
  /** Pets of the large database of the growth section. */
  largePets: number
  /** Requests after which memory is read. */
  memoryMarks: [few: number, many: number]
  /** Time for the larger number. */
  memorySeconds: number
  isSelected(section: string): boolean
  hasServer(id: ServerId): boolean
}

const usage = `npm run bench -- [options]
  --quick           about 4 minutes: short rounds, a smaller growth section. For development.
  --only SECTION    only this workload or section; may be repeated: ${[...workloads.map(({ id }) => id), ...sections].join(', ')}
  --peer PEER       only this peer; may be repeated: ${peerIds.join(', ')}
Reports are written only without --only and --peer.`

export function readOptions(): Options {
  const known = new Set([...workloads.map(({ id }) => id), ...sections])
  const { quick = false, only = [], peer = [] } = parse()
  for (const name of only) if (!known.has(name)) throw new Refusal(`Unknown section ${name}.\n${usage}`)
  for (const name of peer) if (!peerIds.includes(name as ServerId)) throw new Refusal(`Unknown peer ${name}.\n${usage}`)
  return {
    quick,
    complete: only.length + peer.length === 0,
    rounds: quick ? 2 : 3,
    seconds: quick ? 2 : 4,
    warmUpSeconds: quick ? 2 : 4,
    largePets: quick ? 300_000 : 1_000_000,
    memoryMarks: quick ? [10_000, 50_000] : [100_000, 1_000_000],
    memorySeconds: quick ? 20 : 240,
    isSelected: (section) => only.length === 0 || only.includes(section),
    hasServer: (id) => id === 'gateway' || peer.length === 0 || peer.includes(id),
  }
}

function parse() {
  const options = {
    quick: { type: 'boolean' },
    only: { type: 'string', multiple: true },
    peer: { type: 'string', multiple: true },
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
