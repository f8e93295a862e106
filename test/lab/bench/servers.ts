import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand, startServer } from './processes.js'

/** The gateway exactly as `npm start` starts it, V8 flags included. */
export const gatewayCommand = (JSON.parse(readFileSync('package.json', 'utf8')).scripts.start as string)
  .split(' ')
  .slice(1)

/** The peers, and the loader of last resort, run as plain JavaScript: a compiling loader would cost memory. */
const compiled = 'test/lab/bench/dist/test/lab/bench'

export const serverTitles = {
  gateway: 'this gateway',
  'fastify-prisma': 'Fastify + Prisma, keys and limits',
  'fastify-pg': 'Fastify + pg, bare',
  mercurius: 'Mercurius + Prisma, keys and limits',
  postgraphile: 'PostGraphile 5, neither keys nor limits',
  naive: 'Yoga + SOFA + Pothos + Prisma, naive',
  'gateway-no-key': 'this gateway, without Idempotency-Key',
  'gateway-single': 'this gateway, one at a time',
  'gateway-no-stock': 'this gateway, without takeStock',
  'gateway-one-pet': 'this gateway, all of one pet',
  'gateway-plain': 'this gateway, without expand',
  'gateway-three': 'this gateway, three requests instead',
}

export const shortTitles: Record<ServerId, string> = {
  gateway: 'gateway',
  'fastify-prisma': 'Fastify + Prisma',
  'fastify-pg': 'Fastify + pg',
  mercurius: 'Mercurius',
  postgraphile: 'PostGraphile 5',
  naive: 'naive',
  'gateway-no-key': 'without the key',
  'gateway-single': 'one at a time',
  'gateway-no-stock': 'without takeStock',
  'gateway-one-pet': 'all of one pet',
  'gateway-plain': 'without expand',
  'gateway-three': 'one of three requests',
}

export type ServerId = keyof typeof serverTitles
export const peerIds = Object.keys(serverTitles).filter((id) => !id.startsWith('gateway')) as ServerId[]

/** Builds the gateway with the project's own script, where there is one; `npm start` builds otherwise. */
export const buildGateway = () => runCommand('npm', ['run', '--if-present', 'build'])

const install = (folder: string) => runCommand(process.execPath, ['test/lab/tools/install.mjs', folder])

export async function compilePeers() {
  await install('test/lab/bench')
  await install('test/lab/check')
  await runCommand(process.execPath, ['test/lab/check/node_modules/typescript/bin/tsc', '-p', 'test/lab/bench'])
}

export const compiledFile = (name: string) => join(compiled, `${name}.js`)

const POSTGRAPHILE = 'test/lab/bench/peers/postgraphile'

/** PostGraphile needs a later Node than the gateway; what is compared with it runs on that one, too. */
export async function nodeFor(ids: Iterable<ServerId>) {
  if (![...ids].includes('postgraphile')) return process.execPath
  await install(POSTGRAPHILE)
  return `${POSTGRAPHILE}/node_modules/node-linux-${process.arch}/bin/node`
}

interface Start {
  processes?: number
  node?: string
}

export async function startById(id: ServerId, env: Record<string, string>, { processes = 1, node }: Start = {}) {
  if (id.startsWith('gateway')) return startServer(gatewayCommand, { ...env, GATEWAYS: String(processes) }, node)
  // It is not compiled, and has packages of its own.
  if (id === 'postgraphile')
    return startServer([`${POSTGRAPHILE}/server.mjs`], { GRAPHILE_ENV: 'production', ...env }, node)
  const peer = compiledFile(`peers/${id}`)
  return startServer(processes > 1 ? [compiledFile('peers/cluster'), peer, String(processes)] : [peer], env, node)
}
