import { type GraphQLObjectType, type GraphQLOutputType, getNamedType, isObjectType } from 'graphql'
import { stringify } from 'lossless-json'
import { expect } from 'vitest'
import type { PrismaClient } from '../../prisma/generated/client/client.js'
import { restSchema, schema } from '../../schema/index.js'
import { fill, type Operation, type Tree, treeOf } from '../../schema/kit/operations.js'
import { deleteAll, resources } from '../resources/index.js'
import type { Args } from '../resources/resource.js'
import type { Answer, Gateway } from './gateway.js'

// Calls any operation with the same arguments on either surface.

export const json = (value: unknown) => stringify(value) as string

/** Pages and documents that need no key. */
export const openPaths = ['/docs', '/docs/reference.css', '/usage', '/openapi.json', '/openapi.yaml', '/schema.graphql']

/** A preflight of a browser. */
export const preflight = { origin: 'https://a.example', 'access-control-request-method': 'GET' }

export const times = <T>(count: number, item: (i: number) => T) => Array.from({ length: count }, (_, i) => item(i))

/** The arguments that REST takes in the query string. */
export const queryArgs = ({ rest, field }: Operation) =>
  field.args.filter(({ name }) => !['input', 'ifMatch'].includes(name) && !rest.path.includes(`{${name}}`))

export function callRest(gateway: Gateway, operation: Operation, { input, ifMatch, ...args }: Args): Promise<Answer> {
  const { method, path } = operation.rest
  const query = new URLSearchParams()
  for (const { name } of queryArgs(operation))
    if (name in args) for (const value of [args[name]].flat()) query.append(name, String(value))
  const target = fill(path, args) + (query.size > 0 ? `?${query}` : '')
  return gateway.call(method, target, {
    ...(input !== undefined && { body: json(input) }),
    ...(ifMatch !== undefined && { headers: { 'if-match': String(ifMatch) } }),
  })
}

/** Everything that REST shows of a type, and of the objects that `expand` names. */
function selection(type: GraphQLOutputType, expand: Tree = {}): string {
  const named = getNamedType(type)
  if (!isObjectType(named)) return ''
  const plain = Object.values(named.getFields()).map((field) => field.name + selection(field.type))
  const relations = (schema.getType(named.name) as GraphQLObjectType).getFields()
  const expanded = Object.entries(expand).map(([name, below]) => {
    const { name: target } = getNamedType(relations[name]?.type as GraphQLOutputType)
    return name + selection(restSchema.getType(target) as GraphQLObjectType, below)
  })
  return `{ ${[...plain, ...expanded].join(' ')} }`
}

/** The body of a GraphQL request that calls one operation, all of its arguments in variables. */
export function graphqlRequest({ type, name, field }: Operation, args: Args, expand: readonly string[] = []) {
  const given = field.args.filter((arg) => arg.name in args)
  const list = (items: string[]) => (items.length > 0 ? `(${items.join(', ')})` : '')
  const declared = list(given.map((arg) => `$${arg.name}: ${arg.type}`))
  const passed = list(given.map((arg) => `${arg.name}: $${arg.name}`))
  return json({
    query: `${type.toLowerCase()} ${declared} { ${name}${passed} ${selection(field.type, treeOf(expand))} }`,
    variables: args,
  })
}

export const callGraphql = (
  gateway: Gateway,
  operation: Operation,
  args: Args,
  expand?: readonly string[],
): Promise<Answer> => gateway.call('POST', '/graphql', { body: graphqlRequest(operation, args, expand) })

// One statement, because hundreds of tests begin with it.
const RESET = `DO $$ BEGIN
  ${deleteAll}
  ${Object.values(resources)
    .flatMap(({ rows }) => (rows ? `${rows};` : []))
    .join('\n  ')}
END $$`

/** Deletes all rows of resources. New ones begin with the id 1 again. */
export const emptyStore = (prisma: PrismaClient) => prisma.$executeRawUnsafe(`DO $$ BEGIN ${deleteAll} END $$`)

/** Resets the data to the same rows: those of test/resources. */
export const resetStore = (prisma: PrismaClient) => prisma.$executeRawUnsafe(RESET)

/** All stored rows, to check whether something has changed them. */
export const contents = async (prisma: PrismaClient) =>
  Object.fromEntries(
    await Promise.all(
      Object.entries(resources).map(async ([name, { contents }]) => [name, await contents?.(prisma)] as const),
    ),
  )

/** Expects the headers that every response of both surfaces has. */
export function expectCommonHeaders({ headers }: Answer, label?: string) {
  for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'])
    expect(headers.get(name), `${name} of ${label}`).toMatch(/^\d+$/)
  expect(headers.get('ratelimit'), label).toMatch(/^"minute";r=\d+;t=\d+, "day";r=\d+;t=\d+$/)
  expect(headers.get('ratelimit-policy'), label).toMatch(/^"minute";q=\d+;w=60, "day";q=\d+;w=86400$/)
  expect(headers.get('x-request-id'), label).toMatch(/^[\x21-\x7e]{1,128}$/)
  expect(headers.get('access-control-allow-origin'), label).toBe('*')
  expect(headers.get('cache-control'), label).toBe('private, no-cache')
  expect(headers.get('x-content-type-options'), label).toBe('nosniff')
}

/** How many circles of statements that wait for each other PostgreSQL has broken up in this database. */
export async function deadlocksOf(prisma: PrismaClient): Promise<bigint> {
  const [row] = await prisma.$queryRaw<[{ deadlocks: bigint }]>`
    SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`
  return row.deadlocks
}
