import type { ServerId } from './servers.js'
import * as ask from './templates.js'

export interface Workload {
  id: string
  title: string
  templates: ask.Template[]
  /** How many connections each server is loaded with. */
  servers: Partial<Record<ServerId, readonly number[]>>
  /** The same questions for a server with a schema of its own. */
  inOtherWords?: Partial<Record<ServerId, ask.Template[]>>
  /** Tables are put back in order before each round. */
  writes?: true
  /** A statement that makes the tables fit for it. */
  setUp?: string
  /** How many processes each of its servers has; default: 1. */
  processes?: number
  /** Its servers are not asked for the same. */
  isMixed?: true
}

/** Alone, in company, and more than anybody should send to one process. */
const every = [1, 4, 8, 32, 256]
const company = [32]
const fewAndMany = [1, 4, 32]
const aloneAndMany = [1, 32]

type Pages = Record<'same' | 'random', ask.Template>

const rest = { gateway: company, 'fastify-prisma': company }
const restOfOldest = { ...rest, naive: company }
const graphql = { gateway: company, mercurius: company }
const withBare = { gateway: every, 'fastify-prisma': every, 'fastify-pg': company, naive: company }

/** A nested question, for the same page and for pages at random. */
const nested = (name: string, own: Pages, inTables: Pages): Workload[] =>
  (['same', 'random'] as const).map((pages) => ({
    id: `nested-${name}-${pages}`,
    title: `nested ${name}, ${pages === 'same' ? 'the same page' : 'pages at random'}`,
    servers: { gateway: fewAndMany, mercurius: fewAndMany, postgraphile: fewAndMany },
    templates: [own[pages]],
    inOtherWords: { postgraphile: [inTables[pages]] },
  }))

const inTwo: Workload[] = [
  { id: 'get-one', title: 'GET one', templates: [ask.getOne] },
  { id: 'get-20', title: 'GET 20', templates: [ask.getTwenty] },
  { id: 'mix', title: 'mix 90/10', templates: ask.mixed, writes: true as const },
].map((workload) => ({
  ...workload,
  id: `${workload.id}-two`,
  title: `${workload.title}, two processes`,
  servers: { gateway: company, 'fastify-prisma': company },
  processes: 2,
}))

export const workloads: Workload[] = [
  { id: 'get-one', title: 'GET one', servers: withBare, templates: [ask.getOne] },
  { id: 'get-20', title: 'GET 20', servers: withBare, templates: [ask.getTwenty] },
  {
    id: 'mix',
    title: 'mix 90/10',
    servers: { gateway: every, 'fastify-prisma': every, naive: company },
    templates: ask.mixed,
    writes: true,
  },
  {
    id: 'graphql-one',
    title: 'GraphQL one',
    servers: { gateway: every, mercurius: every, naive: company },
    templates: [ask.graphqlOne],
  },
  { id: 'get-filtered', title: 'GET 20, filtered', servers: restOfOldest, templates: [ask.getFiltered] },
  {
    id: 'get-expanded',
    title: 'GET 20 with category and stock',
    servers: { gateway: company, 'gateway-plain': company, 'gateway-three': company },
    templates: [ask.getExpanded],
    inOtherWords: { 'gateway-plain': [ask.getTwenty], 'gateway-three': ask.getInThree },
    isMixed: true,
  },
  {
    id: 'graphql-three-levels',
    title: 'GraphQL three levels',
    servers: { ...graphql, naive: company, postgraphile: company },
    templates: [ask.graphqlThreeLevels],
    inOtherWords: { postgraphile: [ask.postgraphile.threeLevels] },
  },
  ...nested('shop', ask.nestedShop, ask.postgraphile.nestedShop),
  ...nested('deep', ask.nestedDeep, ask.postgraphile.nestedDeep),
  ...nested('wide', ask.nestedWide, ask.postgraphile.nestedWide),
  { id: 'post-order', title: 'POST order', servers: restOfOldest, templates: [ask.postOrder], writes: true },
  {
    id: 'post-order-key',
    title: 'POST order, idempotent',
    servers: { gateway: aloneAndMany, 'gateway-no-key': aloneAndMany },
    templates: [{ ...ask.postOrder, isIdempotent: true }],
    inOtherWords: { 'gateway-no-key': [ask.postOrder] },
    writes: true,
  },
  {
    id: 'post-pets',
    title: `POST ${ask.BATCH} pets`,
    servers: { gateway: aloneAndMany, 'gateway-single': aloneAndMany },
    templates: [ask.postPets],
    inOtherWords: { 'gateway-single': [ask.postPet] },
    writes: true,
    isMixed: true,
  },
  {
    id: 'post-order-stock',
    title: 'POST order that takes stock, of 1,000 pets',
    servers: { gateway: company, 'gateway-no-stock': company, 'gateway-one-pet': company },
    templates: [ask.sellStock.thousand],
    inOtherWords: { 'gateway-no-stock': [ask.sellStock.none], 'gateway-one-pet': [ask.sellStock.one] },
    setUp: 'UPDATE "InventoryItem" SET quantity = 1000000000 WHERE "petId" <= 1000',
    writes: true,
    isMixed: true,
  },
  { id: 'patch-stock', title: 'PATCH stock', servers: restOfOldest, templates: [ask.patchStock], writes: true },
  { id: 'different', title: 'ten different GETs', servers: rest, templates: ask.different },
  { id: 'graphql-different', title: 'ten different queries', servers: graphql, templates: ask.graphqlDifferent },
  { id: 'by-name', title: 'GET 20 by name', servers: rest, templates: [ask.byName] },
  { id: 'search', title: 'GET 20, search', servers: rest, templates: [ask.search] },
  { id: 'low-stock', title: 'GET low stock', servers: rest, templates: [ask.lowStock] },
  {
    id: 'graphql-list',
    title: 'GraphQL 20',
    servers: { ...graphql, postgraphile: company },
    templates: [ask.graphqlList],
    inOtherWords: { postgraphile: [ask.postgraphile.list] },
  },
  {
    id: 'graphql-total',
    title: 'GraphQL 20 with total',
    servers: { ...graphql, postgraphile: company },
    templates: [ask.graphqlTotal],
    inOtherWords: { postgraphile: [ask.postgraphile.total] },
  },
  ...inTwo,
]

export const templatesFor = ({ templates, inOtherWords }: Workload, server: ServerId) =>
  inOtherWords?.[server] ?? templates

/** What is measured beside the workloads. */
export const sections = ['growth', 'questions', 'memory', 'keys']

/** The peer with the same duties. */
export const mainPeer = ({ servers }: Workload): ServerId => (servers.mercurius ? 'mercurius' : 'fastify-prisma')
