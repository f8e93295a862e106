import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand, startServer } from './processes.js'

/** The gateway exactly as `npm start` starts it, V8 flags included. */
const gatewayCommand = (JSON.parse(readFileSync('package.json', 'utf8')).scripts.start as string).split(' ').slice(1)

/** The peers, and the loader of last resort, run as plain JavaScript: a compiling loader would cost memory. */
const compiled = 'dist/bench/test/bench'

export const serverTitles = {
  gateway: 'this gateway',
  'fastify-prisma': 'Fastify + Prisma, keys and limits',
  'fastify-pg': 'Fastify + pg, bare',
  mercurius: 'Mercurius + Prisma, keys and limits',
  naive: 'Yoga + SOFA + Pothos + Prisma, naive',
}

export const shortTitles: Record<ServerId, string> = {
  gateway: 'gateway',
  'fastify-prisma': 'Fastify + Prisma',
  'fastify-pg': 'Fastify + pg',
  mercurius: 'Mercurius',
  naive: 'naive',
}

export type ServerId = keyof typeof serverTitles
export const peerIds = Object.keys(serverTitles).filter((id) => id !== 'gateway') as ServerId[]

/** Builds the gateway with the project's own script, where there is one; `npm start` builds otherwise. */
export const buildGateway = () => runCommand('npm', ['run', '--if-present', 'build'])

export const compilePeers = () => runCommand(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'test/bench'])

export const compiledFile = (name: string) => join(compiled, `${name}.js`)

export function startById(id: ServerId, env: Record<string, string>) {
  const command = id === 'gateway' ? gatewayCommand : [compiledFile(`peers/${id}`)]
  return startServer(command, env)
}
