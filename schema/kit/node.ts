import { type GraphQLSchema, isObjectType } from 'graphql'
import { builder, graphqlOnly } from './builder.js'
import { modelOf } from './conditions.js'
import type { Model, Reads } from './context.js'
import { invalidRequest } from './errors.js'
import { getOrCreate } from './get-or-create.js'
import { wrongValue } from './input/problems.js'
import { ids } from './input/rules.js'
import { keyOf } from './model.js'

// Ids that no two objects share, whatever their types, for clients that read an object again without knowing what it is
// (https://relay.dev/graphql/objectidentification.htm). The plugin of Pothos defines types of its own for it; these are
// those of the resources.

/** The types of rows that were found by their ids. */
const types = new WeakMap<object, string>()
/** The ids of rows, each computed once. */
const nodeIds = new WeakMap<object, string>()

const encode = (type: string, key: unknown) => Buffer.from(`${type}:${key}`).toString('base64url')

export const Node = builder.interfaceRef<object>('Node').implement({
  description: 'An object that can be read again by its `nodeId` alone.',
  ...graphqlOnly,
  fields: (t) => ({
    nodeId: t.id({
      ...graphqlOnly,
      description: 'Identifies the object among those of all types. It means nothing else: do not parse it.',
      weight: 4,
      resolve: (row, _args, _context, { parentType: { name } }) =>
        getOrCreate(nodeIds, row, () =>
          encode(name, row[keyOf(modelOf(builder, name) as string).name as keyof typeof row]),
        ),
    }),
  }),
  resolveType: (row) => types.get(row),
})

/** What an id names. @throws ApiError invalid_request */
function decode(nodeId: string, name: string, schema: GraphQLSchema) {
  const [, type = '', key = ''] = /^(\w+):(0|[1-9]\d{0,15})$/.exec(Buffer.from(nodeId, 'base64url').toString()) ?? []
  const named = schema.getType(type)
  const isNode = isObjectType(named) && named.getInterfaces().some(({ name }) => name === 'Node')
  if (isNode && encode(type, key) === nodeId) return { type, key: BigInt(key) }
  throw invalidRequest(wrongValue(name, nodeId, 'must be the nodeId of an object'))
}

/** The rows that ids name, by one statement for each type; null where there is none. */
async function find(named: ReturnType<typeof decode>[], reads: Reads): Promise<(object | null)[]> {
  const found: (object | null)[] = named.map(() => null)
  const readType = async (type: string) => {
    const places = [...named.keys()].filter((i) => named[i]?.type === type)
    const model = modelOf(builder, type) as Model
    const keys = places.map((i) => named[i]?.key)
    const rows = await reads.rows(model, keyOf(model).name as never, keys)
    for (const [i, row] of rows.entries()) {
      if (row) types.set(row, type)
      found[places[i] as number] = row
    }
  }
  await Promise.all(Array.from(new Set(named.map(({ type }) => type)), readType))
  return found
}

builder.queryFields((t) => ({
  node: t.field({
    type: Node,
    description: 'The object with this `nodeId`; null if there is none.',
    rest: false,
    args: { nodeId: t.arg.id({ required: true, description: 'The `nodeId` of an object.' }) },
    resolve: async (_root, { nodeId }, { reads }, { schema }) =>
      (await find([decode(String(nodeId), 'nodeId', schema)], reads))[0],
  }),
  nodes: t.field({
    type: [Node],
    nullable: { list: true, items: true },
    description: 'The objects with these `nodeIds`, in their order; null where there is none.',
    rest: false,
    list: { ids: 'nodeIds' },
    args: { nodeIds: t.arg.idList({ required: true, validate: ids, description: 'Up to 100.' }) },
    resolve: (_root, { nodeIds }, { reads }, { schema }) =>
      find(
        nodeIds.map((nodeId, i) => decode(String(nodeId), `nodeIds[${i}]`, schema)),
        reads,
      ),
  }),
}))
