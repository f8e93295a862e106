import type { ServerId } from './servers.js'

/** `{pet}`, `{start}`, `{category}` and `{quantity}` are filled in at random for each request. */
export interface Template {
  weight: number
  method: 'GET' | 'POST' | 'PATCH'
  path: string
  body?: string
  /** Each request has an Idempotency-Key of its own. */
  isIdempotent?: true
}

export interface Workload {
  id: string
  title: string
  connections: number
  servers: ServerId[]
  templates: Template[]
  /** The least ratio of requests per second to a peer. */
  targets?: Partial<Record<ServerId, number>>
  /** Its rounds may take at most so many times as long, for each request, as those of another workload. */
  atMost?: { times: number; of: string }
  /** The 99th percentile is at most this peer's. */
  p99Peer?: ServerId
  /** Tables are put back in order before each round. */
  writes?: boolean
}

const CONNECTIONS = 32
const rest: ServerId[] = ['gateway', 'fastify-prisma', 'fastify-pg', 'naive']
const graphql: ServerId[] = ['gateway', 'mercurius', 'naive']

const getOne: Template = { weight: 1, method: 'GET', path: '/pets/{pet}' }
const getTwenty: Template = { weight: 1, method: 'GET', path: '/pets?limit=20&after={start}' }
const getFiltered: Template = {
  weight: 1,
  method: 'GET',
  path: '/pets?limit=20&status=available&categoryId={category}&after={start}',
}
const postOrder: Template = {
  weight: 1,
  method: 'POST',
  path: '/store/orders',
  body: '{"petId":{pet},"quantity":{quantity}}',
}
const patchStock: Template = { weight: 1, method: 'PATCH', path: '/inventory/{pet}', body: '{"quantity":{quantity}}' }

const query = (text: string, variables: string): Template => ({
  weight: 1,
  method: 'POST',
  path: '/graphql',
  body: `{"query":${JSON.stringify(text)},"variables":${variables}}`,
})

export const readTemplates = { getOne, getTwenty, getFiltered }

export const workloads: Workload[] = [
  {
    id: 'get-one',
    title: 'GET one',
    connections: CONNECTIONS,
    servers: rest,
    templates: [getOne],
    targets: { 'fastify-prisma': 1.5, 'fastify-pg': 0.8 },
  },
  {
    id: 'get-20',
    title: 'GET 20',
    connections: CONNECTIONS,
    servers: rest,
    templates: [getTwenty],
    targets: { 'fastify-prisma': 1.35, 'fastify-pg': 0.6 },
  },
  {
    id: 'get-filtered',
    title: 'GET 20, filtered',
    connections: CONNECTIONS,
    servers: rest,
    templates: [getFiltered],
    targets: { 'fastify-prisma': 1.2 },
  },
  {
    id: 'graphql-one',
    title: 'GraphQL one',
    connections: CONNECTIONS,
    servers: graphql,
    templates: [
      query('query Pet($petId: Int64!) { pet(petId: $petId) { id name categoryId status } }', '{"petId":{pet}}'),
    ],
    targets: { mercurius: 1.5 },
  },
  {
    id: 'graphql-three-levels',
    title: 'GraphQL three levels',
    connections: CONNECTIONS,
    servers: graphql,
    templates: [
      query(
        'query Pets($after: Int64) { pets(limit: 10, after: $after) { id name category { name } orders(limit: 3) { id quantity } inventory { quantity } } }',
        '{"after":{start}}',
      ),
    ],
    targets: { mercurius: 1.4 },
  },
  {
    id: 'post-order',
    title: 'POST order',
    connections: CONNECTIONS,
    servers: rest,
    templates: [postOrder],
    targets: { 'fastify-prisma': 1.0 },
    writes: true,
  },
  {
    id: 'post-order-key',
    title: 'POST order with Idempotency-Key',
    connections: CONNECTIONS,
    servers: ['gateway'],
    templates: [{ ...postOrder, isIdempotent: true }],
    atMost: { times: 2.5, of: 'post-order' },
    writes: true,
  },
  {
    id: 'patch-stock',
    title: 'PATCH stock',
    connections: CONNECTIONS,
    servers: rest,
    templates: [patchStock],
    targets: { 'fastify-prisma': 1.1 },
    writes: true,
  },
  {
    id: 'mix',
    title: 'mix 90/10',
    connections: CONNECTIONS,
    servers: rest,
    templates: [
      { ...getOne, weight: 50 },
      { ...getTwenty, weight: 25 },
      { ...getFiltered, weight: 15 },
      { ...postOrder, weight: 5 },
      { ...patchStock, weight: 5 },
    ],
    targets: { 'fastify-prisma': 1.2 },
    writes: true,
  },
  {
    id: 'get-one-256',
    title: 'GET one, 256 connections',
    connections: 256,
    servers: ['gateway', 'fastify-prisma', 'fastify-pg'],
    templates: [getOne],
    p99Peer: 'fastify-prisma',
  },
  {
    // Nothing arrives together, so nothing is shared: the most that one request can cost the stores.
    id: 'get-one-alone',
    title: 'GET one, 1 connection',
    connections: 1,
    servers: ['gateway', 'fastify-prisma'],
    templates: [getOne],
  },
]

/** What is measured beside the workloads. */
export const sections = ['growth', 'memory']

/** The peer whose memory is the bound: the one with the same duties. */
export const memoryPeer = ({ servers }: Workload): ServerId =>
  servers.includes('mercurius') ? 'mercurius' : 'fastify-prisma'
